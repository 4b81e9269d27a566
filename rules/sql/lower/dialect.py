"""sqlglot as we use it: PostgreSQL's grammar without sqlglot's own ideas of functions."""

from collections.abc import Sequence
from typing import Any

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError

from rules.refusal import NotSupported, Refusal


class PlainPostgres(Postgres):
    """A call is a name and its arguments; only CASE has a syntax of its own."""

    class Parser(Postgres.Parser):
        FUNCTIONS: dict[str, Any] = {}  # noqa: RUF012
        FUNCTION_PARSERS: dict[str, Any] = {}  # noqa: RUF012
        NO_PAREN_FUNCTIONS: dict[Any, Any] = {}  # noqa: RUF012
        NO_PAREN_FUNCTION_PARSERS = {"CASE": Postgres.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]}  # noqa: RUF012


DIALECT = PlainPostgres()


def parsed(text: str) -> exp.Expression:
    """The one statement of a text as sqlglot sees it."""
    try:
        trees = DIALECT.parse(text)
    except (SqlglotError, ValueError, RecursionError):
        trees = []
    if len(trees) != 1 or trees[0] is None:
        raise NotSupported("this statement cannot be planned", hint="Rewrite the statement in simpler SQL.")
    return trees[0]


def take(node: exp.Expression, *names: str) -> list[Any]:
    """The named arguments of a node; any other that is set is not understood."""
    set_arguments = {
        name for name, value in node.args.items() if value is not None and value is not False and value != []
    }
    if not set_arguments <= set(names):
        raise strange(node)
    return [node.args.get(name) for name in names]


def strange(node: object) -> Refusal:
    """The refusal of what has no place in the planner's syntax."""
    name = node.key if isinstance(node, exp.Expression) else "this expression"
    return NotSupported(f"{name.upper()} is not supported over protected tables in this form")


def identifier(node: exp.Identifier) -> str:
    """A name; all are quoted."""
    if not isinstance(node, exp.Identifier) or not node.args.get("quoted"):
        raise strange(node)
    return str(node.this)


def listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
