"""The labels of text columns without a list: found by threshold, as a release of its own that the synopsis pays for.

Those of a public column are read as they are, and cost nothing. Which labels there are follows from noised numbers of
units alone. So the bins of a column do, and the counts over them are one more release after it: adaptive composition.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from rules.accounting.store import Release
from rules.catalog import Catalog
from rules.frozen import frozen, replace
from rules.kernel.expressions import quoted_name
from rules.kernel.render import qualified
from rules.mechanisms.additive import mechanisms_of
from rules.mechanisms.draw import Noise
from rules.mechanisms.release_plan import Block, PrivateGroups
from rules.planner.plan import Plan, Request
from rules.planner.planner import plan
from rules.policy.model import Policy
from rules.refusal import NotAllowed
from rules.release.release import Row, release_found
from rules.release.sensitivity import enforced
from rules.replay import Kernel
from rules.synopses.columns import MOST_LABELS
from rules.synopses.plan import SynopsisPlan, plan_synopsis
from rules.synopses.relation import Origin
from rules.synopses.shares import price_of_counts, price_of_synopsis, share_of_labels

_MARK = "label"  # in a release: a label of a column, among the marginals


@frozen
class LabelSearch:
    """The statement that finds the labels of one column."""

    origin: Origin
    block: Block

    @property
    def groups(self) -> PrivateGroups:
        assert isinstance(self.block.groups, PrivateGroups), "others are refused"
        return self.block.groups

    def find(self, rows: Sequence[Row], noise: Noise, *, group_size: int, codec: str) -> tuple[str, ...]:
        """The labels that many units have: at most so many, the most frequent of all that pass the threshold."""
        noised = release_found(self.block, self.groups, rows, noise, group_size=group_size, codec=codec)
        units = noised.values[self.groups.measure]
        texts = [(-number, text) for (text,), number in zip(noised.groups, units, strict=True) if text is not None]
        kept = [text for _, text in sorted(texts) if "{0}" not in text][:MOST_LABELS]
        return tuple(sorted(kept))


def plan_labels(made: SynopsisPlan, policy: Policy, catalog: Catalog, kernel: Kernel) -> tuple[LabelSearch, ...]:
    """Return how the labels of all open columns are found; raises a Refusal."""
    if not made.open:
        return ()
    whole, epsilon = price_of_synopsis(made, policy), share_of_labels(made, policy)
    searches = tuple(_search(origin, epsilon, policy, catalog, kernel) for origin in made.open)
    costs = [cost for search in searches for cost in mechanisms_of(search.block)]
    rho = sum((cost.rho for cost in costs), price_of_counts(made, policy).rho)
    if rho > whole.rho or sum(cost.delta for cost in costs) > whole.delta:
        raise ValueError("the labels of a synopsis cost more than their share")
    return searches


def public_labels(origin: Origin) -> str:
    """The statement that reads the labels of a public column: its most frequent values."""
    table, name = origin
    return (
        f"SELECT {quoted_name(name)} FROM {qualified(table)} WHERE {quoted_name(name)} IS NOT NULL "
        f"GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT {MOST_LABELS}"
    )


def read_labels(rows: Sequence[Row], codec: str) -> tuple[str, ...]:
    """The labels that the statement found."""
    texts = (cell.decode(codec) for (cell,) in rows if cell is not None)
    return tuple(sorted(text for text in texts if "{0}" not in text))


def _search(origin: Origin, epsilon: Decimal, policy: Policy, catalog: Catalog, kernel: Kernel) -> LabelSearch:
    table, name = origin
    text = f"SELECT {quoted_name(name)} FROM {qualified(table)} GROUP BY 1"
    asked = Request(text, ("pg_catalog",), epsilon=epsilon, delta=policy.statement_delta())
    planned = plan(asked, policy, catalog, kernel)
    block = planned.blocks[0] if isinstance(planned, Plan) else None
    if block is None or not isinstance(block.groups, PrivateGroups) or block.ladders or len(block.keys) != 1:
        raise NotAllowed(f'the labels of "{name}" cannot be found', hint="list them: values: [a, b, c]")
    return LabelSearch(origin, enforced(block, kernel, policy.group_size))


def with_labels(
    made: SynopsisPlan, labels: Mapping[Origin, tuple[str, ...]], policy: Policy, catalog: Catalog
) -> SynopsisPlan:  # fmt: skip
    """The plan with the labels that were found in place of those that stood for them; its digest stays."""
    if not made.open and not made.read:
        return made
    return replace(plan_synopsis(made.name, policy, catalog, labels=labels), before_labels=made)


def as_groups(labels: Mapping[Origin, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Labels as they stand in a release."""
    return tuple((_MARK, str(table), name, label) for (table, name), texts in labels.items() for label in texts)


def labels_in(release: Release, made: SynopsisPlan) -> dict[Origin, tuple[str, ...]]:
    """The labels of each open column that a release has."""
    labels: dict[Origin, list[str]] = {origin: [] for origin in (*made.open, *made.read)}
    known = {(str(table), name): (table, name) for table, name in labels}
    for group in filter(is_label, release.groups):
        _, table, name, label = map(str, group)
        labels[known[table, name]].append(label)
    return {origin: tuple(texts) for origin, texts in labels.items()}


def is_label(group: Sequence[object]) -> bool:
    """Return whether a group of a release is a label, and no marginal, which has three parts."""
    return len(group) == 4 and group[0] == _MARK
