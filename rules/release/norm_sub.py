"""Numbers that are shown of a vector that has nothing below zero: cut there, and still adding up.

Norm-sub (Wang et al., Locally differentially private frequency estimation with consistency, NDSS 2020): x becomes
max(x − c, 0), with the c for which the sum stays what it was. It is post-processing of released numbers, and display
alone: who computes takes them as released, for sums of cut numbers are too large.
"""

from collections.abc import Sequence


def norm_sub(numbers: Sequence[int]) -> tuple[int, ...]:
    """The nearest whole numbers of which none is below zero, with the same sum; zeros, where that is below zero.

    Example:
        >>> norm_sub([326, -390, 541]), norm_sub([5, 0, 2]), norm_sub([-3, 1])
        ((131, 0, 346), (5, 0, 2), (0, 0))
    """
    total = max(0, sum(numbers))
    if min(numbers, default=0) >= 0:
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
    return tuple(max(0, each) for each in shown)
