"""Estimate for EXPLAIN, before a statement is asked: which measures are served again, and what the rest costs now.

The words are ASCII, without quotes: `rules.planner.explain` puts them between its own.
"""

from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR, Context, Decimal

from proxy.execute.find_released import first_sights
from proxy.execute.notices import WHOSE
from proxy.execute.question import Question
from proxy.execute.rulebook import StatementContext
from proxy.execute.synopses import cubes_among
from rules.accounting.accountant import Totals, loss
from rules.accounting.budgets import Change, check_fits
from rules.accounting.store import AccountState, KeptRelease, LedgerReview, Whose
from rules.mechanisms.additive import laws_of
from rules.mechanisms.cost import price
from rules.mechanisms.noised_outputs import margin_of_output
from rules.refusal import BudgetSpent
from rules.release.margins import Margin, Result, Value, margins_of, moving_outputs, noise_word
from rules.release.release import Noised

_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


def foresee(
    questions: Sequence[Question], released: Sequence[Noised | None], review: LedgerReview, context: StatementContext
) -> tuple[str, ...]:
    """The charge, then for each block what is served again, then the errors that follow from what was released."""
    if not questions:
        return ()
    size = context.rulebook.policy.group_size
    errors = (text for each in zip(questions, released, strict=True) for text in _errors(*each, size))
    again = (_served_again(*each, context) for each in zip(questions, released, strict=True))
    return (_charge(questions, review, context), *again, *errors)


def _errors(question: Question, released: Noised | None, group_size: int) -> Iterator[str]:
    """Estimate how far noise would move averages and their like, if the answer is about what is known of it."""
    for output in moving_outputs(question.block):
        results = [Result("", 0, Value(output))]
        known = [] if released is None else margins_of(results, 0, question.block, released, group_size)
        spans = (
            f"+/- {margin.least:.3g} to {margin.widest:.3g}{_noise(margin)}" for margin in known if margin.is_known
        )
        yield next((f"; by your earlier answers {span}" for span in spans), "")


def _noise(margin: Margin) -> str:
    return "" if margin.share is None else f", noise: {noise_word(margin.share)}"


def check_affordable(questions: Sequence[Question], review: LedgerReview, context: StatementContext) -> Totals:
    """Check what all questions would cost the analyst together; refused like a charge, without making it."""
    fresh = [mechanism for question in questions for mechanism in question.mechanisms]
    unpaid = _unpaid(questions)
    sights = [release.release.mechanism for release in unpaid]
    unshared = [release.release.mechanism for release in unpaid if not release.shared]
    if fresh or sights:
        analyst = Change(review.analyst.totals, review.analyst.totals.plus([*fresh, *sights]))
        dataset = Change(review.dataset.totals, review.dataset.totals.plus([*fresh, *unshared]))
        role = None  # what others of the role have seen is on its account already, so it may pay less than these
        if review.role is not None:
            role = Change(review.role.totals, review.role.totals.plus([*fresh, *unshared]))
        check_fits(context.analyst, analyst, dataset, context.rulebook.budgets, reused=bool(sights), role=role)
    return Totals().plus([*fresh, *sights])


def _charge(questions: Sequence[Question], review: LedgerReview, context: StatementContext) -> str:
    try:
        cost = check_affordable(questions, review, context)
    except BudgetSpent as refusal:
        return f"none, since it is refused: {refusal.message}"
    delta = f" delta={price(cost.delta)}" if cost.delta else ""
    accounts: list[tuple[AccountState | None, Whose]]
    accounts = [(review.analyst, "yours"), (review.dataset, "shared"), (review.role, "role")]
    known = [(standing, whose) for standing, whose in accounts if standing is not None]
    standing, whose_it_is = min(known, key=lambda each: _epsilon_left(each[0]))
    whose = WHOSE[whose_it_is]
    number = f"{_DOWN.plus(_epsilon_left(standing)).normalize():f} of {price(standing.limit.epsilon)}"
    left = f"{'' if cost.pure else 'epsilon='}{number} left{context.rulebook.budgets.phrase}{whose}"
    return f"{_price(cost)}{delta}, with {left}"


def _price(cost: Totals) -> str:
    """Write a price; that without pure epsilon by its rho."""
    return f"epsilon={price(cost.epsilon)}" if cost.pure else f"rho={price(cost.rho)}"


def _epsilon_left(standing: AccountState) -> Decimal:
    return max(Decimal(0), standing.limit.epsilon - loss(standing.totals, standing.limit))


def _unpaid(questions: Sequence[Question]) -> list[KeptRelease]:
    """Releases that this analyst has to pay for in this period, each once, and of a vector one."""
    return first_sights(release for question in questions for release in question.kept)


def _served_again(question: Question, released: Noised | None, context: StatementContext) -> str:
    others = len(question.known_bounds) + (question.known_top is not None)
    kept, fresh = others + len(question.known), Totals().plus(question.mechanisms)
    if not kept:
        return "nothing"
    return ", ".join([*_parts(question, kept, fresh), *_cube(question, released, context)])


def _cube(question: Question, released: Noised | None, context: StatementContext) -> Iterator[str]:
    """From which cubes numbers are, and how far noise moves them beside a fresh answer."""
    cubes, size = cubes_among(context.cubes, question.kept), context.rulebook.policy.group_size
    if cubes:
        yield f"from cube {' and '.join(map(str, cubes))}"
    if not cubes or released is None or question.fresh:
        return
    fresh, block = laws_of(question.block, group_size=size), question.block
    for output in block.outputs:
        margins = [margin_of_output(output, laws, block.level) for laws in (released.laws, fresh)]
        if None not in margins:
            served, anew = (f"+/- {float(margin or 0):,.6g}" for margin in margins)
            yield f"{served} where a fresh answer has {anew}"
    if any(cut.what == "rows" for cut in block.cuts):
        yield "rows of a unit are cut over all cells of the cube"


def _parts(question: Question, kept: int, fresh: Totals) -> Iterator[str]:
    whole = kept + len(question.mechanisms)
    unpaid = _unpaid([question])  # what is on the account besides is over the same groups by chance, or is not
    since = min(release.time for release in unpaid or question.kept)
    yield f"all, as noised at {since:%Y-%m-%d %H:%M} UTC" if kept == whole else f"{kept} of {whole} draws of noise"
    if question.combined > 1 and not unpaid:
        most = "up to " if len(set(map(len, question.known.values()))) > 1 else ""
        yield f"combined from {most}{question.combined} releases"
    if question.summed > 1:
        yield f"as sums of up to {question.summed:,} cells"
    if unpaid:
        cost = Totals().plus(release.release.mechanism for release in unpaid)
        yield f"which are not on your account yet and cost {_price(cost)} at first sight"
    if kept < whole:
        yield f"the rest is drawn anew with {_price(fresh)}"
