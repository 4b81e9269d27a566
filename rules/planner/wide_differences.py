"""Differences of two moments that are summed within the bounds of the moments alone: their noise is that of years.

A session lasts minutes, but its two ends may lie anywhere in the calendar that the rules declare. A clamp in the query
makes the noise that of a session.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from rules.aggregates.contributions import Contribution, expressions_of
from rules.kernel.measures import Distinct
from rules.values import domain
from rules.values.expression import Apply, Expression, columns_in
from rules.values.value import DAY

_WIDE_DAYS: Final = 90
_CLAMPED: Final = frozenset(("least", "clamp"))


def wide_differences(parts: Iterable[Contribution]) -> tuple[str, ...]:
    """A line for each, with the clamp to write: it follows from the statement and the rules."""
    summed = chain.from_iterable(expressions_of(part) for part in parts if not isinstance(part, Distinct))
    found = chain.from_iterable(map(_unclamped, summed))
    return tuple(dict.fromkeys(words for difference in found if (words := _words(difference)) is not None))


def _unclamped(summed: Expression) -> Iterator[Apply]:
    """Differences in what is summed, which no least(…) holds; conditions of a CASE only choose rows."""
    match summed:
        case Apply(name="-" | "age", arguments=(one, other)) if one.type.is_time and other.type.is_time:
            yield summed
        case Apply(name="case", arguments=(*branches, default)):
            for result in (*branches[1::2], default):
                yield from _unclamped(result)
        case Apply(name=name, arguments=arguments) if name not in _CLAMPED and summed.type.kind != "boolean":
            for argument in arguments:
                yield from _unclamped(argument)


def _words(difference: Apply) -> str | None:
    """Say how wide its bounds are, and the clamp; None where they are narrow, or one side is constant."""
    image = domain.range_of(difference.domain)
    names = [next((column.name for column in columns_in(side)), "") for side in difference.arguments]
    if not all(names) or image.low is None or image.high is None:
        return None
    is_interval = difference.type.kind == "interval"
    days = (image.high - image.low) / (DAY if is_interval else 1)
    if days < _WIDE_DAYS:
        return None
    written = f"age({', '.join(names)})" if difference.name == "age" else " - ".join(names)
    clamp = f"extract(epoch FROM {written}), 0), 7200)" if is_interval else f"{written}, 0), 30)"
    return (
        f"{written} may be anything within {float(days):,.0f} days, by the bounds of both columns, and its noise is as "
        f"wide: clamp it to what is usual, as in least(greatest({clamp}"
    )
