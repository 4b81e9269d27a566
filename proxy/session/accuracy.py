"""Statements that are asked by their error: planned with the least ε that keeps it, after a probe where one is needed.

The probe and what follows are two statements, charged one after the other; which ε the second has follows from the
plan and from what the first has released (`rules.release.within`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

from proxy.execute.service import Answer
from proxy.session.inner_queries import plan_with_inner
from proxy.session.private_session import PrivateSession, Run
from proxy.wire.backend import Field
from rules.accounting.store import Promise
from rules.mechanisms.additive import laws_of
from rules.mechanisms.cost import price
from rules.mechanisms.release_plan import Block
from rules.planner.plan import Plan, Request
from rules.refusal import OutOfReach
from rules.release.release import Noised
from rules.release.within import (
    Demand,
    Needs,
    are_met,
    demands_of,
    least_epsilon,
    level_of_rest,
    needs_after,
    needs_beforehand,
)
from rules.sql.session_settings import SettingLimits, Within

_PROBES: Final = 30  # so many have together the most that a statement may cost
_STEP: Final = Decimal("1.05")
_THREE: Final = Context(prec=3, rounding=ROUND_CEILING)
_ENOUGH: Final = "an answer that you have is enough: nothing is charged"
_HINT: Final = (
    "Ask for fewer and larger groups, narrow what a unit can add (SET noisegate.rows_per_unit), or allow more error."
)


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A statement, and how far noise may move its answer."""

    private: PrivateSession
    place: int | None
    request: Request
    run: Run
    within: Within
    limits: SettingLimits

    async def with_epsilon(self, epsilon: Decimal) -> Plan:
        plan, _, _ = await plan_with_inner(self.private, self.place, replace(self.request, epsilon=epsilon), self.run)
        return plan

    async def released(self, plan: Plan) -> Sequence[tuple[Block, Noised]] | None:
        """Find what the account has of all blocks of a plan."""
        if not self.run.settings.reuse:
            return None
        private = self.private
        return await private.service.find_released(
            plan.blocks or plan.foreseen, analyst=private.analyst, session=private.session, time_zone=plan.time_zone
        )


async def plan_within(
    private: PrivateSession, place: int | None, request: Request, run: Run, within: Within, columns: tuple[Field, ...]
) -> tuple[Plan, tuple[str, ...], Answer | None]:
    """The plan of a statement under noisegate.within, notices of it, and its answer where a probe is enough."""
    bounded = _Bounded(private, place, request, run, within, private.limits)
    plan = await bounded.with_epsilon(bounded.limits.max_epsilon)
    blocks = plan.blocks or plan.foreseen
    if not blocks:
        return plan, (), None
    demands = demands_of(plan.results, blocks)
    needs = needs_beforehand(demands, blocks, within)
    if needs is not None:
        plan, epsilon = await _least(bounded, needs, plan, request.confidence, Decimal(0))
        return plan, (f"noisegate.within = {within.text} takes ε {epsilon:f}{_inside(plan)}",), None
    bounded = replace(bounded, request=replace(request, delta=request.delta / 2))  # for each of two releases
    if (kept := await _kept_promise(bounded, plan)) is not None:
        return *kept, None
    limits = bounded.limits
    probe = await bounded.with_epsilon(max(limits.min_epsilon, _THREE.divide(limits.max_epsilon, Decimal(_PROBES))))
    if not probe.blocks:
        return *await _explained(bounded, demands, probe, plan), None
    await private.compare(probe, columns, run)
    answer = await private.answer(probe, run, is_first=True)
    needs, at_least = needs_after(demands, answer.released, within, request.confidence)
    rest = level_of_rest(request.confidence)
    known = [noised.laws for _, noised in answer.released]
    if are_met(needs, probe.blocks, known, rest):
        return probe, _promised(within, needs, plan), answer
    spent = Decimal(0) if answer.is_free else probe.epsilon
    if limits.hides_few and not needs.promised:
        raise _of_few(within, _paid(probe, answer))
    if not needs.can_be_met:
        least = least_epsilon(at_least, blocks, limits.max_epsilon, rest, limits.group_size)
        raise too_small(within, limits.max_epsilon, least, _paid(probe, answer))
    plan, epsilon = await _least(bounded, needs, plan, rest, spent, _paid(probe, answer))
    promise = Promise(epsilon, _promised(within, needs, plan))
    await private.service.promises.keep(private.analyst, plan, within, promise)
    own = (notice for notice in answer.notices if notice not in probe.notices)  # the answer repeats the others
    notices = (f"probe: {notice.removesuffix(answer.cut)}" for notice in own)
    return plan, (*notices, *promise.notices), None


async def _kept_promise(bounded: _Bounded, plan: Plan) -> tuple[Plan, tuple[str, ...]] | None:
    """The plan of a promise whose releases are all on the account, and still fresh: it costs nothing."""
    private = bounded.private
    promise = await private.service.promises.find(private.analyst, plan, bounded.within)
    if promise is None:
        return None
    again = await bounded.with_epsilon(promise.epsilon)
    if await bounded.released(again) is None:
        return None
    return again, promise.notices if again.blocks else (_ENOUGH, *promise.notices)


async def _explained(
    bounded: _Bounded, demands: Sequence[Demand], probe: Plan, plan: Plan
) -> tuple[Plan, tuple[str, ...]]:
    """Explain: show what would be paid beside an answer that serves as the probe, or else the probe."""
    released = await bounded.released(probe)
    if released is None:
        return probe, ("this is the probe; its answer tells what noisegate.within takes beside it",)
    needs, _ = needs_after(demands, released, bounded.within, bounded.request.confidence)
    rest = level_of_rest(bounded.request.confidence)
    if are_met(needs, probe.foreseen, [noised.laws for _, noised in released], rest):
        return probe, (_ENOUGH, *_promised(bounded.within, needs, plan))
    if not needs.can_be_met:
        return probe, ("an answer that you have is the probe, which cannot tell these numbers from noise",)
    shown, epsilon = await _least(bounded, needs, plan, rest, Decimal(0))
    is_free = await bounded.released(shown) is not None
    words = f"noisegate.within = {bounded.within.text} takes ε {epsilon:f} beside an answer that you have"
    notice = _ENOUGH if is_free else words
    return shown, (notice, *_promised(bounded.within, needs, plan))


async def _least(
    bounded: _Bounded, needs: Needs, plan: Plan, level: Decimal, spent: Decimal, paid: str = ""
) -> tuple[Plan, Decimal]:
    """The plan with about the least ε that is enough, and that ε. Shares are rounded, so it is tried."""
    limits = bounded.limits
    size, most = limits.group_size, limits.max_epsilon
    epsilon = least_epsilon(needs, plan.blocks or plan.foreseen, most, level, size)
    while epsilon is not None and (epsilon := max(epsilon, limits.min_epsilon)) + spent <= most:
        plan = await bounded.with_epsilon(epsilon)
        blocks = plan.blocks or plan.foreseen
        if are_met(needs, blocks, [laws_of(block, group_size=size) for block in blocks], level):
            return plan, epsilon
        epsilon = _THREE.multiply(epsilon, _STEP)
    raise _beyond(bounded, None if epsilon is None else epsilon + spent, paid)


def _promised(within: Within, needs: Needs, plan: Plan) -> tuple[str, ...]:
    """Of how many numbers it is promised."""
    left = needs.numbers - needs.promised
    some = f" for {needs.promised} of {needs.numbers} numbers: the others, or their groups, are small" if left else ""
    notice = f"{some}{_inside(plan)}"
    return (f"noisegate.within = {within.text} is promised{notice}",) if notice else ()


def _inside(plan: Plan) -> str:
    """Nothing is known of what is computed of the numbers of a subquery or CTE."""
    names = [result.name for result in plan.results if result.item is None]
    return f"; it is that of {', '.join(names)} inside, not of what is computed of it" if names else ""


def _paid(probe: Plan, answer: Answer) -> str:
    """Return what was charged before a refusal."""
    if answer.is_free:
        return "The probe is an earlier answer; nothing was charged."
    cost = f"rho {price(probe.rho)}" if probe.rho else f"epsilon {price(probe.epsilon)}"
    return f"The probe cost {cost}; while its answer is kept, it is not charged again."


def _of_few(within: Within, paid: str) -> OutOfReach:
    """Refuse: what an error would take is not told of numbers that are not shown."""
    return OutOfReach(
        f"noisegate.within = {within.text} cannot be promised: noise tells fewer units here than min_units of the "
        "rules file lets be shown",
        detail=paid,
        hint="Ask about more units, or for fewer and larger groups.",
    )


def too_small(within: Within, most: Decimal, epsilon: Decimal | None, paid: str) -> OutOfReach:
    """The probe stays, and is served again; what is bought with a larger ε serves as one too."""
    takes = "; no epsilon is enough" if epsilon is None else f"; it takes more than epsilon {epsilon:f}"
    if epsilon is None or epsilon >= most:
        takes, hint = f"{takes}, and the rules allow {most:f} for a statement", _HINT
    else:
        hint = (
            "RESET noisegate.within and SET noisegate.epsilon to more, then SET noisegate.within again: it starts from "
            f"that answer. Epsilon {epsilon:f} is a lower bound, which may be far too low."
        )
    return OutOfReach(
        f"noisegate.within = {within.text} cannot be promised: the probe cannot tell these numbers from noise{takes}",
        detail=paid,
        hint=hint,
    )


def _beyond(bounded: _Bounded, epsilon: Decimal | None, paid: str) -> OutOfReach:
    takes = "more than any epsilon" if epsilon is None else f"epsilon {_THREE.plus(epsilon):f}"
    return OutOfReach(
        f"noisegate.within = {bounded.within.text} takes {takes} here, and the rules allow "
        f"{bounded.limits.max_epsilon:f} for a statement",
        detail=paid,
        hint=_HINT,
    )
