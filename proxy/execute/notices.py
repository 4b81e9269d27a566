"""Notices beside an answer: what it cost, what is left, how far noise may have moved it."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import chain, islice
from typing import Final

from proxy.execute.execute_private import Answered
from proxy.execute.question import Question
from proxy.execute.rulebook import Rulebook
from rules.accounting.accountant import Totals
from rules.accounting.store import Receipt, Whose
from rules.frozen import replace
from rules.mechanisms.additive import mechanism_of
from rules.mechanisms.noised_outputs import Count, Statistic, Text, percent
from rules.mechanisms.release_plan import FoundGroups, Ladder, PrivateGroups
from rules.mechanisms.threshold import find_threshold
from rules.release.bound_ladder import certainty, least_cut
from rules.release.empty_groups import ShownGroups, Size, Together
from rules.release.margins import Margin, PlaceOfExtreme, places_of_extremes
from rules.release.outputs import show
from rules.release.release import outputs_of_few, plain_measure, shown_cells

WHOSE: Final[Mapping[Whose, str]] = {"yours": "", "role": " for your role", "shared": " for all analysts"}
_MOST_ZEROS: Final = 15  # of a margin, before its digits or behind them
_MOST_KINDS: Final = 5  # of columns, of which one line tells
_UP, _DOWN = Context(prec=3, rounding=ROUND_CEILING), Context(prec=3, rounding=ROUND_FLOOR)


def cost_notice(receipt: Receipt, margins: str, rulebook: Rulebook) -> str:
    """One line: "ε 0.1 spent, 4.3 of 5 left this month; 95% of counts within ±30".

    The account that has less left is the one that is told of, for it is what ends first.
    """
    balance, whose_it_is = receipt.tightest
    whose = WHOSE[whose_it_is]
    left = f"{_short(balance.left, _DOWN)} of {_short(balance.limit, _DOWN)} left{rulebook.budgets.phrase}{whose}"
    return f"{_spent(receipt.cost)}{left}{margins}"


def _spent(cost: Totals) -> str:
    """Return what has no pure ε is told by its ρ; what is left is an ε in any case, for a sum of ρ comes to one."""
    return f"ε {_short(cost.epsilon, _UP)} spent, " if cost.pure else f"ρ {_short(cost.rho, _UP)} spent, ε "


def cut_words(questions: Sequence[Question]) -> str:
    """Return what margins do not hold, for the end of the line above; bounds that were chosen have a line each."""
    cuts = dict.fromkeys(str(cut) for question in questions for cut in question.block.cuts)
    if cuts:
        return f"; margins do not include what is beyond {' and '.join(cuts)}"
    return "" if any(question.bounds for question in questions) else "; no row is cut"


def what_is_cut(questions: Sequence[Question], group_size: int) -> tuple[str, ...]:
    """The same for noisegate.last: the caps and whose they are, and the report of how much they have cut."""
    cuts = [f"what is beyond {cut}" for question in questions for cut in question.block.cuts]
    for question in questions:
        for ladder, bound in question.bounds:
            cuts.append(f"what is beyond {ladder.bound_text(bound)} as the {ladder.what} of a unit (chosen)")
        cuts += [words.partition(" (")[0] for words in _report_notice(question, group_size)]
    return tuple(dict.fromkeys((*cuts, *(notice.partition(";")[0] for notice in cells_notices(questions)))))


def bound_notices(questions: Sequence[Question], rulebook: Rulebook) -> tuple[str, ...]:
    """One line for each bound that was chosen, and for each report of what was cut of rows."""
    notices = list[str]()
    for question in questions:
        notices += [_bound_notice(ladder, bound) for ladder, bound in question.bounds]
        notices += _report_notice(question, rulebook.policy.group_size)
    return tuple(notices)


def _bound_notice(ladder: Ladder, bound: int) -> str:
    """Of what is cut no margin tells. On the lowest rungs it may be most of all."""
    price = f"chosen with ε {_short(ladder.epsilon, _UP)}"
    lowest = ""
    if bound in ladder.rungs[:2]:
        setting = f"{ladder.what}_per_unit = 40" if ladder.what in ("rows", "groups") else "sum_per_unit = off"
        lowest = f" (a higher one could not be told from noise: SET noisegate.{setting})"
    most = f"; the rules allow {ladder.bound_text(ladder.rungs[-1])}" if ladder.is_declared else ""
    words = f"{ladder.what} of each unit: up to {ladder.bound_text(bound)} counted, {price}"
    if ladder.what == "groups" and bound == ladder.rungs[-1] and not ladder.is_declared:
        return f"{words}: there are no more"
    return f"{words}{lowest}{most}; margins do not include what is beyond"


def _report_notice(question: Question, group_size: int) -> list[str]:
    """From below only: no private number bounds from above what one unit may have."""
    block, known = question.block, question.known_report
    if block.report is None:
        return []
    if known is None:
        reported, epsilon = question.reported, block.report
    else:
        reported, epsilon = known.release.values[0], known.release.mechanism.strength
    assert reported is not None, "a report is known or was drawn"
    least, cost = least_cut(block, reported, epsilon, group_size=group_size), f"cost ε {_short(epsilon, _UP)}"
    if least <= 0:
        return [f"it could not be told from noise whether rows were cut ({cost})"]
    return [f"at least {short_number(float(least))} rows were cut ({percent(certainty(block))} sure; {cost})"]


def top_notices(questions: Sequence[Question], group_size: int) -> tuple[str, ...]:
    """Says by how much a group may be larger than the last one and be missing."""
    tops = [question.block.top for question in questions if question.block.top is not None]
    reach = [short_number(top.margin(group_size=group_size)) for top in tops]
    return tuple(
        f"{top.count} of {top.listed:,} groups were chosen privately; others may be missing that are larger than the "
        f"last by up to {most}"
        for top, most in zip(tops, reach, strict=True)
    )


def left_out_notices(questions: Sequence[Question], group_size: int) -> tuple[str, ...]:
    """Says from about how many units on a group is shown: which ones are missing is not known."""
    least = (units for question in questions if (units := least_shown(question, group_size)) is not None)
    return tuple(dict.fromkeys(f"groups of fewer than about {units:,} units are left out" for units in least))


def empty_groups_notices(shown: Sequence[ShownGroups]) -> tuple[str, ...]:
    """Say how many groups are not shown, what size a group needs, and what the hidden ones have together."""
    return tuple(dict.fromkeys(notice for each in shown for notice in _empty_groups_notice(each)))


def _empty_groups_notice(shown: ShownGroups) -> Iterator[str]:
    if not shown.hidden:
        return
    size = "" if shown.size is None else f" A group {size_words(shown.size)} or more is shown."
    gaps = ""
    if shown.gaps:
        lie = "1 of them lies" if shown.gaps == 1 else f"{shown.gaps:,} of them lie"
        gaps = f" {lie} between shown ones, a gap that a line chart bridges."
    together = "" if shown.together is None else f" Together they have {_together_words(shown.together)}."
    left_out = _left_out(shown) if any(shown.kept) else f"no group is left: all {shown.hidden:,} were left out"
    yield (
        f"{left_out}: their numbers could be noise alone.{size}{together}{gaps} "
        "SET noisegate.empty_groups = show returns all."
    )


def empty_groups_words(shown: Sequence[ShownGroups]) -> Iterator[str]:
    """The same for noisegate.last."""
    for each in shown:
        if each.hidden:
            together = "" if each.together is None else f"; together {_together_words(each.together)}"
            yield f"{_left_out(each)} (noisegate.empty_groups){together}"


def _left_out(shown: ShownGroups) -> str:
    return f"{shown.hidden:,} of {len(shown.kept):,} groups left out"


def size_words(size: Size) -> str:
    """From which number on a group is shown, after "a group".

    Example:
        >>> from fractions import Fraction
        >>> size_words(Size(Fraction(31), "rows")), size_words(Size(Fraction(31), ""))
        ('of about 31 rows', 'with a sum of about 31')
    """
    number = short_number(float(size.number))
    return f"of about {number} {size.what}" if size.what else f"with a sum of about {number}"


def _together_words(together: Together) -> str:
    number = float(together.number)
    sign, what = "-" if number < 0 else "", together.what and f" {together.what}"
    margin = f"{sign}{short_number(abs(number))} ± {short_number(float(together.margin))}"
    return f"{margin}{what}" if what else f"a sum of {margin}"


def least_shown(question: Question, group_size: int) -> int | None:
    """From about how many units on a group is shown, where groups are found: by the draw that has found them."""
    block, before = question.block, [] if question.known_list is None else [question.known_list.release.mechanism]
    if isinstance(block.groups, FoundGroups) and block.groups.finder is not None:
        block = block.groups.finder
    groups = block.groups
    if not isinstance(groups, PrivateGroups):
        return None
    if block is question.block:
        before = [kept.release.mechanism for kept in question.known.get(groups.measure, ())]
    found = [each for each in before if each.delta] or [mechanism_of(block, groups.measure)]
    units = plain_measure(block, groups.measure)
    drawn = ((replace(units, epsilon=each.strength), each.delta) for each in found)
    least = min(find_threshold(measure, delta, group_size=group_size) for measure, delta in drawn)
    return least if block.least_units is None else max(least, block.least_units.units)


def outside_notices(answered: Sequence[Answered]) -> tuple[str, ...]:
    """Says so where the released counts have most rows in groups of what the rules do not declare."""
    notices = []
    for question, noised in answered:
        counts = (output.measure for output in question.block.outputs if isinstance(output, Count))
        cells = next((noised.values[measure] for measure in counts), ())
        outside, whole = sum(cells[number] for number in question.block.outside if cells), sum(cells)
        if 0 < whole < 2 * outside:
            words = "most of what is counted lies outside of the lists and bounds of the rules"
            numbers = f": about {outside:,} of {whole:,}" if question.block.least_units is None else ""
            notices.append(f"{words}{numbers}")
    return tuple(dict.fromkeys(notices))


def few_units_notices(answered: Sequence[Answered]) -> tuple[str, ...]:
    """Say why numbers are NULL: by the rules there is none about few units."""
    notices = []
    for question, noised in answered:
        least, (groups, cells, _) = question.block.least_units, shown_cells(question.block, noised)
        hidden = [few for cell in cells if (few := outputs_of_few(question.block, cell))]
        if least is not None and hidden:
            are = "group has" if len(hidden) == 1 else "groups have"
            lacking = "no numbers" if all(len(few) == len(least.measures) for few in hidden) else "not all numbers"
            which = f"{len(hidden)} of {len(groups)} {are} {lacking}" if question.block.keys else f"there are {lacking}"
            words = f"by noised counts there are fewer than {least.units:,} units (min_units of the rules)"
            notices.append(f"{which}: {words}")
    return tuple(dict.fromkeys(notices))


def undefined_notices(answered: Sequence[Answered]) -> tuple[str, ...]:
    """Say why a variance, a correlation or a slope is NULL: by what was released nothing varies."""
    texts = list[Text]()
    for question, noised in answered:
        statistics = [(place, of) for place, of in enumerate(question.block.outputs) if isinstance(of, Statistic)]
        for cell in shown_cells(question.block, noised)[1] if statistics else ():
            few = outputs_of_few(question.block, cell)
            texts += [show(of, cell) for place, of in statistics if place not in few]
    if not (hidden := texts.count(None)):
        return ()
    which = (
        "a statistic is" if len(texts) == 1 else f"{hidden} of {len(texts)} statistics {'is' if hidden == 1 else 'are'}"
    )
    hint = "a larger ε, tighter bounds or fewer groups may leave some"
    return (f"{which} NULL: noise left no variance to compute with; {hint}",)


def extremes_notices(answered: Sequence[Answered], kept: Sequence[Sequence[bool]]) -> tuple[str, ...]:
    """Say which percentile min and max are: nearer to the end a row could be that of one unit."""
    pairs = zip(answered, kept, strict=True)
    places = (places_of_extremes(question.block, noised, own) for (question, noised), own in pairs)
    return tuple(dict.fromkeys(_extreme_words(place) for place in chain.from_iterable(places) if place.rows > 1))


def _extreme_words(place: PlaceOfExtreme) -> str:
    """Of groups with few rows a range.

    Example:
        >>> _extreme_words(PlaceOfExtreme(True, 70, (0.07, 0.07)))
        'max is about the 93rd percentile here: the 70th row from the end, so that no unit decides it'
        >>> _extreme_words(PlaceOfExtreme(False, 70, (0.07, 0.5)))
        'min is about the 7th to the 50th percentile here: the 70th row from the end, so that no unit decides it'
        >>> _extreme_words(PlaceOfExtreme(False, 302, ()))
        'min is the 302nd row from the end, so that no unit decides it'
    """
    name, end = (
        "max" if place.largest else "min",
        f"the {_ordinal(place.rows)} row from the end, so that no unit decides it",
    )
    if not place.shares:
        return f"{name} is {end}"
    percentiles = sorted(round(100 * (1 - share if place.largest else share)) for share in place.shares)
    shown = dict.fromkeys(f"the {_ordinal(each)}" for each in (percentiles[0], percentiles[-1]))
    return f"{name} is about {' to '.join(shown)} percentile here: {end}"


def _ordinal(number: int) -> str:
    ends = {1: "st", 2: "nd", 3: "rd"}
    return f"{number:,}{'th' if number // 10 % 10 == 1 else ends.get(number % 10, 'th')}"


def cells_notices(questions: Sequence[Question]) -> tuple[str, ...]:
    """Says so where a cap has held for more than is asked, by which more may be cut of it."""
    cells = (reading for question in questions for cell in question.cells.values() for reading in cell)
    if all(cell.is_alike for cell in cells):
        return ()
    words = "units were cut by all rows that the earlier answer counted, not only by those that are asked for here"
    return (f"{words}; SET noisegate.reuse = off counts these alone",)


def agreement_notices(answered: Sequence[Answered]) -> tuple[str, ...]:
    """Says why numbers may be others than they were before more was asked."""
    blocks = {kept.release.block for question, noised in answered if noised.nested for kept in question.relatives.kept}
    if not blocks:
        return ()
    answers = "answer" if len(blocks) == 1 else "answers"
    return (f"made to agree with {len(blocks)} other {answers} of yours, so that parts and totals add up",)


def reuse_notice(questions: Sequence[Question]) -> str | None:
    """Says so when an answer was given before, and how a fresh one is had."""
    times = [kept.time for question in questions for kept in (*question.answered, *chain(*question.beside.values()))]
    if not times:
        return None
    most = max(question.combined for question in questions)
    mean = "" if most < 2 else f" and later ones, averaged over up to {most} releases"
    summed = max(question.summed for question in questions)
    mean += "" if summed < 2 else f", summed from up to {summed:,} of their cells"
    first = f"{min(times):%Y-%m-%d %H:%M} UTC"
    part = " in part" if any(question.is_fresh or question.chosen for question in questions) else ""
    return f"reused{part} the answer of {first}{mean}; for a fresh one, at a new charge, SET noisegate.reuse = off"


def margins_notice(margins: Sequence[Margin]) -> str:
    """Return how the line above ends: the margins of each kind of column, with the noise that they have."""
    kinds: dict[tuple[str, str, str], list[Margin]] = {}
    for margin in margins:
        if margin.is_known:
            kinds.setdefault((margin.kind or f'"{margin.name}"', margin.rank_of, margin.unit), []).append(margin)
    widths = [_within(words, rank_of, margins) for (words, rank_of, _), margins in islice(kinds.items(), _MOST_KINDS)]
    more = ", and others, which noisegate.last tells" if len(kinds) > _MOST_KINDS else ""
    return f"; {percent(margins[0].level)} {', '.join(widths)}{more}" if widths else ""


def _within(words: str, rank_of: str, margins: Sequence[Margin]) -> str:
    least = min(margin.least for margin in margins if margin.least is not None)
    widest = max(margin.widest for margin in margins if margin.widest is not None)
    narrow, wide = short_number(least), short_number(widest)
    span = f"±{wide}" if narrow == wide else f"±{narrow} to ±{wide}"
    if not rank_of:
        return f"of {words} within {span}"
    farthest = max(margins, key=lambda margin: margin.reach)
    value = f" and ±{short_number(farthest.reach)}{farthest.unit} in value" if farthest.reach else ""
    return f"of {words} within {span} {rank_of} in rank{value}"


def _short(number: Decimal, context: Context) -> str:
    return f"{context.create_decimal(number).normalize():f}"


def short_number(number: float) -> str:
    """Three digits are enough, rounded up; of what nobody counts zeros in, with its power of ten.

    Example:
        >>> short_number(1234.5), short_number(0.0812345), short_number(30.0), short_number(1.2345e30)
        ('1,240', '0.0813', '30', '1.24e+30')
    """
    short = _UP.create_decimal(Decimal(repr(number))).normalize()
    return f"{short:,f}" if short == 0 or abs(short.adjusted()) < _MOST_ZEROS else f"{short:e}"
