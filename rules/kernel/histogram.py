"""Histograms, from which quantiles, extremes and the most frequent value are chosen.

A bin is one more key. So a unit's rows in all groups and bins together are bounded by m, as everywhere, and no number
of groups stands in it: L1 ≤ F·m over the counts, and in a group of which a unit has m_g counted rows, a score that is a
weighted sum of its bins with weights up to w moves by at most F·w·m_g, Σ m_g ≤ m.
"""

from collections.abc import Sequence

from rules.kernel.bounded import bounded
from rules.kernel.forms import Form
from rules.kernel.keys import Bins, Listed
from rules.kernel.measures import Count
from rules.kernel.rows import Rows
from rules.kernel.statement import Bounded


def histogram(
    rows: Rows,
    keys: Sequence[Listed | Bins],
    candidates: Bins | Listed,
    *,
    rows_per_unit: int,
    form: Form | None = None,
) -> Bounded:
    """How many rows each group has in each bin, or of each listed candidate: the last key column, as its number."""
    return bounded(rows, (*keys, candidates), (Count(),), rows_per_unit=rows_per_unit, form=form)
