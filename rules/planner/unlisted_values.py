"""Constants in conditions that are none of the values which the rules or a CHECK list, where one is much like them.

A misspelled value finds no row, and the noised count of none looks like an answer. All that is compared here is the
statement and the list, never a row.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from itertools import islice
from typing import Final

from rules.algebra.nodes import Node, scans_in
from rules.planner.plan import Request
from rules.values.domain import Values as Listed
from rules.values.expression import Apply, Column, Constant, Expression

_COMPARING: Final = frozenset(("=", "<>", "in", "not in"))
_MOST_NOTICES: Final = 3
_MOST_LISTED: Final = 1_000  # with which a constant is compared
_MOST_COMPARED: Final = 20  # constants: a thousand of them in IN would take seconds
_LONGEST: Final = 60  # characters of a value in a notice


def unlisted_values(node: Node, computed: Iterable[Expression], request: Request) -> tuple[str, ...]:
    """A line for each constant in WHERE, FILTER or CASE that is near a listed value of the column beside it.

    Nothing is said of constants that the analyst has not sent, as those in the text of a view.
    """
    compared = [(column, text) for test in computed for column, text in _compared(test)]
    listed = dict(_lists(node, {column.id for column, _ in compared}))
    unlisted = ((column, text) for column, text in compared if column.id in listed and text not in listed[column.id])
    written = [request.text, *(parameter for parameter in request.parameters if parameter is not None)]
    found = dict.fromkeys(
        f"no {column.name or 'value'} is listed as {_shown(text)}; the nearest listed value is {_shown(nearest)}"
        for column, text in islice(dict.fromkeys(unlisted), _MOST_COMPARED)
        if any(text in sent for sent in written) and (nearest := _find_nearest(text, listed[column.id])) is not None
    )
    return tuple(found)[:_MOST_NOTICES]


def _lists(node: Node, numbers: AbstractSet[int]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """By column the texts that it may have, as its table declares them: a condition may have narrowed it since."""
    for column in (each for scan in scans_in(node) for each in scan.facts.columns if each.id in numbers):
        for domain in (column.declared, column.domain):
            if isinstance(domain, Listed) and 0 < len(domain.items) <= _MOST_LISTED and column.type.kind == "text":
                yield column.id, tuple(item for item in domain.items if isinstance(item, str))
                break


def _compared(test: Expression) -> Iterator[tuple[Column, str]]:
    """Columns, and the constants with which they are compared."""
    waiting = [test]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Apply):
            continue
        waiting.extend(reversed(part.arguments))
        columns = [argument for argument in part.arguments if isinstance(argument, Column)]
        if part.name in _COMPARING and len(columns) == 1:
            constants = (argument for argument in part.arguments if isinstance(argument, Constant))
            yield from ((columns[0], constant.text) for constant in constants if constant.text is not None)


def _find_nearest(text: str, listed: tuple[str, ...]) -> str | None:
    """The listed value that differs in the case of letters or in blanks, or else in few letters."""
    if len(text) > _LONGEST:
        return None
    by_spelling: Mapping[str, str] = {_folded(value): value for value in reversed(listed) if len(value) <= _LONGEST}
    close = get_close_matches(_folded(text), by_spelling, n=1, cutoff=0.75)
    return by_spelling[close[0]] if close else None


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _shown(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
