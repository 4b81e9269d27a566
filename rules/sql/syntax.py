"""The analyst's query as plain frozen values: what the planner sees of SQL.

Made by `parse` from canonical text, whole or one expression at a time. Nothing is resolved here: names are names. What
has no place in these types is not understood, and what is not understood is refused by `parse`.

Operators keep PostgreSQL's own names ("+", "and", "is null", "like", "is distinct from"), functions the names that
PostgreSQL resolves ("date_trunc", "extract", "timezone" for AT TIME ZONE), lower case.
"""

from dataclasses import fields, is_dataclass
from typing import Any, Final, Literal

from rules.frozen import frozen


@frozen
class Name:
    """A column reference of one to three parts, folded as PostgreSQL folds it."""

    parts: tuple[str, ...]


@frozen
class Star:
    qualifier: tuple[str, ...] = ()


@frozen
class Constant:
    """A literal; the text of a string is its value, without quotes."""

    kind: Literal["number", "string", "boolean", "null"]
    text: str = ""


@frozen
class Parameter:
    number: int


@frozen
class Cast:
    argument: "Expression"
    type: str  # as PostgreSQL prints it: "numeric(10,2)", "timestamp with time zone", "text[]"


@frozen
class Operator:
    name: str
    arguments: tuple["Expression", ...]


@frozen
class OrderItem:
    expression: "Expression"
    descending: bool = False
    nulls_first: bool | None = None


@frozen
class Window:
    """An OVER clause, named windows inlined; `frame` is its text, "" for the default, with $ for each offset."""

    partition_by: tuple["Expression", ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    frame: str = ""
    offsets: tuple["Expression", ...] = ()


@frozen
class Call:
    """A function or aggregate, with everything that may stand around its arguments."""

    name: str
    arguments: tuple["Expression", ...] = ()
    schema: str | None = None
    star: bool = False
    distinct: bool = False
    filter: "Expression | None" = None
    order_by: tuple[OrderItem, ...] = ()
    within_group: tuple[OrderItem, ...] = ()
    over: Window | None = None


@frozen
class Case:
    """CASE; the simple form `CASE x WHEN v` is kept as such by its operand."""

    operand: "Expression | None"
    branches: tuple[tuple["Expression", "Expression"], ...]
    default: "Expression | None"


@frozen
class InList:
    argument: "Expression"
    items: tuple["Expression", ...]
    negated: bool = False


@frozen
class InQuery:
    """`x IN (SELECT …)`, which is `x = ANY (SELECT …)`, and ANY by another sign.

    `x < ALL` is NOT `x >= ANY`; rows `(x, y)` stand there as operator "row".
    """

    argument: "Expression"
    query: "Query"
    negated: bool = False
    sign: str = "="


@frozen
class Exists:
    query: "Query"


@frozen
class ScalarQuery:
    query: "Query"


@frozen
class Array:
    items: tuple["Expression", ...]


@frozen
class Quantified:
    """`x = ANY (array)`, `x <> ALL (array)`."""

    operator: str
    argument: "Expression"
    array: "Expression"
    all: bool = False


Expression = (
    Name | Star | Constant | Parameter | Cast | Operator | Call | Case | InList | InQuery | Exists | ScalarQuery | Array
    | Quantified
)  # fmt: skip


@frozen
class TableSource:
    name: str
    schema: str | None = None
    alias: str | None = None
    columns: tuple[str, ...] = ()


@frozen
class QuerySource:
    query: "Query"
    alias: str | None
    columns: tuple[str, ...] = ()
    lateral: bool = False


@frozen
class FunctionSource:
    call: Call
    alias: str | None = None
    columns: tuple[str, ...] = ()


@frozen
class Join:
    kind: Literal["inner", "left", "right", "full", "cross"]
    left: "Source"
    right: "Source"
    on: Expression | None = None
    using: tuple[str, ...] = ()
    natural: bool = False


Source = TableSource | QuerySource | FunctionSource | Join


@frozen
class Item:
    """One entry of a select list."""

    expression: Expression
    alias: str | None = None


@frozen
class GroupingSets:
    """ROLLUP, CUBE and GROUPING SETS, spelled out as the sets that they stand for."""

    sets: tuple[tuple[Expression, ...], ...]


@frozen
class Cte:
    name: str
    query: "Query"
    columns: tuple[str, ...] = ()


@frozen
class Select:
    """One SELECT. `index` numbers the SELECTs of a statement in the order of their text, from 0."""

    index: int
    items: tuple[Item, ...]
    source: Source | None = None  # comma joins are cross joins
    where: Expression | None = None
    group_by: tuple[Expression | GroupingSets, ...] = ()
    having: Expression | None = None
    distinct: bool = False
    distinct_on: tuple[Expression, ...] = ()
    order_by: tuple[OrderItem, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    locking: bool = False
    ctes: tuple[Cte, ...] = ()
    recursive: bool = False


@frozen
class SetOperation:
    kind: Literal["union", "intersect", "except"]
    all: bool
    left: "Query"
    right: "Query"
    order_by: tuple[OrderItem, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    ctes: tuple[Cte, ...] = ()
    recursive: bool = False


@frozen
class Values:
    rows: tuple[tuple[Expression, ...], ...]


Query = Select | SetOperation | Values

# The fields of each kind of node, for those who walk trees; `dataclasses.fields` looks them up anew.
FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
    kind: tuple(field.name for field in fields(kind))
    for kind in list(vars().values())
    if isinstance(kind, type) and is_dataclass(kind)
}
