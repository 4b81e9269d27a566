"""Find how many blocks of units the median of their values needs, and how far the ends of its error bar lie.

The exponential mechanism gives a candidate that is off by d blocks e^(−ε·d/2r) of the weight of the median, where r is
how many values units that are protected together may replace. Among all candidates those that no block is near, and
which are off by half of the blocks, are chosen with a probability of less than β if B ≥ (4r/ε)·ln(candidates/β).
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from statistics import NormalDist

from rules.kernel.blocks import MOST_BLOCKS
from rules.mechanisms.cost import price
from rules.refusal import NotSupported

_CANDIDATES = 1024  # at most
_SURE = 0.001  # β
_FEWEST = 25


@dataclass(frozen=True, slots=True)
class BlockNeed:
    """The blocks that an answer needs, from its ε and how many values units that go together may replace."""

    epsilon: Decimal
    replaced: int

    @property
    def fewest(self) -> int:
        """A candidate with nobody near loses to the median by half the blocks: weights exp(−ε·B/4) against all."""
        wanted = 4 * self.replaced / float(self.epsilon) * math.log(_CANDIDATES / _SURE)
        return max(_FEWEST, math.ceil(wanted))

    def blocks(self, requested: int | None, level: Decimal | None) -> int:
        """As many as were asked for, or as are needed; for an error bar so many that its ends lie at the quartiles."""
        if requested is not None:
            return requested
        return min(self.fewest if level is None else max(self.fewest, self._fewest_reaching(4, level)), MOST_BLOCKS)

    def reach(self, blocks: int, level: Decimal) -> int:
        """By how many blocks an end of an error bar lies beside the median: for their spread, and for the noise."""
        reach = math.ceil(self._spread(level) * math.sqrt(blocks) + self._noise(level))
        if 2 * reach < blocks:
            return reach
        needed = self._fewest_reaching(2, level) + 4
        more = f"{needed:,} or more are needed: blocks => {needed}."
        raise NotSupported(
            f"{blocks:,} blocks are too few for an error bar of noisegate.typical at epsilon {price(self.epsilon)}",
            hint=more if needed <= MOST_BLOCKS else "Ask with a higher epsilon, or in fewer groups.",
            about="typical",
        )

    def _fewest_reaching(self, part: int, level: Decimal) -> int:
        """Blocks of which the reach is one of so many parts: B = part·(spread·√B + noise), solved for √B."""
        half = part * self._spread(level) / 2
        return math.ceil((half + math.sqrt(half**2 + part * self._noise(level))) ** 2)

    def _spread(self, level: Decimal) -> float:
        return NormalDist().inv_cdf((1 + float(level)) / 2) / 2

    def _noise(self, level: Decimal) -> float:
        return 2 * self.replaced / float(self.epsilon) * math.log(_CANDIDATES * 2 / (1 - float(level)))
