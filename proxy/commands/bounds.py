"""`noisegate bounds`: the private looks of `bounds: auto`, each charged once and kept in the ledger."""

import argparse
from decimal import Decimal

from proxy.commands.basic import Names, add_ledger, add_rules, epsilon_of, look_at, run, say, settings_of
from proxy.commands.ledger import with_ledger
from proxy.commands.private_look import PrivateLook, Share
from proxy.execute.clock import system_clock
from proxy.ledger.ledger import Ledger
from proxy.load_config import ConfigurationError, read_rules
from proxy.policy_in_force import as_words, put_bounds
from proxy.settings import Settings
from rules.accounting.store import KeptBounds
from rules.catalog import Catalog, TableName
from rules.policy.look_bins import ColumnLook, column_look
from rules.policy.model import Policy
from rules.refusal import Refusal


def look_for_bounds(settings: Settings, epsilon: Decimal | None, *, again: bool) -> int:
    """Look at each column that nobody has looked at, or at all again, and print what the ledger keeps."""
    policy = read_rules(settings.rules)
    if not policy.auto_columns:
        raise ConfigurationError(f"no column of {settings.rules} has bounds: auto")
    catalog = run(look_at(policy.database, policy)).catalog
    share = Share(policy.defaults.epsilon if epsilon is None else epsilon)

    async def look(ledger: Ledger) -> list[KeptBounds]:
        known = [] if again else list(await ledger.bounds())
        wanted = put_bounds(policy, catalog, known).auto_columns
        async with PrivateLook.opened(policy, catalog, ledger) as looking:
            for table, column in wanted:
                kept = await _look(looking, _question(table, column, catalog), share)
                await ledger.keep_bounds(kept)
        return list(await ledger.bounds())

    try:
        kept_boundses = run(with_ledger(settings, policy, look))
    except Refusal as refusal:
        raise ConfigurationError(f"{refusal}. {refusal.detail} {refusal.hint}".rstrip(". ")) from None
    for line in lines(policy, kept_boundses):
        say(line)
    return 0


def lines(policy: Policy, kept_boundses: list[KeptBounds]) -> list[str]:
    """Return what is kept of the columns of the rules."""
    named = {(str(table), column) for table, column in policy.auto_columns}
    return [
        f"{bounds.table}.{bounds.column}: {as_words(bounds)}"
        for bounds in kept_boundses
        if (bounds.table, bounds.column) in named
    ]


def _question(table: TableName, column: str, catalog: Catalog) -> ColumnLook:
    known_table = catalog.find_table(table)
    known = None if known_table is None else known_table.find_column(column)
    look = None if known_table is None or known is None else column_look(known_table, known)
    if look is None:
        raise ConfigurationError(f"bounds: auto is for columns of numbers and dates, which {table}.{column} is not")
    return look


async def _look(looking: PrivateLook, look: ColumnLook, share: Share) -> KeptBounds:
    look_result = await looking.find(look, share)
    if look_result.lower is None or look_result.upper is None or look.column is None:
        raise ConfigurationError(
            f"{look.table}.{look.column}: noise hides all at ε {share.epsilon}, which was charged; --epsilon takes more"
        )
    return KeptBounds(
        system_clock(), str(look.table), look.column, str(look_result.lower), str(look_result.upper), share.epsilon
    )  # fmt: skip


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it to the command line."""
    parser = names.add_parser(
        "bounds",
        help="look privately at the columns with bounds: auto; the ledger keeps their ranges",
        description="Look once at each column with bounds: auto, by noised counts in known bins. The ledger is charged "
        "before each look and keeps its range, which serve and check read.",
    )
    add_rules(parser)
    parser.add_argument("--epsilon", type=epsilon_of, metavar="E", help="ε of each look (default: that of a statement)")
    parser.add_argument("--again", action="store_true", help="look at all these columns again, for a new charge")
    add_ledger(parser)
    parser.set_defaults(run=lambda options: look_for_bounds(settings_of(options), options.epsilon, again=options.again))
