"""The effects of the console's commands; rows are texts, in the order of the columns that `language` names."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, TypeVar

from proxy import __version__
from proxy.console.language import HELP, Command
from proxy.console.vitals import Balances, Vitals
from proxy.session.session import Session
from rules.accounting.store import Grant
from rules.policy.freeze import Unseen
from rules.policy.model import Policy
from rules.refusal import Refusal, Unavailable

Rows = Sequence[Sequence[str | None]]
Result = TypeVar("Result")

_NONE: Final[Rows] = ()
_going_on: Final[set[asyncio.Task[Any]]] = set()  # also when the operator has left


class NoSuchThing(Refusal):
    """A session or an analyst that there is not."""

    sqlstate = "42704"  # undefined_object


class NotDone(Refusal):
    """The command could not be done."""

    sqlstate = "55000"  # object_not_in_prerequisite_state


@dataclass
class Console:
    """The parts of the proxy that all operators' sessions share, and what changes them."""

    vitals: Vitals
    policy: Callable[[], Policy]
    unseen: Callable[[], Sequence[Unseen]]
    is_locked: Callable[[], bool]  # else what is unseen is shown when the rules are read again
    reload: Callable[[], Coroutine[Any, Any, str]]  # why it was not done, or nothing
    refresh: Callable[[], Coroutine[Any, Any, bool]]

    async def run(self, command: Command, operator: str) -> Rows:
        """Do it for an operator; raises a Refusal that says why it was not done."""
        match command.verb, command.arguments:
            case "SHOW", (what,):
                return await self._show(what)
            case "RELOAD", _:
                await self._reload()
            case "REFRESH", _:
                message = "the database could not be followed; standard error of the proxy says why"
                _check(await to_its_end(self.refresh()), message)
            case "PAUSE", _:
                _check(await self.vitals.service.gate.close(), "RESUME ended the pause before all statements had ended")
            case "RESUME", _:
                self.vitals.service.gate.open()
            case "KILL", ("ANALYST", name):
                self._kill([number for number, session in self._sessions() if session.analyst == name], name)
            case "KILL", (number,):
                self._kill([own for own, _ in self._sessions() if str(own) == number], number)
            case "GRANT", (amount, name):
                await self._grant(name, Decimal(amount), operator)
            case "FORGIVE", (name,):
                await self._forgive(name)
        return _NONE

    async def _reload(self) -> None:
        if why := await to_its_end(self.reload()):
            message = "the rules were not taken; the old ones stay in force"
            raise NotDone(
                message,
                detail=why,
                hint="Correct the file, which noisegate check explains line by line, and RELOAD again.",
            )

    async def _grant(self, name: str, epsilon: Decimal, operator: str) -> None:
        """The ledger keeps it, and by whom; the budget that all share is granted by nobody."""
        rulebook = self.vitals.service.rulebook
        budgets = rulebook.budgets
        if name not in rulebook.policy.analysts:
            raise _no_analyst(name)
        if epsilon > budgets.dataset.epsilon:
            raise NotDone(
                f"cannot grant ε {epsilon:f}: all analysts together have {budgets.dataset.epsilon:f}",
                hint=f"Write at most {budgets.dataset.epsilon:f}. A grant cannot be taken back.",
            )
        await self.vitals.ledger.grant(Grant(self.vitals.clock(), name, epsilon, operator), budgets)

    async def _forgive(self, name: str) -> None:
        """The rules need not name the analyst: the ledger knows all whom a fault has stopped."""
        if await self.vitals.ledger.forgive(name, self.vitals.clock()):
            return
        if name not in self.vitals.service.rulebook.policy.analysts:
            raise _no_analyst(name)
        raise NotDone(f'no fault stops "{name}"', hint="SHOW FAULTS lists the analysts that one stops.")

    def _sessions(self) -> list[tuple[int, Session]]:
        return self.vitals.sessions.numbered()

    def _kill(self, numbers: Sequence[int], name: str) -> None:
        if not numbers:
            raise NoSuchThing(f'there is no session "{name}"', hint="SHOW SESSIONS lists them.")
        for number in numbers:
            self.vitals.sessions.terminate_backend(number)

    async def _show(self, what: str) -> Rows:
        match what:
            case "ANALYSTS":
                return await self._analysts()
            case "SESSIONS":
                now = asyncio.get_running_loop().time()
                return [_session_row(number, each, now) for number, each in self._sessions()]
            case "BUDGETS":
                balances = await self._balances()
                roles = [(f"role {name}", each) for name, each in balances.roles.items()]
                accounts = [*balances.analysts.items(), *roles, ("all together", balances.shared)]
                return [
                    (name, *(f"{number:f}" for number in (each.limit, each.spent, each.left, each.lifetime)))
                    for name, each in accounts
                ]
            case "POOL":
                engine, service = self.vitals.engine, self.vitals.service
                numbers = (engine.connections, engine.in_use, engine.idle, service.waiting)
                return [(*map(str, numbers), _yes(service.gate.is_closed))]
            case "TWINS":
                closed = str(len(self.vitals.twins.closed_tables))
                return [(name, _yes(runs), closed) for name, runs in self.vitals.twins.states().items()]
            case "FAULTS":
                stops = await self.vitals.ledger.stops()
                return [(stop.analyst, stop.time.isoformat(), str(stop.charge), stop.cause) for stop in stops]
            case "RULES":
                return self._rules()
            case "UNSEEN":
                return [(each.table, each.column or None, each.change) for each in self.unseen()]
            case "VERSION":
                return [(f"noisegate {__version__}",)]
            case _:
                return HELP

    async def _analysts(self) -> Rows:
        balances, stopped = await self._balances(), {each.analyst for each in await self.vitals.ledger.stops()}
        sessions = Counter(each.analyst for _, each in self._sessions())
        return [
            (name, str(sessions[name]), f"{each.left:f}", _yes(name in stopped))
            for name, each in balances.analysts.items()
        ]

    async def _balances(self) -> Balances:
        try:
            return await self.vitals.balances()
        except TimeoutError:
            raise Unavailable("the privacy ledger does not answer", hint="The log says more.") from None

    def _rules(self) -> Rows:
        policy, rulebook = self.policy(), self.vitals.service.rulebook
        protected = sum(not rules.public for rules in policy.tables.values())
        budget = f"{policy.budget.epsilon:f} per {policy.budget.per}, delta {policy.budget.delta:f}"
        return [
            ("generation", str(rulebook.generation)),
            ("unit", policy.unit),
            ("protected tables", str(protected)),
            ("public tables", str(len(policy.tables) - protected)),
            ("analysts", ", ".join(sorted(policy.analysts))),
            ("operators", ", ".join(sorted(policy.operators))),
            ("budget", budget),
            ("noise", policy.noise),
        ]


async def to_its_end(work: Coroutine[Any, Any, Result]) -> Result:
    """Do something that must not end in the middle: the twin would have other rules than the planner, or the file."""
    task = asyncio.create_task(work)
    _going_on.add(task)
    task.add_done_callback(_forget)
    return await asyncio.shield(task)


def _forget(task: asyncio.Task[Any]) -> None:
    _going_on.discard(task)
    if not task.cancelled():
        task.exception()


def _session_row(number: int, session: Session, now: float) -> tuple[str | None, ...]:
    since, statement = session.running or (None, "")
    runs = None if since is None else f"{now - since:.0f}"
    seconds = f"{now - session.since:.0f}"
    return str(number), session.analyst, session.peer, session.activity, seconds, runs, statement or None


def _no_analyst(name: str) -> NoSuchThing:
    return NoSuchThing(f'there is no analyst "{name}"', hint="SHOW ANALYSTS lists them.")


def _check(is_done: bool, words: str) -> None:
    if not is_done:
        raise NotDone(words)


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
