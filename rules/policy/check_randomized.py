"""Whether a column can hold the reports that the rules say it holds, and which kind of them would have less error."""

from collections.abc import Iterator
from math import exp

from rules.catalog import Column
from rules.policy.column_kind import kind_of, misfit
from rules.policy.finding import Finding, error, note
from rules.policy.randomized import Randomized

_KINDS = {"k-ary": ("text", "enum", "integer"), "bit": ("boolean",), "mean": ("boolean",)}
_WANTED = {"k-ary": "a text, an enum or an integer", "bit": "boolean", "mean": "boolean"}


def check_randomized(here: str, column: Column, given: Randomized) -> Iterator[Finding]:
    """Types, values, and advice: k-ary reports have less error where k < 3·e^ε + 2 (Wang et al. 2017)."""
    path, values = f"{here}.randomized", given.values or ()
    if given.by == "unary":
        if column.type.sql != f"bit({len(values)})":
            yield error(
                path, f"unary reports of {len(values)} values are of type bit({len(values)}), not {column.type.sql}"
            )
    elif kind_of(column.type) not in _KINDS[given.by]:
        yield error(path, f"{given.by} reports are {_WANTED[given.by]}, not {column.type.sql}")
    elif given.by == "k-ary":
        yield from (error(path, wrong) for value in values if (wrong := misfit(value, column.type)))
    best = "k-ary" if len(values) < 3 * exp(float(given.epsilon)) + 2 else "unary"
    if given.by in ("k-ary", "unary") and best != given.by:
        words = f"for {len(values)} values at epsilon {given.epsilon:f} reports by {best} would have less error"
        yield note(path, words)
    yield note(path, f"what analysts count of it are reports; noisegate.estimate({column.name}, …) undoes the chance")
