"""Everything that sessions ask of the rules: to read, to plan, and to answer one private statement."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Protocol
from weakref import WeakValueDictionary

from proxy.engine.engine import Engine
from proxy.query import audit
from proxy.query.asker import Asker
from proxy.query.asking import Answered, Asking
from proxy.query.beside import Beside
from proxy.query.clock import Clock
from proxy.query.faults import Faults
from proxy.query.foresight import check_affordable, foresee
from proxy.query.grid import on_grid
from proxy.query.notices import bound_notices, cost_notice, reuse_notice
from proxy.query.reuse import Question, block_key, find_known, nothing_known
from proxy.query.rulebook import Rulebook
from proxy.query.told import Teller
from proxy.query.turns import Turns
from rules.catalog import Catalog, TableName
from rules.ledger.store import LedgerStore, Review
from rules.noise.measures import Block, Text
from rules.noise.mechanism import Noise
from rules.noise.release import columns
from rules.noise.replicates import points
from rules.policy.model import Policy
from rules.refusal import Interrupted, RulesChanged
from rules.rewrite.plan import First, Plan, Request
from rules.sql.commands import Limits
from rules.sql.statement import Reading, Statement


@dataclass(frozen=True, slots=True)
class Answer:
    """What the outer statement is given: one column of text for each hole after the client's own parameters."""

    columns: tuple[tuple[Text, ...], ...]
    notices: tuple[str, ...] = ()


class Planner(Protocol):
    """Reads and plans in processes that may be killed. `proxy.query.pool` has the one that is used."""

    async def load(self, policy: Policy, catalog: Catalog) -> None: ...

    async def read(self, text: str, analyst: str) -> Reading: ...

    async def plan(self, request: Request, analyst: str) -> Plan | First: ...


class Service:
    """One for the whole proxy. Rules are swapped as a whole: what is in force is one Rulebook."""

    def __init__(
        self, rulebook: Rulebook, planner: Planner, engine: Engine, ledger: LedgerStore, *, noise: Noise, clock: Clock
    ) -> None:
        self._rulebook, self._planner, self._ledger, self._clock = rulebook, planner, ledger, clock
        self.schema_changed = asyncio.Event()  # for the owner, who then reads the catalog and calls `load`
        turns = Turns(engine.connections, most=max(1, engine.connections * 3 // 4))
        self._beside = Beside()
        self._asking = Asking(
            engine, ledger, noise, clock, Faults(ledger, clock), turns, self._beside, self.schema_changed
        )
        self._teller = Teller(ledger, clock)
        self._in_flight: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def rulebook(self) -> Rulebook:
        """The rules in force."""
        return self._rulebook

    @property
    def limits(self) -> Limits:
        """What the rules in force say of one statement."""
        policy = self._rulebook.policy
        delta, defaults = policy.statement_delta() if policy.budget.delta else Decimal(0), policy.defaults
        return Limits(defaults.epsilon, defaults.max_epsilon, delta, defaults.least_epsilon)

    async def load(self, policy: Policy, catalog: Catalog) -> None:
        """Put new rules in force, for all sessions at once. Plans made by the old ones are refused from then on."""
        rulebook = Rulebook.of(policy, catalog, self._rulebook.generation + 1)
        await self._planner.load(policy, catalog)
        self._rulebook = rulebook
        self.schema_changed.clear()

    async def read(self, text: str, analyst: str) -> Reading:
        """What PostgreSQL's grammar says of a text; `analyst` is who waits for it."""
        return await self._planner.read(text, analyst)

    def may_touch(self, statement: Statement) -> bool:
        """Whether a statement names what may be a protected table, or one of ours: without asking anyone."""
        return any(self._rulebook.may_mean_closed(relation) for relation in statement.relations)

    def is_protected(self, schema: str, name: str) -> bool:
        """Whether this very table is protected, or one of ours: what the twin cannot answer."""
        return TableName(schema, name) in self._rulebook.closed

    async def plan(self, request: Request, analyst: str) -> Plan | First:
        """Plan one statement, or refuse it, or say what must be answered before."""
        generation = self._rulebook.generation
        plan = await self._planner.plan(request, analyst)
        if isinstance(plan, First):
            return plan
        return replace(plan, time_zone=request.time_zone, generation=generation)

    async def answer(
        self, plan: Plan, *, analyst: str, session: str, timeout_seconds: float, reuse: bool = True
    ) -> Answer:
        """Charge, look, noise and settle; raises a Refusal. What was charged stays charged, whatever is raised."""
        rulebook, now = self._rulebook, asyncio.get_running_loop().time()
        if plan.generation != rulebook.generation:
            raise RulesChanged("the rules or the schema have changed since this was planned", hint="Run it again.")
        asker = Asker(analyst, session, rulebook, plan.time_zone, now + timeout_seconds)
        try:
            with audit.of_refusals(analyst):
                reuse = reuse and bool(rulebook.policy.fresh_for)
                answer = await self._noised(plan, asker, reuse=reuse)
                told = await self._teller.tell(plan.told, analyst, rulebook)
                return replace(answer, columns=answer.columns + told + await self._foreseen(plan, asker, reuse=reuse))
        except asyncio.CancelledError:
            _stay_alive()
            raise Interrupted("canceling statement due to user request") from None

    async def check_affordable(self, first: Plan, rest: Plan, *, analyst: str, session: str, reuse: bool) -> None:
        """Refuse a part that has to be paid first, if what is left would not pay for the rest.

        A first part that is known already costs nothing, and so may the rest: that shows when it is planned.
        """
        rulebook = self._rulebook
        asker = Asker(analyst, session, rulebook, first.time_zone, asyncio.get_running_loop().time())
        questions = await self._questions(first.blocks, asker, reuse=reuse and bool(rulebook.policy.fresh_for))
        if any(question.mechanisms for question in questions):
            questions += [nothing_known(block, block_key(block, rulebook)) for block in rest.blocks]
            check_affordable(questions, await self._review(asker), asker)

    async def _review(self, asker: Asker) -> Review:
        return await self._ledger.review(asker.analyst, asker.rulebook.budgets, self._clock(), most_charges=0)

    async def _noised(self, plan: Plan, asker: Asker, *, reuse: bool) -> Answer:
        """The blocks' answers; what has none is free."""
        if not plan.blocks:
            return Answer((), plan.notices)
        async with on_grid(asker.rulebook.policy.pad_to):
            return await self._answer(plan, asker, reuse=reuse)

    async def _answer(self, plan: Plan, asker: Asker, *, reuse: bool) -> Answer:
        keys = [block_key(block, asker.rulebook) for block in plan.blocks] if reuse else []
        async with self._one_at_a_time(keys, asker.deadline):
            questions = await self._questions(plan.blocks, asker, reuse=reuse)
            receipt, answered = await self._asking.ask(questions, asker, reuse=reuse)
        fresh = sum(len(question.fresh) for question in questions)
        reused = sum(len(question.known) for question in questions)
        audit.answered(asker.analyst, receipt, fresh=fresh, reused=reused)
        asked = [question for question, _ in answered]
        told = (cost_notice(receipt, answered, asker.rulebook), *bound_notices(asked), reuse_notice(asked))
        return Answer(
            await self._holes(answered, asker), plan.notices + tuple(notice for notice in told if notice is not None)
        )

    async def _questions(self, blocks: Sequence[Block], asker: Asker, *, reuse: bool) -> list[Question]:
        """The blocks, each with what is known of its answer."""
        keyed = [(block, block_key(block, asker.rulebook)) for block in blocks]
        if not reuse:
            return [nothing_known(block, key) for block, key in keyed]
        return [await find_known(block, key, self._ledger, asker, self._clock()) for block, key in keyed]

    async def _holes(self, answered: Sequence[Answered], asker: Asker) -> tuple[tuple[Text, ...], ...]:
        """The columns for the outer statement. Error bars take some milliseconds a group."""

        def made() -> tuple[tuple[Text, ...], ...]:
            return tuple(column for question, noised in answered for column in columns(question.block, noised))

        sizes = (len(noised.groups) * _outputs(question.block) for question, noised in answered)
        return await self._beside.run(asker.analyst, sum(sizes), made)

    async def _foreseen(self, plan: Plan, asker: Asker, *, reuse: bool) -> tuple[tuple[str, ...], ...]:
        """What EXPLAIN tells of blocks that are not asked."""
        if not plan.foreseen:
            return ()
        questions = await self._questions(plan.foreseen, asker, reuse=reuse)
        return (foresee(questions, await self._review(asker), asker),)

    @asynccontextmanager
    async def _one_at_a_time(self, keys: Sequence[str], deadline: float) -> AsyncIterator[None]:
        """Let equal blocks wait for each other: the second finds what the first one has released."""
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    for key in sorted(set(keys)):  # in one order for all, so that nobody waits in a circle
                        await stack.enter_async_context(self._in_flight.setdefault(key, asyncio.Lock()))
            except TimeoutError:
                raise Interrupted("canceling statement due to statement timeout") from None
            yield


def _outputs(block: Block) -> int:
    """How many numbers are computed for a group."""
    replicates, _ = points(block.level)
    return len(block.outputs) + replicates * len(block.bars)


def _stay_alive() -> None:
    """Only the statement was cancelled: the task that asked goes on with its session."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
