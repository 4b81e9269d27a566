"""Values of declared types as plain JSON, and back: reading makes nothing but values of the types that were declared.

A codec is compiled once from type hints. The classes that it can make are those that its type names, each with fields
of their declared types: frozen dataclasses, pydantic models, enums, and forms that stand for other classes. Dataclasses
are lists of their fields in order, without those at the end that have their defaults; the alternatives of a union carry
their names where JSON's own types do not tell them apart. Types are checked once, by the reader.

msgspec reads no union of dataclasses, nor one of two types that JSON writes as texts, and plans are made of these.
"""

import base64
import dataclasses
import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import chain, repeat
from operator import call
from types import NoneType, UnionType
from typing import Any, Final, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from rules.frozen import getter

Value = TypeVar("Value")
Json = None | bool | int | str | list["Json"]
Encode = Callable[[Any], Any]
Decode = Callable[[Any, int], Any]  # of what JSON has, and how many classes stand around it

MOST_DEPTH: Final = 200  # classes within classes
_MOST_DIGITS: Final = 200_000  # of a Decimal: more than numeric has
_MOST_SHARED: Final = 1_024  # values of one class
_BARE: Final = frozenset((NoneType, bool, int, str))  # what stands in JSON as it is
_LIST: Final[frozenset[type]] = frozenset((list,))
_TEXT: Final[frozenset[type]] = frozenset((str,))


class Malformed(Exception):
    """Data that are no value of the type. Quotes nothing."""


class TooDeep(Malformed):
    """Classes within classes, more of them than are read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """A dataclass that stands for a class that is none. `together` raises ValueError for what has no meaning."""

    kind: type
    dataclass: type
    apart: Callable[[Any], Any]
    together: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The JSON form of one type: which of JSON's types, and by which functions."""

    kinds: frozenset[type]
    encode: Encode
    decode: Decode
    is_bare: bool = False  # whether checking its JSON type is all there is to do
    items: frozenset[type] = frozenset()  # of a tuple whose items are bare: their types in JSON


class Codec(Generic[Value]):
    """Writes and reads the values of one type. Of the classes that are `shared`, few values come again and again."""

    def __init__(self, hint: Any, forms: Sequence[Form] = (), shared: Sequence[type] = ()) -> None:
        self._shape = _Compiler({form.kind: form for form in forms}, shared).shape(hint)

    def encode(self, value: Value) -> bytes:
        """Raises Malformed where a value is too deep, or has half a character in it."""
        try:
            return _dumps(self._shape.encode(value)).encode()
        except (UnicodeEncodeError, RecursionError) as error:
            raise Malformed("no plain data") from error

    def decode(self, data: bytes) -> Value:
        """Raises Malformed, and nothing else; TooDeep where that is the only reason."""
        try:
            value: Value = self._shape.decode(json.loads(data.decode()), 0)
        except RecursionError as error:
            raise TooDeep("lists within lists") from error
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # as JSON, Decimal and models raise them
            raise Malformed("no plain data") from error
        return value


class _Compiler:
    """Makes a shape of every type that is reached, each once: types may contain themselves."""

    def __init__(self, forms: Mapping[type, Form], shared: Sequence[type]) -> None:
        self._forms, self._shared = forms, shared
        self._known: dict[Any, Shape] = dict(_SCALARS)

    def shape(self, hint: Any) -> Shape:
        if (known := self._known.get(hint)) is not None:
            return known
        made = self._generic(hint) if get_origin(hint) is not None else self._class(hint)
        return self._known.setdefault(hint, made)

    def _generic(self, hint: Any) -> Shape:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Literal:
            return _listed({value: value for value in arguments})
        if origin in (Union, UnionType):
            return self._union(arguments)
        if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
            return _sequence(self.shape(arguments[0]))
        if origin is tuple:
            return _tuple_of([self.shape(argument) for argument in arguments])
        if origin is frozenset:
            items = _sequence(self.shape(arguments[0]))
            return Shape(
                _LIST,
                lambda value: items.encode(tuple(value)),
                lambda data, depth: frozenset(items.decode(data, depth)),
            )
        if origin in (dict, Mapping):
            pairs = _sequence(_tuple_of([self.shape(argument) for argument in arguments]))
            return Shape(
                _LIST,
                lambda value: pairs.encode(tuple(value.items())),
                lambda data, depth: dict(pairs.decode(data, depth)),
            )
        raise TypeError(f"{hint} has no plain form")

    def _class(self, kind: Any) -> Shape:
        if (form := self._forms.get(kind)) is not None:
            inner, apart, together = self.shape(form.dataclass), form.apart, form.together
            return Shape(
                inner.kinds,
                lambda value: inner.encode(apart(value)),
                lambda data, depth: together(inner.decode(data, depth)),
            )
        if isinstance(kind, type) and issubclass(kind, Enum):
            return _listed({member.value: member for member in kind})
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

        shape = Shape(_LIST, encode, decode)
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
            set_fields = value.model_fields_set
            return [[name, field.encode(getattr(value, name))] for name, field in fields.items() if name in set_fields]

        def decode(data: Any, depth: int) -> Any:
            return kind(**{name: fields[name].decode(item, depth) for name, item in data})

        return Shape(_LIST, encode, decode)

    def _union(self, alternatives: Sequence[Any]) -> Shape:
        shapes = {_runtime_type(alternative): self.shape(alternative) for alternative in alternatives}
        kinds = [kind for shape in shapes.values() for kind in shape.kinds]
        if len(set(kinds)) < len(kinds):
            return _tagged(shapes)
        if all(shape.is_bare for shape in shapes.values()):
            return _bare(*kinds)
        decoders = {kind: shape.decode for shape in shapes.values() for kind in shape.kinds}
        return Shape(
            frozenset(kinds),
            lambda value: (shapes.get(type(value)) or shapes[_alternative(value, shapes)]).encode(value),
            lambda data, depth: decoders[type(data)](data, depth),
        )


def _tagged(shapes: Mapping[type, Shape]) -> Shape:
    """NULL as it is, everything else with the name of its type before it."""
    decoders = {kind.__name__: shape.decode for kind, shape in shapes.items() if kind is not NoneType}
    has_none = NoneType in shapes
    if len(decoders) + has_none < len(shapes):
        raise TypeError("two alternatives have one name")
    names = {kind: kind.__name__ for kind in shapes}

    def encode(value: Any) -> Json:
        if value is None and has_none:
            return None
        kind = type(value)
        if kind not in shapes:
            kind = _alternative(value, shapes)
        return [names[kind], shapes[kind].encode(value)]

    def decode(data: Any, depth: int) -> Any:
        if data is None and has_none:
            return None
        name, item = data
        return decoders[name](item, depth)

    return Shape(_LIST | {NoneType} if has_none else _LIST, encode, decode)


def _alternative(value: Any, shapes: Mapping[type, Shape]) -> type:
    """Return the alternative that a value is, or is below of, as refusals are below of Refusal."""
    for kind in type(value).__mro__:
        if kind in shapes:
            return kind
    raise TypeError("none of the alternatives")


def _runtime_type(hint: Any) -> type:
    """Return what `type` says of the values of a type."""
    made: type = type(get_args(hint)[0]) if get_origin(hint) is Literal else get_origin(hint) or hint
    return made


def _shared(shape: Shape) -> Shape:
    """A dataclass of which few values come again and again: each of them is written once, and made once.

    Those that are told by three scalars at most are, as most types.
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
        if type(data) is not list or len(data) > 3 or depth >= MOST_DEPTH or not _BARE.issuperset(map(type, data)):
            return shape.decode(data, depth)
        return made(*data)

    return Shape(shape.kinds, encode, decode)


def _sequence(item: Shape) -> Shape:
    """A tuple of any length."""
    if item.is_bare:
        return _row(item.kinds)
    if item.items:
        return _rows(item.items)
    inner_encode, inner_decode = item.encode, item.decode

    def decode(data: Any, depth: int) -> Any:
        if type(data) is not list:
            raise Malformed("not a tuple")
        return tuple(map(inner_decode, data, repeat(depth)))

    return Shape(_LIST, lambda value: list(map(inner_encode, value)), decode)


def _row(kinds: frozenset[type]) -> Shape:
    """A tuple of what stands in JSON as it is."""

    def decode(data: Any, _: int) -> Any:
        if type(data) is not list or not kinds.issuperset(map(type, data)):
            raise Malformed("not a tuple")
        return tuple(data)

    return Shape(_LIST, list, decode, items=kinds)


def _rows(kinds: frozenset[type]) -> Shape:
    """A tuple of such tuples, as lists of groups are, of which there may be thousands: without a call for each.

    Texts are written as one, with the width of a row before it: that takes a tenth of the time of a list for each row.
    """
    has_texts = str in kinds
    latest: deque[tuple[Any, Json]] = deque(maxlen=_KEYS)

    def encode(value: Any) -> Json:
        for known, joined in latest:  # a plan has the lists of its keys twice, as what is tested and as what is shown
            if known is value:
                return joined
        if has_texts and (joined := _joined(value)) is not None:
            latest.append((value, joined))
            return joined
        return list(map(list, value))

    def decode(data: Any, _: int) -> Any:
        if has_texts and type(data) is list and list(map(type, data)) == [int, str]:
            return (_parted_kept if len(data[1]) <= _KEPT_CHARACTERS else _parted)(*data)
        if type(data) is not list or not _LIST.issuperset(map(type, data)):
            raise Malformed("not a tuple of tuples")
        if not kinds.issuperset(map(type, chain.from_iterable(data))):
            raise Malformed("not a tuple")
        return tuple(map(tuple, data))

    return Shape(_LIST, encode, decode)


def _joined(rows: tuple[tuple[Any, ...], ...]) -> Json:
    """The width of such rows and all their texts; None where they differ in width, or have something else in them."""
    width, *others = set(map(len, rows)) or {0}
    if others or not _TEXT.issuperset(map(type, chain.from_iterable(rows))):
        return None
    joined = _MARK.join(chain.from_iterable(rows))
    return [width, joined] if joined.count(_MARK) == width * len(rows) - 1 else None


def _parted(width: int, joined: str) -> tuple[tuple[str, ...], ...]:
    texts = joined.split(_MARK)
    if not 1 <= width <= len(texts):
        raise Malformed("rows of another width")
    return tuple(zip(*repeat(iter(texts), width), strict=True))


_KEPT_CHARACTERS: Final = 65_536
_KEYS: Final = 4  # of groups, mostly
_parted_kept = lru_cache(maxsize=_KEYS)(_parted)
_MARK: Final = "\x7f"  # that JSON has no escape for


def _tuple_of(items: Sequence[Shape]) -> Shape:
    """A tuple of so many."""
    encoders, decoders = [item.encode for item in items], [item.decode for item in items]

    def decode(data: Any, depth: int) -> Any:
        if type(data) is not list or len(data) != len(decoders):
            raise Malformed("not such a tuple")
        return tuple(map(call, decoders, data, repeat(depth)))

    return Shape(_LIST, lambda value: list(map(call, encoders, value)), decode)


def _listed(members: Mapping[Any, Any]) -> Shape:
    """One of a list."""
    kinds = frozenset(map(type, members))
    if not kinds.issubset((str, int)):
        raise TypeError("a list of choices has texts or numbers")
    names = {member: value for value, member in members.items()}
    return Shape(kinds, names.__getitem__, lambda data, _: members[data])


def _bare(*kinds: type) -> Shape:
    """What stands in JSON as it is."""
    types = frozenset(kinds)

    def decode(data: Any, _: int) -> Any:
        if type(data) not in types:
            raise Malformed("of another type")
        return data

    return Shape(types, lambda value: value, decode, is_bare=True)


def _as_text(write: Callable[[Any], str], read: Callable[[str], Any]) -> Shape:
    def decode(data: Any, _: int) -> Any:
        if type(data) is not str:
            raise Malformed("of another type")
        return read(data)

    return Shape(_TEXT, write, decode)


def _finite(text: str) -> Decimal:
    """A Decimal that can be written out."""
    number = Decimal(text)
    if not number.is_finite() or abs(number.adjusted()) + len(text) > _MOST_DIGITS:
        raise Malformed("not a finite Decimal")
    return number


_dumps = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_SCALARS: Final[Mapping[Any, Shape]] = {
    **{kind: _bare(kind) for kind in _BARE},
    Decimal: _as_text(str, _finite),
    Fraction: _as_text(
        lambda value: f"{value.numerator}/{value.denominator}", lambda text: Fraction(*map(int, text.split("/")))
    ),
    bytes: _as_text(lambda value: base64.b64encode(value).decode(), base64.b64decode),
    date: _as_text(date.isoformat, date.fromisoformat),
    datetime: _as_text(datetime.isoformat, datetime.fromisoformat),
    timedelta: _as_text(
        lambda value: str(value // timedelta(microseconds=1)), lambda text: timedelta(microseconds=int(text))
    ),
}
