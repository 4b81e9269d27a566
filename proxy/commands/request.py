"""`noisegate requests`: what analysts ask for, and the answers of a DBA, which running proxies read in the ledger."""

import getpass
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from proxy.commands.basic import ConfigurationError, run, say
from proxy.commands.ledger import with_ledger
from proxy.execute.clock import system_clock
from proxy.ledger.ledger import Ledger
from proxy.ledger.requests import OperatorAnswer
from proxy.load_config import read_rules
from proxy.settings import Settings
from rules.accounting.budgets import Budgets, budgets_of
from rules.accounting.store import Balances, FiledRequest
from rules.refusal import Refusal


@dataclass(frozen=True, slots=True)
class Answering:
    """The answer to a request."""

    number: int
    grants: bool
    epsilon: Decimal | None = None  # in place of what was asked for
    words: str = ""


def list_requests(settings: Settings, *, lists_all: bool, as_json: bool) -> int:
    """Print open requests, or all of them."""
    policy = read_rules(settings.rules)

    async def read(ledger: Ledger) -> Sequence[FiledRequest]:
        return await ledger.requests(budgets_of(policy), system_clock())

    requests = [request for request in run(with_ledger(settings, policy, read)) if lists_all or request.state == "open"]
    if as_json:
        say(json.dumps([_fields(request) for request in requests], ensure_ascii=False, indent=1))
        return 0
    if not requests:
        say("no request" if lists_all else "no request is open")
        return 0
    say(f"{'request':>8}  {'time (UTC)':16}  {'analyst':16}{'ε':>8}  {'state':8}  reason")
    for request in requests:
        say(_line(request))
    return 0


def answer_request(settings: Settings, answering: Answering) -> int:
    """Grant or refuse one request. A grant is in force in all proxies of the ledger with their next statement."""
    policy = read_rules(settings.rules)
    budgets = budgets_of(policy)
    answered = OperatorAnswer(system_clock(), getpass.getuser(), answering.words)
    number, epsilon = answering.number, answering.epsilon

    async def work(ledger: Ledger) -> tuple[FiledRequest, Balances]:
        if answering.grants:
            done = await ledger.grant_request(number, answered, budgets, epsilon=epsilon)
        else:
            done = await ledger.refuse_request(number, answered, budgets)
        return done, await ledger.balances(done.analyst, budgets, answered.time)

    try:
        done, balances = run(with_ledger(settings, policy, work))
    except Refusal as refusal:
        raise ConfigurationError(f"{refusal}. {refusal.hint}".rstrip(". ")) from None
    if done.granted is None:
        say(f"request {number} of {done.analyst} is refused")
    else:
        say(f"{done.analyst} may spend ε {done.granted.normalize():f} more{budgets.phrase or ' from now on'}")
        say(_within(done.analyst, balances, budgets))
    return 0


def _within(analyst: str, balances: Balances, budgets: Budgets) -> str:
    """Return what is left on each account that a statement of this analyst needs: a grant raises the own one alone."""
    own, shared, role = balances
    of_role = "" if role is None else f'the role "{budgets.members[analyst]}" has {role.left:.4g}, '
    return f"left now: ε {own.left:.4g}; {of_role}all analysts together have {shared.left:.4g}"


def _line(request: FiledRequest) -> str:
    granted = "" if request.granted is None or request.granted == request.asked.epsilon else f" (ε {request.granted:f})"
    answer = (
        f" → {request.state}{granted} by {request.operator}: {request.answer}".removesuffix(": ")
        if request.operator
        else ""
    )
    head = f"{request.number:>8}  {request.time:%Y-%m-%d %H:%M}  {request.analyst:16}"
    return f"{head}{request.asked.epsilon.normalize():>8f}  {request.state:8}  {request.asked.reason}{answer}"


def _fields(request: FiledRequest) -> dict[str, str | int | None]:
    return {
        "request": request.number,
        "time": request.time.isoformat(),
        "analyst": request.analyst,
        "period": request.period,
        "epsilon": f"{request.asked.epsilon:f}",
        "reason": request.asked.reason,
        "state": request.state,
        "granted": None if request.granted is None else f"{request.granted:f}",
        "operator": request.operator or None,
        "answer": request.answer or None,
    }
