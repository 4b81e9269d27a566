"""The law of a climb, by the definition of its noise: no draw, and nothing of the code that makes the choice."""

import numpy as np
import numpy.typing as npt

from rules.kernel.bounded import PARTS
from rules.mechanisms.release_plan import Ladder

_FAR = 40  # scales, beyond which nothing is left of a geometric law


def law_of_climb(ladder: Ladder, heights: list[int], *, group_size: int = 1) -> list[float]:
    """With which probability each rung is chosen: a sum over the noise of the threshold."""
    for_steps = float(ladder.epsilon) * (9 / 20 if ladder.favours_height else 1 / 3)
    for_threshold = float(ladder.epsilon) - for_steps
    share = np.exp(-for_threshold / (PARTS * group_size))
    lowered = np.arange(int(_FAR * PARTS * group_size / for_threshold))
    reaching = share**lowered * (1 - share)
    law = []
    for height, threshold in zip(heights, ladder.thresholds, strict=True):
        stopping = _above(height - threshold + lowered, for_steps / (PARTS * group_size))
        law.append(float(reaching @ stopping))
        reaching = reaching * (1 - stopping)
    return [*law, float(reaching.sum())]


def _above(limit: npt.NDArray[np.int_], rate: float) -> npt.NDArray[np.float64]:
    """P(E > limit) of a geometric draw."""
    return np.where(limit < 0, 1.0, np.exp(-rate * (np.maximum(limit, 0) + 1)))
