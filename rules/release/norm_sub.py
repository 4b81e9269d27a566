"""Numbers that are shown of a vector that has nothing below zero: cut there, and still adding up.

Norm-sub (Wang et al., Locally differentially private frequency estimation with consistency, NDSS 2020): x becomes
max(x − c, 0), with the c for which the sum stays what it was. It is post-processing of released numbers, and display
alone: who computes takes them as released, for sums of cut numbers are too large.
"""

from collections.abc import Sequence
from itertools import pairwise


def norm_sub_within(numbers: Sequence[int], nested: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The same within each of the coarser groups that numbers are in, whose sums are cut before: the coarsest first.

    Example:
        >>> norm_sub_within([5, -2, -4, 1], [(0, 0, 0, 0), (0, 0, 1, 1)])
        (0, 0, 0, 0)
        >>> norm_sub_within([9, -2, -4, 1], [(0, 0, 0, 0), (0, 0, 1, 1)])
        (4, 0, 0, 0)
    """
    totals: dict[int, int] = {0: sum(numbers)}
    levels = [*(nested or [(0,) * len(numbers)]), range(len(numbers))]
    for outer, inner in pairwise(levels):
        inside: dict[int, dict[int, int]] = {}
        for number, above, below in zip(numbers, outer, inner, strict=True):
            sums = inside.setdefault(above, {})
            sums[below] = sums.get(below, 0) + number
        totals = {
            part: shown
            for above, sums in inside.items()
            for part, shown in zip(sums, norm_sub(list(sums.values()), totals[above]), strict=True)
        }
    return tuple(totals[place] for place in range(len(numbers)))


def norm_sub(numbers: Sequence[int], total: int | None = None) -> tuple[int, ...]:
    """The nearest whole numbers of which none is below zero, with this sum, or their own; zeros, where that is below 0.

    Example:
        >>> norm_sub([326, -390, 541]), norm_sub([5, 0, 2]), norm_sub([-3, 1]), norm_sub([5, 0], 3)
        ((131, 0, 346), (5, 0, 2), (0, 0), (3, 0))
    """
    whole = sum(numbers)
    total = max(0, whole if total is None else total)
    if total == whole and min(numbers, default=0) >= 0:
        return tuple(numbers)
    order = sorted(range(len(numbers)), key=lambda place: (-numbers[place], place))
    kept, above = 0, 0
    for count, place in enumerate(order, start=1):
        if numbers[place] * count <= above + numbers[place] - total:
            break
        kept, above = count, above + numbers[place]
    shown = [0] * len(numbers)
    if not kept:
        return tuple(shown)
    cut, rest = divmod(above - total, kept)  # the first of them give one more
    for rank, place in enumerate(reversed(order[:kept])):
        shown[place] = numbers[place] - cut - (rank < rest)
    return tuple(max(0, number) for number in shown)
