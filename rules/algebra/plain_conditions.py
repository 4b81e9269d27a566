"""One spelling for conditions that hold for the same rows, so that equal questions are found to be equal.

`x AND true`, `x = true`, `x IS TRUE` and `1 = 1 AND x` become `x`; `NOT (c <> 'a')`, `c IN ('a')`, `'a' = c`, `c = 'a'
OR c = 'a'` and, of an enum, `c::text = 'a'` become `c = 'a'`. Each rewriting keeps what PostgreSQL has for NULLs; only
where a condition chooses rows, and NULL is as good as false, IS TRUE is left out.
"""

from collections.abc import Iterator
from typing import Final

from rules.values.expression import (
    MIRRORED,
    TRUE,
    Apply,
    Column,
    Constant,
    Expression,
    all_of,
    condition,
    conjuncts,
    is_true,
    spelling,
)

_OPPOSITE: Final = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED: Final = {**MIRRORED, "<>": "<>"}
_DEEPEST: Final = 20  # NOTs and tests within each other


def plain_condition(holding: Expression) -> Expression:
    """The condition of a filter in its plain spelling."""
    expressions = (conjunct for part in conjuncts(holding) for conjunct in conjuncts(_chosen(_exact(part, _DEEPEST))))
    return all_of(tuple(expression for expression in expressions if not is_true(expression)))


def _chosen(tested: Expression) -> Expression:
    """The same rows are chosen: where it is NULL it chooses none."""
    match tested:
        case Apply(name="is true", arguments=(inner,)):
            return _chosen(_exact(inner, _DEEPEST))
        case Apply(name="is false", arguments=(inner,)):
            return _exact(_negated(inner), _DEEPEST)
    return tested


def _exact(tested: Expression, depth: int) -> Expression:
    """The same value on every row, NULL included."""
    if not isinstance(tested, Apply) or not depth:
        return tested
    match tested.name, tested.arguments:
        case "not", (inner,):
            return _not(_exact(inner, depth - 1))
        case "or", _:
            return _or(tested)
        case (("in" | "not in"), (operand, *items)) if _is_plain_list(tested):
            return _in(tested.name, operand, tuple(items))
        case name, (one, other) if name in _MIRRORED and tested.sql == _compared(name):
            if isinstance(one, Constant) and not isinstance(other, Constant):
                return _exact(condition(_MIRRORED[name], _compared(_MIRRORED[name]), other, one), depth - 1)
            return _comparison(tested, name, one, other, depth)
    return tested


def _comparison(tested: Apply, name: str, one: Expression, other: Expression, depth: int) -> Expression:
    is_known = isinstance(one, Constant) and isinstance(other, Constant)
    if is_known and name == "=" and one == other and not one.nullable:
        return TRUE
    if name == "=" and isinstance(other, Constant) and other.type.kind == "boolean" and other.text is not None:
        return _exact(one if other == TRUE else _negated(one), depth - 1)
    match one, other:
        case (
            Apply(name="cast", sql="({0})::text", arguments=(Column(type=of) as column,)),
            Constant(text=str() as text),
        ) if of.kind == "enum" and name in ("=", "<>") and text in of.labels and not of.is_ambiguous:
            return condition(name, _compared(name), column, Constant(of, text, text))
    return tested


def _compared(name: str) -> str:
    return f"({{0}} {name} {{1}})"


def _negated(inner: Expression) -> Expression:
    return condition("not", "(NOT {0})", inner)


def _not(inner: Expression) -> Expression:
    match inner:
        case Apply(name="not", arguments=(same,)):
            return same
        case Apply(name=name, arguments=arguments, sql=sql) if name in _OPPOSITE and sql == _compared(name):
            return condition(_OPPOSITE[name], _compared(_OPPOSITE[name]), *arguments)
        case Apply(name="in" | "not in" as name, arguments=(operand, *items)) if _is_plain_list(inner):
            return _in("in" if name == "not in" else "not in", operand, tuple(items))
    return _negated(inner)


def _is_plain_list(tested: Apply) -> bool:
    is_list = all(isinstance(argument, Constant) and argument.text is not None for argument in tested.arguments[1:])
    return is_list and tested.sql == _listed(tested.name, len(tested.arguments) - 1)


def _listed(name: str, items: int) -> str:
    return f"({{0}} {name.upper()} ({', '.join(f'{{{place}}}' for place in range(1, items + 1))}))"


def _in(name: str, operand: Expression, items: tuple[Expression, ...]) -> Expression:
    """Each value once, in one order; a list of one is a comparison."""
    known = tuple(sorted(dict.fromkeys(items), key=spelling))
    if len(known) == 1:
        sign = "=" if name == "in" else "<>"
        return condition(sign, _compared(sign), operand, known[0])
    return condition(name, _listed(name, len(known)), operand, *known, strict=False)


def _or(tested: Apply) -> Expression:
    """Each part once; what is said of one operand by = and IN is one list."""
    written = [_exact(part, 2) for part in _disjuncts(tested)]
    parts = list(dict.fromkeys(written))
    operands = {part.arguments[0] for part in parts if isinstance(part, Apply) and _lists(part)}
    lists = all(isinstance(part, Apply) and _lists(part) for part in parts)
    items = tuple(item for part in parts if isinstance(part, Apply) for item in part.arguments[1:])
    if lists and len(operands) == 1 and len({item.type for item in items}) == 1:
        return _in("in", operands.pop(), items)
    if len(parts) == 1:
        return parts[0]
    if parts == written:
        return tested
    return condition("or", f"({' OR '.join(f'{{{place}}}' for place in range(len(parts)))})", *parts, strict=False)


def _lists(part: Apply) -> bool:
    is_equal = part.name == "=" and part.sql == _compared("=") and isinstance(part.arguments[1], Constant)
    return (is_equal and not part.arguments[1].nullable) or (part.name == "in" and _is_plain_list(part))


def _disjuncts(tested: Expression) -> Iterator[Expression]:
    """Without calls within calls: a chain of 700 ORs is deep."""
    waiting = [tested]
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, Apply) and expression.name == "or":
            waiting.extend(reversed(expression.arguments))
        else:
            yield expression
