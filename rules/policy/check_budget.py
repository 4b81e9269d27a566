"""Explain budgets, noise and names of analysts, where they are not what somebody would want."""

from collections.abc import Iterator
from decimal import Decimal
from math import exp

from rules.policy.finding import Finding, error, note, warning
from rules.policy.model import Policy
from rules.policy.rules_yaml import dotted


def check_budgets(policy: Policy) -> Iterator[Finding]:
    """All that follows from the rules alone."""
    yield from _delta(policy)
    yield from _for_ever(policy)
    yield from _statement(policy)
    yield from _whole(policy)
    yield from _noise(policy)
    yield from _analysts(policy)
    yield from _roles(policy)
    if policy.min_units is not None:
        words = f"{policy.min_units}: a group with fewer units, by their noised count, has NULL in place of its numbers"
        yield note("min_units", f"{words}; each answer spends a share of its ε on that count")


_MOST_DELTA = Decimal("0.05")
_LARGE_DELTA = Decimal("1e-5")
_LARGE_STATEMENT = Decimal(5)
_LARGE_BUDGET = Decimal(100)


def _delta(policy: Policy) -> Iterator[Finding]:
    """δ has to be small compared with one in the number of units, which only the data show."""
    budget = policy.budget
    words = f"{budget.delta}: with this chance the guarantee may fail, so that of {1 / (budget.delta or 1):,.0f} people"
    if budget.delta >= _MOST_DELTA:
        yield error("budget.delta", f"{words} one may be given out whole", "1e-6 is usual, and 0 is possible")
    elif budget.delta > _LARGE_DELTA:
        yield warning("budget.delta", f"{words} one may be given out whole", "take 1e-6, or less for more people")
    delta = policy.defaults.delta
    if budget.delta and delta is not None and delta > budget.delta:
        words = (
            f"{delta} of one statement is above the whole budget's {budget.delta}: no groups can be found in the data"
        )
        yield error("defaults.delta", words, "remove it: the default is a 2000th of the budget's")


def _for_ever(policy: Policy) -> Iterator[Finding]:
    """A budget that is never new is a lifetime promise, and ends the analysts' work once it is spent."""
    budget, epsilon = policy.budget, policy.defaults.epsilon
    if budget.per != "ever" or not policy.analysts:
        return
    number = budget.epsilon // epsilon
    statements = f"{number:,f} statement{'' if number == 1 else 's'} at ε {epsilon.normalize():f}"
    more = ", or more where zCDP grants them," if budget.delta else ""
    words = f"ever: {statements}{more} use up the budget of all analysts, then nothing new is answered for ever"
    yield warning("budget.per", words, "per: month renews it; the losses of all months add up")


def _statement(policy: Policy) -> Iterator[Finding]:
    defaults, budget = policy.defaults, policy.budget
    if defaults.epsilon > budget.epsilon:
        words = f"{defaults.epsilon} of one statement is above the whole budget's {budget.epsilon}: none is answered"
        hint = "take a hundredth of the budget, or less"
        yield warning("defaults.epsilon", f"{words} unless noisegate.epsilon is set lower", hint)
    elif defaults.max_epsilon > budget.epsilon:
        words = f"{defaults.max_epsilon} is above the whole budget's {budget.epsilon}: no statement can spend it"
        yield warning("defaults.max_epsilon", words)
    if defaults.max_epsilon >= _LARGE_STATEMENT:
        yield warning(
            "defaults.max_epsilon",
            f"{defaults.max_epsilon}: after one answer, somebody who gave a person even odds of being in the data may "
            f"be {_sure(defaults.max_epsilon)} sure, and a count is almost exact",
            "1 or less protects",
        )


def _whole(policy: Policy) -> Iterator[Finding]:
    """Yield what somebody may learn with all of a budget."""
    budgets = {"budget.epsilon": policy.budget.epsilon}
    for name, analyst in policy.analysts.items():
        budgets |= {dotted(("analysts", name, "epsilon")): analyst.epsilon} if analyst.epsilon is not None else {}
    for name, role in policy.roles.items():
        budgets |= {dotted(("roles", name, "epsilon")): role.epsilon}
    for path, epsilon in budgets.items():
        if epsilon > _LARGE_BUDGET:
            most = min(policy.defaults.max_epsilon, epsilon)
            words = f"{epsilon}: an analyst with this budget can learn most people's rows"
            number = epsilon // most
            answers = f"1 answer of ε {most}" if number == 1 else f"{number:,f} answers of ε {most}, each"
            buys = f"it buys {answers} about people of their choice"
            yield warning(path, f"{words}: {buys}", "20 a month is a large budget")
    free = [name for name, analyst in policy.analysts.items() if analyst.epsilon is None and analyst.role is None]
    if free and len(policy.analysts) > 1:
        yield note("analysts", f"{', '.join(free)}: no epsilon of their own, so each can spend the whole budget")


def _sure(epsilon: Decimal) -> str:
    """Return what even odds become at most, as a percentage that is not rounded to certainty."""
    doubt = 1 / (1 + exp(min(700.0, float(epsilon))))
    if doubt < 1e-9:
        return "as good as 100%"
    return f"{100 * (1 - doubt):.3g}%" if doubt > 0.005 else f"{100 - float(f'{100 * doubt:.1g}'):.12g}%"


def _noise(policy: Policy) -> Iterator[Finding]:
    """Noise without a pure ε is granted by zCDP alone, which converts ρ to ε by half of a budget's δ."""
    if policy.is_pure:
        return
    budgets = [("budget.delta", policy.budget.delta)]
    for name, analyst in policy.analysts.items():
        budgets += [(dotted(("analysts", name, "delta")), analyst.delta)] if analyst.delta is not None else []
    for path, delta in budgets:
        if delta == 0:
            words = f"0: no statement with {policy.noise.capitalize()} noise can be granted"
            yield error(path, words, "set a delta, or noise: laplace")
    words = (
        f"{policy.noise}: less noise where a person is in many groups, and no pure ε: once an account has paid for a "
        "count or a sum, Σρ with δ grants what it asks, no longer Σε, so that fewer statements of a large ε fit"
    )
    yield warning("noise", words)


def wrong_name(name: str) -> str:
    """Return why an analyst cannot have this name, which is that of a role in the twin, or "".

    Example:
        >>> wrong_name("ada"), wrong_name("pg_ada")
        ('', 'this name is reserved for PostgreSQL or Noisegate')
    """
    if name.startswith(("pg_", "_ng")) or name in ("public", "none", "postgres", "noisegate", "noisegate_owner"):
        return "this name is reserved for PostgreSQL or Noisegate"
    return "" if 0 < len(name.encode()) <= 63 else "the name of a role has 1 to 63 bytes"


def _analysts(policy: Policy) -> Iterator[Finding]:
    for name, analyst in policy.analysts.items():
        path = dotted(("analysts", name))
        if wrong := wrong_name(name):
            yield error(path, wrong, "choose another name")
        if analyst.epsilon is not None and analyst.epsilon > policy.budget.epsilon:
            yield warning(path, f"epsilon {analyst.epsilon} is above the whole budget's {policy.budget.epsilon}")
        if analyst.epsilon is not None and analyst.epsilon < policy.defaults.epsilon <= policy.budget.epsilon:
            words = f"epsilon {analyst.epsilon} is less than one statement costs ({policy.defaults.epsilon})"
            yield warning(path, f"{words}: none is answered unless noisegate.epsilon is set lower")
        if analyst.delta is not None and analyst.delta > policy.budget.delta:
            yield warning(path, f"delta {analyst.delta} is above the whole budget's {policy.budget.delta}")


def _roles(policy: Policy) -> Iterator[Finding]:
    for name, role in policy.roles.items():
        path, members = (
            dotted(("roles", name)),
            [analyst for analyst in policy.analysts.values() if analyst.role == name],
        )
        if not members:
            yield warning(path, "no analyst has this role", f"write role: {name} at analysts")
        if role.epsilon > policy.budget.epsilon:
            yield warning(path, f"epsilon {role.epsilon} is above the whole budget's {policy.budget.epsilon}")
        if role.delta is not None and role.delta > policy.budget.delta:
            yield warning(path, f"delta {role.delta} is above the whole budget's {policy.budget.delta}")
        if role.per_analyst is None and any(member.epsilon is None for member in members) and len(members) > 1:
            yield note(path, "per_analyst is not given: one of its analysts can spend the budget of the role")
    for name, analyst in policy.analysts.items():
        limit = None if analyst.role is None else policy.roles[analyst.role].epsilon
        if limit is not None and analyst.epsilon is not None and analyst.epsilon > limit:
            yield warning(dotted(("analysts", name)), f"epsilon {analyst.epsilon} is above the {limit} of the role")
