"""Values of declared types as plain JSON, and back: reading makes nothing but values of the types that were declared.

A codec is compiled once from type hints. The classes that it can make are those that its type names, each with fields
of their declared types: frozen dataclasses, pydantic models, enums, and forms that stand for other classes. Dataclasses
are lists of their fields in order, without those at the end that have their defaults; the alternatives of a union carry
their names where JSON's own types do not tell them apart. Whatever else stands there is `Malformed`.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from itertools import repeat
from operator import call
from types import NoneType, UnionType
from typing import Any, Final, Generic, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from proxy.plain_shapes import (
    BARE,
    SCALARS,
    Decode,
    Encode,
    Json,
    Malformed,
    Shape,
    TooDeep,
    bare,
    enum_of,
    literal,
    mapping_of,
    sequence,
    set_of,
    tuple_of,
)
from rules.frozen import getter

Value = TypeVar("Value")

MOST_DEPTH: Final = 200  # classes within classes
_MOST_SHARED: Final = 1_024  # values of one class
_LONGEST_WORD: Final = 64
_QUOTED: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_ESCAPE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\u(?!00[01])")  # half a character, or one that needs no escape


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """A dataclass that stands for a class that is none. `together` raises ValueError for what has no meaning."""

    kind: type
    dataclass: type
    apart: Callable[[Any], Any]
    together: Callable[[Any], Any]


class Codec(Generic[Value]):
    """Writes and reads the values of one type. Of the classes that are `shared`, few values come again and again."""

    def __init__(self, hint: Any, forms: Sequence[Form] = (), shared: Sequence[type] = ()) -> None:
        self._shape = _Compiler({form.kind: form for form in forms}, shared).shape(hint)

    def encode(self, value: Value) -> bytes:
        """Raises Malformed where a value within is not of its declared type, or too deep."""
        try:
            return _dumps(self._shape.encode(value)).encode()
        except (UnicodeEncodeError, RecursionError, ValueError) as error:
            raise Malformed("no plain data") from error

    def decode(self, data: bytes) -> Value:
        """Raises Malformed, and nothing else; TooDeep where that is the only reason."""
        try:
            text = data.decode()
            if "\\u" in text and _ESCAPE.search(text):
                raise Malformed("an escape that is not written so")
            value: Value = self._shape.decode(_LOADS.decode(text), 0)
        except RecursionError as error:
            raise (TooDeep if _is_closed(data) else Malformed)("lists within lists") from error
        except ValueError as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
            raise Malformed("no plain data") from error
        return value


class _Compiler:
    """Makes a shape of every type that is reached, each once: types may contain themselves."""

    def __init__(self, forms: Mapping[type, Form], shared: Sequence[type]) -> None:
        self._forms, self._shared = forms, shared
        self._known: dict[Any, Shape] = dict(SCALARS)

    def shape(self, hint: Any) -> Shape:
        if (known := self._known.get(hint)) is not None:
            return known
        made = self._generic(hint) if get_origin(hint) is not None else self._class(hint)
        return self._known.setdefault(hint, made)

    def _generic(self, hint: Any) -> Shape:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return literal(arguments)
        if origin in (Union, UnionType):
            return self._union(arguments)
        if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
            return sequence(self.shape(arguments[0]))
        if origin is tuple:
            return tuple_of([self.shape(argument) for argument in arguments])
        if origin is frozenset:
            return set_of(sequence(self.shape(arguments[0])))
        if origin in (dict, Mapping):
            return mapping_of(sequence(tuple_of([self.shape(argument) for argument in arguments])))
        raise TypeError(f"{hint} has no plain form")

    def _class(self, kind: Any) -> Shape:
        if kind in self._forms:
            return _formed(self._forms[kind], self.shape(self._forms[kind].dataclass))
        if isinstance(kind, type) and issubclass(kind, Enum):
            return enum_of(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            return self._model(kind)
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            return self._dataclass(kind)
        raise TypeError(f"{kind} has no plain form")

    def _dataclass(self, kind: type) -> Shape:
        """A list of the fields that are given to its constructor; each is compiled once the class itself is known.

        Fields at its end that have their defaults are left out: most columns and types are written by one or two.
        """
        given = [field for field in dataclasses.fields(kind) if field.init]
        names, defaults = [field.name for field in given], [field.default for field in given]
        needed = max((place for place, default in enumerate(defaults, 1) if default is dataclasses.MISSING), default=0)
        fields_of, most = getter(names), len(names)
        encoders: list[Encode] = []
        decoders: list[Decode] = []

        def encode(value: Any) -> Json:
            if type(value) is not kind:
                raise Malformed(f"not a {kind.__name__}")
            fields = fields_of(value)
            count = most
            while count > needed and fields[count - 1] is defaults[count - 1]:
                count -= 1
            return list(map(call, encoders, fields if count == most else fields[:count]))

        def decode(data: Any, depth: int) -> Any:
            if type(data) is not list or not needed <= len(data) <= most:
                raise Malformed(f"not a {kind.__name__}")
            if depth >= MOST_DEPTH:
                raise TooDeep(f"{MOST_DEPTH} classes within classes")
            return kind(*map(call, decoders, data, repeat(depth + 1)))

        shape = Shape(frozenset((list,)), encode, decode)
        self._known[kind] = shape = _shared(shape) if kind in self._shared else shape
        hints = get_type_hints(kind)
        fields = [self.shape(hints[name]) for name in names]
        encoders += [field.encode for field in fields]
        decoders += [field.decode for field in fields]
        return shape

    def _model(self, kind: type[BaseModel]) -> Shape:
        """The fields that were given, with their names; the model itself says whether they fit together."""
        hints = get_type_hints(kind)
        fields = {name: self.shape(hints[name]) for name in kind.model_fields}

        def encode(value: Any) -> Json:
            if type(value) is not kind:
                raise Malformed(f"not a {kind.__name__}")
            set_fields = value.model_fields_set
            return [[name, field.encode(getattr(value, name))] for name, field in fields.items() if name in set_fields]

        def decode(data: Any, depth: int) -> Any:
            arguments = {}
            for name, item in _pairs(data):
                if type(name) is not str or name not in fields or name in arguments or depth >= MOST_DEPTH:
                    raise Malformed(f"not a {kind.__name__}")
                arguments[name] = fields[name].decode(item, depth + 1)
            return kind(**arguments)

        return Shape(frozenset((list,)), encode, decode)

    def _union(self, alternatives: Sequence[Any]) -> Shape:
        shapes = [(_runtime_type(alternative), self.shape(alternative)) for alternative in alternatives]
        kinds = [kind for _, shape in shapes for kind in shape.kinds]
        if len(set(kinds)) < len(kinds):
            return _tagged(shapes)
        if all(shape.is_bare for _, shape in shapes):
            return bare(*kinds)
        encoders = {kind: shape.encode for kind, shape in shapes}
        decoders = {kind: shape.decode for _, shape in shapes for kind in shape.kinds}

        def encode(value: Any) -> Json:
            encoder = encoders.get(type(value))
            return (encoders[_alternative(value, encoders)] if encoder is None else encoder)(value)

        def decode(data: Any, depth: int) -> Any:
            decoder = decoders.get(type(data))
            if decoder is None:
                raise Malformed("none of the alternatives")
            return decoder(data, depth)

        return Shape(frozenset(kinds), encode, decode)


def _shared(shape: Shape) -> Shape:
    """A dataclass of which few values come again and again: each of them is written once, and made once.

    Those that are told by a word and two scalars at most are, as most types.
    """
    written: dict[int, tuple[Any, Json]] = {}  # by identity, with the value, so that no other one gets it
    made = lru_cache(_MOST_SHARED, typed=True)(lambda *scalars: shape.decode(list(scalars), 0))  # True is no 1

    def encode(value: Any) -> Json:
        known = written.get(id(value))
        if known is None:
            if len(written) >= _MOST_SHARED:
                written.clear()
            known = written[id(value)] = value, shape.encode(value)
        return known[1]

    def decode(data: Any, depth: int) -> Any:
        is_short = type(data) is list and 1 <= len(data) <= 3 and type(data[0]) is str and len(data[0]) <= _LONGEST_WORD
        if not is_short or depth >= MOST_DEPTH or not BARE.issuperset(map(type, data)):
            return shape.decode(data, depth)
        return made(*data)

    return Shape(shape.kinds, encode, decode)


def _tagged(shapes: Sequence[tuple[type, Shape]]) -> Shape:
    """NULL as it is, everything else with the name of its type before it."""
    encoders = {kind: (kind.__name__, shape.encode) for kind, shape in shapes}
    decoders = {kind.__name__: shape.decode for kind, shape in shapes if kind is not NoneType}
    has_none = NoneType in encoders
    if len(decoders) + has_none < len(shapes):
        raise TypeError("two alternatives have one name")

    def encode(value: Any) -> Json:
        if value is None and has_none:
            return None
        name, encoder = encoders.get(type(value)) or encoders[_alternative(value, encoders)]
        return [name, encoder(value)]

    def decode(data: Any, depth: int) -> Any:
        if data is None and has_none:
            return None
        if type(data) is not list or len(data) != 2 or type(data[0]) is not str or data[0] not in decoders:
            raise Malformed("none of the alternatives")
        return decoders[data[0]](data[1], depth)

    return Shape(frozenset((list, NoneType) if has_none else (list,)), encode, decode)


def _is_closed(data: bytes) -> bool:
    """Return whether lists that are too deep to be read end as often as they begin."""
    plain = _QUOTED.sub(b"", data)
    return plain.count(b"[") == plain.count(b"]")


def _alternative(value: Any, encoders: Mapping[type, object]) -> type:
    """Return which of the alternatives a value is; each holds for itself how exactly."""
    for kind in type(value).__mro__:
        if kind in encoders:
            return kind
    raise Malformed("none of the alternatives")


def _formed(form: Form, inner: Shape) -> Shape:
    def encode(value: Any) -> Json:
        if not isinstance(value, form.kind):
            raise Malformed(f"not a {form.kind.__name__}")
        return inner.encode(form.apart(value))

    return Shape(inner.kinds, encode, lambda data, depth: form.together(inner.decode(data, depth)))


def _pairs(data: Any) -> list[tuple[Any, Any]]:
    if type(data) is not list or not all(type(pair) is list and len(pair) == 2 for pair in data):
        raise Malformed("not a list of pairs")
    return [(name, item) for name, item in data]


def _runtime_type(hint: Any) -> type:
    """Return what `type` says of the values of a type."""
    origin = get_origin(hint)
    if origin is Literal:
        (kind,) = set(map(type, get_args(hint)))
        type_: type = kind
        return type_
    made: type = hint if origin is None else origin
    return made


def _refuse(_: object) -> NoReturn:
    raise Malformed("a kind of JSON that is not used")


_dumps = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_LOADS = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse, object_pairs_hook=_refuse)
