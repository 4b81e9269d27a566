"""Try it: what a statement would be told as one of the analysts, what it would cost, and how far noise would move it.

Nothing is asked of the real database and nothing is spent: each look is an EXPLAIN in a session of that analyst.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from proxy.console.web.asking import Asking, Reply, asking_as, facts_of
from proxy.console.web.pages import Page
from proxy.console.web.pictures import Line, Point, lines, log_axis
from proxy.log import event
from rules.refusal import BadSetting, Refusal
from rules.sql.limits import MOST_BYTES
from rules.sql.session_settings import SettingLimits

_MOST_PLACES: Final = 12  # behind the point of an ε
_POINTS: Final = 5  # of the line from little ε to much
_ERROR: Final = "error of "
_MARGIN: Final = re.compile(r"\+/- ([\d.,]+(?:e[-+]?\d+)?)(?: (in a group of [\d,]+ rows|rows))?")
_PRIVATE: Final = "Private Answer"


@dataclass(frozen=True, slots=True)
class ExpectedAnswer:
    """The error of one column: in words at the ε that was asked for, and as a line over others."""

    name: str
    words: str
    picture: Markup | None


@dataclass(frozen=True, slots=True)
class Tried:
    """The outcome of a statement."""

    told: Reply
    is_private: bool
    cost: Sequence[tuple[str, str]]
    blocks: Sequence[Sequence[tuple[str, str]]]
    expected: Sequence[ExpectedAnswer]
    marked: tuple[str, str, str] | None  # the statement before, at and after the place of an error


async def show(page: Page) -> Response:
    return _rendered(page, {"sql": "", "analyst": "", "epsilon": ""}, None)


async def ask(page: Page) -> Response:
    """Explain a statement as an analyst."""
    form = await page.form()
    vitals = page.house.console.vitals
    rulebook, limits = vitals.service.rulebook, vitals.service.limits
    form_fields = {name: form[name].strip() for name in ("sql", "analyst", "epsilon")}
    form_fields["sql"] = form_fields["sql"].rstrip("; \r\n")
    if form_fields["analyst"] not in rulebook.budgets.analysts:
        raise BadSetting(f'there is no analyst "{form_fields["analyst"][:60]}"')
    if len(form_fields["sql"].encode()) > MOST_BYTES:
        raise BadSetting(f"the statement is longer than {MOST_BYTES // 1024} KiB")
    if not form_fields["sql"]:
        return _rendered(page, form_fields, None)
    event("console", operator=page.user, command="EXPLAIN", analyst=form_fields["analyst"])
    try:
        epsilon = _epsilon(form_fields["epsilon"], limits)
        async with asking_as(form_fields["analyst"], vitals.sessions, rulebook.catalog.database) as asking:
            tried = await _tried(asking, form_fields["sql"], epsilon, limits)
    except Refusal as refusal:
        fields = {"C": refusal.sqlstate, "M": refusal.message, "H": refusal.hint, "D": refusal.detail}
        reply = Reply(None, {code: text for code, text in fields.items() if text})
        tried = Tried(reply, False, (), (), (), None)
    return _rendered(page, form_fields, tried)


def _rendered(page: Page, fields: Mapping[str, str], tried: Tried | None) -> Response:
    service = page.house.console.vitals.service
    limits = service.limits
    return page.render(
        "try.html",
        asked=fields,
        tried=tried,
        analysts=sorted(service.rulebook.policy.analysts),
        default=f"{limits.epsilon:f}",
        most=f"{limits.max_epsilon:f}",
    )


def _epsilon(text: str, limits: SettingLimits) -> Decimal:
    if not text:
        return limits.epsilon
    try:
        epsilon = Decimal(text)
    except InvalidOperation:
        raise BadSetting(f'ε is a number, not "{text[:40]}"') from None
    if not (epsilon.is_finite() and 0 < epsilon <= limits.max_epsilon and epsilon.adjusted() > -_MOST_PLACES):
        raise BadSetting(f"ε is a number above 0, and at most {limits.max_epsilon:f}")
    return epsilon


async def _tried(asking: Asking, sql: str, epsilon: Decimal, limits: SettingLimits) -> Tried:
    reply = await asking.explain(sql, epsilon)
    if reply.plan is None:
        return Tried(reply, False, (), (), (), _marked(sql, reply.error.get("P", "")))
    if reply.plan.get("Node Type") != _PRIVATE:
        return Tried(reply, False, (), (), (), None)
    margins = {epsilon: _margins(reply)}
    for tried in _epsilons(limits):
        if tried != epsilon:
            margins[tried] = _margins(await asking.explain(sql, tried))
    blocks = [facts_of(block) for block in _blocks(reply)]
    errors = [(name.removeprefix(_ERROR), value) for block in blocks for name, value in block if _is_error(name)]
    pictures = [_picture(name, epsilon, number, margins) for number, (name, _) in enumerate(errors)]
    expected = [ExpectedAnswer(*error, picture) for error, picture in zip(errors, pictures, strict=True)]
    return Tried(reply, True, facts_of(reply.plan), blocks, expected, None)


def _is_error(name: str) -> bool:
    return name.startswith(_ERROR)


def _marked(sql: str, position: str) -> tuple[str, str, str] | None:
    """The statement around the place of an error; positions count characters from 1."""
    if not position.isdecimal() or not 0 < int(position) <= len(sql):
        return None
    at = int(position) - 1
    word = re.match(r"\w+|.", sql[at:], re.DOTALL)
    end = at + (len(word[0]) if word else 1)
    return sql[:at], sql[at:end], sql[end:]


def _blocks(told: Reply) -> Iterator[dict[str, object]]:
    below = (told.plan or {}).get("Plans")
    for block in below if isinstance(below, list) else ():
        if isinstance(block, dict):
            yield block


def _margins(told: Reply) -> list[tuple[float, str] | None]:
    """The first error that each line tells, and in what it is."""
    facts = (fact for block in _blocks(told) for fact in facts_of(block))
    return [_margin(value) for name, value in facts if _is_error(name)]


def _margin(words: str) -> tuple[float, str] | None:
    match = _MARGIN.search(words)
    return None if match is None else (float(match[1].replace(",", "")), match[2] or "")


def _epsilons(limits: SettingLimits) -> list[Decimal]:
    """From little to the most that a statement may have, evenly in powers."""
    low, high = float(max(limits.min_epsilon, limits.max_epsilon / 100)), float(limits.max_epsilon)
    steps = [low * (high / low) ** (number / (_POINTS - 1)) for number in range(_POINTS)]
    inner = [Decimal(f"{step:.2g}") for step in steps]
    return [min(limits.max_epsilon, max(limits.min_epsilon, decimal)) for decimal in inner]


def _picture(
    name: str, epsilon: Decimal, number: int, points_of: Mapping[Decimal, Sequence[tuple[float, str] | None]]
) -> Markup | None:  # fmt: skip
    """The error over ε, with a dot where it was asked."""
    at = {decimal: margins[number] for decimal, margins in sorted(points_of.items()) if number < len(margins)}
    points = [
        Point(float(decimal), margin[0]) for decimal, margin in at.items() if margin is not None and margin[0] > 0
    ]
    here = at.get(epsilon)
    if len(points) < 2 or here is None:
        return None
    x, y = log_axis([point.x for point in points]), log_axis([point.y for point in points])
    unit = f"± {here[1]}".strip()
    title = f"Expected error of {name}: {unit} {here[0]:.4g} at ε {epsilon:f}; less ε means a larger error"
    return lines(title, [Line(points)], x, y, Point(float(epsilon), here[0]), "ε of the statement")


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/try": show}
ACTIONS: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/try": ask}
