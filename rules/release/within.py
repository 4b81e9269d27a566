"""Asking by error: the least ε with which an answer's margins are inside of what the analyst wants.

Of counts and sums the margin follows from the plan, so an absolute one needs nothing else. What depends on the answer
(a share of it; a mean, whose error falls with its rows) is found from a first release with little ε, the probe: it
gives a bound that the true number is above but for a part of the error that is allowed, and the rest of the error is
that of the noise which is drawn then. Both are charged as they come.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, Context, Decimal

from rules.frozen import frozen
from rules.mechanisms.additive import laws_of
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import (
    Average,
    CentredSum,
    Chosen,
    ChosenList,
    Count,
    Output,
    Sum,
    margin_of_average,
    margin_of_output,
)
from rules.mechanisms.release_plan import Block
from rules.refusal import NotSupported
from rules.release.margins import Result, Value
from rules.release.outputs import show
from rules.release.release import Noised, outputs_of_few, shown_cells
from rules.sql.session_settings import Within

Laws = Sequence[Mapping[int, Distribution]]  # of each block

_PROBE_SHARE = Decimal("0.2")  # of the error that is allowed
_STEP = 1.05  # between the ε that are tried
_MOST_STEPS = 600  # 5·10^12 times as much, or as little
_ROUNDS = 9  # in which the error of a mean settles
_THREE = Context(prec=3, rounding=ROUND_CEILING)
_HINT = "RESET noisegate.within, and SET noisegate.epsilon instead."


@frozen
class Demand:
    """An output whose error is to be inside."""

    block: int
    output: int


@frozen
class Need:
    """The most that noise may move an output: of a mean in a group of so many rows."""

    demand: Demand
    allowed: float
    rows: float = 1.0


@frozen
class Needs:
    """The needs of the next release, and for how many of the numbers it is promised then."""

    needs: tuple[Need, ...]
    promised: int
    numbers: int

    @property
    def can_be_met(self) -> bool:
        return all(need.allowed > 0 and need.rows > 0 for need in self.needs)


def demands_of(results: Sequence[Result], blocks: Sequence[Block]) -> tuple[Demand, ...]:
    """Return what is asked of each column; refuses columns of which no error can be promised."""
    if any(block.sets for block in blocks):
        raise NotSupported(
            "noisegate.within cannot be promised for totals together with their parts",
            hint="Ask for each level of ROLLUP, CUBE or GROUPING SETS by itself.",
        )
    if not results:
        raise NotSupported("noisegate.within cannot be promised: no column here has noise of its own", hint=_HINT)
    return tuple(dict.fromkeys(_demand(result, blocks[result.block]) for result in results))


def _demand(result: Result, block: Block) -> Demand:
    if not isinstance(result.formula, Value):
        raise _refusal(result, "is computed from several numbers", "Ask for its parts, as columns of their own")
    output = result.formula.output
    match block.outputs[output]:
        case Count() | Sum() | CentredSum() | Average():
            return Demand(result.block, output)
        case Chosen() | ChosenList():
            raise _refusal(
                result, "is a quantile or mode: its error depends on how the values lie, which no answer reveals"
            )
    raise _refusal(result, "has an error that depends on all of the data")


def _refusal(result: Result, why: str, instead: str = "Leave it out") -> NotSupported:
    message = f'noisegate.within cannot be promised for "{result.name}", which {why}'
    return NotSupported(message, hint=f"{instead}, or {_HINT}")


def needs_beforehand(demands: Sequence[Demand], blocks: Sequence[Block], within: Within) -> Needs | None:
    """Return what follows from the plan alone; None where it takes a probe."""
    if within.is_relative or any(isinstance(_output(demand, blocks), Average) for demand in demands):
        return None
    return Needs(tuple(Need(demand, float(within.amount)) for demand in demands), len(demands), len(demands))


def needs_after(
    demands: Sequence[Demand], probed: Sequence[tuple[Block, Noised]], within: Within, level: Decimal
) -> tuple[Needs, Needs]:
    """Return what follows from a probe: to be sure of it, and at the very least, for a refusal's words.

    Numbers that are small beside the others are not promised: half of the mean of those above zero is asked for. Those
    that the rules want not shown, being about few units, are not looked at: the ε that is told follows from others.
    """
    probes = [_probed(demand, *probed[demand.block], within, level) for demand in demands]
    parts = list(zip(*probes, strict=True))
    promised, numbers = (sum(part) for part in parts[2:])
    return Needs(tuple(parts[0]), promised, numbers), Needs(tuple(parts[1]), promised, numbers)


def _probed(
    demand: Demand, block: Block, noised: Noised, within: Within, level: Decimal
) -> tuple[Need, Need, int, int]:
    output, missed = block.outputs[demand.output], (1 - level) * _PROBE_SHARE
    sized = Count(output.count) if isinstance(output, Average) else output
    _, every, _ = shown_cells(block, noised)
    cells = [cell for cell in every if demand.output not in outputs_of_few(block, cell)]
    sizes = [abs(float(show(sized, cell) or 0)) for cell in cells]
    positive = [size for size in sizes if size > 0]
    least = sum(positive) / len(positive) / 2 if positive else 0.0
    chosen = [place for place, size in enumerate(sizes) if size >= least]
    if isinstance(output, Average):
        values = [float(show(output, cell) or 0) for cell in cells]
        pairs = [
            _of_mean(demand, output, sizes[choice], values[choice], noised.laws, within, missed) for choice in chosen
        ]
    else:
        known = margin_of_output(output, noised.laws, 1 - missed)
        assert known is not None, "a count or a sum has a margin of its own"
        amounts = [(sizes[choice] - float(known), sizes[choice] + float(known)) for choice in chosen]
        pairs = [(Need(demand, _allowed(within, low)), Need(demand, _allowed(within, high))) for low, high in amounts]
    if not pairs:  # no group was found, or none is shown
        pairs = [(Need(demand, 0.0), Need(demand, _allowed(within, 1.0)))]
    sure = min((pair[0] for pair in pairs), key=lambda need: need.allowed * need.rows)
    hoped = min((pair[1] for pair in pairs), key=lambda need: need.allowed * need.rows)
    return sure, hoped, len(chosen), len(every)


def _of_mean(
    demand: Demand,
    output: Average,
    rows: float,
    mean: float,
    laws: Mapping[int, Distribution],
    within: Within,
    missed: Decimal,
) -> tuple[Need, Need]:
    """Half of what may be missed is that of the rows, half that of the mean itself."""
    level = 1 - missed / 2
    spread = float(laws[output.count].margin(level))
    fewest, off = rows - spread, math.inf
    if fewest > 0:
        off = margin_of_average(output, laws, level) / fewest
        for _ in range(_ROUNDS):
            off = min(margin_of_average(output, laws, level, off) / fewest, float(output.high - output.low))
    nearest = max(abs(mean) - off, float(max(output.low, -output.high, output.least or 0)), 0.0)  # within its bounds
    return (
        Need(demand, _allowed(within, nearest), fewest),
        Need(demand, _allowed(within, abs(mean) + min(off, float(output.high - output.low))), rows + spread),
    )


def _allowed(within: Within, size: float) -> float:
    return float(within.amount) * size if within.is_relative else float(within.amount)


def level_of_rest(level: Decimal) -> Decimal:
    """The share of answers that the second release must hold."""
    return 1 - (1 - level) * (1 - _PROBE_SHARE)


def are_met(needs: Needs, blocks: Sequence[Block], laws: Laws, level: Decimal) -> bool:
    """Return whether noise of these laws moves every output no further than it may, at this level."""
    return needs.can_be_met and all(_is_met(need, _output(need.demand, blocks), laws, level) for need in needs.needs)


def _is_met(need: Need, output: Output, laws: Laws, level: Decimal) -> bool:
    """s̃/ñ is off by more than a where |δs − (mean − mid ± a)·δn| > a·n, so the mean's margin has that much slack."""
    known = laws[need.demand.block]
    if isinstance(output, Average):
        return margin_of_average(output, known, level, need.allowed) <= need.allowed * need.rows
    margin = margin_of_output(output, known, level)
    return margin is not None and float(margin) <= need.allowed


def least_epsilon(
    needs: Needs, blocks: Sequence[Block], epsilon: Decimal, level: Decimal, group_size: int
) -> Decimal | None:
    """About the least ε that meets the needs, from the blocks as they are planned with one; None: none does.

    Noise falls as ε grows, all of it alike, so the law with another ε is that of so many times the noise.
    """
    laws = [laws_of(block, group_size=group_size) for block in blocks]

    def is_enough(step: int) -> bool:
        factor = 1 / _STEP**step
        scaled = [{place: law.times(factor) for place, law in of_block.items()} for of_block in laws]
        return are_met(needs, blocks, scaled, level)

    low, high = -_MOST_STEPS, _MOST_STEPS
    if not is_enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return _THREE.create_decimal(epsilon * Decimal(_STEP) ** low)


def _output(demand: Demand, blocks: Sequence[Block]) -> Output:
    return blocks[demand.block].outputs[demand.output]
