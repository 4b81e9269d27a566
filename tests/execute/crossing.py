"""Statements as they are planned, and what crosses the pipe of it."""

from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from proxy.execute.pipe import PLANNED
from proxy.plain_data import Malformed
from rules.bind.inner_answers import FREE, InnerAnswer
from rules.catalog import Catalog
from rules.planner.plan import NeedsInner, Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.refusal import Refusal
from tests.execute.typed import is_of

Answer = Plan | NeedsInner | Refusal
Rules = tuple[Policy, Catalog]

_MOST_FIRSTS = 5


def request(text: str) -> Request:
    """A statement with more parameters than it has."""
    return Request(
        text,
        ("pg_catalog", "public"),
        parameter_types=("integer",) * 9,
        parameters=("1",) * 9,
        delta=Decimal("1e-9"),
        now="2026-06-15 12:00:00+00:00",
    )


def answer(asked: Request, rules: Rules) -> Answer:
    """What a worker would say."""
    try:
        return plan(asked, *rules)
    except Refusal as refusal:
        return refusal


def answers(text: str, rules: Rules) -> Iterator[tuple[Request, Answer]]:
    """How a statement is planned, the parts that come first included, with made-up rows of theirs."""
    asked = request(text)
    for _ in range(_MOST_FIRSTS):
        made = answer(asked, rules)
        yield asked, made
        if not isinstance(made, NeedsInner):
            return
        width = 2 if made.inner.use == "reading" else 1 + len(made.inner.links) + (made.inner.use == "lookup")
        rows = tuple((literal, *(None,) * (width - 1)) for literal in made.inner.literals or ("1",))
        if made.inner.use in FREE - {"reading"}:  # as of public tables that are not open
            width, rows = 2, ((None, None),) * len(made.inner.columns)
        known = InnerAnswer(made.inner, ("a",) * width, ("text",) * width, rows)
        asked = replace(asked, released=(*asked.released, known))


def check_crosses(made: Answer) -> bytes:
    """That an answer arrives as it was; returns what crosses."""
    written = PLANNED.encode(made)
    found = PLANNED.decode(written)
    assert is_of(Answer, found)
    assert PLANNED.encode(found) == written
    if isinstance(made, Refusal):
        assert isinstance(found, Refusal)
        assert isinstance(made, type(found))
        assert (str(found), found.sqlstate) == (str(made), made.sqlstate)
        assert (found.detail, found.hint, found.position) == (made.detail, made.hint, made.position)
    else:
        assert found == made
    return written


def check_read_or_malformed(data: bytes) -> None:
    """That nothing but an answer is made of any data, and nothing else is raised."""
    try:
        found = PLANNED.decode(data)
    except Malformed:
        return
    assert is_of(Answer, found)
