"""The kernel's own SQL of integers as terms of z3, with names in the place of numbers.

So a lemma is about the text that runs, for every cap, factor and bound at once: the kernel writes `F` and `m` where it
would write 65536 and 32.
"""

import operator
from collections.abc import Callable
from typing import Final

import z3
from sqlglot import exp, parse_one


class Name(int):
    """An integer that the kernel writes by its name. Sums and products of it are names too."""

    text: str

    def __new__(cls, text: str) -> "Name":
        made = super().__new__(cls, 1)
        made.text = text
        return made

    def __add__(self, other: int) -> "Name":
        return Name(f"({self} + {other})")

    def __sub__(self, other: int) -> "Name":
        return Name(f"({self} - {other})")

    def __mul__(self, other: int) -> "Name":
        return Name(f"({self} * {other})")

    def __rmul__(self, other: int) -> "Name":
        return Name(f"({other} * {self})")

    def __pow__(self, power: int, modulus: None = None) -> "Name":  # type: ignore[override]
        return Name(f"({' * '.join([str(self)] * power)})")

    def __neg__(self) -> "Name":
        return Name(f"(-{self})")

    def __format__(self, form: str) -> str:
        return self.text

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def integer(text: str, **values: z3.ArithRef) -> z3.ArithRef:
    """A text of SQL over integers that are not NULL; a name stands for the value that is given, or for any.

    Casts to bigint and numeric change no integer that they hold; that a bigint holds it is a lemma of its own.
    """
    return _term(parse_one(text, dialect="postgres"), values)


def _term(node: exp.Expression, values: dict[str, z3.ArithRef]) -> z3.ExprRef:
    if isinstance(node, exp.Binary) and type(node) in _BINARY:
        return _BINARY[type(node)](_term(node.left, values), _term(node.right, values))
    match node:
        case exp.Literal(is_string=False):
            return z3.IntVal(node.name)
        case exp.Column() | exp.Identifier() | exp.Bracket():
            name = node.sql()
            return values.get(name, z3.Int(name))
        case exp.Paren() | exp.Cast() | exp.Coalesce() | exp.Sum():  # a sum of one row
            return _term(node.this, values)
        case exp.Neg():
            return -_term(node.this, values)
        case exp.Is() if node.sql().endswith(" IS NOT NULL"):
            return z3.BoolVal(True)
        case exp.Least() | exp.Greatest():
            return _extreme([node.this, *node.expressions], values, is_least=isinstance(node, exp.Least))
        case exp.Anonymous(this="int8smaller" | "int8larger" as function):
            return _extreme(node.expressions, values, is_least=function == "int8smaller")
        case exp.Case():
            return _case(node, values)
    raise NotImplementedError(f"{type(node).__name__}: {node.sql()}")


def _case(node: exp.Case, values: dict[str, z3.ArithRef]) -> z3.ArithRef:
    """The first branch that is true; without any NULL, which adds nothing."""
    otherwise = node.args.get("default")
    made = z3.IntVal(0) if otherwise is None else _term(otherwise, values)
    for branch in reversed(node.args["ifs"]):
        tested = _term(branch.this, values)
        if node.this is not None:
            tested = _term(node.this, values) == tested
        made = z3.If(tested, _term(branch.args["true"], values), made)
    return made


def _truncated(number: z3.ArithRef, by: z3.ArithRef) -> z3.ArithRef:
    """Divide as PostgreSQL divides integers, and as div() divides numerics: towards zero."""
    return z3.If(number >= 0, number / by, -(-number / by))


def _extreme(nodes: list[exp.Expression], values: dict[str, z3.ArithRef], *, is_least: bool) -> z3.ArithRef:
    first, *others = (_term(node, values) for node in nodes)
    for other in others:
        first = z3.If(first <= other if is_least else first >= other, first, other)
    return first


_BINARY: Final[dict[type[exp.Expression], Callable[[z3.ArithRef, z3.ArithRef], z3.ExprRef]]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: _truncated,
    exp.IntDiv: _truncated,
    exp.LTE: operator.le,
    exp.EQ: operator.eq,
}
