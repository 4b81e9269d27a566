"""The cubes that statements may be answered from: which releases they are, since when, and for whom."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rules.accounting.store import KeptRelease


@dataclass(frozen=True, slots=True)
class CubeState:
    """One cube of the rules in force that has been made."""

    name: str
    made_at: datetime
    readers: tuple[str, ...]  # who have paid for all of it
    releases: frozenset[int]

    def __str__(self) -> str:
        return f"{self.name} made {self.made_at:%Y-%m-%d}"


class CubeBook:
    """The cubes that stand now, as whoever keeps them says."""

    def __init__(self) -> None:
        self._known: Mapping[str, CubeState] = {}

    def tell(self, known: Mapping[str, CubeState]) -> None:
        """Take the place of what was said before."""
        self._known = known

    @property
    def standing(self) -> tuple[CubeState, ...]:
        return tuple(self._known.values())


def lasting(cubes: Iterable[CubeState]) -> tuple[int, ...]:
    """The releases of cubes, which serve whoever has paid for them for as long as their cube stands."""
    return tuple(sorted(release for cube in cubes for release in cube.releases))


def cubes_among(cubes: Iterable[CubeState], kept: Iterable[KeptRelease]) -> tuple[CubeState, ...]:
    """Those of which something is served."""
    served = {release.id for release in kept if release.is_lasting}
    return tuple(cube for cube in cubes if cube.releases & served)
