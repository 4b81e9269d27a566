"""Keep what sessions have to know of synopses and cubes: which there are, since when, for whom, and their notices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from rules.accounting.store import KeptRelease
from rules.catalog import TableName
from rules.planner.plan import PreviewRows
from rules.policy.model import Policy
from rules.refusal import NotAllowed, NotMade, NotSupported, Refusal


@dataclass(frozen=True, slots=True)
class SynopsisState:
    """One synopsis of the rules in force."""

    name: str
    epsilon: Decimal
    made_at: datetime | None = None  # None: it has no rows
    readers: tuple[str, ...] = ()
    rows: tuple[PreviewRows, ...] = ()  # its tables, for previews

    @property
    def notice(self) -> str:
        """Write what its reader is told, once a session."""
        day = "" if self.made_at is None else f", made {self.made_at:%Y-%m-%d}"
        return f'"{self.name}" holds synthetic rows{day} at epsilon {self.epsilon:f}; see noisegate.synopses'

    def refusal(self, analyst: str) -> Refusal | None:
        """Explain why this analyst cannot read it."""
        if self.made_at is None:
            hint = f"Ask your DBA to run noisegate synopsis make with the name {self.name}."
            return NotMade(f'synopsis "{self.name}" has not been made by the rules in force', hint=hint)
        if analyst not in self.readers:
            hint = (
                f"Your budget does not hold its epsilon {self.epsilon:f}, or the rules do not name you: ask your DBA."
            )
            return NotAllowed(f'permission denied for synopsis "{self.name}"', hint=hint)
        return None


class SynopsisBook:
    """The synopses that have rows now, as whoever shows them says."""

    def __init__(self) -> None:
        self._shown: Mapping[str, SynopsisState] = {}

    def tell(self, shown: Mapping[str, SynopsisState]) -> None:
        """Take the place of what was said before."""
        self._shown = shown

    def find(self, name: str, policy: Policy) -> SynopsisState | None:
        """A synopsis of the rules, be it made or not."""
        rules = policy.schemas.get(name)
        return None if rules is None else self._shown.get(name) or SynopsisState(name, rules.epsilon)

    def preview_rows(self, analyst: str, policy: Policy) -> tuple[PreviewRows, ...]:
        """Choose what previews show an analyst: of each table the rows of the first synopsis that has it."""
        preview_rowses: dict[TableName, PreviewRows] = {}
        for state in (self._shown[name] for name in policy.schemas if name in self._shown):
            for rows in state.rows if analyst in state.readers else ():
                preview_rowses.setdefault(rows.table, rows)
        return tuple(preview_rowses.values())


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


def without_bars(position: int | None) -> Refusal:
    """For error bars around synthetic rows."""
    return NotSupported(
        "synthetic rows have no error bars",
        hint="Ask the table itself, or see noisegate.synopsis_pairs.",
        position=position,
    )


def lasting(cubes: Iterable[CubeState]) -> tuple[int, ...]:
    """The releases of cubes, which serve whoever has paid for them for as long as their cube stands."""
    return tuple(sorted(release for cube in cubes for release in cube.releases))


def cubes_among(cubes: Iterable[CubeState], kept: Iterable[KeptRelease]) -> tuple[CubeState, ...]:
    """Those of which something is served."""
    served = {release.id for release in kept if release.is_lasting}
    return tuple(cube for cube in cubes if cube.releases & served)
