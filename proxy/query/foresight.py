"""What EXPLAIN says of a statement before it is asked: which measures are served again, and what the rest costs now.

The words are ASCII, without quotes: `rules.rewrite.explain` puts them between its own.
"""

from collections.abc import Iterator, Sequence
from decimal import ROUND_FLOOR, Context, Decimal

from proxy.query.asker import Asker
from proxy.query.reuse import Question
from rules.ledger.accountant import Totals, loss
from rules.ledger.book import Change, check_fits
from rules.ledger.store import KeptRelease, Review, Standing
from rules.noise.cost import price
from rules.refusal import BudgetSpent

_DOWN = Context(prec=6, rounding=ROUND_FLOOR)


def foresee(questions: Sequence[Question], review: Review, asker: Asker) -> tuple[str, ...]:
    """The charge, and then for each block what is served again."""
    if not questions:
        return ()
    return (_charge(questions, review, asker), *map(_served_again, questions))


def check_affordable(questions: Sequence[Question], review: Review, asker: Asker) -> Totals:
    """What all questions would cost the analyst together; refused like a charge, without making it."""
    fresh = [mechanism for question in questions for mechanism in question.mechanisms]
    unpaid = _unpaid(questions)
    seen = [each.release.mechanism for each in unpaid]
    first = [each.release.mechanism for each in unpaid if not each.shared]
    if fresh or seen:
        analyst = Change(review.analyst.totals, review.analyst.totals.plus([*fresh, *seen]))
        dataset = Change(review.dataset.totals, review.dataset.totals.plus([*fresh, *first]))
        check_fits(asker.analyst, analyst, dataset, asker.rulebook.budgets, reused=bool(seen))
    return Totals().plus([*fresh, *seen])


def _charge(questions: Sequence[Question], review: Review, asker: Asker) -> str:
    try:
        cost = check_affordable(questions, review, asker)
    except BudgetSpent as refusal:
        return f"none, since it is refused: {refusal.message}"
    delta = f" delta={price(cost.delta)}" if cost.delta else ""
    left = f"{'' if cost.pure else 'epsilon='}{_left(review.analyst)} left{asker.rulebook.budgets.phrase}"
    return f"{_price(cost)}{delta}, with {left}"


def _price(cost: Totals) -> str:
    """What has no pure epsilon is told by its rho."""
    return f"epsilon={price(cost.epsilon)}" if cost.pure else f"rho={price(cost.rho)}"


def _left(standing: Standing) -> str:
    left = max(Decimal(0), standing.limit.epsilon - loss(standing.totals, standing.limit))
    return f"{_DOWN.plus(left).normalize():f} of {price(standing.limit.epsilon)}"


def _unpaid(questions: Sequence[Question]) -> list[KeptRelease]:
    """Releases that this analyst has not paid for in this period, each once."""
    return list({each.id: each for question in questions for each in question.kept if not each.paid}.values())


def _served_again(question: Question) -> str:
    kept, fresh = len(question.known_bounds) + len(question.known), Totals().plus(question.mechanisms)
    if not kept:
        return "nothing"
    return ", ".join(_parts(question, kept, fresh))


def _parts(question: Question, kept: int, fresh: Totals) -> Iterator[str]:
    whole = kept + len(question.mechanisms)
    since = min(each.time for each in question.kept)
    yield f"all, as noised at {since:%Y-%m-%d %H:%M} UTC" if kept == whole else f"{kept} of {whole} draws of noise"
    if question.combined > 1:
        most = "up to " if len(set(map(len, question.known.values()))) > 1 else ""
        yield f"combined from {most}{question.combined} releases"
    if unpaid := _unpaid([question]):
        cost = Totals().plus(each.release.mechanism for each in unpaid)
        yield f"which are not on your account yet and cost {_price(cost)} at first sight"
    if kept < whole:
        yield f"the rest is drawn anew with {_price(fresh)}"
