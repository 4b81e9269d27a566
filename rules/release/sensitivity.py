"""Read how far one unit moves the measures of a block: by what the kernel's statements enforce, and nothing else.

A planner describes what is measured. The process that runs statements replays the description through the kernel and
takes sensitivities, factors and vectors from what it got.
"""

from collections.abc import Sequence
from decimal import Decimal

from rules.frozen import replace
from rules.kernel.bounded import GroupLadder, RowLadder, Statement, SumLadder
from rules.kernel.keys import Found, Key, Listed
from rules.kernel.measures import MOST_SENSITIVE, Sum
from rules.kernel.special.blocks import BlockStatement
from rules.kernel.statement import Bounded, Measured, Numbers, Texts
from rules.mechanisms.additive import NOISES
from rules.mechanisms.cost import LEAST_PRICE
from rules.mechanisms.exponential_choice import place_for_extreme, shift_of, step
from rules.mechanisms.noised_outputs import MOST_CANDIDATES, MOST_DIGITS, Estimate, InDigits
from rules.mechanisms.release_plan import (
    Block,
    Choice,
    FoundGroups,
    FromEnd,
    GroupsFoundFirst,
    Measure,
    PrivateGroups,
    PublicGroups,
    Top,
)
from rules.refusal import Mismatch, TooComplex
from rules.release.keys import Group, is_unread
from rules.release.outputs import show
from rules.release.release import plain_measure
from rules.replay import Kernel
from rules.sql.session_settings import LEAST_CONFIDENCE, MOST_CONFIDENCE
from rules.values.expression import Expression

_MANY = 1_000  # rows, of which every statistic is defined


def enforced(block: Block, kernel: Kernel, group_size: int) -> Block:
    """The block with the kernel's numbers; raises a Refusal where a statement cannot be made sound, or is another."""
    numbers = kernel.numbers(block.statement)
    _check_tables(block, kernel)
    _check_prices(block)
    _check_keys(block, numbers)
    measured = iter(numbers.measures)
    measures = tuple(
        _enforced_choice(measure, kernel)
        if isinstance(measure, Choice)
        else _enforced(measure, next(measured, None), block.top)
        for measure in block.measures
    )
    _check_vectors(block, numbers.measures)
    _check_threshold(block, numbers)
    rungs = tuple(ladder.rungs for ladder in block.ladders)
    if rungs and (block.tally is None or kernel.tally(block.tally).rungs != rungs):
        raise Mismatch("the plan chooses among other bounds than its tally counts")
    for measure in measures:
        _check_range(measure, group_size)
    _check_outputs(block)
    plain = None if block.plain is None else enforced(block.plain, kernel, group_size)
    groups = block.groups
    if isinstance(groups, GroupsFoundFirst):
        groups = GroupsFoundFirst(_enforced_finder(groups.finder, kernel, group_size))
    return replace(block, groups=groups, measures=measures, top=_enforced_top(block, numbers), plain=plain)


def _enforced_finder(finder: Block, kernel: Kernel, group_size: int) -> Block:
    """The block that finds groups, by units that count in one group each: nothing else is released of it."""
    if not isinstance(finder.groups, PrivateGroups) or len(finder.measures) != 1 or finder.ladders or finder.outputs:
        raise Mismatch("the plan finds groups by more than a count of units")
    return enforced(finder, kernel, group_size)


def over(block: Block, groups: Sequence[Group], kernel: Kernel, group_size: int) -> Block:
    """The block over the list that its finder has released, as over any list that is known.

    A label that is no text in the database's encoding cannot be looked up, so its group is left out.
    """
    finder = block.groups.finder if isinstance(block.groups, GroupsFoundFirst) else None
    rows = tuple(group for group in groups if not any(map(is_unread, group)))
    keys = (_listed(block.statement.keys, rows),)
    choices = (
        replace(measure, statement=replace(measure.statement, keys=(*keys, measure.statement.keys[-1])))
        if isinstance(measure, Choice) and isinstance(measure.statement, Statement)
        else measure
        for measure in block.measures
    )
    made = replace(
        block,
        groups=FoundGroups(rows, tuple((place,) for place in range(len(rows))), finder),
        statement=replace(block.statement, keys=keys),
        measures=tuple(choices),
        ladders=tuple(ladder.over(len(rows)) for ladder in block.ladders),
        tally=None if block.tally is None else replace(block.tally, keys=keys),
    )
    return enforced(made, kernel, group_size)


def _listed(keys: Sequence[Key], rows: Sequence[Group]) -> Listed:
    """One list of the combinations of all keys."""
    expressions = list[Expression]()
    for key in keys:
        match key:
            case Found(expression=expression) | Listed(expressions=(expression,)):
                expressions.append(expression)
            case _:
                raise Mismatch("the plan finds groups by a key that has no value of its own")
    return Listed(tuple(expressions), tuple(rows))


def _enforced_top(block: Block, numbers: Bounded | Numbers) -> Top | None:
    """The choice of groups by the only measure, with what one unit adds to a group of it."""
    if block.top is None:
        return None
    match block.measures, numbers.measures, block.groups:
        case (Measure(at_most_one=True),), (measured,), PublicGroups(rows=rows) if len(rows) >= block.top.count >= 1:
            sensitivity = measured.sensitivity
            return replace(block.top, sensitivity=sensitivity.largest, factor=sensitivity.factor, listed=len(rows))
    raise Mismatch("the plan chooses groups by what does not rank them")


def settled(block: Block, bounds: Sequence[int], kernel: Kernel, group_size: int) -> Block:
    """The block with these bounds of its ladders, as if the rules had declared them."""
    if block.tally is None:
        return block
    named = (f"{bound} of {ladder.name}" for ladder, bound in zip(block.ladders, bounds, strict=True))
    statement, rows, groups = block.statement, block.statement.rows_per_unit, block.statement.groups_per_unit
    totals: dict[Sum, int] = {}
    for ladder, bound in zip(block.tally.ladders, bounds, strict=True):
        match ladder:
            case RowLadder():
                rows = bound
            case GroupLadder():
                groups = bound
            case SumLadder(measure=total):
                totals[total] = bound
    capped = tuple(
        replace(measure, total=totals.get(measure)) if isinstance(measure, Sum) else measure
        for measure in statement.measures
    )
    words = f" with at most {', '.join(named)}"
    made = replace(
        block,
        canonical=f"{block.canonical}{words}",
        cells=None if block.cells is None else block.cells.bounded_by(words),
        statement=replace(statement, measures=capped, rows_per_unit=rows, groups_per_unit=groups),
        measures=tuple(_settled(measure, rows) for measure in block.measures),
        ladders=(),
        tally=None,
    )
    return enforced(made, kernel, group_size)


def _settled(measure: Measure | Choice, rows: int) -> Measure | Choice:
    if isinstance(measure, Choice):
        if isinstance(measure.statement, BlockStatement):  # whose rows have no cap
            return replace(measure, chosen_by=())
        return replace(measure, statement=replace(measure.statement, rows_per_unit=rows), chosen_by=())
    return replace(measure, chosen_by=())


def _enforced(measure: Measure, measured: Measured | None, top: Top | None) -> Measure:
    """Of groups that are chosen a unit is in all at most, and adds to each no more than to any."""
    if measured is None:
        raise Mismatch("the plan has a measure that its statement does not have")
    sensitivity = measured.sensitivity
    most = sensitivity.l1 if top is None else min(sensitivity.l1, top.count * sensitivity.largest)
    made = replace(measure, sensitivity=most, factor=sensitivity.factor)
    if made.squared < (
        sensitivity.l2_squared if top is None else min(sensitivity.l2_squared, top.count * sensitivity.largest**2)
    ):
        raise Mismatch("the plan claims less of a measure than its statement enforces")
    return made


def _enforced_choice(choice: Choice, kernel: Kernel) -> Choice:
    measured = kernel.numbers(choice.statement).measures
    if len(measured) != 1:
        raise Mismatch("the plan chooses by a statement that is no histogram")
    sensitivity = measured[0].sensitivity
    if not 1 <= choice.candidates <= MOST_CANDIDATES:
        raise Mismatch("the plan chooses among more candidates than are noised")
    target = choice.target
    if isinstance(target, FromEnd):
        target = replace(target, place=place_for_extreme(choice.candidates, sensitivity.l1, choice.epsilon))
    return replace(choice, sensitivity=sensitivity.l1, factor=sensitivity.factor, target=target)


def _check_range(measure: Measure | Choice, group_size: int) -> None:
    """Refuse, before anything is charged, what noise could not be drawn for."""
    times = step(measure.target) if isinstance(measure, Choice) else 1
    try:
        _ = shift_of(measure, group_size=group_size) if isinstance(measure, Choice) else 0
    except (ArithmeticError, ValueError):
        raise Mismatch("the plan has an error bar of no level") from None
    if measure.sensitivity * group_size * times > MOST_SENSITIVE:
        hint = "Use narrower bounds, or lower noisegate.rows_per_unit."
        raise TooComplex("one unit could change this result by more than noise can be drawn for", hint=hint)


def _check_tables(block: Block, kernel: Kernel) -> None:
    """The proofs of a block's tables are read in its snapshot, so none that is read may be left out."""
    scripts = [block.statement.rows, *([] if block.tally is None else [block.tally.rows])]
    scripts += [measure.statement.rows for measure in block.measures if isinstance(measure, Choice)]
    if not {str(name) for script in scripts for name in kernel.tables(script)} <= set(block.tables):
        raise Mismatch("the plan reads a table that it does not name")


def _check_prices(block: Block) -> None:
    """Sums of what was charged never fall: nothing is charged less than nothing, and what is free has no noise.

    Nor is a scale looked for that no double has: that would take for ever.
    """
    prices = [mechanism.epsilon for mechanism in (*block.measures, *block.ladders)]
    prices += [] if block.report is None else [block.report]
    prices += [] if block.top is None else [block.top.epsilon]
    delta = block.groups.delta if isinstance(block.groups, PrivateGroups) else None
    if not all(price >= LEAST_PRICE for price in prices) or (delta is not None and not 0 < delta < 1):
        raise Mismatch("the plan has a price that is none")


def _check_keys(block: Block, numbers: Bounded | Numbers) -> None:
    """Keys that are found are let out by a threshold alone; listed ones are ordinals of as long a list.

    A measure that is read as one more key would tell its number by the group in which the others stand.
    """
    has_texts = any(isinstance(key, Texts) for key in numbers.keys)
    if has_texts != isinstance(block.groups, PrivateGroups | GroupsFoundFirst):
        raise Mismatch("the plan lists groups that its statement finds, or the other way round")
    is_nothing_shown = isinstance(block.groups, PublicGroups) and not block.groups.rows
    if not is_nothing_shown and len(numbers.keys) != block.key_cells:
        raise Mismatch("the plan has a key that its statement does not have")


def _check_vectors(block: Block, measured: Sequence[Measured]) -> None:
    """Measures that pay one ε together are one vector of the kernel's, and each is drawn at that very ε."""
    vectors: dict[int, set[tuple[int | None, Decimal, str]]] = {}
    summed = (measure for measure in block.measures if isinstance(measure, Measure))
    for measure, made in zip(summed, measured, strict=False):
        if measure.vector is not None:
            vectors.setdefault(measure.vector, set()).add((made.vector, measure.epsilon, measure.noise))
    if any(len(vector) > 1 or any(made is None for made, _, _ in vector) for vector in vectors.values()):
        raise Mismatch("the plan pays once for measures that are not one vector")


def _check_threshold(block: Block, numbers: Bounded | Numbers) -> None:
    match block.groups:
        case GroupsFoundFirst():
            if numbers.threshold is not None:
                raise Mismatch("the plan finds its groups twice")
        case PrivateGroups(measure=index):
            summed = [place for place, measure in enumerate(block.measures) if isinstance(measure, Measure)]
            place = None if numbers.threshold is None else numbers.threshold.measure
            if place is None or summed[place : place + 1] != [index]:
                raise Mismatch("the plan has another count of units for its threshold than its statement")
            if not NOISES[plain_measure(block, index).noise].is_pure:
                raise Mismatch("the plan has other noise for its threshold than that whose tail is known")


def _check_outputs(block: Block) -> None:
    """Refuse, before anything is charged, outputs that could not be computed of what the measures are."""
    if not all(0 <= output.digits <= MOST_DIGITS for output in block.outputs if isinstance(output, InDigits)):
        raise Mismatch("the plan shows more digits than a number has")
    if not LEAST_CONFIDENCE <= block.level <= MOST_CONFIDENCE:
        raise Mismatch("the plan has error bars of no level")
    choices = [measure.candidates if isinstance(measure, Choice) else None for measure in block.measures]
    of_chance = [0, 0] * sum(isinstance(output, Estimate) for output in block.outputs)  # see `estimates.placed`
    for number in (0, _MANY):
        row = [number if candidates is None else min(number, candidates - 1) for candidates in choices] + of_chance
        try:
            for output in block.outputs:
                show(output, row)
        except (ArithmeticError, LookupError, ValueError):
            raise Mismatch("the plan has an output that its measures cannot answer") from None
    if not {*block.shown, *(bar.output for bar in block.bars)} <= set(range(len(block.outputs))):
        raise Mismatch("the plan shows an output that it does not have")
    sums = {index for index, measure in enumerate(block.measures) if isinstance(measure, Measure)}
    if block.counted is not None and block.counted not in sums:
        raise Mismatch("the plan tells empty groups by a measure that it does not have")
