"""The life of a ledger: made, shown, forgiven, copied and put back, moved to another database, closed into sums.

It is shown as text, JSON or CSV.
"""

import csv
import io
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from pathlib import Path
from typing import Final, Literal, TypeVar

from proxy.commands.basic import look_at, run, say
from proxy.execute.clock import system_clock
from proxy.ledger.copies import Copy, back_up
from proxy.ledger.copies import restore as put_back
from proxy.ledger.integrity import Anchor
from proxy.ledger.ledger import Ledger
from proxy.ledger.review import Wish
from proxy.load_config import (
    ConfigurationError,
    ledger_home,
    ledger_identity,
    make_ledger,
    open_ledger,
    read_rules,
    tell,
    told_to_the_dba,
)
from proxy.settings import Settings
from rules.accounting.accountant import Totals
from rules.accounting.budgets import OWNER, budgets_of, period_of, span_of
from rules.accounting.chain import Closed
from rules.accounting.store import Balance, LedgerError, PastCharge, Stop
from rules.policy.finding import nearest
from rules.policy.model import Policy
from rules.policy.synopses import account_name

Result = TypeVar("Result")
Format = Literal["text", "json", "csv"]

Cell = str | float | int | bool | None

_UP, _DOWN = Context(prec=12, rounding=ROUND_CEILING), Context(prec=12, rounding=ROUND_FLOOR)
_UNDER_WAY: Final = timedelta(days=1)  # may a statement be whose charge is kept: else nothing is kept of its end
_TIME: Final = "%Y-%m-%d %H:%M:%S"
_SHOWN: Final = 100  # characters of a shape in a line of text
CHARGE_FIELDS: Final = (
    *("charge", "time", "period", "analyst", "session", "state", "epsilon", "delta", "rho", "fresh", "seen_again"),
    *("tables", "statement", "shape"),
)


@dataclass(frozen=True, slots=True)
class AccountLine:
    """An analyst, or all together, in the running period."""

    name: str
    balance: Balance
    is_removed: bool = False  # from the rules: what was spent stays spent


@dataclass(frozen=True, slots=True)
class LedgerSummary:
    accounts: Sequence[AccountLine]
    stops: Sequence[Stop]
    charges: Sequence[PastCharge] | None  # None: not asked for
    closed: int  # charges that are in sums alone


def init_ledger(settings: Settings) -> int:
    """Make an empty ledger, bound to the database."""
    catalog = run(look_at(read_rules(settings.rules).database)).catalog
    make_ledger(settings, catalog)
    say("created the ledger: nothing is spent yet")
    return 0


@dataclass(frozen=True, slots=True)
class Show:
    """The part of a ledger that is to be shown, and its form."""

    wish: Wish
    lists_charges: bool = False
    format: Format = "text"


def show_ledger(settings: Settings, show: Show) -> int:
    """Print what is spent and what may be, and on demand each charge; nobody who charges waits."""
    policy = read_rules(settings.rules)
    budgets = budgets_of(policy)

    async def read(ledger: Ledger) -> LedgerSummary:
        history, now = await ledger.history(show.wish), system_clock()
        names = (*sorted(policy.analysts), *(name for name in history.analysts if name not in policy.analysts))
        _check_known(show.wish.analyst, names)
        *own, shared = await ledger.all_balances(names, budgets, now)
        accounts = [
            AccountLine(
                f"{name} (looks)" if name == OWNER else name,
                balance,
                is_removed=name not in {*budgets.analysts, OWNER},
            )
            for name, balance in zip(names, own, strict=True)
        ]
        accounts += [
            AccountLine(f"role {name}", balance) for name, balance in (await ledger.role_balances(budgets, now)).items()
        ]
        charges = history.charges if show.lists_charges else None
        return LedgerSummary(
            (*accounts, AccountLine("all together", shared)), await ledger.stops(), charges, history.closed
        )

    report = run(with_ledger(settings, policy, read))
    writers: dict[Format, Callable[[LedgerSummary, str], str]] = {"text": _as_text, "json": _as_json, "csv": _as_csv}
    say(writers[show.format](report, budgets.phrase.strip()).rstrip("\n"))
    return 0


def _check_known(analyst: str | None, names: Sequence[str]) -> None:
    """A name that nobody has would look like one who has asked for nothing."""
    if analyst is not None and analyst not in names:
        hint = nearest(analyst, list(names))
        raise ConfigurationError(f'there is no analyst "{analyst}" in the rules or the ledger{hint and f"; {hint}"}')


def verify(settings: Settings) -> int:
    """Verify every entry, and all other tables of the ledger, while proxies serve."""

    async def walk(ledger: Ledger) -> Closed:
        return (await ledger.checkpoints.verify(hurries=True)).sum

    whole = run(with_ledger(settings, read_rules(settings.rules), walk))
    charges = "1 charge" if whole.charges == 1 else f"{whole.charges:,} charges"
    say(f"verified all {whole.number:,} entries, with {charges}: nothing was changed")
    return 0


def forgive(settings: Settings, analyst: str) -> int:
    """Let an analyst ask again whom a fault has stopped."""

    policy = read_rules(settings.rules)

    async def lift(ledger: Ledger) -> bool:
        if await ledger.forgive(analyst, system_clock()):
            return True
        _check_known(analyst, (*sorted(policy.analysts), *(await ledger.history(Wish(most=0))).analysts))
        return False

    if not run(with_ledger(settings, policy, lift)):
        raise ConfigurationError(f"{analyst} is not stopped")
    say(f"{analyst} can query again")
    return 0


def move(settings: Settings, before: str) -> int:
    """Bind the ledger to the database that the rules name now; `before` says which it was bound to."""
    catalog = run(look_at(read_rules(settings.rules).database)).catalog
    identity = ledger_identity(catalog)
    if identity == before:
        raise ConfigurationError(f"the rules name that very database: {identity}. --from names the one before")

    async def bind() -> None:
        with told_to_the_dba():
            try:
                ledger = await Ledger.at(ledger_home(settings, before))
            except LedgerError as error:
                if error.reason != "other_database":
                    raise
                words = "--from has to name that one, and if the rules name it too, there is nothing to move"
                raise ConfigurationError(f"{error}: {words}") from None
        try:
            with told_to_the_dba():
                await ledger.move(identity, system_clock(), before=before)
        finally:
            await ledger.close()

    run(bind())
    say(f"the ledger is that of {identity} from now on, with all that was spent; proxies of {before} are refused")
    return 0


def backup(settings: Settings, path: Path) -> int:
    """Write a copy of the ledger, as of one moment, while proxies go on with it."""
    with told_to_the_dba():
        copy = back_up(ledger_home(settings, ""), path)
    say(f"{path}: {copy.entries} entries up to {copy.last}, checked")
    return 0


def restore(settings: Settings, path: Path, missing: int | None) -> int:
    """Put a copy in the place of a lost ledger."""
    anchor = Anchor(settings.anchor)
    with told_to_the_dba():
        copy = put_back(path, lambda root: ledger_home(settings, root), anchor, system_clock(), missing)
    say(f"put back {copy.entries} entries up to {copy.last}; {_word_on_missing(copy)}")
    return 0


def _word_on_missing(copy: Copy) -> str:
    if not copy.is_anchored:
        return "without an anchor nobody can know whether newer ones are missing"
    if copy.missing:
        return f"{copy.missing} entries of the anchor are missing, and their charges are not counted"
    return "no entry of the anchor is missing"


def compact(settings: Settings, before: datetime | None) -> int:
    """Close old entries into a sum: by default those before the running period that cannot be served again."""
    policy = read_rules(settings.rules)
    until = _closable(policy, before)

    async def close(ledger: Ledger) -> tuple[int, int]:
        nonlocal until
        # Find when the synopses of the rules were made last: what they are shown from has to stay
        budgets, now = budgets_of(policy), system_clock()
        ledger_reviews = [
            await ledger.review(account_name(name), budgets, now, most_charges=100) for name in policy.synopses
        ]
        settled = [[charge.time for charge in review.charges if charge.state == "settled"] for review in ledger_reviews]
        until = min([until, *[max(times).astimezone(UTC) for times in settled if times]])
        return await ledger.close_before(until, system_clock())

    entries, charges = run(with_ledger(settings, policy, close))
    say(f"closed {entries} entries before {until:%Y-%m-%d %H:%M} UTC, {charges} charges among them, into a sum")
    return 0


def _closable(policy: Policy, before: datetime | None) -> datetime:
    """Until when entries may be closed: what can still be served again, or be under way, has to stay."""
    now = system_clock()
    oldest = now - max(policy.fresh_for, _UNDER_WAY)
    if before is not None and before > oldest:
        raise ConfigurationError(
            f"answers since {oldest:%Y-%m-%d %H:%M} UTC can be served again (fresh_for), or be under way: close those "
            "before"
        )
    if before is not None:
        return before.astimezone(UTC)
    budgets = budgets_of(policy)
    span = span_of(period_of(now, budgets), budgets)
    if span is None:
        tell("the budget is for ever, so that no period has ended: all that cannot be served again is closed")
        return oldest
    return min(oldest, span[0].astimezone(UTC))


async def with_ledger(settings: Settings, policy: Policy, use: Callable[[Ledger], Awaitable[Result]]) -> Result:
    """Open the ledger of the database that the rules name, for one use."""
    catalog = (await look_at(policy.database)).catalog
    ledger = await open_ledger(settings, ledger_identity(catalog))
    try:
        with told_to_the_dba():
            return await use(ledger)
    finally:
        await ledger.close()


def _as_text(report: LedgerSummary, phrase: str) -> str:
    """Tables for a terminal."""
    width = max(20, *(len(account.name) + 1 for account in report.accounts))
    lines = [f"{'ε':{width}}{'spent':>12}{'left':>12}{'budget':>12}{'ever spent':>12}   {phrase}".rstrip()]
    for account in report.accounts:
        balance = account.balance
        numbers = (balance.spent, balance.left, balance.limit, balance.lifetime)
        note = "   removed from the rules" if account.is_removed else ""
        lines.append(f"{account.name:{width}}" + "".join(f"{number:>12.4g}" for number in numbers) + note)
    for stop in report.stops:
        lines.append(
            f"{stop.analyst} is stopped since {stop.time:%Y-%m-%d %H:%M} UTC by a fault ({stop.cause}) after charge "
            f"{stop.charge}; the log has it, and noisegate ledger forgive lifts the stop"
        )
    if report.charges is not None:
        lines.extend(_charge_lines(report.charges))
    if report.closed:
        lines.append(f"{report.closed} older charges are closed into sums")
    return "\n".join(lines)


def _as_json(report: LedgerSummary, phrase: str) -> str:
    """One document; ε, δ and ρ are texts: of charges exact, of accounts with twelve digits."""
    stops = [
        {"analyst": stop.analyst, "time": stop.time.isoformat(), "charge": stop.charge, "cause": stop.cause}
        for stop in report.stops
    ]
    accounts = [_account_fields(account) for account in report.accounts]
    document = {"period": phrase, "accounts": accounts, "stops": stops, "closed_charges": report.closed}
    charges = {} if report.charges is None else {"charges": [_charge_fields(charge) for charge in report.charges]}
    return json.dumps(document | charges, indent=1, ensure_ascii=False)


def _as_csv(report: LedgerSummary, _: str) -> str:
    """The charges where they are asked for, else the accounts; a line of names first."""
    if report.charges is None:
        return _csv(
            [_account_fields(account) for account in report.accounts], list(_account_fields(report.accounts[-1]))
        )
    return _csv([_charge_fields(charge) for charge in report.charges], CHARGE_FIELDS)


def _account_fields(account: AccountLine) -> dict[str, Cell]:
    """One account, rounded like noisegate.budget: never less spent, nor more left, than there is."""
    balance = account.balance
    numbers = {"spent": balance.spent, "left": balance.left, "budget": balance.limit, "ever_spent": balance.lifetime}
    contexts = {name: _DOWN if name == "left" else _UP for name in numbers}
    texts: dict[str, Cell] = {name: f"{contexts[name].plus(amount).normalize():f}" for name, amount in numbers.items()}
    return {"account": account.name, **texts, "removed": account.is_removed}


def _charge_fields(charge: PastCharge) -> dict[str, Cell]:
    """One charge, with its exact cost to the analyst; no ε where there is ρ alone."""
    paid = Totals().plus((*charge.fresh, *charge.seen))
    cells: Sequence[Cell] = (
        *(charge.number, charge.time.isoformat(), charge.period, charge.analyst, charge.session, charge.state),
        *(f"{paid.epsilon:f}" if paid.pure else None, f"{paid.delta:f}", f"{paid.rho:f}"),
        *(len(charge.fresh), len(charge.seen), " ".join(charge.tables), charge.statement, charge.shape),
    )
    return dict(zip(CHARGE_FIELDS, cells, strict=True))


def _charge_lines(charges: Sequence[PastCharge]) -> list[str]:
    lines = [f"{'charge':>8}  {'time (UTC)':19}  {'analyst':16}{'ε':>10}{'ρ':>12}  {'state':8} {'statement':16}  shape"]
    for charge in charges:
        paid = Totals().plus((*charge.fresh, *charge.seen))
        epsilon = f"{paid.epsilon:.4g}" if paid.pure else "-"
        shape = charge.shape if len(charge.shape) <= _SHOWN else f"{charge.shape[:_SHOWN]}…"
        lines.append(
            f"{charge.number:>8}  {charge.time:{_TIME}}  {charge.analyst:16}{epsilon:>10}{paid.rho:>12.4g}  "
            f"{charge.state:8} {charge.statement or '-':16}  {shape or ' '.join(charge.tables)}"
        )
    return lines


def _csv(rows: Sequence[Mapping[str, Cell]], names: Sequence[str]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
