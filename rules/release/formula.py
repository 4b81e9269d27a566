"""A select item as arithmetic over a block's outputs: enough of it to tell how far noise moves the item.

Whatever else an item is made of has no formula. It is computed all the same, by the twin; only its margin is not known
without asking for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Literal

import numpy as np

from rules.mechanisms.noised_outputs import Matrix

Operator = Literal["+", "-", "*", "/", "nullif", "coalesce", "greatest", "least", "abs", "sqrt"]


@dataclass(frozen=True, slots=True)
class Value:
    """One of the block's outputs."""

    output: int


@dataclass(frozen=True, slots=True)
class Number:
    """A constant, in a double: a margin needs no more."""

    text: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator or function over formulas."""

    operator: Operator
    operands: "tuple[Formula, ...]"


Formula = Value | Number | Operation


@dataclass(frozen=True, slots=True)
class Result:
    """A column of an answer that has noise."""

    name: str  # as the client sees it, or as the analyst wrote it below the outermost SELECT
    block: int
    formula: Formula | None
    item: int | None = None  # which item of the outermost SELECT it is; None: it stands below that


def outputs_in(formula: Formula) -> tuple[int, ...]:
    """The outputs that a formula needs."""
    match formula:
        case Value(output=output):
            return (output,)
        case Number():
            return ()
        case Operation(operands=operands):
            return tuple(dict.fromkeys(output for operand in operands for output in outputs_in(operand)))


def evaluate(formula: Formula, outputs: dict[int, Matrix]) -> Matrix:
    """The formula over rows of replicates, NaN where it is NULL or not defined."""
    with np.errstate(all="ignore"):
        match formula:
            case Value(output=output):
                return outputs[output]
            case Number(text=text):
                return np.array([[float(text)]])
            case Operation(operator=operator, operands=operands):
                return _operated(operator, [evaluate(operand, outputs) for operand in operands])


def _operated(operator: Operator, arrays: Sequence[Matrix]) -> Matrix:
    first, *others = arrays
    match operator:
        case "+" | "-" if not others:
            return first if operator == "+" else -first
        case "+":
            return first + others[0]
        case "-":
            return first - others[0]
        case "*":
            return first * others[0]
        case "/":
            return np.where(others[0] == 0, np.nan, first / others[0])
        case "nullif":
            return np.where(first == others[0], np.nan, first)
        case "coalesce":
            return reduce(lambda known, other: np.where(np.isnan(known), other, known), arrays)
        case "greatest":
            return reduce(np.fmax, arrays)
        case "least":
            return reduce(np.fmin, arrays)
        case "abs":
            return np.abs(first)
        case "sqrt":
            return np.sqrt(np.maximum(first, 0.0))
