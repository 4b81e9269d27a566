"""Who takes more of the twin's machine than its analyst may, or than there is."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Used:
    """What the backend of one session takes."""

    process_id: int
    analyst: str
    bytes: int


def too_much(used: Iterable[Used], per_analyst: int, in_all: int) -> list[int]:
    """The backends that have to go, the largest first, until every analyst and all together keep their limit.

    Example:
        >>> too_much([Used(1, "ada", 5), Used(2, "ada", 9), Used(3, "bob", 6)], per_analyst=10, in_all=100)
        [2]
    """
    largest = sorted(used, key=lambda each: -each.bytes)
    by_analyst: Counter[str] = Counter()
    for each in largest:
        by_analyst[each.analyst] += each.bytes
    going = []
    for each in largest:
        if by_analyst[each.analyst] > per_analyst or by_analyst.total() > in_all:
            by_analyst[each.analyst] -= each.bytes
            going.append(each.process_id)
    return going
