"""Budgets: what each account has left, how it went down in this period, and when it is gone at this pace."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from markupsafe import Markup
from starlette.responses import Response

from proxy.console.language import Command, SyntaxProblem, commands_of
from proxy.console.vitals import Balances
from proxy.console.web.pages import Page
from proxy.console.web.pictures import Axis, Line, Point, linear_axis, lines
from proxy.execute.rulebook import Rulebook
from proxy.ledger.requests import OperatorAnswer
from proxy.ledger.review import Wish
from proxy.log import event
from rules.accounting.accountant import Limit, Totals, loss
from rules.accounting.bets import bet_words
from rules.accounting.budgets import period_of, span_of
from rules.accounting.store import Balance, PastCharge, Stop

ALL: Final = "all together"
_MOST_POINTS: Final = 80
_MOST_CHARGES: Final = 20_000  # of a period, that a picture is made of
_MOST_DIGITS: Final = 18  # of a request's number
_LONGEST_WORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class AccountPage:
    """One account as the page shows it."""

    name: str
    spent: str
    left: str
    limit: str
    ever: str
    bet: str
    percent: int
    forecast: str
    picture: Markup
    stop: Stop | None


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request of an analyst that nobody has answered."""

    number: int
    time: datetime
    analyst: str
    epsilon: str
    reason: str


async def show(page: Page) -> Response:
    vitals = page.house.console.vitals
    rulebook, now = vitals.service.rulebook, vitals.clock()
    budgets = rulebook.budgets
    balances = await vitals.balances()
    period = period_of(now, budgets)
    span = span_of(period, budgets)
    since = None if span is None else span[0]
    history = await vitals.ledger.history(Wish(since=since, most=_MOST_CHARGES))
    stops = {stop.analyst: stop for stop in await vitals.ledger.stops()}
    start, end = span or _open_span(history.charges, now)
    accounts = await asyncio.to_thread(
        lambda: list(accounts_of(balances, history.charges, rulebook, (start, end, now), stops))
    )
    return page.render(
        "budgets.html",
        accounts=accounts,
        phrase=budgets.phrase.strip() or "for ever",
        begun=None if (begun := await vitals.ledger.begin_period(budgets, now)) is None else begun.words,
        renews=None if span is None else f"{span[1]:%Y-%m-%d %H:%M %Z}",
        analysts=sorted(rulebook.policy.analysts),
        delta=f"{budgets.dataset.delta:f}" if budgets.dataset.delta else "",
        requests=[
            OpenRequest(
                request.number,
                request.time,
                request.analyst,
                f"{request.terms.epsilon.normalize():f}",
                request.terms.reason,
            )
            for request in await vitals.ledger.requests(budgets, now)
            if request.state == "open"
        ],
    )


def _open_span(charges: Sequence[PastCharge], now: datetime) -> tuple[datetime, datetime]:
    """A budget for ever is shown from its first charge on, and as far ahead."""
    first = min((charge.time for charge in charges), default=now - timedelta(days=1))
    first = min(first, now - timedelta(hours=1))
    return first, now + (now - first)


def accounts_of(
    balances: Balances,
    charges: Sequence[PastCharge],
    rulebook: Rulebook,
    span: tuple[datetime, datetime, datetime],
    stops: Mapping[str, Stop],
) -> Iterator[AccountPage]:
    """The shared account first."""
    budgets = rulebook.budgets

    def bet(balance: Balance, limit: Limit) -> str:
        return bet_words(Limit(balance.limit, limit.delta), rulebook.policy)

    shared = _spent(charges, budgets.dataset, shared=True)
    yield _account(ALL, balances.shared, bet(balances.shared, budgets.dataset), shared, span, None)
    for role, balance in balances.roles.items():  # what members have seen of each other's is on it once: no picture
        yield replace(
            _account(f"role {role}", balance, bet(balance, budgets.roles[role]), [], span, None), picture=Markup()
        )
    for name, balance in balances.analysts.items():
        own, limit = [charge for charge in charges if charge.analyst == name], budgets.limit_of(name)
        yield _account(name, balance, bet(balance, limit), _spent(own, limit, shared=False), span, stops.get(name))


def _spent(charges: Sequence[PastCharge], limit: Limit, *, shared: bool) -> list[tuple[datetime, Decimal]]:
    """Return what was spent after each charge; of many charges after some of them."""
    totals, listed_charges = Totals(), list[tuple[datetime, Decimal]]()
    step = max(1, len(charges) // _MOST_POINTS)
    for number, charge in enumerate(charges, start=1):
        totals = totals.plus((*charge.fresh, *(charge.first_seen if shared else charge.seen)))
        if number % step == 0 or number == len(charges):
            listed_charges.append((charge.time, loss(totals, limit)))
    return listed_charges


def _account(
    name: str,
    balance: Balance,
    bet: str,
    spent: Sequence[tuple[datetime, Decimal]],
    span: tuple[datetime, datetime, datetime],
    stop: Stop | None,
) -> AccountPage:
    start, end, now = span
    percent = round(100 * balance.spent / balance.limit) if balance.limit else 100
    return AccountPage(
        name,
        plain_number(balance.spent),
        plain_number(balance.left),
        plain_number(balance.limit),
        plain_number(balance.lifetime),
        bet,
        min(100, int(percent)),
        forecast(balance, start, end, now),
        _burn_down(name, balance, spent, span),
        stop,
    )


def plain_number(number: Decimal) -> str:
    """Four digits of an ε."""
    return f"{float(number):.4g}"


def forecast(balance: Balance, start: datetime, end: datetime, now: datetime) -> str:
    """Forecast when nothing is left, if it goes on as on average since the period began."""
    if not balance.left:
        return "nothing is left"
    if not balance.spent:
        return "nothing is spent yet"
    elapsed = max(timedelta(minutes=1), now - start)
    seconds = float(balance.left / balance.spent) * elapsed.total_seconds()
    if seconds > 3650 * 86_400 or now + timedelta(seconds=seconds) >= end:
        return "the rest lasts beyond this period at this pace"
    return f"the rest is gone on {now + timedelta(seconds=seconds):%Y-%m-%d} at this pace"


def _burn_down(
    name: str, balance: Balance, spent: Sequence[tuple[datetime, Decimal]], span: tuple[datetime, datetime, datetime]
) -> Markup:  # fmt: skip
    """Return what was left, stepwise, and where the mean pace leads."""
    start, end, now = span
    limit, left = float(balance.limit), float(balance.left)

    def at(moment: datetime, value: float) -> Point:
        return Point(max(0.0, (moment - start).total_seconds()), max(0.0, value))

    points = [at(start, limit)]
    for moment, loss_ in spent:
        points += [at(moment, points[-1].y), at(moment, limit - float(loss_))]
    points += [at(now, points[-1].y), at(now, left)]
    ahead, elapsed = (end - now).total_seconds(), max(60.0, (now - start).total_seconds())
    later = Point((end - start).total_seconds(), max(0.0, left - float(balance.spent) / elapsed * ahead))
    whole = (end - start).total_seconds()
    ticks = tuple((whole * share, f"{start + (end - start) * share:%b %d}") for share in (0, 0.5, 1))
    title = f"ε left of {name}: {left:.4g} of {limit:.4g}"
    drawn = (Line(points), Line((points[-1], later), "ahead"))
    return lines(title, drawn, Axis(0, whole, ticks), linear_axis(0, limit or 1), points[-1])


async def grant(page: Page) -> Response:
    """More for one analyst, with the words and the limits of the console's own command."""
    form = await page.form()
    name, amount = form["analyst"].replace('"', '""'), _amount(form["amount"])
    (command,) = commands_of(f'GRANT EPSILON {amount} TO "{name}"')
    await page.command(command)
    return page.go("/budgets", f"{form['analyst']} may spend ε {amount} more in this period.")


def _amount(written: str) -> str:
    """Return what may be an amount; the console's own command says whether it is one."""
    amount = written.strip() or "nothing"
    if not all(digit.isalnum() or digit in ".-" for digit in amount):
        raise SyntaxProblem(f'"{amount}" is no number', hint="Write it as 0.5.")
    return amount


async def answer(page: Page) -> Response:
    """Grant or refuse a request for more, as `noisegate requests` does; the analyst reads the words."""
    form, vitals = await page.form(), page.house.console.vitals
    number, words = form["request"], form["words"].strip()[:_LONGEST_WORDS]
    if not (number.isascii() and number.isdecimal()) or len(number) > _MOST_DIGITS:
        raise SyntaxProblem("there is no such request")
    budgets, answered = vitals.service.rulebook.budgets, OperatorAnswer(vitals.clock(), page.user, words)
    if form["answer"] != "grant":
        event("console", operator=page.user, command=f"REFUSE REQUEST {number}")
        done = await vitals.ledger.refuse_request(int(number), answered, budgets)
        return page.go("/budgets", f"Request {number} of {done.analyst} is refused.")
    (command,) = commands_of(f'GRANT EPSILON {_amount(form["amount"])} TO "request {number}"')
    epsilon = Decimal(command.arguments[0])
    event("console", operator=page.user, command=f"GRANT REQUEST {number} EPSILON {epsilon:f}")
    done = await vitals.ledger.grant_request(int(number), answered, budgets, epsilon=epsilon)
    return page.go("/budgets", f"{done.analyst} may spend ε {epsilon:f} more in this period.")


async def forgive(page: Page) -> Response:
    name = (await page.form())["analyst"]
    await page.command(Command("FORGIVE", (name,)))
    return page.go("/budgets", f"{name} can query again.")


PAGES: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {"/budgets": show}
ACTIONS: Final[Mapping[str, Callable[[Page], Awaitable[Response]]]] = {
    "/budgets/grant": grant,
    "/budgets/answer": answer,
    "/budgets/forgive": forgive,
}
