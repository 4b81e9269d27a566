"""What an analyst is told beside an answer: what it cost, what is left, how far noise may have moved it."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import chain

from proxy.query.asking import Answered
from proxy.query.reuse import Question
from proxy.query.rulebook import Rulebook
from rules.ledger.accountant import Totals
from rules.ledger.store import Receipt
from rules.noise.margin import margin_of_output, percent
from rules.noise.measures import Count, Ladder
from rules.sql.commands import CONFIDENCE

_UP, _DOWN = Context(prec=3, rounding=ROUND_CEILING), Context(prec=3, rounding=ROUND_FLOOR)


def cost_notice(receipt: Receipt, answered: Sequence[Answered], rulebook: Rulebook) -> str:
    """One line: "ε 0.1 spent, 4.3 of 5 left this month; 95% of counts within ±30".
    The account that has less left is the one that is told of, for it is what ends first.
    """
    shared = receipt.dataset.left < receipt.analyst.left
    balance = receipt.dataset if shared else receipt.analyst
    whose = " for all analysts" if shared else ""
    left = f"{_short(balance.left, _DOWN)} of {_short(balance.limit, _DOWN)} left{rulebook.budgets.phrase}{whose}"
    return f"{_spent(receipt.cost)}{left}{_margins(answered)}"


def _spent(cost: Totals) -> str:
    """What has no pure ε is told by its ρ; what is left is an ε in any case, for a sum of ρ comes to one."""
    return f"ε {_short(cost.epsilon, _UP)} spent, " if cost.pure else f"ρ {_short(cost.rho, _UP)} spent, ε "


def bound_notices(questions: Sequence[Question]) -> tuple[str, ...]:
    """One line for each bound that was chosen: what is more of one unit was cut."""
    return tuple(_bound_notice(ladder, bound) for question in questions for ladder, bound in question.bounds)


def _bound_notice(ladder: Ladder, bound: int) -> str:
    """Of what is cut no margin tells. On the lowest rung it may be most of all."""
    price = f"chosen with ε {_short(ladder.epsilon, _UP)}"
    lowest = " (the least there is: much may be cut)" if bound == ladder.rungs[0] else ""
    most = ladder.told(ladder.rungs[-1])
    return f"{ladder.what} of each unit: up to {ladder.told(bound)} counted, {price}{lowest}; the rules allow {most}"


def reuse_notice(questions: Sequence[Question]) -> str | None:
    """Says so when an answer was given before, and how a fresh one is had."""
    times = [kept.time for question in questions for kept in (*question.kept, *chain(*question.beside.values()))]
    if not times:
        return None
    most = max(question.combined for question in questions)
    mean = "" if most < 2 else f" and later, as the mean of up to {most} releases"
    first = f"{min(times):%Y-%m-%d %H:%M} UTC"
    return f"answered with noise of {first}{mean}; SET noisegate.reuse = off asks, and pays, anew"


def _margins(answered: Sequence[Answered]) -> str:
    """The widest margin of counts and of sums, with the noise that they have."""
    widest: dict[str, Fraction] = {}
    for question, noised in answered:
        for output in question.block.outputs:
            margin = margin_of_output(output, noised.laws, question.block.level)
            if margin is not None:
                kind = "counts" if isinstance(output, Count) else "sums"
                widest[kind] = max(margin, widest.get(kind, margin))
    told = [f"of {kind} within ±{_number(margin)}" for kind, margin in widest.items()]
    level = max((question.block.level for question, _ in answered), default=CONFIDENCE)
    return f"; {percent(level)} {', '.join(told)}" if told else ""


def _short(number: Decimal, context: Context) -> str:
    return f"{context.create_decimal(number).normalize():f}"


def _number(margin: Fraction) -> str:
    """Three digits of a large number are enough, rounded up."""
    return f"{_UP.divide(Decimal(margin.numerator), Decimal(margin.denominator)).normalize():,f}"
