"""The columns of an answer that have noise, each with the arithmetic by which its margin is known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rules.mechanisms.noised_outputs import CentredSum, Count, Output, Sum
from rules.mechanisms.release_plan import Block
from rules.planner.error_bars import bar_name
from rules.planner.find_blocks import Leaves, is_aggregate
from rules.release.formula import Formula, Number, Operation, Operator, Result, Value
from rules.sql.grammar import Json, Node, deparse_expression, items, kind, strings, walk
from rules.sql.selects import column_name

_NUMERIC: Final = frozenset(
    ("int2", "int4", "int8", "integer", "bigint", "smallint", "numeric", "decimal", "float4", "float8", "money")
)
_OPERATORS: Final[Mapping[str, Operator]] = {"+": "+", "-": "-", "*": "*", "/": "/"}
_CALLS: Final[Mapping[str, Operator]] = {"abs": "abs", "sqrt": "sqrt"}
_ROUNDING: Final = frozenset(("round", "trunc", "floor", "ceil", "ceiling"))  # noise is far more than they move


@dataclass(frozen=True, slots=True)
class AnsweredSelect:
    """A SELECT that a block answers."""

    body: Node
    leaves: Leaves
    block: int
    outputs: tuple[int, ...]  # of the block, one for each aggregate
    is_top: bool  # its select list is what the client sees


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
    parts = list(walk(node))
    return not any(map(bar_name, parts)) and any(
        is_aggregate(part) and leaves.find_aggregate(part) is not None for part in parts
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
            return _made("coalesce", items(body, "args"), select)
        case "MinMaxExpr":
            return _made("least" if body.get("op") == "IS_LEAST" else "greatest", items(body, "args"), select)
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
        return _made("nullif", sides, select)
    operator = _OPERATORS.get(strings(body.get("name"))[-1])
    return _made(operator, sides, select) if operator and body.get("kind") == "AEXPR_OP" else None


def _call(name: str, arguments: Sequence[Json], select: AnsweredSelect) -> Formula | None:
    if name in _ROUNDING and arguments:
        return _formula(arguments[0], select)
    operator = _CALLS.get(name)
    return _made(operator, arguments, select) if operator else None


def _made(operator: Operator, operands: Sequence[Json], select: AnsweredSelect) -> Formula | None:
    made = [_formula(operand, select) for operand in operands]
    known = tuple(formula for formula in made if formula is not None)
    return Operation(operator, known) if len(known) == len(made) else None
