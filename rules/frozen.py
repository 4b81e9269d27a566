"""Values that nobody changes: dataclasses with slots, whose fields the type checker does not let anyone set.

A plan makes thousands of them. A dataclass that refuses a change at run time as well takes four times as long to make,
and its copies half as long again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: type[Class]) -> type[Class]:
    """Make a class of such values: equal where their fields are, and hashed by them."""
    return dataclass(slots=True, unsafe_hash=True)(kind)


if TYPE_CHECKING:
    from dataclasses import replace as replace
else:

    def replace(value, /, **changes):
        """As that of dataclasses, which looks through the fields again for every copy."""
        places, values_of = _given(type(value))
        values = list(values_of(value))
        for name, changed in changes.items():
            values[places[name]] = changed
        return type(value)(*values)


@cache
def _given(kind: type) -> tuple[dict[str, int], Callable[[Any], tuple[Any, ...]]]:
    """The places of the fields that the constructor takes, and what gets their values."""
    names = [each.name for each in fields(kind) if each.init]
    return {name: place for place, name in enumerate(names)}, getter(names)


def getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gets these attributes; attrgetter gives a tuple from two on."""
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)
