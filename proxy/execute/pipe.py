"""Messages between the proxy and a worker: questions and answers as plain data, a length in front.

A hostile text may take over the parsers, and with them a worker. So what a worker writes is read as the one type that
was asked for, by `plain_data`, and nothing else is made of it.
"""

import struct
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from proxy.plain_data import Codec, Form
from rules import refusal as refusals
from rules.catalog import Catalog
from rules.mechanisms.release_plan import GroupLists, GroupProduct
from rules.planner.plan import NeedsInner, Plan, Request
from rules.policy.model import Policy
from rules.refusal import Refusal
from rules.sql.statement import Reading

LENGTH: Final = struct.Struct("!I")
MOST_ANSWER_BYTES: Final = 32 * 1024 * 1024  # a plan of 100,000 groups has some


@dataclass(frozen=True, slots=True)
class Load:
    """Rules to plan by from now on."""

    policy: Policy
    catalog: Catalog


@dataclass(frozen=True, slots=True)
class Read:
    """A text to be read."""

    text: str


Question = Load | Read | Request


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

QUESTIONS: Final[Codec[Question]] = Codec(Question, FORMS)
LOADED: Final[Codec[None]] = Codec(type(None))
READ: Final[Codec[Reading | Refusal]] = Codec(Reading | Refusal, FORMS)
PLANNED: Final[Codec[Plan | NeedsInner | Refusal]] = Codec(Plan | NeedsInner | Refusal, FORMS)
