"""Messages between the proxy and a worker: questions and answers as plain data, a length in front.

The parsers may be wrong, or be taken over by a text. So what a worker writes is read as the one type that was asked
for, by `plain_data`, and a reading is held against its text: what it calls a statement is sent to the twin as the
client's own, and it is kept for all sessions that send this text.
"""

import struct
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from proxy.plain_data import Codec, Form
from proxy.process_wall import Wall
from rules import refusal as refusals
from rules.catalog import Catalog
from rules.mechanisms.release_plan import GroupLists, GroupProduct
from rules.planner.plan import NeedsInner, Plan, Request
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.sql.statement import Reading
from rules.values.types import Type

LENGTH: Final = struct.Struct("!I")
MOST_ANSWER_BYTES: Final = 32 * 1024 * 1024  # a plan of 100,000 groups has some


@dataclass(frozen=True, slots=True)
class Begin:
    """The first question: which walls a worker has raised around itself."""


@dataclass(frozen=True, slots=True)
class Load:
    """Rules to plan by from now on."""

    policy: Policy
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class Read:
    """A text to be read."""

    text: str


Question = Begin | Load | Read | Request


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal as data: its class by name."""

    kind: str
    message: str
    detail: str
    hint: str
    position: int | None


_KINDS: Final = {
    name: kind for name, kind in vars(refusals).items() if isinstance(kind, type) and issubclass(kind, Refusal)
}


def fits(question: Question, answer: object) -> bool:
    """Return whether an answer can be one to this question: a reading is of its text."""
    return not (isinstance(question, Read) and isinstance(answer, Reading)) or answer.is_of(question.text)


def _apart(refusal: Refusal) -> Refused:
    """Kinds of which the planner alone knows cross as the one that they belong to."""
    kind = next(kind.__name__ for kind in type(refusal).__mro__ if _KINDS.get(kind.__name__) is kind)
    return Refused(kind, refusal.message, refusal.detail, refusal.hint, refusal.position)


def _together(refused: Refused) -> Refusal:
    kind = _KINDS.get(refused.kind)
    if kind is None:
        raise ValueError("no kind of refusal that the rules have")
    return kind(refused.message, detail=refused.detail, hint=refused.hint, position=refused.position)


FORMS: Final = (
    Form(Refusal, Refused, _apart, _together),
    Form(GroupProduct, GroupLists, attrgetter("lists"), GroupLists.combined),
)

SHARED: Final = (Type,)

QUESTIONS: Final[Codec[Question]] = Codec(Question, FORMS)
BEGUN: Final[Codec[Wall]] = Codec(Wall)
LOADED: Final[Codec[None]] = Codec(type(None))
READ: Final[Codec[Reading | Refusal]] = Codec(Reading | Refusal, FORMS)
PLANNED: Final[Codec[Plan | NeedsInner | Refusal]] = Codec(Plan | NeedsInner | Refusal, FORMS, SHARED)
