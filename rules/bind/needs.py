"""Needs of a statement: what must be known before it can be planned, as values.

Binding ends at the first of them, wherever it is met: an inner query, a literal that only PostgreSQL reads, a subquery
that has to be rewritten. `known_or_needed` turns that into a value; the rest of the planner knows of no exception.
"""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from rules.bind.correlated_subquery import Correlated
from rules.bind.inner_answers import InnerQuery
from rules.functions.context import Needed, UnreadLiterals

Need = InnerQuery | UnreadLiterals | Correlated

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made")


def known_or_needed(make: Callable[Arguments, Made]) -> Callable[Arguments, Made | Need]:
    """Return what a function makes, or the first thing that it needs."""

    @wraps(make)
    def made(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Made | Need:
        try:
            return make(*args, **kwargs)
        except Needed as needed:
            match needed.what:
                case InnerQuery() | UnreadLiterals() | Correlated() as need:
                    return need
            raise

    return made
