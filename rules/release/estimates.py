"""Estimates from local reports: what people held before chance changed what they reported.

Two things keep an estimate from the truth: central noise in the counts of reports, and the chance in the reports
themselves. Of the latter only its law is known too. So each estimate has a number of its own beside the measures, which
is zero in what is released and follows a normal law in replicates; and one for the reports of the other groups.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from rules.frozen import replace
from rules.mechanisms.distribution import Distribution
from rules.mechanisms.noised_outputs import Estimate, Matrix, Output
from rules.mechanisms.release_plan import Block
from rules.release.keys import Group

PARTS = 10**6  # of a standard deviation, in which chance is counted


def placed(outputs: Sequence[Output], measures: int) -> tuple[Output, ...]:
    """Outputs whose estimates know where their two numbers stand, behind those of the measures."""
    place, placed_outputs = measures, list[Output]()
    for output in outputs:
        placed_outputs.append(
            replace(output, chance=place, others=place + 1) if isinstance(output, Estimate) else output
        )
        place += 2 * isinstance(output, Estimate)
    return tuple(placed_outputs)


def values_of_chance(
    block: Block, groups: Sequence[Group], values: Mapping[int, tuple[int, ...]]
) -> dict[int, tuple[int, ...]]:
    """The numbers of all measures, and those that estimates have beside them."""
    estimated = dict(values)
    for estimate in (output for output in block.outputs if isinstance(output, Estimate)):
        estimated[estimate.chance] = (0,) * len(groups)
        estimated[estimate.others] = _others(estimate, groups, values[estimate.hits])
    return estimated


def laws_of_chance(block: Block, laws: Mapping[int, Distribution]) -> dict[int, Distribution]:
    """The laws of what is noised, and those of chance; of exact numbers, as tests have them, chance is known too."""
    estimated = dict(laws)
    for estimate in (output for output in block.outputs if isinstance(output, Estimate)):
        if estimate.hits in laws:
            estimated[estimate.chance] = Distribution(variance=float(PARTS) ** 2)
            if estimate.key is not None:
                estimated[estimate.others] = laws[estimate.hits].repeated(estimate.groups - 1)
    return estimated


def _others(estimate: Estimate, groups: Sequence[Group], hits: Sequence[int]) -> tuple[int, ...]:
    """The reports of the groups that differ from a group in the key alone."""
    key = estimate.key
    if key is None:
        return (0,) * len(groups)
    whole = defaultdict[Group, int](int)
    rest = [(*group[:key], *group[key + 1 :]) for group in groups]
    for group, number in zip(rest, hits, strict=True):
        whole[group] += number
    return tuple(whole[group] - number for group, number in zip(rest, hits, strict=True))


def compute(estimate: Estimate, numbers: Sequence[int]) -> Fraction | None:
    """The estimate from a group's numbers; a mean of nobody is NULL."""
    hits, reports = numbers[estimate.hits], sum(numbers[report] for report in _reports(estimate))
    p, q = estimate.p, estimate.q
    if estimate.bounds is not None and reports <= 0:
        return None
    scaled = _scaled(estimate, (hits - q * reports) / (p - q), reports)
    moved = numbers[estimate.chance]
    if not moved:
        return scaled
    deviation = math.sqrt(local_variance(estimate, hits, reports))
    return scaled + Fraction(deviation) * Fraction(moved, PARTS)


def _scaled(estimate: Estimate, held: Fraction, reports: int) -> Fraction:
    if estimate.bounds is None:
        return held
    low, high = estimate.bounds
    return low + (high - low) * held / reports


def _reports(estimate: Estimate) -> tuple[int, ...]:
    return (*estimate.reports, estimate.others) if estimate.key is not None else estimate.reports


def local_variance(estimate: Estimate, hits: float, reports: float) -> float:
    """Of the chance in the reports: [n·q(1−q) + f(p−q)(1−p−q)]/(p−q)², f between 0 and n; of a mean at most that."""
    p, q, n = float(estimate.p), float(estimate.q), max(reports, 0.0)
    if estimate.bounds is not None:
        low, high = estimate.bounds
        return float(high - low) ** 2 / (4 * (p - q) ** 2 * max(n, 1.0))
    held = min(max((hits - q * reports) / (p - q), 0.0), n)
    return (n * q * (1 - q) + held * (p - q) * (1 - p - q)) / (p - q) ** 2


def law_of(estimate: Estimate, numbers: Sequence[int], laws: Mapping[int, Distribution]) -> Distribution:
    """The law of the error of an estimate: of noise and chance together."""
    reports = sum(numbers[report] for report in _reports(estimate))
    q, spread = float(estimate.q), float(estimate.p - estimate.q)
    if estimate.bounds is not None:
        spread = spread * max(reports, 1) / float(estimate.bounds[1] - estimate.bounds[0])
    law = Distribution(variance=local_variance(estimate, numbers[estimate.hits], reports))
    for place in {estimate.hits, *_reports(estimate)} & laws.keys():
        weight = (place == estimate.hits) - q * (place in _reports(estimate))
        law = law.plus(laws[place].times(weight / spread))
    return law


def replicated(estimate: Estimate, measures: Sequence[Matrix]) -> Matrix:
    """The estimate of every replicate, NaN where it is NULL."""
    p, q = float(estimate.p), float(estimate.q)
    hits = measures[estimate.hits]
    reports = sum((measures[report] for report in _reports(estimate)), np.zeros_like(hits))
    held, chance = (hits - q * reports) / (p - q), measures[estimate.chance] / PARTS
    n = np.maximum(reports, 0.0)
    if estimate.bounds is None:
        inside = np.minimum(np.maximum(held, 0.0), n)
        variance = (n * q * (1 - q) + inside * (p - q) * (1 - p - q)) / (p - q) ** 2
        return held + chance * np.sqrt(np.maximum(variance, 0.0))
    low, high = map(float, estimate.bounds)
    replicates = low + (high - low) * held / reports + chance * (high - low) / (2 * (p - q) * np.sqrt(n))
    return np.where(reports > 0, replicates, np.nan)


def missed_by(estimate: Estimate, numbers: Sequence[int], laws: Mapping[int, Distribution], missed: Decimal) -> bool:
    """Return whether noise and chance alone could have made it, but in so many of cases."""
    error = compute(estimate, numbers)
    return error is None or abs(error) <= law_of(estimate, numbers, laws).reach(missed)
