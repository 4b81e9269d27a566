"""The output of `noisegate ledger show`: accounts, stops and charges as text, JSON or CSV, without constants."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Final

from rules.accounting.accountant import Totals
from rules.accounting.store import Balance, PastCharge, Stop

Cell = str | float | int | bool | None

_UP, _DOWN = Context(prec=12, rounding=ROUND_CEILING), Context(prec=12, rounding=ROUND_FLOOR)
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


def as_text(report: LedgerSummary, phrase: str) -> str:
    """Tables for a terminal."""
    lines = [f"{'ε':20}{'spent':>12}{'left':>12}{'budget':>12}{'ever spent':>12}   {phrase}".rstrip()]
    for account in report.accounts:
        balance = account.balance
        numbers = (balance.spent, balance.left, balance.limit, balance.lifetime)
        note = "   removed from the rules" if account.is_removed else ""
        lines.append(f"{account.name:20}" + "".join(f"{number:>12.4g}" for number in numbers) + note)
    for stop in report.stops:
        lines.append(
            f"{stop.analyst} is stopped since {stop.time:%Y-%m-%d %H:%M} UTC by a fault ({stop.cause}) after charge "
            f"{stop.charge}, which the log tells of; noisegate ledger forgive lifts it"
        )
    if report.charges is not None:
        lines.extend(_charge_lines(report.charges))
    if report.closed:
        lines.append(f"{report.closed} older charges are closed into sums")
    return "\n".join(lines)


def as_json(report: LedgerSummary, phrase: str) -> str:
    """One document; ε, δ and ρ are texts: of charges exact, of accounts with twelve digits."""
    stops = [
        {"analyst": stop.analyst, "time": stop.time.isoformat(), "charge": stop.charge, "cause": stop.cause}
        for stop in report.stops
    ]
    accounts = [account_fields(account) for account in report.accounts]
    document = {"period": phrase, "accounts": accounts, "stops": stops, "closed_charges": report.closed}
    charges = {} if report.charges is None else {"charges": [charge_fields(charge) for charge in report.charges]}
    return json.dumps(document | charges, indent=1, ensure_ascii=False)


def as_csv(report: LedgerSummary, _: str) -> str:
    """The charges where they are asked for, else the accounts; a line of names first."""
    if report.charges is None:
        return _csv([account_fields(account) for account in report.accounts], list(account_fields(report.accounts[-1])))
    return _csv([charge_fields(charge) for charge in report.charges], CHARGE_FIELDS)


def account_fields(account: AccountLine) -> dict[str, Cell]:
    """One account, rounded like noisegate.budget: never less spent, nor more left, than there is."""
    balance = account.balance
    numbers = {"spent": balance.spent, "left": balance.left, "budget": balance.limit, "ever_spent": balance.lifetime}
    contexts = {name: _DOWN if name == "left" else _UP for name in numbers}
    texts: dict[str, Cell] = {name: f"{contexts[name].plus(amount).normalize():f}" for name, amount in numbers.items()}
    return {"account": account.name, **texts, "removed": account.is_removed}


def charge_fields(charge: PastCharge) -> dict[str, Cell]:
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
