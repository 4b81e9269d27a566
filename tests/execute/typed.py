"""Whether a value is of a declared type, all the way down: read from the type hints once more, as a test's oracle."""

import dataclasses
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def is_of(hint: Any, value: object) -> bool:
    """Exactly of the type: a bool is no int, and a subclass is another class, but for exceptions."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return any(type(value) is type(argument) and value == argument for argument in arguments)
    if origin in (Union, UnionType):
        return any(is_of(argument, value) for argument in arguments)
    if origin is tuple:
        return type(value) is tuple and _are_of(arguments, value)
    if origin is frozenset:
        return type(value) is frozenset and all(is_of(arguments[0], each) for each in value)
    if origin in (dict, Mapping):
        return type(value) is dict and all(_are_of(arguments, pair) for pair in value.items())
    if issubclass(hint, Exception):
        return isinstance(value, hint)
    return type(value) is hint and (not dataclasses.is_dataclass(hint) or _has_its_fields(hint, value))


def _are_of(hints: tuple[Any, ...], values: tuple[object, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(is_of(hints[0], value) for value in values)
    return len(hints) == len(values) and all(map(is_of, hints, values))


def _has_its_fields(kind: type, value: object) -> bool:
    hints = get_type_hints(kind)
    return all(is_of(hint, getattr(value, name)) for name, hint in hints.items())
