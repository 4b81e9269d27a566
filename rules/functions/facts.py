"""Facts of each function by its name: registered beside the code that makes it, and read by everything else."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rules.functions.context import EvalContext
from rules.values.expression import Expression, Operand

Operands = tuple[Operand, ...]
Maker = Callable[[Operands, EvalContext], Expression]
NamedMaker = Callable[[str, Operands, EvalContext], Expression]


@dataclass(frozen=True, slots=True)
class Function:
    """One function of PostgreSQL over protected rows: it fails on no row, whatever values its arguments have."""

    name: str
    least: int  # arguments
    most: int
    make: Maker
    since: int  # the first major version of PostgreSQL that has it
    examples: tuple[str, ...]  # over the columns of tests/properties/worst.py, where each is tried on the worst values


FUNCTIONS: dict[str, Function] = {}


def listed(examples: str) -> tuple[str, ...]:
    """The examples in a text, as `function` takes them."""
    return tuple(example.strip() for line in examples.strip().splitlines() for example in line.split(" | "))


def function(
    name: str, *, arguments: int | tuple[int, int], examples: str, since: int = 13
) -> Callable[[Maker], Maker]:
    """Register what makes a function. Examples stand between bars, or each on a line."""
    least, most = arguments if isinstance(arguments, tuple) else (arguments, arguments)

    def register(make: Maker) -> Maker:
        FUNCTIONS[name] = Function(name, least, most, make, since, listed(examples))
        return make

    return register


def function_of_name(
    name: str, *, arguments: int | tuple[int, int], examples: str, since: int = 13, same_as: str = ""
) -> Callable[[NamedMaker], NamedMaker]:
    """Register one of several functions that are made alike: their maker is given the name first.

    PostgreSQL has two names for some; `same_as` is the one that is written.
    """

    def register(make: NamedMaker) -> NamedMaker:
        function(name, arguments=arguments, examples=examples, since=since)(partial(make, same_as or name))
        return make

    return register
