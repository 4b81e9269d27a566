"""Write one type of value as plain JSON, and read it back: scalars, and what is made of others."""

import base64
import binascii
import dataclasses
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from itertools import chain, repeat
from operator import call
from types import NoneType
from typing import Any, Final

Json = None | bool | int | str | list["Json"]
Encode = Callable[[Any], Json]
Decode = Callable[[Any, int], Any]  # of what JSON has, and how many classes stand around it
_MOST_DIGITS: Final = 200_000  # of a Decimal written out: more than numeric has
BARE: Final = frozenset((NoneType, bool, int, str))  # what stands in JSON as it is


class Malformed(Exception):
    """Data that are no value of the type, or a value that is not of its declared type. Quotes neither."""


class TooDeep(Malformed):
    """Classes within classes, more of them than are read."""


@dataclasses.dataclass(frozen=True, slots=True)
class Shape:
    """The JSON form of one type: which of JSON's types, and by which functions."""

    kinds: frozenset[type]
    encode: Encode
    decode: Decode
    is_bare: bool = False  # whether checking its JSON type is all there is to do
    items: frozenset[type] = frozenset()  # of a tuple whose items are bare: their types in JSON


def sequence(item: Shape) -> Shape:
    """A tuple of any length."""
    if item.is_bare:
        return _row(item.kinds)
    if item.items:
        return _rows(item.items)
    inner_encode, inner_decode = item.encode, item.decode

    def encode(value: Any) -> Json:
        if type(value) is not tuple:
            raise Malformed("not a tuple")
        return list(map(inner_encode, value))

    def decode(data: Any, depth: int) -> Any:
        if type(data) is not list:
            raise Malformed("not a tuple")
        return tuple(map(inner_decode, data, repeat(depth)))

    return Shape(_LIST, encode, decode)


def _row(kinds: frozenset[type]) -> Shape:
    """A tuple of what stands in JSON as it is."""

    def encode(value: Any) -> Json:
        if type(value) is not tuple or not kinds.issuperset(map(type, value)):
            raise Malformed("not a tuple")
        return list(value)

    def decode(data: Any, _: int) -> Any:
        if type(data) is not list or not kinds.issuperset(map(type, data)):
            raise Malformed("not a tuple")
        return tuple(data)

    return Shape(_LIST, encode, decode, items=kinds)


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
        if type(value) is not tuple or not _TUPLE.issuperset(map(type, value)):
            raise Malformed("not a tuple of tuples")
        if has_texts and (joined := _joined(value)) is not None:
            latest.append((value, joined))
            return joined
        if not kinds.issuperset(map(type, chain.from_iterable(value))):
            raise Malformed("not a tuple")
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
    if not 1 <= width <= len(texts) or len(texts) % width:
        raise Malformed("rows of different widths")
    return tuple(zip(*repeat(iter(texts), width), strict=True))


_KEPT_CHARACTERS: Final = 65_536
_KEYS: Final = 4  # of groups, mostly
_parted_kept = lru_cache(maxsize=_KEYS)(_parted)
_MARK: Final = "\x7f"  # that JSON has no escape for


_LIST: Final[frozenset[type]] = frozenset((list,))
_TUPLE: Final[frozenset[type]] = frozenset((tuple,))
_TEXT: Final[frozenset[type]] = frozenset((str,))


def tuple_of(items: Sequence[Shape]) -> Shape:
    """A tuple of so many."""
    encoders, decoders = [item.encode for item in items], [item.decode for item in items]

    def encode(value: Any) -> Json:
        if type(value) is not tuple or len(value) != len(encoders):
            raise Malformed("not such a tuple")
        return list(map(call, encoders, value))

    def decode(data: Any, depth: int) -> Any:
        if type(data) is not list or len(data) != len(decoders):
            raise Malformed("not such a tuple")
        return tuple(map(call, decoders, data, repeat(depth)))

    return Shape(_LIST, encode, decode)


def set_of(items: Shape) -> Shape:
    def encode(value: Any) -> Json:
        if type(value) is not frozenset:
            raise Malformed("not a set")
        return items.encode(tuple(value))

    def decode(data: Any, depth: int) -> Any:
        decoded = items.decode(data, depth)
        made = frozenset(decoded)
        if len(made) < len(decoded):
            raise Malformed("twice in a set")
        return made

    return Shape(_LIST, encode, decode)


def mapping_of(pairs: Shape) -> Shape:
    def encode(value: Any) -> Json:
        if not isinstance(value, Mapping):
            raise Malformed("not a mapping")
        return pairs.encode(tuple(value.items()))

    def decode(data: Any, depth: int) -> Any:
        decoded = pairs.decode(data, depth)
        made = dict(decoded)
        if len(made) < len(decoded):
            raise Malformed("twice in a mapping")
        return made

    return Shape(_LIST, encode, decode)


def literal(values: Sequence[Any]) -> Shape:
    return _listed({value: value for value in values}, frozenset(map(type, values)))


def enum_of(kind: type[Enum]) -> Shape:
    values = {member.value: member for member in kind}
    return _listed(values, frozenset(map(type, values)))


def _listed(members: Mapping[Any, Any], kinds: frozenset[type]) -> Shape:
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

    return Shape(kinds, encode, decode)


def bare(*kinds: type) -> Shape:
    """Return what stands in JSON as it is; texts hold whole characters only, which UTF-8 sees to."""
    types = frozenset(kinds)

    def encode(value: Any) -> Json:
        if type(value) not in types:
            raise Malformed("of another type")
        plain: Json = value
        return plain

    def decode(data: Any, _: int) -> Any:
        if type(data) not in types:
            raise Malformed("of another type")
        return data

    return Shape(types, encode, decode, is_bare=True)


def _as_text(kind: type, write: Callable[[Any], str], read: Callable[[str], Any]) -> Shape:
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

    return Shape(frozenset((str,)), encode, decode)


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


SCALARS: Final[Mapping[Any, Shape]] = {
    **{kind: bare(kind) for kind in BARE},
    Decimal: _as_text(Decimal, str, _decimal),
    Fraction: _as_text(Fraction, lambda value: f"{value.numerator}/{value.denominator}", _fraction),
    bytes: _as_text(bytes, lambda value: base64.b64encode(value).decode(), _bytes),
    date: _as_text(date, date.isoformat, date.fromisoformat),
    datetime: _as_text(datetime, datetime.isoformat, datetime.fromisoformat),
    timedelta: _as_text(timedelta, lambda value: str(value // timedelta(microseconds=1)), _duration),
}
