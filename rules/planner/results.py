"""The columns of an answer that have noise, with the arithmetic by which margins are known, and marks put on them.

Numbers that noise could have made are NULL in the outermost select list. They are put there last: HAVING, ORDER BY,
LIMIT and whatever is computed see the numbers as they were released. So the statement becomes a sub-select, around
which stands nothing but its columns. Which numbers are marked is decided from released numbers (`rules.release.marks`),
and comes as one more array for each column.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rules.frozen import frozen
from rules.mechanisms.noised_outputs import CentredSum, Count, Output, Sum
from rules.mechanisms.release_plan import Block
from rules.planner.error_bars import bar_name
from rules.planner.find_blocks import Leaves, is_aggregate
from rules.planner.plan import Request
from rules.release.margins import Formula, Number, Operation, Operator, Result, Value
from rules.release.marks import Mark
from rules.sql.grammar import deparse_expression, parse
from rules.sql.selects import column_name
from rules.sql.tree import Json, Node, holders, items, kind, strings

_NUMERIC: Final = frozenset(
    ("int2", "int4", "int8", "integer", "bigint", "smallint", "numeric", "decimal", "float4", "float8", "money")
)
_OPERATORS: Final[Mapping[str, Operator]] = {"+": "+", "-": "-", "*": "*", "/": "/"}
_CALLS: Final[Mapping[str, Operator]] = {"abs": "abs", "sqrt": "sqrt"}
_ROUNDING: Final = frozenset(("round", "trunc", "floor", "ceil", "ceiling"))  # noise is far more than they move


@frozen
class AnsweredSelect:
    """A SELECT that a block answers."""

    body: Node
    leaves: Leaves
    block: int
    outputs: tuple[int, ...]  # of the block, one for each aggregate
    is_top: bool  # its select list is what the client sees


_WHOLE = "_ngm"  # the statement inside
_UNMARKED = "noisegate.mark: nothing is marked: the outermost SELECT does not group protected rows itself, in one set"


@frozen
class Marked:
    """The items of a select list that are marked, each with the number of its array."""

    holes: Mapping[int, int]


def results_of(select: AnsweredSelect) -> tuple[Result, ...]:
    """The columns that have aggregates; below the outermost SELECT the aggregates themselves."""
    if not select.is_top:
        named = zip(select.leaves.aggregates, select.outputs, strict=True)
        return tuple(Result(deparse_expression(node), select.block, Value(output)) for node, output in named)
    targets = [kind(target)[1] for target in items(select.body, "targetList")]
    return tuple(
        Result(str(target.get("name") or column_name(node)), select.block, _formula(node, select), place)
        for place, target in enumerate(targets)
        if _has_noise(node := target.get("val"), select.leaves)
    )


def bare_items(results: Sequence[Result]) -> frozenset[int]:
    """The select items that are an output as it is, cast or rounded."""
    return frozenset(result.item for result in results if result.item is not None and isinstance(result.formula, Value))


def bare_outputs(results: Sequence[Result], number: int, block: Block) -> tuple[int, ...]:
    """The counts and sums of a block that a client sees as they are, and that cannot be below zero in truth."""
    seen = (result.formula for result in results if result.block == number and result.item is not None)
    outputs = sorted({formula.output for formula in seen if isinstance(formula, Value)})
    return tuple(output for output in outputs if _is_positive(block.outputs[output]))


def _is_positive(output: Output) -> bool:
    return isinstance(output, Count) or (isinstance(output, Sum | CentredSum) and output.adds_up)


def _has_noise(node: Json, leaves: Leaves) -> bool:
    """An error bar is no number with an error of its own."""
    calls = holders(node, "FuncCall")
    return not any(map(bar_name, calls)) and any(
        is_aggregate(call) and leaves.find_aggregate(call) is not None for call in calls
    )


def _formula(node: Json, select: AnsweredSelect) -> Formula | None:
    """None where an item is made of more than arithmetic."""
    if is_aggregate(node):
        number = select.leaves.find_aggregate(node)
        return None if number is None else Value(select.outputs[number])
    name, body = kind(node)
    match name:
        case "A_Const":
            return _number(body)
        case "TypeCast":
            named = strings(kind({"TypeName": body.get("typeName")})[1].get("names"))
            return _formula(body.get("arg"), select) if named and named[-1] in _NUMERIC else None
        case "A_Expr":
            return _operation(body, select)
        case "FuncCall" if not body.get("over"):
            return _call(strings(body.get("funcname"))[-1], items(body, "args"), select)
        case "CoalesceExpr":
            return _operation_of("coalesce", items(body, "args"), select)
        case "MinMaxExpr":
            return _operation_of("least" if body.get("op") == "IS_LEAST" else "greatest", items(body, "args"), select)
    return None


def _number(body: Node) -> Number | None:
    for field, inner in (("ival", "ival"), ("fval", "fval"), ("sval", "sval")):
        if isinstance(node := body.get(field), dict):
            text = str(node.get(inner, 0))
            return Number(text) if _is_number(text) else None
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _operation(body: Node, select: AnsweredSelect) -> Formula | None:
    sides: list[Json] = [side for name in ("lexpr", "rexpr") if (side := body.get(name)) is not None]
    if body.get("kind") == "AEXPR_NULLIF":
        return _operation_of("nullif", sides, select)
    operator = _OPERATORS.get(strings(body.get("name"))[-1])
    return _operation_of(operator, sides, select) if operator and body.get("kind") == "AEXPR_OP" else None


def _call(name: str, arguments: Sequence[Json], select: AnsweredSelect) -> Formula | None:
    if name in _ROUNDING and arguments:
        return _formula(arguments[0], select)
    operator = _CALLS.get(name)
    return _operation_of(operator, arguments, select) if operator else None


def _operation_of(operator: Operator, operands: Sequence[Json], select: AnsweredSelect) -> Formula | None:
    made = [_formula(operand, select) for operand in operands]
    known = tuple(formula for formula in made if formula is not None)
    return Operation(operator, known) if len(known) == len(made) else None


def marks_of(results: Sequence[Result], top: Node, request: Request) -> dict[int, Mark]:
    """The columns that are marked, by their place in the outermost select list.

    DISTINCT would tell rows apart by their marks, so there is none beside it.
    """
    if request.mark == "off" or request.explains or "distinctClause" in top:
        return {}
    if holders(top.get("targetList"), "A_Star"):
        return {}
    if (
        len({result.block for result in results if result.item is not None}) > 1
    ):  # each grouping set is an answer of its own
        return {}
    known = ((result.item, result.formula, result.block) for result in results)
    return {
        item: Mark(block, formula, is_alone=request.mark == "cell")
        for item, formula, block in known
        if item is not None and formula is not None
    }


def unmarked(marks: Mapping[int, Mark], request: Request) -> tuple[str, ...]:
    """Return what an analyst who asks for marks should know where there are none."""
    return () if marks or request.mark == "off" or request.explains else (_UNMARKED,)


def put_marks(body: Node, marked: Marked, source: str) -> None:
    """Put a SELECT, in place, into one that has its columns, NULL where they are marked.

    A sub-select of no row has the column's type with its digits; NULLIF would make a text of a varchar.
    """
    targets = items(body, "targetList")
    names = [str(kind(target)[1].get("name") or column_name(kind(target)[1].get("val"))) for target in targets]
    marks = [f"x{item + 1}" for item in marked.holes]
    inside = dict(body)
    more: list[Json] = [{"ResTarget": {"name": mark, "val": _column(source, mark)}} for mark in marks]
    inside["targetList"] = [*targets, *more]
    columns = [f"c{place + 1}" for place in range(len(targets))]
    shown = ", ".join(
        f"CASE WHEN x{place + 1} THEN (SELECT {column} WHERE false) ELSE {column} END"
        if place in marked.holes
        else column
        for place, column in enumerate(columns)
    )
    (piece,) = parse(f"SELECT {shown} FROM (SELECT) AS {_WHOLE}({', '.join((*columns, *marks))})")
    around = kind(piece.tree)[1]
    for target, name in zip(items(around, "targetList"), names, strict=True):
        kind(target)[1]["name"] = name
    (source_item,) = items(around, "fromClause")
    kind(source_item)[1]["subquery"] = {"SelectStmt": inside}
    body.clear()
    body.update(around)


def _column(table: str, name: str) -> Json:
    return {"ColumnRef": {"fields": [{"String": {"sval": table}}, {"String": {"sval": name}}], "location": -1}}
