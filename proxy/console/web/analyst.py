"""The analyst's own pages: what is left, what was asked and answered, what may be asked, and SQL that works here."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from proxy.console.web.budgets import plain_number
from proxy.console.web.pages import Page
from proxy.console.web.pictures import error_bars
from proxy.console.web.statements import Charged, charged
from proxy.execute.notices import short_number, size_words
from proxy.execute.shown_answers import RecentAnswer
from proxy.recent_values import RecentValues
from rules.accounting.budgets import period_of, span_of
from rules.planner.column_facts import ColumnFacts
from rules.planner.cookbook import Chapter, CookbookEntry, chapter
from rules.policy.model import table_name
from rules.refusal import Refusal

_MOST_CHARGES: Final = 50
_CHAPTERS: Final[RecentValues[tuple[int, str], Chapter]] = RecentValues(64 * 1024 * 1024)
_CHAPTER_BYTES: Final = 64 * 1024


class NoSuchTable(Refusal):
    """A table that analysts do not have."""

    sqlstate = "42704"  # undefined_object


@dataclass(frozen=True, slots=True)
class Charted:
    """A recent answer with a picture for each of its columns."""

    time: str
    shape: str
    statement: str
    pictures: Sequence[tuple[str, Markup]]  # and what stands above each
    more: int


async def show(page: Page) -> Response:
    vitals = page.house.console.vitals
    rulebook, now = vitals.service.rulebook, vitals.clock()
    budgets = rulebook.budgets
    own, shared, of_role = await vitals.ledger.balances(page.user, budgets, now)
    role = budgets.role_of(page.user)
    review = await vitals.ledger.review(page.user, budgets, now, most_charges=_MOST_CHARGES)
    span = span_of(period_of(now, budgets), budgets)
    history: list[Charged] = [charged(charge) for charge in reversed(review.charges)]
    return page.render(
        "analyst.html",
        accounts=[
            (
                name,
                plain_number(balance.left),
                plain_number(balance.limit),
                round(100 * balance.spent / (balance.limit or 1)),
            )
            for name, balance in (("Yours", own), (f"Your role, {role}", of_role), ("All analysts together", shared))
            if balance is not None
        ],
        phrase=budgets.phrase.strip() or "for ever",
        renews=None if span is None else f"{span[1]:%Y-%m-%d %H:%M %Z}",
        default=f"{vitals.service.limits.epsilon:f}",
        most=f"{vitals.service.limits.max_epsilon:f}",
        answers=[_charted(answer) for answer in page.house.answers.of(page.user, review.period, budgets)],
        history=history,
    )


def _charted(answer: RecentAnswer) -> Charted:
    pictures = []
    for column in answer.columns:
        rows = [(bar.group, bar.value, column.margin) for bar in column.bars]
        noise = f"; noise: {column.noise}" if column.noise else ""
        title = f"{column.name}: within ±{short_number(column.margin)} in {column.level} of draws{noise}"
        pictures.append((title, error_bars(title, rows)))
    more = max((column.more for column in answer.columns), default=0)
    return Charted(f"{answer.time.astimezone(UTC):%Y-%m-%d %H:%M}", answer.shape, answer.statement, pictures, more)


async def show_cookbook(page: Page) -> Response:
    """The tables that there are, and one of them with its columns and recipes."""
    service = page.house.console.vitals.service
    rulebook = service.rulebook
    names = [str(table.name) for table in rulebook.catalog.tables if rulebook.policy.find_table(table.name) is not None]
    chosen_table = page.parameter("table") or (names[0] if names else "")
    cookbook = None
    if chosen_table:
        if chosen_table not in names:
            raise NoSuchTable(f'there is no table "{chosen_table[:80]}"')
        key = (rulebook.generation, chosen_table)
        cookbook = _CHAPTERS.find(key)
        if cookbook is None:
            arguments = (rulebook.policy, rulebook.catalog, table_name(chosen_table), service.limits.epsilon)
            cookbook = await asyncio.to_thread(chapter, *arguments)
            if cookbook is None:
                raise NoSuchTable(f'all of "{chosen_table[:80]}" is hidden')
            _CHAPTERS.keep(key, cookbook, _CHAPTER_BYTES)
    return page.render(
        "cookbook.html",
        names=sorted(names),
        asked=chosen_table,
        chapter=cookbook,
        columns=[] if cookbook is None else list(map(uses_of, cookbook.columns)),
        recipes=[] if cookbook is None else [(recipe.title, recipe.sql, _error(recipe)) for recipe in cookbook.recipes],
        default=f"{service.limits.epsilon:f}",
    )


def _error(recipe: CookbookEntry) -> str:
    if recipe.exact:
        return "exact, at no cost"
    if recipe.error is None:
        return "how far noise moves it depends on the data: the answer shows it"
    most = "at most " if recipe.at_most else ""
    shown = "" if recipe.size is None else f"; a group {size_words(recipe.size)} or more is shown"
    return f"{most}±{short_number(float(recipe.error))} in 95% of answers{shown}"


def uses_of(facts: ColumnFacts) -> tuple[str, str, Sequence[str], str]:
    """A column by name and type, what it can be used for, and its bounds."""
    bounds, uses = facts.bounds, list[str]()
    if facts.is_public:
        uses.append("exact")
    if facts.is_unit:
        uses.append("unit")
    if facts.can_be_summed and not facts.is_public:
        uses.append("summed")
    if facts.groups is not None and not facts.is_public:
        uses.append("groups are listed" if facts.groups == "known" else "groups are found")
    text = ""
    if bounds.values is not None:
        text = ", ".join(bounds.values)
    elif bounds.lower is not None and bounds.upper is not None:
        text = f"{bounds.lower} to {bounds.upper}"
    return facts.column.name, facts.column.type.sql, uses, text


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/me": show, "/cookbook": show_cookbook}
