"""`noisegate disclosure`: the entry that NIST SP 800-226 and public registries of deployments ask for.

All of it follows from the rules, the catalog and the ledger. Analysts are counted, not named. What only people know
(whose data these are, and what for) is left to be filled in.
"""

import argparse
import json
import platform
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from importlib.metadata import version as version_of
from typing import Final

from proxy import __version__
from proxy.commands.basic import Names, add_ledger, add_rules, look_at, run, say, settings_of
from proxy.commands.ledger import with_ledger
from proxy.execute.clock import system_clock
from proxy.ledger.ledger import Ledger
from proxy.ledger.review import History, Wish
from proxy.load_config import read_rules
from proxy.settings import Settings
from rules.accounting.accountant import Limit
from rules.accounting.bets import whose, wins_words
from rules.accounting.budgets import Budgets, budgets_of
from rules.accounting.store import Balance
from rules.catalog import Catalog
from rules.mechanisms.cost import price
from rules.policy.model import Policy, TableRules

Line = Mapping[str, str | int]
Value = str | int | None | Sequence[Line]  # None: only people know
Section = Mapping[str, Value]

_FILL_IN: Final = "*to be filled in*"


@dataclass(frozen=True, slots=True)
class Spent:
    """The accounts at one moment, and all charges."""

    now: datetime
    analysts: Sequence[tuple[str, Balance]]
    roles: Mapping[str, Balance]
    shared: Balance
    history: History


def disclose(settings: Settings, *, as_json: bool) -> int:
    """Print the entry."""
    policy = read_rules(settings.rules)
    catalog, budgets = run(look_at(policy.database)).catalog, budgets_of(policy)

    async def read(ledger: Ledger) -> Spent:
        now, names = system_clock(), tuple(policy.analysts)
        *own, shared = await ledger.all_balances(names, budgets, now)
        roles = await ledger.role_balances(budgets, now)
        return Spent(now, list(zip(names, own, strict=True)), roles, shared, await ledger.history(Wish()))

    spent = run(with_ledger(settings, policy, read))
    basic = "basic composition, adaptive; charged durably before the database is read, never refunded"
    sections: Mapping[str, Section] = {
        "deployment": _deployment(catalog, spent),
        "guarantee": _guarantee(policy),
        "budgets": {"accounts": list(_accounts(budgets, spent))},
        "mechanisms": {
            "releases": list(_mechanisms(policy)),
            "accounting": f"the better of zCDP (half of δ converts) and {basic}" if policy.budget.delta else basic,
        },
        "data": {"tables": [_table(name, rules, policy) for name, rules in policy.tables.items()]},
        "trust": _trust(policy),
        "versions": {
            "noisegate": __version__,
            "opendp": version_of("opendp"),
            "postgresql": f"{catalog.version // 10_000}.{catalog.version % 10_000}",
            "python": platform.python_version(),
        },
    }
    say(json.dumps(sections, ensure_ascii=False, indent=1) if as_json else "\n".join(_as_markdown(sections)))
    return 0


def _deployment(catalog: Catalog, spent: Spent) -> Section:
    charges, closed = spent.history.charges, spent.history.closed
    first = None if closed else f"{charges[0].time:%Y-%m-%d}" if charges else "none yet"
    return {
        "data_curator": None,
        "whose_data": None,
        "intended_use": None,
        "product": "SQL queries of analysts: aggregates are answered with noise, rows are never shown",
        "database": catalog.database,
        "date": f"{spent.now:%Y-%m-%d}",
        "first_charge": first or "closed into a sum",
        "charges": len(charges) + closed,
    }


def _guarantee(policy: Policy) -> Section:
    is_row, per = policy.unit == "row", policy.budget.per
    fewer = "one row" if is_row else "all rows of a unit"
    level = "row: each row of a protected table" if is_row else "user: all rows of a unit in all protected tables"
    flavor = "approximate: (ε, δ)" if policy.budget.delta else "pure: ε"
    lasts = "for ever" if per == "ever" else f"in each {per} ({policy.budget.time_zone}); over n periods losses add up"
    return {
        "definition": f"{flavor}-differential privacy of all that an account receives {lasts}",
        "unit": policy.unit,
        "level": level,
        "units_protected_together": policy.group_size,
        "neighbours": f"add or remove: one database is the other without {fewer}",
        "bets": f"somebody who sees all answers of a period wins at most (e^ε + δ)/(1 + e^ε) of bets on one "
        f"{whose(policy)}'s presence; a coin wins 50 of 100",
    }


def _accounts(budgets: Budgets, spent: Spent) -> Iterator[Line]:
    """Analysts with equal budgets are one line, with the most that one of them has spent."""
    yield _account("all analysts together", [spent.shared], budgets.dataset, budgets)
    for name, balance in spent.roles.items():
        yield _account(f"role {name}", [balance], budgets.roles[name], budgets)
    alike: dict[tuple[Decimal, Decimal], list[Balance]] = defaultdict(list)
    for name, balance in spent.analysts:
        alike[balance.limit, budgets.limit_of(name).delta].append(balance)
    for (_, delta), balances in alike.items():
        yield _account("each analyst", balances, Limit(Decimal(0), delta), budgets)


def _account(name: str, balances: Sequence[Balance], limit: Limit, budgets: Budgets) -> Line:
    epsilon = balances[0].limit  # what was granted for the running period included
    return {
        "account": name,
        "how_many": len(balances),
        "epsilon": f"{epsilon.normalize():f}",
        "delta": f"{limit.delta.normalize():f}",
        "period": budgets.per,
        "epsilon_spent": price(max(balance.spent for balance in balances)),
        "epsilon_spent_ever": price(max(balance.lifetime for balance in balances)),
        "bets_won_of_100": wins_words(Limit(epsilon, limit.delta)),
    }


def _mechanisms(policy: Policy) -> Iterator[Line]:
    noise = "discrete Gaussian, ρ = ε²/2" if policy.noise == "gaussian" else "discrete Laplace, pure ε"
    yield _release("counts, sums, averages, variances, regressions", noise)
    yield _release("quantiles, minimum, maximum, mode, typical values", "exponential mechanism, pure ε")
    yield _release("the largest groups", "noisy top k with Gumbel noise, then noised counts")
    if policy.budget.delta:
        yield _release("groups that are found in the data", "threshold on a count with discrete Laplace noise, (ε, δ)")
    yield _release("bounds that are chosen", "steps of a ladder against a threshold, one-sided geometric noise, pure ε")
    if policy.schemas:
        yield _release("synthetic rows", "marginals with discrete Gaussian noise; rows are fitted to them alone")
    if policy.cubes:
        yield _release("cubes", f"counts and sums by sets of keys: {noise}")
    randomized = [
        name for table in policy.tables.values() for name, column in table.columns.items() if column.randomized
    ]
    if randomized:
        yield _release(
            f"local reports: {', '.join(randomized)}", "randomized by people before collection, then as counts"
        )


def _release(what: str, mechanism: str) -> Line:
    return {"release": what, "mechanism": mechanism}


def _table(name: str, rules: TableRules, policy: Policy) -> Line:
    if rules.public or rules.view:
        return {
            "table": name,
            "access": "public: exact" if rules.public else "view: as its tables",
            "rows_of_a_unit": "-",
        }
    most = "1" if policy.unit == "row" else "by a unique key, or chosen privately"
    if rules.rows_per_unit is not None:
        most = f"{'chosen privately, ' if rules.rows_auto else ''}at most {rules.rows_per_unit:,}"
    hidden = sum(column.hidden for column in rules.columns.values())
    shown = f"protected, {hidden} hidden" if hidden else "protected"
    return {"table": name, "access": shown, "rows_of_a_unit": most}


def _trust(policy: Policy) -> Section:
    padded = f"answers come on a grid of {policy.pad_to}" if isinstance(policy.pad_to, timedelta) else "not narrowed"
    local = any(column.randomized for table in policy.tables.values() for column in table.columns.values())
    return {
        "model": "central" + (", with columns that people randomized themselves (local)" if local else ""),
        "release": "interactive, continual",
        "trusted": "the proxy's machine, the database (superusers, logs, backups), the DBA, operators, the rules",
        "not_trusted": "analysts: adaptive, patient, many, colluding (the budget of all together holds then)",
        "time_of_answers": "one answer or time-out at the limit" if policy.pad_to == "full" else padded,
        "fewest_units_with_numbers": "no such rule" if policy.min_units is None else policy.min_units,
        "proofs": "docs/privacy.md and rules/README.md of the version below",
    }


def _as_markdown(sections: Mapping[str, Section]) -> Iterator[str]:
    """Each section as a table of two columns, and what has lines as a table of its own."""
    yield "# Differential privacy disclosure"
    for title, section in sections.items():
        yield from ("", f"## {title.capitalize()}", "")
        plain = {name: value for name, value in section.items() if value is None or isinstance(value, str | int)}
        if plain:
            yield from _markdown_table([{"item": _words(name), "value": _cell(value)} for name, value in plain.items()])
        for name, value in section.items():
            if name not in plain and not isinstance(value, str | int | None):
                yield from [""] if plain else []
                yield from _markdown_table(value)


def _markdown_table(lines: Sequence[Line]) -> Iterator[str]:
    names = list(lines[0])
    yield f"| {' | '.join(map(_words, names))} |"
    yield f"|{'---|' * len(names)}"
    for line in lines:
        yield f"| {' | '.join(_cell(line[name]) for name in names)} |"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: str | int | None) -> str:
    return _FILL_IN if value is None else str(value).replace("|", "\\|")


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it to the command line."""
    parser = names.add_parser(
        "disclosure",
        help="print the promise and what was spent, as NIST SP 800-226 and registries of deployments ask for it",
        description="Print an entry to publish, as Markdown: unit, neighbours, budgets and periods, spent budget, "
        "mechanisms, trust, versions. It comes from the rules, the catalog and the ledger; it counts analysts and does "
        "not name them.",
    )
    add_rules(parser)
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_ledger(parser)
    parser.set_defaults(run=lambda options: disclose(settings_of(options), as_json=options.json))
