"""What an answer is worth beside the truth: by its groups, and by the error of the cell in the middle."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from enum import StrEnum
from math import inf, isfinite
from statistics import median

Row = Sequence[object]

MOST_ERROR = 0.1  # of the median cell of a useful answer
LEAST_FOUND = 0.8  # of the truth's groups


class Verdict(StrEnum):
    """What became of a question."""

    USEFUL = "useful"
    NOISE = "noise"  # sound, and too far from the truth
    BIASED = "biased"  # too far from the truth without any noise
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


def judge(answer: Sequence[Row], exact: Sequence[Row], truth: Sequence[Row], keys: int) -> Verdict:
    """Judge an answer by what it would be without noise, and by the truth."""
    if not answer and truth:
        return Verdict.EMPTY
    if error_of(exact, truth, keys) > MOST_ERROR:
        return Verdict.BIASED
    return Verdict.USEFUL if error_of(answer, truth, keys) <= MOST_ERROR else Verdict.NOISE


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
