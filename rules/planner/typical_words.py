"""The words of NOTICE and EXPLAIN about typical values: by the query, the rules and ε alone."""

from collections.abc import Iterator
from dataclasses import replace

from rules.mechanisms.block_need import BlockNeed
from rules.mechanisms.cost import price
from rules.mechanisms.release_plan import Block, Choice


def with_typical_words(block: Block, group_size: int) -> Block:
    """The block, with a notice for each typical value in it and what EXPLAIN says of it."""
    notices, facts = list(block.notices), list(block.explanation)
    for measure in block.measures:
        if isinstance(measure, Choice) and measure.blocks is not None and measure.end is None:
            notices += _notices(measure, measure.blocks, group_size)
            facts += _facts(measure.blocks)
    if block.measures and all(isinstance(measure, Choice) and measure.blocks is not None for measure in block.measures):
        facts = [(name, how) for name, how in facts if name != "rows per unit"]
    return replace(block, notices=tuple(dict.fromkeys(notices)), explanation=tuple(dict.fromkeys(facts)))


def _notices(choice: Choice, blocks: int, group_size: int) -> Iterator[str]:
    """Yield how it is biased, and whether there are so few blocks that noise decides."""
    biased = "statistics that are biased in small samples are biased here"
    half = f"; compare with blocks => {blocks // 2}" if blocks > 1 else ""
    yield f"typical value of {blocks:,} blocks of units: {biased}{half}"
    needed = BlockNeed(choice.epsilon, choice.sensitivity // 2 * group_size).fewest
    if blocks < needed:
        yield (
            f"{blocks:,} blocks are too few at epsilon {price(choice.epsilon)}: the answer would be near random; "
            f"{needed:,} or more are needed"
        )


def _facts(blocks: int) -> Iterator[tuple[str, str]]:
    yield "blocks of units", f"{blocks:,}, by a hash of the unit, of which no row is cut"
    yield (
        "good for",
        "ratios, percentiles, correlations and slopes; not skewness, maxima, shares of the top, totals",
    )
    yield "bias", f"that of a sample of 1/{blocks:,} of the units"
