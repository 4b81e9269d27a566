"""The way of one private statement: take a snapshot, charge, look, noise, settle.

Whatever may fail for reasons of its own comes before the charge. From the charge on nothing is given back, and every
failure is one constant refusal.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain, islice

from proxy.engine.engine import Engine, EngineError, Row, SchemaChanged, Snapshot, UnknownTimeZone
from proxy.query.asker import Asker
from proxy.query.beside import Beside
from proxy.query.clock import Clock
from proxy.query.faults import Faults
from proxy.query.reuse import Question, since
from proxy.query.turns import Turns
from rules.catalog import Table
from rules.ledger.accountant import Totals
from rules.ledger.store import Charge, LedgerStore, Receipt
from rules.noise.ladder import choose_bound, tallies
from rules.noise.measures import Choice, PrivateGroups
from rules.noise.mechanism import Noise
from rules.noise.release import Draws, MalformedRows, Noised, draw, release, release_choice, release_found
from rules.noise.replicates import check_size
from rules.refusal import BadSetting, Interrupted, Mismatch, Refusal, RulesChanged, TooComplex, Unavailable

Answered = tuple[Question, Noised]  # as it was asked in the end, its bounds chosen


@dataclass(frozen=True, slots=True)
class Asking:
    """What it takes to ask: the real database, the ledger, and a source of noise."""

    engine: Engine
    ledger: LedgerStore
    noise: Noise
    clock: Clock
    faults: Faults
    turns: Turns  # at the real database
    beside: Beside
    schema_changed: asyncio.Event  # set when the catalog must be read again

    async def ask(self, questions: Sequence[Question], asker: Asker, *, reuse: bool) -> tuple[Receipt, list[Answered]]:
        """Answer all questions for one charge, from memory or from one snapshot.

        With reuse what is drawn is shown together with what the analyst has of the same measures.
        """
        if any(question.fresh for question in questions):
            receipt, drawn = await self._ask_database(questions, asker)
            drawn = await self._settle(receipt, drawn, since(asker, self.clock()) if reuse else None)
        else:
            receipt = await self._see_again(questions, asker)
            drawn = [(question, Noised(question.groups or (), {})) for question in questions]
        policy = asker.rulebook.policy
        _check_size([noised for _, noised in drawn], policy.groups_limit)
        for question, noised in drawn:
            check_size(question.block.bars, len(noised.groups), question.block.level)
        return receipt, [await self._completed(question, noised, asker) for question, noised in drawn]

    async def _ask_database(self, questions: Sequence[Question], asker: Asker) -> tuple[Receipt, list[Answered]]:
        receipt: Receipt | None = None
        try:
            async with asyncio.timeout_at(asker.deadline), self.turns.taken(asker.analyst):
                seconds = asker.deadline - asyncio.get_running_loop().time()
                async with self.engine.snapshot(
                    time_zone=asker.time_zone, timeout_seconds=seconds, tables=_tables(questions, asker)
                ) as snapshot:
                    # Drawing looks at nothing, so it need not wait for the disk.
                    charged, draws = await asyncio.gather(self._charge(questions, asker), self._draw(questions, asker))
                    receipt = charged
                    drawn = await self._look(questions, draws, snapshot, asker)
        except (EngineError, TimeoutError, MalformedRows) as error:
            raise await self._failure(receipt, asker, error) from None
        await self.faults.check_after(asker.analyst, asker.rulebook)
        return receipt, drawn

    async def _see_again(self, questions: Sequence[Question], asker: Asker) -> Receipt:
        """Nothing is asked: only what this analyst sees for the first time is charged."""
        if all(kept.paid for question in questions for kept in question.kept):
            balances = await self.ledger.balances(asker.analyst, asker.rulebook.budgets, self.clock())
            return Receipt(0, Totals(), *balances)
        return await self._charge(questions, asker)

    async def _settle(
        self, receipt: Receipt, drawn: Sequence[Answered], beside: datetime | None
    ) -> list[Answered]:  # fmt: skip
        releases = [question.releases(noised) for question, noised in drawn]
        found = await self.ledger.settle(receipt.charge, list(chain.from_iterable(releases)), beside=beside)
        others = iter(map(tuple, found))
        return [
            (question.with_others(list(islice(others, len(each)))), noised)
            for (question, noised), each in zip(drawn, releases, strict=True)
        ]

    async def _charge(self, questions: Sequence[Question], asker: Asker) -> Receipt:
        """Make the statement's cost durable, or refuse."""
        charge = Charge(
            time=self.clock(),
            analyst=asker.analyst,
            session=asker.session,
            fingerprint=" ".join(question.key for question in questions),
            unit=asker.rulebook.policy.unit,
            tables=tuple(str(table.name) for table in _tables(questions, asker)),
            mechanisms=tuple(mechanism for question in questions for mechanism in question.mechanisms),
            sights=tuple(kept.id for question in questions for kept in question.kept),
        )
        return await self.ledger.charge(self.faults.counted(charge, asker.rulebook), asker.rulebook.budgets)

    async def _draw(self, questions: Sequence[Question], asker: Asker) -> list[Draws]:
        """Draw for every list of groups that is known before the database is asked, unless bounds must be chosen."""
        return [await self._draw_for(question, asker) for question in questions]

    async def _draw_for(self, question: Question, asker: Asker) -> Draws:
        groups, group_size = question.groups, asker.rulebook.policy.group_size
        if groups is None or question.fresh_ladders:
            return {}
        return await self.beside.run(
            asker.analyst,
            len(groups) * len(question.fresh),
            lambda: draw(question.block, question.fresh, len(groups), self.noise, group_size=group_size),
        )

    async def _look(
        self, questions: Sequence[Question], draws: Sequence[Draws], snapshot: Snapshot, asker: Asker
    ) -> list[Answered]:
        """Run the inner statements, one after the other; when we are stopped, so is the database."""
        try:
            pairs = zip(questions, draws, strict=True)
            return [await self._run(question, each, snapshot, asker) for question, each in pairs]
        except asyncio.CancelledError:
            await snapshot.cancel()
            raise

    async def _run(self, question: Question, draws: Draws, snapshot: Snapshot, asker: Asker) -> Answered:
        """Run the inner statements of one block and noise their rows; what needs no fresh draw is not run."""
        if question.fresh_ladders:
            question = await self._choose_bounds(question, snapshot, asker)
            draws = await self._draw_for(question, asker)
        noised = await self._sum(question, draws, snapshot, asker)
        values = dict(noised.values)
        histograms: dict[str, Sequence[Row]] = {}  # quantiles of one column, and the ends of their bars, have one
        for index in question.fresh:
            match question.block.measures[index]:
                case Choice() as choice:
                    if choice.sql not in histograms:
                        histograms[choice.sql] = await snapshot.run(choice.sql)
                    chosen = partial(release_choice, question.block, choice, noised.groups, histograms[choice.sql])
                    values[index] = await self.beside.run(
                        asker.analyst,
                        len(noised.groups) * choice.candidates,
                        partial(chosen, self.noise, group_size=asker.rulebook.policy.group_size),
                    )
        return question, Noised(noised.groups, values)

    async def _choose_bounds(self, question: Question, snapshot: Snapshot, asker: Asker) -> Question:
        """Choose the bounds that are not known; with them the block is one as any other."""
        block, size = question.block, asker.rulebook.policy.group_size
        found = tallies(block, await snapshot.run(block.tally))
        chosen = {
            index: choose_bound(block.ladders[index], found[index], self.noise, group_size=size)
            for index in question.fresh_ladders
        }
        return question.settled(chosen, asker)

    async def _sum(self, question: Question, draws: Draws, snapshot: Snapshot, asker: Asker) -> Noised:
        block, groups, group_size = question.block, question.groups, asker.rulebook.policy.group_size
        if groups is not None and not draws:
            return Noised(groups, {})
        rows: Sequence[Row] = await snapshot.run(block.sql)
        beside, measures = partial(self.beside.run, asker.analyst), len(block.measures)
        if groups is not None:
            size = max(len(rows), len(groups)) * measures
            return await beside(size, lambda: release(block, groups, rows, draws))
        assert isinstance(block.groups, PrivateGroups)
        found = partial(release_found, block, block.groups, rows, self.noise, group_size=group_size)
        return await beside(len(rows) * measures, found)

    async def _completed(self, question: Question, drawn: Noised, asker: Asker) -> Answered:
        numbers = len(drawn.groups) * len(question.block.measures) * question.combined
        group_size = asker.rulebook.policy.group_size
        return question, await self.beside.run(
            asker.analyst, numbers // 10, lambda: question.complete(drawn, group_size=group_size)
        )

    async def _failure(self, receipt: Receipt | None, asker: Asker, error: Exception) -> Refusal:
        """What a failure is told as: before the charge what it was, after it always the same."""
        if receipt is not None:
            return await self.faults.note(receipt, asker.analyst, error)
        match error:
            case SchemaChanged():
                self.schema_changed.set()
                return RulesChanged("the schema has changed since this was planned", hint="Run it again.")
            case UnknownTimeZone():
                return BadSetting("the real database does not know this time zone", hint="SET TimeZone = 'UTC'.")
            case TimeoutError():
                return Interrupted("canceling statement due to statement timeout")
            case _:
                return Unavailable("the real database is away", hint="Nothing was charged. Try again later.")


def _tables(questions: Sequence[Question], asker: Asker) -> tuple[Table, ...]:
    """The tables that are read, as they were when the statement was planned."""
    names = {name for question in questions for name in question.block.tables}
    known = {str(table.name): table for table in asker.rulebook.catalog.tables}
    if not names <= known.keys():
        raise Mismatch("the plan reads a table that the catalog does not have")
    return tuple(known[name] for name in sorted(names))


def _check_size(drawn: Sequence[Noised], limit: int) -> None:
    """Lists known beforehand were checked by the planner. That too many groups were released is told by noise alone."""
    if any(len(noised.groups) > limit for noised in drawn):
        raise TooComplex(
            f"more than {limit} groups were found, the most that the rules allow in an answer",
            hint="Group by something coarser. What was spent stays spent.",
        )
