"""`noisegate requests`: what analysts ask for, and the answers of a DBA, which running proxies read in the ledger."""

import argparse
import getpass
import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from proxy.commands.basic import Names, add_ledger, add_rules, epsilon_of, run, say, settings_of
from proxy.commands.ledger import with_ledger
from proxy.execute.clock import system_clock
from proxy.ledger.ledger import Ledger
from proxy.ledger.requests import OperatorAnswer
from proxy.load_config import ConfigurationError, read_rules
from proxy.settings import Settings
from rules.accounting.budgets import budgets_of
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
        # A statement needs each of these accounts, and a grant raises the analyst's own alone.
        own, shared, role = balances
        of_role = "" if role is None else f'the role "{budgets.members[done.analyst]}" has {role.left:.4g}, '
        say(f"left now: ε {own.left:.4g}; {of_role}all analysts together have {shared.left:.4g}")
    return 0


def _line(request: FiledRequest) -> str:
    granted = "" if request.granted is None or request.granted == request.terms.epsilon else f" (ε {request.granted:f})"
    answer = (
        f" → {request.state}{granted} by {request.operator}: {request.answer}".removesuffix(": ")
        if request.operator
        else ""
    )
    head = f"{request.number:>8}  {request.time:%Y-%m-%d %H:%M}  {request.analyst:16}"
    return f"{head}{request.terms.epsilon.normalize():>8f}  {request.state:8}  {request.terms.reason}{answer}"


def _fields(request: FiledRequest) -> dict[str, str | int | None]:
    return {
        "request": request.number,
        "time": request.time.isoformat(),
        "analyst": request.analyst,
        "period": request.period,
        "epsilon": f"{request.terms.epsilon:f}",
        "reason": request.terms.reason,
        "state": request.state,
        "granted": None if request.granted is None else f"{request.granted:f}",
        "operator": request.operator or None,
        "answer": request.answer or None,
    }


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it to the command line."""
    parser = names.add_parser(
        "requests",
        help="list requests of analysts for more budget, and grant or refuse them",
        description="List open requests for more budget, with their reasons; with --grant or --refuse answer one. A "
        "grant is kept in the ledger and in force at once in all proxies that use it, until the period ends. It raises "
        "the analyst's own limit, never that of a role or of all, and cannot be taken back.",
    )
    add_rules(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--grant", type=int, metavar="N", help="grant request N")
    what.add_argument("--refuse", type=int, metavar="N", help="refuse request N")
    parser.add_argument("--epsilon", type=epsilon_of, metavar="E", help="grant E in place of the requested ε")
    parser.add_argument("--say", default="", metavar="TEXT", help="an answer that the analyst reads")
    parser.add_argument("--all", action="store_true", help="list answered and lapsed requests too")
    parser.add_argument("--json", action="store_true", help="list as JSON")
    add_ledger(parser)

    def run(options: argparse.Namespace) -> int:
        if options.epsilon is not None and options.grant is None:
            parser.error("--epsilon requires --grant")
        if options.say and options.grant is None and options.refuse is None:
            parser.error("--say requires --grant or --refuse")
        if options.grant is None and options.refuse is None:
            return list_requests(settings_of(options), lists_all=options.all, as_json=options.json)
        grants = options.grant is not None
        number = options.grant if grants else options.refuse
        return answer_request(
            settings_of(options), Answering(number, grants, options.epsilon, " ".join(options.say.split()))
        )

    parser.set_defaults(run=run)
