"""Everything that sessions ask of the rules: to read, to plan, and to answer one private statement."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Final

from proxy.engines.engine import Engine
from proxy.execute import audit
from proxy.execute.audit import Faults
from proxy.execute.clock import Clock, Zones
from proxy.execute.cost_estimate import check_affordable, foresee
from proxy.execute.execute_private import Answered, PrivateExecution
from proxy.execute.find_released import Finder
from proxy.execute.load_limits import ComputePool, CostLimits, FairSemaphore, Gate, OneAtATime
from proxy.execute.notices import cost_notice, margins_notice
from proxy.execute.public_rows import PublicRows, Rows
from proxy.execute.question import Question, nothing_known
from proxy.execute.released_cells import block_key
from proxy.execute.repeated_statements import FreeAnswers, LedgerReading, Planner, Plans, Promises
from proxy.execute.rulebook import Rulebook, StatementContext
from proxy.execute.shown_answers import RecentAnswers, Shown, last_rows, show, work_of
from proxy.execute.synopses import CubeBook, SynopsisBook, SynopsisState
from proxy.execute.system_views import OwnRows, SystemViews
from proxy.execute.time_padding import on_grid
from proxy.recent_values import RecentValues
from proxy.settings import LoadLimits
from rules.accounting.budgets import PaidIn, RunningPeriod
from rules.accounting.store import Balances, BudgetRequest, LedgerReview, LedgerStore, Receipt
from rules.catalog import Catalog, TableName
from rules.mechanisms.draw import Noise
from rules.mechanisms.noised_outputs import Text
from rules.mechanisms.release_plan import Block
from rules.planner.plan import NeedsInner, Plan, PreviewRows, PublicQuery, Request
from rules.policy.model import Policy
from rules.refusal import Interrupted, RulesChanged
from rules.release.release import Noised
from rules.sql.session_settings import SettingLimits
from rules.sql.statement import Reading, Statement

Sources = tuple[tuple[int, ...], ...]  # of each block: which it is, and which releases it is made of

_LOAD: Final = LoadLimits()
_REMEMBERED: Final = 32 * 1024 * 1024  # bytes of what was made of releases


@dataclass(frozen=True, slots=True)
class Answer:
    """Hold what the outer statement is given: one column of text for each hole after the client's own parameters."""

    columns: tuple[tuple[Text, ...], ...]
    notices: tuple[str, ...] = ()
    last: tuple[str, ...] = ()  # the rows of noisegate.last after it
    released: tuple[tuple[Block, Noised], ...] = ()  # the numbers of which it is made
    is_free: bool = True
    cut: str = ""  # how the notice of the cost ends: what margins do not include
    origin: str = ""  # names the releases of which it is made


@dataclass(frozen=True, slots=True)
class Free:
    """An answer for which nothing was paid, and of how many releases it is made."""

    answer: Answer
    receipt: Receipt
    reused: int


class Service:
    """One for the whole proxy. Rules are swapped as a whole: what is in force is one Rulebook."""

    def __init__(
        self,
        rulebook: Rulebook,
        planner: Planner,
        engine: Engine,
        ledger: LedgerStore,
        *,
        noise: Noise,
        clock: Clock,
        load: LoadLimits = _LOAD,
    ) -> None:
        self._rulebook, self._planner, self._ledger, self._clock = rulebook, planner, ledger, clock
        self.schema_changed = asyncio.Event()  # for the owner, who then reads the catalog and calls `load`
        turns = self._turns = FairSemaphore(engine.connections, most=load.most_per_analyst)
        self._compute_pool, self.gate, self.recent = ComputePool(), Gate(), RecentAnswers()
        self._asking = PrivateExecution(
            engine=engine,
            ledger=ledger,
            noise=noise,
            clock=clock,
            faults=Faults(ledger, clock),
            turns=turns,
            pool=self._compute_pool,
            costs=CostLimits(load),
            schema_changed=self.schema_changed,
        )
        self._teller, self._again = SystemViews(ledger, clock), FreeAnswers[Free](ledger)
        self._served: RecentValues[tuple[int, Sources], tuple[tuple[Block, ...], Shown]] = RecentValues(_REMEMBERED)
        self._plans, self._in_flight = Plans(planner), OneAtATime()
        self._zones, self.promises = Zones(engine), Promises(ledger, clock, lambda: self._rulebook)
        self.synopses, self.cubes, self.public, self._period = SynopsisBook(), CubeBook(), PublicRows(), RunningPeriod()

    @property
    def rulebook(self) -> Rulebook:
        """The rules in force."""
        return self._rulebook

    @property
    def waiting(self) -> int:
        """Statements that wait for their turn at the real database."""
        return self._turns.waiting

    @property
    def limits(self) -> SettingLimits:
        """Find what the rules in force say of one statement."""
        return self._rulebook.limits

    def limits_of(self, analyst: str) -> SettingLimits:
        """Find what they say of a statement of one analyst."""
        return self._rulebook.limits_of(analyst)

    def paid_in(self, analyst: str) -> PaidIn:
        """Name the period and the role in which this analyst pays now."""
        budgets = self._rulebook.budgets
        return self._period.at(self._clock(), budgets), budgets.role_of(analyst)

    async def load(self, policy: Policy, catalog: Catalog) -> None:
        """Put new rules in force, for all sessions at once. Plans made by the old ones are refused from then on."""
        rulebook = Rulebook.of(policy, catalog, self._rulebook.generation + 1)
        await self._planner.load(policy, catalog)
        self._rulebook = rulebook
        self.schema_changed.clear()

    async def read(self, text: str, analyst: str) -> Reading:
        """Read what PostgreSQL's grammar says of a text; `analyst` is who waits for it."""
        return await self._planner.read(text, analyst)

    def may_touch(self, statement: Statement) -> bool:
        """Tell whether a statement names what may be a protected table, one of ours, or synthetic; ask nobody."""
        synopses = self._rulebook.policy.schemas
        return any(
            relation.schema in synopses or self._rulebook.may_mean_closed(relation) for relation in statement.relations
        )

    def synopsis(self, schema: str) -> SynopsisState | None:
        """The synopsis of this name, if the rules have one."""
        return self.synopses.find(schema, self._rulebook.policy)

    def preview_rows(self, analyst: str) -> tuple[PreviewRows, ...]:
        """Synthetic rows that previews may show this analyst."""
        return self.synopses.preview_rows(analyst, self._rulebook.policy)

    def is_protected(self, schema: str, name: str) -> bool:
        """Tell whether this very table is protected, or one of ours: what the twin cannot answer."""
        return TableName(schema, name) in self._rulebook.closed

    async def plan(self, request: Request, analyst: str) -> Plan | NeedsInner:
        """Plan one statement, or refuse it, or say what must be answered before."""
        return await self._plans.plan(request, analyst, self._rulebook)

    def find_plan(self, request: Request) -> Plan | NeedsInner | None:
        """Find the plan of a statement that was planned by these rules before."""
        return self._plans.find(request, self._rulebook)

    async def read_public(self, query: PublicQuery, width: int, *, analyst: str, zone: str, seconds: float) -> Rows:
        """Read public rows on the real database."""
        return await self.public.read(query, width, self._rulebook, analyst=analyst, zone=zone, seconds=seconds)

    async def answer(
        self,
        plan: Plan,
        *,
        analyst: str,
        session: str,
        timeout_seconds: float,
        reuse: bool = True,
        is_first: bool = False,
        own: OwnRows = dict,
    ) -> Answer:
        """Charge, look, noise and settle; raises a Refusal. What was charged stays charged, whatever is raised.

        The rest of its statement is answered after one that `is_first`; `own` makes rows that the session itself knows.
        """
        rulebook, now = self._rulebook, asyncio.get_running_loop().time()
        if plan.generation != rulebook.generation:
            raise RulesChanged("the rules or the schema changed while the statement was planned", hint="Run it again.")
        context = StatementContext(
            analyst,
            session,
            rulebook,
            plan.time_zone,
            now + timeout_seconds,
            statement=plan.fingerprint,
            shape=plan.shape,
            is_inner=plan.is_inner,
            cubes=self.cubes.standing,
            is_first=is_first,
        )
        try:
            with audit.of_ledger(analyst):
                reuse = reuse and bool(rulebook.policy.fresh_for)
                answer = await self._answer(plan, context, reuse=reuse) if plan.blocks else Answer((), plan.notices)
                if plan.wanted is not None:
                    return await self._request(plan.wanted, context)
                if not plan.system_views and not plan.foreseen:
                    return answer
                view_rows, told = await self._teller.tell(plan.system_views, analyst, rulebook, own)
                foreseen = await self._foreseen(plan, context, reuse=reuse)
                return replace(answer, columns=answer.columns + view_rows + foreseen, notices=answer.notices + told)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.uncancel()  # only the statement was cancelled: the task that asked goes on with its session
            raise Interrupted("canceling statement due to user request") from None

    async def find_released(
        self, blocks: Sequence[Block], *, analyst: str, session: str, time_zone: str
    ) -> Sequence[tuple[Block, Noised]] | None:
        """Find what is on the analyst's account of all these blocks, as it would be served again; None if it is not."""
        context = self._context(analyst, session, time_zone)
        questions = await self._questions(blocks, context, reuse=bool(context.rulebook.policy.fresh_for))
        if any(question.mechanisms or not all(kept.paid for kept in question.kept) for question in questions):
            return None
        return [(question.block, noised) for question, noised in await self._asking.show_again(questions, context)]

    async def check_affordable(
        self, first: Plan, rest: Sequence[Plan], *, analyst: str, session: str, reuse: bool
    ) -> None:
        """Refuse a part that has to be paid first, if what is left would not pay for the rest.

        A first part that is known already costs nothing, and so may the rest: that shows when it is planned.
        """
        context = self._context(analyst, session, first.time_zone)
        rulebook = context.rulebook
        questions = await self._questions(first.blocks, context, reuse=reuse and bool(rulebook.policy.fresh_for))
        if any(question.mechanisms for question in questions):
            blocks = (block for part in rest for block in part.blocks)
            questions += [nothing_known(block, block_key(block, rulebook)) for block in blocks]
            check_affordable(questions, await self._review(context), context)

    def _context(self, analyst: str, session: str, time_zone: str) -> StatementContext:
        """For what is looked for in the ledger alone."""
        now = asyncio.get_running_loop().time()
        return StatementContext(analyst, session, self._rulebook, time_zone, now, cubes=self.cubes.standing)

    async def _request(self, wanted: BudgetRequest, context: StatementContext) -> Answer:
        """Keep a request for more budget; the DBA finds it in the ledger, and that there is one in the log."""
        filed = await self._ledger.request(context.analyst, wanted, context.rulebook.budgets, self._clock())
        audit.requested(context, filed)
        words = f"request {filed.number} for ε {wanted.epsilon.normalize():f} is filed; TABLE noisegate.requests"
        return Answer(((f"{words} shows what your DBA answers",),))

    async def _review(self, context: StatementContext) -> LedgerReview:
        return await self._ledger.review(context.analyst, context.rulebook.budgets, self._clock(), most_charges=0)

    async def _answer(self, plan: Plan, context: StatementContext, *, reuse: bool) -> Answer:
        """The second half of the story that `proxy.session.answer_private` begins."""
        await self._zones.check(plan.zones, context.deadline, lambda: self._turns.taken(context.analyst))

        # Find released numbers: the same answer, or what serves a part of each block. Equal blocks wait for each other.
        reading = self._again.reading(self._clock())
        if reuse and (known := self._given_again(plan, context, reading)) is not None:
            return known
        keys = [block_key(block, context.rulebook) for block in plan.blocks] if reuse else []
        async with self._in_flight.taken(keys, context.deadline):
            balances: Balances | None = None
            if reuse:  # what is left is read in the same transaction, since nothing may be charged
                questions, balances = await asyncio.gather(
                    self._questions(plan.blocks, context, reuse=True), self._balances(context)
                )
            else:
                questions = await self._questions(plan.blocks, context, reuse=False)

            # Charge, run, noise and settle what is left to draw; or charge what the analyst sees for the first time.
            if any(question.is_fresh for question in questions):
                async with self.gate.passed(context.deadline), AsyncExitStack() as place:
                    receipt, drawn = await on_grid(
                        context.rulebook.policy.pad_to,
                        context.deadline,
                        context.is_first,
                        lambda end: self._asking.draw(questions, replace(context, deadline=end), place),
                    )
                    with audit.after_charge(context.analyst):
                        answered = await self._asking.settle(receipt, drawn, context, reuse=reuse, known_at=reading.now)
                shown = await self._shown(plan, answered, context)
            else:
                receipt, seen = await self._asking.see_again(questions, context, balances, known_at=reading.now)
                shown = await self._shown_again(plan, seen, context)

        # Show: columns, margins and notices, which follow from the released numbers.
        fresh = sum(len(question.fresh) for question in questions)
        reused = sum(len(question.known) for question in questions)
        audit.answered(context, receipt, fresh=fresh, reused=reused)
        self.recent.note(context.analyst, plan, shown, reading.now, context.rulebook.budgets)
        cost = cost_notice(receipt, margins_notice(shown.margins) + shown.cut, context.rulebook)
        last = last_rows(receipt, shown, self._clock())
        notices = (*plan.notices, cost, *shown.notices)
        answer = Answer(shown.columns, notices, last, shown.released, receipt.is_free, shown.cut, shown.origin)
        if receipt.is_free:
            self._again.keep(plan, context, questions, reading, Free(answer, receipt, reused), shown.size)
        return answer

    def find_answer(self, plan: Plan, *, analyst: str, session: str) -> Answer | None:
        """The answer that was given before, where nothing has to be waited for, and nothing paid."""
        rulebook = self._rulebook
        may_wait = plan.system_views or plan.wanted or plan.foreseen or plan.zones or rulebook.policy.pad_to
        if may_wait or plan.generation != rulebook.generation:
            return None
        context = StatementContext(analyst, session, rulebook, plan.time_zone, 0.0)
        return self._given_again(plan, context, self._again.reading(self._clock()))

    def _given_again(self, plan: Plan, context: StatementContext, reading: LedgerReading) -> Answer | None:
        free = self._again.find(plan, context, reading)
        if free is None:
            return None
        audit.answered(context, free.receipt, fresh=0, reused=free.reused)
        return free.answer

    async def _balances(self, context: StatementContext) -> Balances:
        return await self._ledger.balances(context.analyst, context.rulebook.budgets, self._clock())

    async def _shown(self, plan: Plan, answered: Sequence[Answered], context: StatementContext) -> Shown:
        rulebook = context.rulebook
        return await self._compute_pool.run(context.analyst, work_of(answered), lambda: show(plan, answered, rulebook))

    async def _shown_again(self, plan: Plan, questions: Sequence[Question], context: StatementContext) -> Shown:
        """Put released answers together; the same releases make the same for the same blocks of a plan."""
        blocks = plan.blocks
        sources = tuple((id(block), *question.sources) for block, question in zip(blocks, questions, strict=True))
        key = context.rulebook.generation, sources
        known = self._served.find(key)
        if known is not None:
            return known[1]
        shown = await self._shown(plan, await self._asking.show_again(questions, context), context)
        size = plan.size + shown.size
        self._served.keep(key, (tuple(blocks), shown), size)  # as long as a block is kept, no other has its id
        return shown

    async def _questions(self, blocks: Sequence[Block], context: StatementContext, *, reuse: bool) -> list[Question]:
        """The blocks, each with what is known of its answer."""
        if not reuse:
            return [nothing_known(block, block_key(block, context.rulebook)) for block in blocks]
        return [await self._finder(context).find_known(block) for block in blocks]

    def _finder(self, context: StatementContext) -> Finder:
        return Finder(self._ledger, context, self._clock())

    async def _foreseen(self, plan: Plan, context: StatementContext, *, reuse: bool) -> tuple[tuple[str, ...], ...]:
        """Estimate what EXPLAIN tells of blocks that are not asked."""
        if not plan.foreseen:
            return ()
        questions = await self._questions(plan.foreseen, context, reuse=reuse)
        released = [await self._finder(context).find_own(question) if reuse else None for question in questions]
        return (foresee(questions, released, await self._review(context), context),)
