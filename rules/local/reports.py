"""Reports: randomize an answer, so that publishing the report costs its person at most ε.

Randomness is OpenDP's. A report is drawn anew each time, and costs its person ε again: `Remembered` keeps the first.
"""

import secrets
from collections.abc import Hashable, MutableMapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, Protocol, TypeVar

import opendp.prelude as dp

from rules.local.laws import (
    Law,
    bit_law,
    check_sketch,
    hashed_bit,
    kary_law,
    sketch_law,
    unary_law,
    unary_mechanism,
)

Answer = TypeVar("Answer", contravariant=True)
Report = TypeVar("Report", covariant=True)
Person = TypeVar("Person", bound=Hashable)
Given = TypeVar("Given")
Told = TypeVar("Told")
_STEPS = 2**53  # of a share that is rounded to yes or no by chance


class Reporter(Protocol[Answer, Report]):
    """Makes a report of an answer."""

    def report(self, answer: Answer) -> Report: ...


@dataclass(frozen=True)
class KAry:
    """One of a list of values: the own one, or with some chance any other. For few values, k < 3·e^ε + 2.

    Example:
        >>> ask = KAry(("yes", "no", "unsure"), "1")
        >>> ask.report("yes") in ask.values, ask.law.loss <= 1
        (True, True)
    """

    values: tuple[str, ...]
    epsilon: Decimal | str

    def __post_init__(self) -> None:
        if len(set(self.values)) < len(self.values):
            raise ValueError("a value is listed twice")
        self.law  # noqa: B018 - refuses what has none

    @property
    def law(self) -> Law:
        return kary_law(len(self.values), Decimal(self.epsilon))

    def report(self, answer: str) -> str:
        """The answer, or another value."""
        place = str(self.values.index(answer))
        categories = list(map(str, range(len(self.values))))
        drawn: str = dp.m.make_randomized_response(categories, float(self.law.p))(place)
        return self.values[int(drawn)]


@dataclass(frozen=True)
class Bit:
    """Yes or no.

    Example:
        >>> Bit("0.5").report(True) in (True, False)
        True
    """

    epsilon: Decimal | str

    @property
    def law(self) -> Law:
        return bit_law(Decimal(self.epsilon))

    def report(self, answer: bool) -> bool:
        """The answer, or its opposite."""
        drawn: bool = dp.m.make_randomized_response_bool(float(self.law.p))(answer)
        return drawn


@dataclass(frozen=True)
class Mean:
    """A number between bounds as one bit: rounded to a bound by chance, so that it is right on average, then flipped.

    The rounding carries no privacy: only the bit that it makes is seen, and that is randomized.
    """

    lower: Decimal | int
    upper: Decimal | int
    epsilon: Decimal | str

    def __post_init__(self) -> None:
        if self.lower >= self.upper:
            raise ValueError("lower must be below upper")

    @property
    def law(self) -> Law:
        return bit_law(Decimal(self.epsilon))

    def report(self, answer: Decimal | float) -> bool:
        """A bit; what lies beyond the bounds counts as the bound."""
        lower, upper = Decimal(self.lower), Decimal(self.upper)
        share = (min(max(Decimal(answer), lower), upper) - lower) / (upper - lower)
        return Bit(self.epsilon).report(secrets.randbelow(_STEPS) < share * _STEPS)


@dataclass(frozen=True)
class Unary:
    """A bit for each of a list of values, of which the own one is set, and each is flipped with some chance.

    Example:
        >>> report = Unary(tuple("abcdefghij"), 2).report("c")
        >>> len(report), set(report) <= {"0", "1"}
        (10, True)
    """

    values: tuple[str, ...]
    epsilon: Decimal | str | int

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) < len(self.values):
            raise ValueError("values must be there, and each once")

    @property
    def law(self) -> Law:
        return unary_law(Decimal(self.epsilon))

    def report(self, answer: str) -> str:
        """A text of bits, as PostgreSQL's type bit(k) reads it."""
        return _flipped(self.values.index(answer), len(self.values), self.law)


@dataclass(frozen=True)
class Sketch:
    """A word out of any number of words: the number of a hash function, and a bit for each of its values, flipped.

    Which function is drawn tells nothing of the word. All reports of a column have the same hashes, width and key.

    Example:
        >>> number, bits = Sketch(64, 256, "c0ffee", 2).report("tea")
        >>> number < 64, len(bits)
        (True, 256)
    """

    hashes: int
    width: int
    key: str  # of the hash functions, in hexadecimal digits: no secret, but another for each question
    epsilon: Decimal | str | int

    def __post_init__(self) -> None:
        check_sketch(self.hashes, self.width, self.key)

    @property
    def law(self) -> Law:
        """Compute how often a word's own bit is set in a report of it, and of another one."""
        return sketch_law(self.width, Decimal(self.epsilon))

    def report(self, answer: str) -> tuple[int, str]:
        """The function's number, and a text of bits, as PostgreSQL's type bit(width) reads it."""
        number = secrets.randbelow(self.hashes)
        place = hashed_bit(answer, number, self.width, bytes.fromhex(self.key))
        return number, _flipped(place, self.width, unary_law(Decimal(self.epsilon)))


def _flipped(place: int, count: int, law: Law) -> str:
    """So many bits, of which one is set, each flipped with the law's chance."""
    width = -(-count // 8)
    drawn: bytes = unary_mechanism(2 * float(law.q))((1 << (8 * width - 1 - place)).to_bytes(width, "big"))
    return f"{int.from_bytes(drawn, 'big'):0{8 * width}b}"[:count]


@dataclass(frozen=True)
class Remembered(Generic[Person, Given, Told]):
    """The first report of each person, kept for ever: asking again repeats it, at no further loss.

    Keep the store with the person, on the device that answers: it tells that somebody has answered.
    """

    ask: Reporter[Given, Told]
    store: MutableMapping[Person, Told]

    def report(self, person: Person, answer: Given) -> Told:
        """Return what was reported before, or a new report."""
        if person not in self.store:
            self.store[person] = self.ask.report(answer)
        return self.store[person]
