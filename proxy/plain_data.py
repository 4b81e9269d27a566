"""Values of declared types as plain JSON, and back: reading makes nothing but values of the types that were declared.

A codec is compiled once from type hints. The classes that it can make are those that its type names, each with fields
of their declared types: frozen dataclasses, pydantic models, enums, and forms that stand for other classes. Dataclasses
are lists of their fields in order; the alternatives of a union carry their names where JSON's own types do not tell
them apart. Whatever else stands there is `Malformed`.
"""

import base64
import binascii
import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from itertools import repeat
from types import NoneType, UnionType
from typing import Any, Final, Generic, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

Value = TypeVar("Value")
Json = None | bool | int | str | list["Json"]
Encode = Callable[[Any], Json]
Decode = Callable[[Any, int], Any]  # of what JSON has, and how many classes stand around it

MOST_DEPTH: Final = 200  # classes within classes
_MOST_DIGITS: Final = 200_000  # of a Decimal written out: more than numeric has
_BARE: Final = (NoneType, bool, int, str)  # what stands in JSON as it is
_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[01])")  # half a character, or one that needs no escape


class Malformed(Exception):
    """Data that are no value of the type, or a value that is not of its declared type. Quotes neither."""


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """A dataclass that stands for a class that is none. `together` raises ValueError for what has no meaning."""

    kind: type
    dataclass: type
    apart: Callable[[Any], Any]
    together: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class _Shape:
    """How one type is written: as which of JSON's types, and by which functions."""

    kinds: frozenset[type]
    encode: Encode
    decode: Decode
    is_bare: bool = False  # whether checking its JSON type is all there is to do


class Codec(Generic[Value]):
    """Writes and reads the values of one type."""

    def __init__(self, hint: Any, forms: Sequence[Form] = ()) -> None:
        self._shape = _Compiler({form.kind: form for form in forms}).shape(hint)

    def encode(self, value: Value) -> bytes:
        """Raises Malformed where a value within is not of its declared type, or too deep."""
        try:
            return _dumps(self._shape.encode(value)).encode()
        except (UnicodeEncodeError, RecursionError, ValueError) as error:
            raise Malformed("no plain data") from error

    def decode(self, data: bytes) -> Value:
        """Raises Malformed, and nothing else."""
        try:
            text = data.decode()
            if "\\u" in text and _ESCAPE.search(text):
                raise Malformed("an escape that is not written so")
            value: Value = self._shape.decode(_LOADS.decode(text), 0)
        except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
            raise Malformed("no plain data") from error
        return value


class _Compiler:
    """Makes a shape of every type that is reached, each once: types may contain themselves."""

    def __init__(self, forms: Mapping[type, Form]) -> None:
        self._forms = forms
        self._known: dict[Any, _Shape] = dict(_SCALARS)

    def shape(self, hint: Any) -> _Shape:
        if (known := self._known.get(hint)) is not None:
            return known
        made = self._generic(hint) if get_origin(hint) is not None else self._class(hint)
        return self._known.setdefault(hint, made)

    def _generic(self, hint: Any) -> _Shape:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return _literal(arguments)
        if origin in (Union, UnionType):
            return self._union(arguments)
        if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
            return _sequence(self.shape(arguments[0]))
        if origin is tuple:
            return _tuple([self.shape(each) for each in arguments])
        if origin is frozenset:
            return _set(_sequence(self.shape(arguments[0])))
        if origin in (dict, Mapping):
            return _mapping(_sequence(_tuple([self.shape(each) for each in arguments])))
        raise TypeError(f"{hint} has no plain form")

    def _class(self, kind: Any) -> _Shape:
        if kind in self._forms:
            return _formed(self._forms[kind], self.shape(self._forms[kind].dataclass))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return _enum(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self._model(kind)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return self._dataclass(kind)
        raise TypeError(f"{kind} has no plain form")

    def _dataclass(self, kind: type) -> _Shape:
        """A list of the fields that are given to its constructor; each is compiled once the class itself is known."""
        names = [field.name for field in dataclasses.fields(kind) if field.init]
        encoders: list[Encode] = []
        decoders: list[Decode] = []

        def encode(value: Any) -> Json:
            if type(value) is not kind:
                raise Malformed(f"not a {kind.__name__}")
            return [encoder(getattr(value, name)) for name, encoder in zip(names, encoders, strict=True)]

        def decode(data: Any, depth: int) -> Any:
            if type(data) is not list or len(data) != len(decoders) or depth >= MOST_DEPTH:
                raise Malformed(f"not a {kind.__name__}")
            depth += 1
            return kind(*[decoder(item, depth) for decoder, item in zip(decoders, data, strict=True)])

        self._known[kind] = shape = _Shape(frozenset((list,)), encode, decode)
        hints = get_type_hints(kind)
        fields = [self.shape(hints[name]) for name in names]
        encoders += [each.encode for each in fields]
        decoders += [each.decode for each in fields]
        return shape

    def _model(self, kind: type[BaseModel]) -> _Shape:
        """The fields that were given, with their names; the model itself says whether they fit together."""
        hints = get_type_hints(kind)
        fields = {name: self.shape(hints[name]) for name in kind.model_fields}

        def encode(value: Any) -> Json:
            if type(value) is not kind:
                raise Malformed(f"not a {kind.__name__}")
            given = value.model_fields_set
            return [[name, each.encode(getattr(value, name))] for name, each in fields.items() if name in given]

        def decode(data: Any, depth: int) -> Any:
            given = {}
            for name, item in _pairs(data):
                if type(name) is not str or name not in fields or name in given or depth >= MOST_DEPTH:
                    raise Malformed(f"not a {kind.__name__}")
                given[name] = fields[name].decode(item, depth + 1)
            return kind(**given)

        return _Shape(frozenset((list,)), encode, decode)

    def _union(self, alternatives: Sequence[Any]) -> _Shape:
        shapes = [(_runtime_type(each), self.shape(each)) for each in alternatives]
        kinds = [kind for _, shape in shapes for kind in shape.kinds]
        if len(set(kinds)) < len(kinds):
            return _tagged(shapes)
        if all(shape.is_bare for _, shape in shapes):
            return _bare(*kinds)
        encoders = {kind: shape.encode for kind, shape in shapes}
        decoders = {kind: shape.decode for _, shape in shapes for kind in shape.kinds}

        def encode(value: Any) -> Json:
            return encoders[_alternative(value, encoders)](value)

        def decode(data: Any, depth: int) -> Any:
            decoder = decoders.get(type(data))
            if decoder is None:
                raise Malformed("none of the alternatives")
            return decoder(data, depth)

        return _Shape(frozenset(kinds), encode, decode)


def _tagged(shapes: Sequence[tuple[type, _Shape]]) -> _Shape:
    """NULL as it is, everything else with the name of its type before it."""
    encoders = {kind: (kind.__name__, shape.encode) for kind, shape in shapes}
    decoders = {kind.__name__: shape.decode for kind, shape in shapes if kind is not NoneType}
    has_none = NoneType in encoders
    if len(decoders) + has_none < len(shapes):
        raise TypeError("two alternatives have one name")

    def encode(value: Any) -> Json:
        if value is None and has_none:
            return None
        name, encoder = encoders[_alternative(value, encoders)]
        return [name, encoder(value)]

    def decode(data: Any, depth: int) -> Any:
        if data is None and has_none:
            return None
        if type(data) is not list or len(data) != 2 or type(data[0]) is not str or data[0] not in decoders:
            raise Malformed("none of the alternatives")
        return decoders[data[0]](data[1], depth)

    return _Shape(frozenset((list, NoneType) if has_none else (list,)), encode, decode)


def _alternative(value: Any, encoders: Mapping[type, object]) -> type:
    """Which of the alternatives a value is; each holds for itself how exactly."""
    for kind in type(value).__mro__:
        if kind in encoders:
            return kind
    raise Malformed("none of the alternatives")


def _sequence(item: _Shape) -> _Shape:
    """A tuple of any length."""
    inner_encode, inner_decode, kinds = item.encode, item.decode, item.kinds

    def encode(value: Any) -> Json:
        if type(value) is not tuple:
            raise Malformed("not a tuple")
        return list(map(inner_encode, value))

    def decode(data: Any, depth: int) -> Any:
        if type(data) is not list:
            raise Malformed("not a tuple")
        return tuple(map(inner_decode, data, repeat(depth)))

    def decode_bare(data: Any, _: int) -> Any:
        if type(data) is not list or not kinds.issuperset(map(type, data)):
            raise Malformed("not a tuple")
        return tuple(data)

    return _Shape(frozenset((list,)), encode, decode_bare if item.is_bare else decode)


def _tuple(items: Sequence[_Shape]) -> _Shape:
    """A tuple of so many."""
    encoders, decoders = [each.encode for each in items], [each.decode for each in items]

    def encode(value: Any) -> Json:
        if type(value) is not tuple or len(value) != len(encoders):
            raise Malformed("not such a tuple")
        return [encoder(each) for encoder, each in zip(encoders, value, strict=True)]

    def decode(data: Any, depth: int) -> Any:
        if type(data) is not list or len(data) != len(decoders):
            raise Malformed("not such a tuple")
        return tuple([decoder(each, depth) for decoder, each in zip(decoders, data, strict=True)])

    return _Shape(frozenset((list,)), encode, decode)


def _set(items: _Shape) -> _Shape:
    def encode(value: Any) -> Json:
        if type(value) is not frozenset:
            raise Malformed("not a set")
        return items.encode(tuple(value))

    def decode(data: Any, depth: int) -> Any:
        found = items.decode(data, depth)
        made = frozenset(found)
        if len(made) < len(found):
            raise Malformed("twice in a set")
        return made

    return _Shape(frozenset((list,)), encode, decode)


def _mapping(pairs: _Shape) -> _Shape:
    def encode(value: Any) -> Json:
        if not isinstance(value, Mapping):
            raise Malformed("not a mapping")
        return pairs.encode(tuple(value.items()))

    def decode(data: Any, depth: int) -> Any:
        found = pairs.decode(data, depth)
        made = dict(found)
        if len(made) < len(found):
            raise Malformed("twice in a mapping")
        return made

    return _Shape(frozenset((list,)), encode, decode)


def _formed(form: Form, inner: _Shape) -> _Shape:
    def encode(value: Any) -> Json:
        if not isinstance(value, form.kind):
            raise Malformed(f"not a {form.kind.__name__}")
        return inner.encode(form.apart(value))

    return _Shape(inner.kinds, encode, lambda data, depth: form.together(inner.decode(data, depth)))


def _literal(values: Sequence[Any]) -> _Shape:
    return _listed({value: value for value in values}, frozenset(map(type, values)))


def _enum(kind: type[Enum]) -> _Shape:
    values = {member.value: member for member in kind}
    return _listed(values, frozenset(map(type, values)))


def _listed(members: Mapping[Any, Any], kinds: frozenset[type]) -> _Shape:
    """One of a list: True is no 1."""
    if not kinds.issubset((str, int)):
        raise TypeError("a list of choices has texts or numbers")
    names = {member: value for value, member in members.items()}
    types = frozenset(map(type, names))

    def encode(value: Any) -> Json:
        if type(value) not in types or value not in names:
            raise Malformed("none of the list")
        name: Json = names[value]
        return name

    def decode(data: Any, _: int) -> Any:
        if type(data) not in kinds or data not in members:
            raise Malformed("none of the list")
        return members[data]

    return _Shape(kinds, encode, decode)


def _bare(*kinds: type) -> _Shape:
    """What stands in JSON as it is; texts hold whole characters only, which UTF-8 sees to."""
    found = frozenset(kinds)

    def encode(value: Any) -> Json:
        if type(value) not in found:
            raise Malformed("of another type")
        plain: Json = value
        return plain

    def decode(data: Any, _: int) -> Any:
        if type(data) not in found:
            raise Malformed("of another type")
        return data

    return _Shape(found, encode, decode, is_bare=True)


def _as_text(kind: type, write: Callable[[Any], str], read: Callable[[str], Any]) -> _Shape:
    """A scalar by its one text: what is not written as it would be written is not read."""

    def encode(value: Any) -> Json:
        if type(value) is not kind:
            raise Malformed(f"not a {kind.__name__}")
        text = write(value)
        read(text)
        return text

    def decode(data: Any, _: int) -> Any:
        if type(data) is not str:
            raise Malformed(f"not a {kind.__name__}")
        value = read(data)
        if write(value) != data:
            raise Malformed(f"not a {kind.__name__} as it is written")
        return value

    return _Shape(frozenset((str,)), encode, decode)


def _decimal(text: str) -> Decimal:
    """Finite, and small enough to be written out."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise Malformed("not a Decimal") from None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) + len(text) > _MOST_DIGITS:
        raise Malformed("not a finite Decimal")
    return number


def _fraction(text: str) -> Fraction:
    numerator, _, denominator = text.partition("/")
    if not int(denominator):
        raise Malformed("not a Fraction")
    return Fraction(int(numerator), int(denominator))


def _duration(text: str) -> timedelta:
    try:
        return timedelta(microseconds=int(text))
    except OverflowError:
        raise Malformed("not a timedelta") from None


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise Malformed("not bytes") from None


def _pairs(data: Any) -> list[tuple[Any, Any]]:
    if type(data) is not list or not all(type(each) is list and len(each) == 2 for each in data):
        raise Malformed("not a list of pairs")
    return [(name, item) for name, item in data]


def _runtime_type(hint: Any) -> type:
    """What `type` says of the values of a type."""
    origin = get_origin(hint)
    if origin is Literal:
        (kind,) = set(map(type, get_args(hint)))
        found: type = kind
        return found
    made: type = hint if origin is None else origin
    return made


def _refuse(_: object) -> NoReturn:
    raise Malformed("a kind of JSON that is not used")


_SCALARS: Final[Mapping[Any, _Shape]] = {
    **{kind: _bare(kind) for kind in _BARE},
    Decimal: _as_text(Decimal, str, _decimal),
    Fraction: _as_text(Fraction, lambda value: f"{value.numerator}/{value.denominator}", _fraction),
    bytes: _as_text(bytes, lambda value: base64.b64encode(value).decode(), _bytes),
    date: _as_text(date, date.isoformat, date.fromisoformat),
    datetime: _as_text(datetime, datetime.isoformat, datetime.fromisoformat),
    timedelta: _as_text(timedelta, lambda value: str(value // timedelta(microseconds=1)), _duration),
}

_dumps = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_LOADS = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse, object_pairs_hook=_refuse)
