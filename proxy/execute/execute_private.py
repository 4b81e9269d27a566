"""The way of one private statement: take a snapshot, charge, look, noise, settle.

Whatever may fail for reasons of its own comes before the charge. From the charge on nothing is given back, and every
failure is one constant refusal.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import chain, islice

from proxy.engines.engine import (
    Engine,
    EngineError,
    Row,
    SchemaChanged,
    Snapshot,
    TooCostly,
    Unplannable,
    refusal_before_charge,
)
from proxy.execute import audit
from proxy.execute.audit import BudgetAlerts, Faults, failures_of, inner_failure
from proxy.execute.chosen_bounds import check_groups, choose_bounds, find_groups, list_groups
from proxy.execute.clock import Clock
from proxy.execute.find_released import Finder, fresh_since, with_own_vectors
from proxy.execute.load_limits import ComputePool, CostLimits, FairSemaphore
from proxy.execute.question import Question, tables_of
from proxy.execute.released_cells import Relatives
from proxy.execute.rulebook import StatementContext
from proxy.execute.synopses import lasting
from proxy.metrics import OPENED, stage
from rules.accounting.accountant import Totals
from rules.accounting.budgets import period_of
from rules.accounting.store import Balances, Charge, LedgerStore, Receipt
from rules.mechanisms.draw import Noise
from rules.mechanisms.release_plan import Choice, PrivateGroups
from rules.refusal import AnalystStopped
from rules.release.bound_ladder import draw_climb, draw_report, release_report, report_statement
from rules.release.release import Draws, Noised, draw, release, release_choice, release_found, release_top
from rules.release.replicates import check_size

Answered = tuple[Question, Noised]  # as it was asked in the end, its bounds chosen


@dataclass(frozen=True, slots=True)
class DrawnBefore:
    """Noise that is drawn before the database is asked: for a known list of groups, or for the choice of bounds."""

    draws: Draws
    climbs: Mapping[int, Sequence[int]] = field(default_factory=dict)  # by ladder
    report: int | None = None


@dataclass(frozen=True, slots=True)
class PrivateExecution:
    """Hold what it takes to ask: the real database, the ledger, and a source of noise."""

    engine: Engine
    ledger: LedgerStore
    noise: Noise
    clock: Clock
    faults: Faults
    turns: FairSemaphore  # at the real database
    pool: ComputePool
    costs: CostLimits
    schema_changed: asyncio.Event  # set when the catalog must be read again
    alerts: BudgetAlerts = field(default_factory=BudgetAlerts)

    async def settle(
        self,
        receipt: Receipt,
        drawn: Sequence[Answered],
        context: StatementContext,
        *,
        reuse: bool,
        known_at: datetime,
    ) -> list[Answered]:
        """Keep what was drawn, and put it together; not before it may be told, for EXPLAIN and the ledger tell of it.

        With reuse what is drawn is shown together with what the analyst has of the same measures. What was on the
        account when this was looked for (`known_at`) is on none of a period that has begun since: it is left out.
        """
        drawn = await self._settle(receipt, drawn, context, reuse=reuse)
        if self._has_ended(known_at, context):
            drawn = [(_without_relatives(question), noised) for question, noised in drawn]
        if reuse and len(drawn) > 1:  # each may tell of the others
            drawn = [
                (await Finder(self.ledger, context, self.clock()).with_others(question), noised)
                for question, noised in drawn
            ]
        return await self._whole(drawn, context)

    async def keep(self, questions: Sequence[Question], context: StatementContext) -> None:
        """Answer all questions for one charge, from one snapshot, for whoever may see them later."""
        async with AsyncExitStack() as place:
            receipt, drawn = await self.draw(questions, context, place)
        await self._settle(receipt, drawn, context, reuse=False)

    async def see_again(
        self, questions: Sequence[Question], context: StatementContext, balances: Balances | None, *, known_at: datetime
    ) -> tuple[Receipt, Sequence[Question]]:
        """Charge what this analyst sees for the first time in the running period, where nothing need be asked.

        The questions come without what is charged to nobody and was paid for in a period that has ended meanwhile.
        """
        if self._has_ended(known_at, context):
            return await self._charge(questions, context), list(map(_without_relatives, questions))
        if all(kept.paid for question in questions for kept in question.kept):
            left = balances or await self.ledger.balances(context.analyst, context.rulebook.budgets, self.clock())
            return Receipt(0, Totals(), *left), questions
        return await self._charge(questions, context), questions

    def _has_ended(self, known_at: datetime, context: StatementContext) -> bool:
        budgets = context.rulebook.budgets
        return period_of(known_at, budgets) != period_of(self.clock(), budgets)

    async def show_again(self, questions: Sequence[Question], context: StatementContext) -> list[Answered]:
        """Put together what was released before."""
        return await self._whole([(question, Noised(question.groups or (), {})) for question in questions], context)

    async def _whole(self, drawn: Sequence[Answered], context: StatementContext) -> list[Answered]:
        policy = context.rulebook.policy
        for question, noised in drawn:
            check_groups(noised.groups, policy.groups_limit)
            check_size(question.block.bars, len(noised.groups), question.block.level)
        whole = list[Answered]()
        for question, noised in drawn:
            numbers = len(noised.groups) * len(question.block.measures) * max(question.combined, 1)
            complete = partial(question.complete, noised, group_size=policy.group_size)
            whole.append((question, await self.pool.run(context.analyst, numbers // 10, complete)))
        return whole

    async def draw(
        self, questions: Sequence[Question], context: StatementContext, place: AsyncExitStack
    ) -> tuple[Receipt, list[Answered]]:
        """Charge, ask the database all questions in one snapshot, and noise what it says.

        Whoever closes `place` gives the turn at the database back; the charge of the next one in line tells when.
        """
        receipt: Receipt | None = None
        clock, kernel = asyncio.get_running_loop().time, context.rulebook.kernel
        statements = [statement for question in questions for statement in question.statements(kernel)]
        self.costs.check(context.analyst, statements, clock())
        try:
            async with asyncio.timeout_at(context.deadline):
                await place.enter_async_context(self.turns.taken(context.analyst))
                began = clock()
                async with self.engine.snapshot(
                    time_zone=context.time_zone,
                    timeout_seconds=context.deadline - began,
                    tables=tables_of(questions, context),
                    statements=statements,
                ) as snapshot:
                    OPENED.observe(clock() - began)
                    # Drawing looks at nothing, so it need not wait for the disk.
                    charged = asyncio.gather(self._charge(questions, context), self._draw(questions, context))
                    receipt, draws = await charged
                    with stage("database"):
                        drawn = await self._look(questions, draws, snapshot, context)
        except Exception as error:  # after the charge whatever it is
            if receipt is None and isinstance(error, Unplannable) and error.can_tell_of_rows:
                receipt = await self._charge(questions, context)  # statistics were looked at
            if receipt is not None:
                raise await self.faults.note(receipt, context, error) from None
            if isinstance(error, TooCostly):
                raise self.costs.refuse(context.analyst, statements, clock()) from None
            if isinstance(error, EngineError | TimeoutError):
                audit.away(context, error)
                if isinstance(error, SchemaChanged):
                    self.schema_changed.set()
                raise refusal_before_charge(error) from None
            raise
        return receipt, drawn

    async def _settle(
        self, receipt: Receipt, drawn: Sequence[Answered], context: StatementContext, *, reuse: bool
    ) -> list[Answered]:  # fmt: skip
        datetime = fresh_since(context, self.clock()) if reuse else None
        releases = with_own_vectors([question.releases(noised) for question, noised in drawn])
        try:
            await self.faults.write(context.analyst)
            with stage("settle"):
                kept_of = await self.ledger.settle(
                    receipt.charge, list(chain.from_iterable(releases)), beside=datetime, lasting=lasting(context.cubes)
                )
        except AnalystStopped:  # by a statement that failed while this one ran
            raise inner_failure() from None
        others = iter(map(tuple, kept_of))
        return [
            (question.with_others(list(islice(others, len(release))), receipt.charge), noised)
            for (question, noised), release in zip(drawn, releases, strict=True)
        ]

    async def _charge(self, questions: Sequence[Question], context: StatementContext) -> Receipt:
        """Make the statement's cost durable, or refuse."""
        await self.faults.write(context.analyst)
        charge = Charge(
            time=self.clock(),
            analyst=context.analyst,
            session=context.session,
            fingerprint=" ".join(question.key for question in questions),
            statement=context.statement,
            shape=context.shape,
            unit=context.rulebook.policy.unit,
            tables=tuple(str(table.name) for table in tables_of(questions, context)),
            mechanisms=tuple(mechanism for question in questions for mechanism in question.mechanisms),
            sights=tuple(kept.id for question in questions for kept in question.kept if not kept.is_lasting),
            once_since=context.once_since,
        )
        with stage("charge"):
            receipt = await self.ledger.charge(charge, context.rulebook.budgets)
        self.alerts.note(context.analyst, receipt, context.rulebook.budgets.role_of(context.analyst))
        return receipt

    async def _draw(self, questions: Sequence[Question], context: StatementContext) -> list[DrawnBefore]:
        """Draw for the lists of groups that are known before the database is asked, or else for choices of bounds."""
        drawn, size = list[DrawnBefore](), context.rulebook.policy.group_size
        for question in questions:
            draws = await self._draw_for(question, context)
            ladders = {index: question.block.ladders[index] for index in question.fresh_ladders}
            climbs = {index: draw_climb(ladder, self.noise, group_size=size) for index, ladder in ladders.items()}
            report = draw_report(question.block, self.noise, group_size=size) if question.asks_report else None
            drawn.append(DrawnBefore(draws, climbs, report))
        return drawn

    async def _draw_for(self, question: Question, context: StatementContext, known: Sequence[int] = ()) -> Draws:
        groups, group_size = question.groups, context.rulebook.policy.group_size
        fresh = [index for index in question.fresh if index not in known]
        if groups is None or question.fresh_ladders:
            return {}
        return await self.pool.run(
            context.analyst,
            len(groups) * len(fresh),
            lambda: draw(question.block, fresh, len(groups), self.noise, group_size=group_size),
        )

    async def _look(
        self, questions: Sequence[Question], drawn: Sequence[DrawnBefore], snapshot: Snapshot, context: StatementContext
    ) -> list[Answered]:
        """Run the inner statements, one after the other; when we are stopped, so is the database."""
        try:
            return [await self._run(*pair, snapshot, context) for pair in zip(questions, drawn, strict=True)]
        except asyncio.CancelledError:
            await snapshot.cancel()
            raise

    async def _run(
        self, question: Question, drawn: DrawnBefore, snapshot: Snapshot, context: StatementContext
    ) -> Answered:
        """Run the inner statements of one block and noise their rows; what needs no fresh draw is not run."""
        draws, pooled = drawn.draws, partial(self.pool.run, context.analyst)
        if question.finder is not None:
            question = await find_groups(question, question.finder, snapshot, context, self.noise, pooled)
            draws = await self._draw_for(question, context)
        listed: Noised | None = None
        if question.fresh_ladders:
            listed = await list_groups(question, snapshot, context, self.noise, pooled)
            question = await choose_bounds(question, drawn.climbs, listed, snapshot, context)
            draws = await self._draw_for(question, context, () if listed is None else tuple(listed.values))
        if drawn.report is not None:
            tally = context.rulebook.kernel.tally(report_statement(question.block))
            with failures_of(tally.sql):
                reported = release_report(question.block, await snapshot.run(tally), drawn.report)
                question = replace(question, reported=reported)
        if question.asks_top:
            return await self._choose_groups(question, snapshot, context)
        noised = await self._sum(question, draws, snapshot, context)
        values = {**noised.values, **({} if listed is None else listed.values)}
        histograms: dict[str, Sequence[Row]] = {}  # quantiles of one column, and the ends of their bars, have one
        for index in question.fresh:
            match question.block.measures[index]:
                case Choice() as choice:
                    statement = context.rulebook.kernel.bounded(choice.statement)
                    with failures_of(statement.sql):
                        if statement.sql not in histograms:
                            histograms[statement.sql] = await snapshot.run(statement)
                        rows = histograms[statement.sql]
                        chosen = partial(
                            release_choice, question.block, choice, noised.groups, rows, codec=snapshot.codec
                        )
                        values[index] = await self.pool.run(
                            context.analyst,
                            len(noised.groups) * choice.candidates,
                            partial(chosen, self.noise, group_size=context.rulebook.policy.group_size),
                        )
        return question, Noised(noised.groups, values)

    async def _choose_groups(self, question: Question, snapshot: Snapshot, context: StatementContext) -> Answered:
        """Choose the groups that are answered, and noise these."""
        block, top = question.block, question.block.top
        assert top is not None, "groups are to be chosen"
        statement = context.rulebook.kernel.bounded(block.statement)
        with failures_of(statement.sql):
            chosen = partial(
                release_top, block, top, await snapshot.run(statement), self.noise,
                group_size=context.rulebook.policy.group_size, codec=snapshot.codec,
            )  # fmt: skip
            noised, ranks = await self.pool.run(context.analyst, top.listed, chosen)
        return replace(question, ranks=ranks), noised

    async def _sum(self, question: Question, draws: Draws, snapshot: Snapshot, context: StatementContext) -> Noised:
        block, groups, group_size = question.block, question.groups, context.rulebook.policy.group_size
        if groups is not None and not draws:
            return Noised(groups, {})
        statement = context.rulebook.kernel.bounded(question.statement)
        with failures_of(statement.sql):
            rows: Sequence[Row] = await snapshot.run(statement)
            pooled, measures = partial(self.pool.run, context.analyst), len(block.measures)
            if groups is not None:
                size = max(len(rows), len(groups)) * measures
                return await pooled(size, lambda: release(block, groups, rows, draws, codec=snapshot.codec))
            assert isinstance(block.groups, PrivateGroups)
            noised = partial(release_found, block, block.groups, rows, self.noise, group_size=group_size)
            return await pooled(len(rows) * measures, partial(noised, codec=snapshot.codec))


def _without_relatives(question: Question) -> Question:
    return replace(question, relatives=Relatives())
