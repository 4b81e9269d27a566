"""Judge an answer by the truth: by its groups, by the error of the cell in the middle, and by what would mislead.

An answer misleads if more than half of its rows do not exist, or if half of its cells or more are off by over 30% in
the same direction in every round, by more than five times their spread. A hidden row is a true one that is not shown.
"""

from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from math import inf, isfinite
from statistics import mean, median, stdev

Row = Sequence[object]

MOST_ERROR = 0.1  # of the median cell of a useful answer
LEAST_FOUND = 0.8  # of the truth's groups
_MOST_BIAS = 0.3  # of a cell, in every round
_MOST_SPREADS = 5


class Verdict(StrEnum):
    """What became of a question."""

    USEFUL = "useful"
    NOISE = "noise"  # sound, and too far from the truth
    BIASED = "biased"  # too far from the truth without any noise
    MISLEADING = "misleading"  # rows that do not exist, or numbers that every round shows wrong by about as much
    HIDDEN = "hidden"  # too many true rows are not shown
    EMPTY = "empty"  # paid, and no row, or groups that only a threshold let through
    REFUSED_RIGHTLY = "refused rightly"
    REFUSED_WRONGLY = "refused wrongly"


def key_columns(truth: Sequence[Row]) -> int:
    """Count the leading columns that are no numbers."""
    if not truth:
        return 0
    values = [next((row[at] for row in truth if row[at] is not None), None) for at in range(len(truth[0]))]
    return next((at for at, value in enumerate(values) if _number(value) is not None), len(values))


def error_of(answer: Sequence[Row], truth: Sequence[Row], keys: int) -> float:
    """The relative error of the median cell; infinite where too many groups are missing."""
    by_key = {_key(row, keys): row for row in answer}
    found = [(row, by_key[_key(row, keys)]) for row in truth if _key(row, keys) in by_key]
    if len(found) < LEAST_FOUND * len(truth):
        return inf
    errors = [
        _error(one, other) for row, answered in found for one, other in zip(answered[keys:], row[keys:], strict=True)
    ]
    return median(errors) if errors else 0.0


def judge(
    answer: Sequence[Row], exact: Sequence[Row], truth: Sequence[Row], keys: int, *, leaves_out: bool
) -> Verdict:  # fmt: skip
    """Judge an answer that does not mislead by what it would be without noise, and by the truth.

    One that `leaves_out` groups says so in a NOTICE: without any row it hides them all.
    """
    if not answer and truth:
        return Verdict.HIDDEN if leaves_out else Verdict.EMPTY
    if error_of(exact, truth, keys) > MOST_ERROR:
        return Verdict.BIASED
    if shown_of(truth, answer, keys) < LEAST_FOUND * len(truth):
        return Verdict.HIDDEN
    return Verdict.USEFUL if error_of(answer, truth, keys) <= MOST_ERROR else Verdict.NOISE


def shown_of(rows: Iterable[Row], answer: Iterable[Row], keys: int) -> int:
    """Count the rows whose keys an answer has. Rows without keys are there wherever there is an answer."""
    known = {_key(row, keys) for row in answer}
    return sum(_key(row, keys) in known for row in rows)


def is_misleading(answers: Sequence[Sequence[Row]], truth: Sequence[Row], existing: Sequence[Row], keys: int) -> bool:
    """Tell whether the answers of all rounds mislead; `existing` are the rows of the truth without its last LIMIT."""
    shown = sum(map(len, answers))
    if 2 * sum(shown_of(answer, existing, keys) for answer in answers) < shown:
        return True
    rounds = [{_key(row, keys): row[keys:] for row in answer} for answer in answers]
    cells = [
        ([answer[key][at] for answer in rounds], value)
        for row in truth
        if all((key := _key(row, keys)) in answer for answer in rounds)
        for at, value in enumerate(row[keys:])
    ]
    return bool(cells) and 2 * sum(_is_bent(*cell) for cell in cells) >= len(cells)


def _is_bent(answered: Sequence[object], true: object) -> bool:
    """Tell whether a cell is wrong by about as much in every round."""
    value, numbers = _number(true), [number for each in answered if (number := _number(each)) is not None]
    if value is None or len(numbers) < len(answered):
        return any(each != true for each in answered) and len(set(map(str, answered))) == 1
    off = [number - value for number in numbers]
    least = min(abs(each) for each in off)
    is_one_way = all(each > 0 for each in off) or all(each < 0 for each in off)
    spread = stdev(off) if len(off) > 1 else inf
    return is_one_way and least > _MOST_BIAS * abs(value) and abs(mean(off)) > _MOST_SPREADS * spread


def _key(row: Row, keys: int) -> tuple[str, ...]:
    return tuple(_spelled(value) for value in row[:keys])


def _spelled(value: object) -> str:
    number = None if isinstance(value, date) else _number(value)
    return str(value).strip() if number is None else f"{number:g}"


def _number(value: object) -> float | None:
    match value:
        case bool():
            return None
        case int() | float() | Decimal():
            return float(value)
        case timedelta():
            return value.total_seconds()
    return None


def _error(answered: object, true: object) -> float:
    one, other = _number(answered), _number(true)
    if one is None or other is None:
        return 0.0 if answered == true else inf
    found = abs(one - other) / max(abs(other), 1e-9)
    return found if isfinite(found) else inf
