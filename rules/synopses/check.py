"""Check the synopses of a rules file: what cannot be made, what it costs whom, and how good it is."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import sqrt

from rules.accounting.accountant import Totals, fits
from rules.accounting.budgets import budgets_of
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.kernel.statement import Marginals
from rules.mechanisms.additive import laws_of
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.noised_outputs import Count, margin_of_output
from rules.mechanisms.release_plan import Block, Measure
from rules.mechanisms.threshold import find_threshold
from rules.planner.check_rules import check_all
from rules.policy.finding import Finding, by_severity, error, note, warning
from rules.policy.freeze import Seen, hide_unseen
from rules.policy.model import Policy
from rules.policy.rules_yaml import dotted
from rules.policy.synopses import CubeRules, MadeOnce, account_name
from rules.refusal import Refusal
from rules.replay import Kernel
from rules.synopses.cubes import plan_cube
from rules.synopses.labels import plan_labels
from rules.synopses.plan import NotPlanned, PlannedTable, SynopsisPlan, plan_synopsis
from rules.synopses.shares import Weighed, noise_of, price_of, price_of_counts, price_of_synopsis, shares_of_marginals

_TAKEN = ("public", "noisegate", "information_schema")
_ROWS = 10_000  # assumed for expected errors: the real number is not known
_BAD = 0.1  # of rows in another cell, from which on fewer bins are better


def check_whole(policy: Policy, catalog: Catalog) -> tuple[Finding, ...]:
    """Everything worth saying about rules over this catalog, synopses among it, errors first."""
    return by_severity([*check_all(policy, catalog), *check_synopses(policy, catalog)])


def hide_since(policy: Policy, catalog: Catalog, seen: Seen) -> Policy:
    """The rules with all hidden that was not seen, and without the synopses and cubes that rest on it.

    Such a one would be an error of the rules, and a column that somebody alters would keep the proxy from starting.
    """
    shown = hide_unseen(policy, catalog, seen)
    lost = [name for name in shown.synopses if _rests(name, shown, catalog) and not _rests(name, policy, catalog)]
    if not lost:
        return shown
    kept = {name: rules for name, rules in shown.synopses.items() if name not in lost}
    return shown.model_copy(update={"synopses": kept})


def _rests(name: str, policy: Policy, catalog: Catalog) -> bool:
    """Return whether a synopsis or a cube rests on what these rules do not have."""
    try:
        if name in policy.cubes:
            plan_cube(name, policy, catalog)
        else:
            plan_synopsis(name, policy, catalog)
    except NotPlanned:
        return True
    return False


def check_synopses(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """All that is worth saying; an error where one cannot be made."""
    for name, rules in policy.schemas.items():
        path = dotted(("synopses", name))
        yield from _name(name, path, policy, catalog)
        try:
            plan = plan_synopsis(name, policy, catalog)
        except NotPlanned as refusal:
            yield from _readers(path, rules, policy, price_of(rules.epsilon, policy))
            yield error(refusal.path, refusal.message, refusal.hint)
            continue
        yield from _readers(path, rules, policy, price_of_synopsis(plan, policy))
        yield from _price(path, rules, policy)
        try:
            yield from _labels(path, plan, policy, catalog)
        except Refusal as refusal:
            yield error(path, refusal.message, refusal.hint)
            continue
        made = [Kernel(Ground(policy, catalog)).marginals(table.statement) for table in plan.tables]
        yield from _quality(path, plan, made, policy)
    yield from _cubes(policy, catalog)


def _cubes(policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    for name, rules in policy.cubes.items():
        path = dotted(("synopses", name))
        yield from _name(name, path, policy, catalog)
        yield from _readers(path, rules, policy, price_of(rules.epsilon, policy))
        if not policy.fresh_for:
            yield error(path, "with fresh_for: 0 nothing that was noised serves again, so a cube is of no use")
        try:
            plan = plan_cube(name, policy, catalog)
        except NotPlanned as refusal:
            yield error(refusal.path, refusal.message, refusal.hint)
            continue
        yield from _price(path, rules, policy)
        for key_set in plan.sets:
            margins = " and ".join(_margins(key_set.block, policy.group_size))
            words = f"{' × '.join(key_set.keys)}: {key_set.cells:,} cells, each within {margins} in 95% of draws"
            yield note(f"{path}.cube", words)


def _margins(block: Block, group_size: int) -> Iterator[str]:
    """Compute how far noise moves the counts and sums of a set."""
    laws = laws_of(block, group_size=group_size)
    for output in block.outputs:
        margin = margin_of_output(output, laws, block.level)
        if margin is not None:
            yield f"±{float(margin):,.3g}{' rows' if isinstance(output, Count) else ''}"


def _name(name: str, path: str, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    schemas = {schema for schema, _ in catalog.schemas} | {str(table.name.schema) for table in catalog.tables}
    if name in schemas or name in _TAKEN or name.startswith("pg_"):
        yield error(path, "a schema has this name already", "choose another name")
    elif not name or len(name.encode()) > 63:
        yield error(path, "a schema's name has 1 to 63 bytes")
    if account_name(name) in policy.analysts:
        yield error(
            dotted(("analysts", account_name(name))),
            "this name is reserved for the account of a synopsis",
            "choose another name",
        )
    rules = policy.synopses[name]
    names = [] if isinstance(rules, CubeRules) else [text.rpartition(".")[2] for text in rules.tables]
    if len(set(names)) < len(names):
        yield error(f"{path}.tables", "two tables of the same name cannot stand in one schema", "leave one out")


def _readers(path: str, rules: MadeOnce, policy: Policy, price: Mechanism) -> Iterator[Finding]:
    for reader in rules.analysts or ():
        if reader not in policy.analysts:
            yield error(f"{path}.analysts", f"there is no analyst {reader}")
    budgets = budgets_of(policy)
    paid = Totals().plus([price])
    if not fits(paid, budgets.dataset):
        yield error(f"{path}.epsilon", f"{rules.epsilon:f} is more than the budget of all holds", "take less")
        return
    for reader in rules.readers(policy.analysts):
        limit = budgets.limit_of(reader)
        if price.epsilon is None and not limit.delta:
            words = f"{reader} has no δ, which the price of this needs: {reader} cannot read it"
            yield warning(f"{path}.analysts", words, f"give analysts.{reader} a delta")
        elif not fits(paid, limit):
            words = f"{rules.epsilon:f} is more than {reader} may spend ({limit.epsilon:f}): {reader} cannot read it"
            yield warning(f"{path}.epsilon", words, "take less, or name its readers by analysts")


def _price(path: str, rules: MadeOnce, policy: Policy) -> Iterator[Finding]:
    price = price_of(rules.epsilon, policy)
    again = "" if rules.refresh == "never" else f", and again each {rules.refresh}"
    words = f"{rules.epsilon:f}: charged once to the budget of all and to each who may read it{again}"
    yield note(f"{path}.epsilon", words)
    if price.epsilon is None and policy.is_pure:
        words = (
            "it is paid as ρ, with Gaussian noise: from then on an account that has paid for it is granted what Σρ "
            "with δ grants, no longer Σε, so that fewer statements of a large ε fit"
        )
        yield warning(path, words)


def _labels(path: str, plan: SynopsisPlan, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
    """Say which labels will be found, and what that costs."""
    for search in plan_labels(plan, policy, catalog, Kernel(Ground(policy, catalog))):
        units = search.block.measures[search.groups.measure]
        assert isinstance(units, Measure), "a threshold looks at a number of units"
        least = find_threshold(units, search.groups.delta, group_size=policy.group_size)
        (table, name), delta = search.origin, search.groups.delta
        words = (
            f"{table}.{name}: its labels are found in the data, those that some {least:,} units have or more, for a "
            f"part of the price and δ {delta.normalize()}"
        )
        yield note(f"{path}.tables", words, "listed values are free: values: [a, b, c]")


def _quality(path: str, plan: SynopsisPlan, made: Sequence[Marginals], policy: Policy) -> Iterator[Finding]:
    """The expected distance of pairs, for a number of rows that is not looked at."""
    price = price_of_counts(plan, policy)
    places = [
        (table, statement, number)
        for table, statement in zip(plan.tables, made, strict=True)
        for number in range(1, len(statement.marginals))
    ]
    weighed = [
        Weighed(statement.marginals[number], table.cells(table.statement.counted[number]), _ROWS)
        for table, statement, number in places
    ]
    shares = shares_of_marginals(price, weighed, group_size=plan.group_size)
    for table in plan.tables:
        own = [
            expected(marginal, share, price, plan.group_size)
            for marginal, share, (of, _, _) in zip(weighed, shares, places, strict=True)
            if of is table
        ]
        yield _told(path, table, own)


def expected(weighed: Weighed, share: Decimal, price: Mechanism, group_size: int) -> float:
    """About which share of the rows the noise of a marginal moves to another cell, before any fit."""
    noise = noise_of(weighed.marginal, share, price, group_size=group_size)
    return min(1.0, weighed.cells * sqrt(1 / float(noise.precision)) * 0.4 / weighed.rows)


def _told(path: str, table: PlannedTable, distances: Sequence[float]) -> Finding:
    mean, most = sum(distances) / len(distances), max(distances)
    words = (
        f"{table.table.name}: of {_ROWS:,} rows some {mean:.1%} lie in another cell of a pair of columns (worst pair "
        f"{most:.1%}); with ten times the rows it is a tenth of that"
    )
    here = f"{path}.tables.{table.table.name}"
    if mean <= _BAD:
        return note(here, words)
    return note(here, words, "fewer bins or columns, a lower rows_per_unit or a larger ε help")
