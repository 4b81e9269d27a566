"""The rules as they are in force: with ranges that private looks have found, without what the DBA has not seen yet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path

from proxy.execute.clock import system_clock
from proxy.ledger.ledger import Ledger
from proxy.load_config import (
    ConfigurationError,
    check_rules,
    ledger_identity,
    lock_of,
    open_ledger,
    read_lock,
    tell,
    told_to_the_dba,
)
from proxy.log import event, warn
from proxy.settings import Settings
from rules.accounting.accountant import loss
from rules.accounting.budgets import budgets_of
from rules.accounting.store import KeptBounds
from rules.catalog import Catalog, TableName
from rules.policy.column_kind import kind_of
from rules.policy.finding import Finding, warning
from rules.policy.freeze import Seen, Unseen, find_unseen, see
from rules.policy.model import Bound, Policy, table_name
from rules.policy.rules_yaml import dotted
from rules.synopses.check import hide_since


@dataclass(frozen=True)
class Freeze:
    """The schema as it was seen: what appears later is hidden from analysts until the DBA acknowledges it."""

    rules: Path
    seen: Seen | None = None
    unseen: tuple[Unseen, ...] = ()  # what is hidden now, for operators
    is_locked: bool = True  # else it was seen as the rules were read, and is seen anew whenever they are

    def read_again(self, policy: Policy, catalog: Catalog) -> "Freeze":
        """At the start and when rules are loaded, which are acts of the DBA."""
        seen = read_lock(self.rules)
        if seen is None:
            tell(
                f"warning: there is no {lock_of(self.rules).name}, so each start and reload shows analysts the columns "
                f"that exist then; run noisegate lock {self.rules} to record the schema"
            )
        return replace(self, seen=seen or see(policy, catalog), is_locked=seen is not None)

    def hide(self, policy: Policy, catalog: Catalog) -> Policy:
        """The rules as analysts meet them."""
        return policy if self.seen is None else hide_since(policy, catalog, self.seen)

    def told(self, policy: Policy, catalog: Catalog, before: Sequence[Unseen]) -> "Freeze":
        """Say what is hidden now and was not before."""
        unseen = () if self.seen is None else find_unseen(policy, catalog, self.seen)
        new = [late for late in unseen if late not in before]
        for late in new:
            tell(str(late.finding(lock_of(self.rules).name, str(self.rules), is_locked=self.is_locked)))
            warn("hidden_until_locked", place=late.place)
        for finding in self.resting(policy, catalog) if new else ():
            tell(str(finding))
        return replace(self, unseen=unseen)

    def resting(self, policy: Policy, catalog: Catalog) -> Iterator[Finding]:
        """Say of each synopsis and cube that rests on what is hidden that it is gone with it."""
        shown = self.hide(policy, catalog)
        for name in policy.synopses:
            if name not in shown.synopses:
                words = f"hidden from analysts: it uses a column or table that {lock_of(self.rules).name} does not have"
                hint = f"once you have reviewed that, run noisegate lock {self.rules}"
                yield warning(dotted(("synopses", name)), words, hint)


async def with_kept_bounds(policy: Policy, catalog: Catalog, ledger: Ledger) -> Policy:
    """The policy with the bounds that the ledger keeps; ConfigurationError where nobody has looked at a column yet."""
    if not policy.auto_columns:
        return policy
    with told_to_the_dba():
        kept_boundses = await ledger.bounds()
    made = put_bounds(policy, catalog, kept_boundses)
    if made.auto_columns:
        names = ", ".join(f"{table}.{column}" for table, column in made.auto_columns)
        raise ConfigurationError(
            f"bounds: auto: no bounds of {names} are known yet; noisegate bounds finds them, and charges the ledger"
        )
    check_rules(made, catalog)
    return made


async def begin_period(policy: Policy, ledger: Ledger) -> None:
    """Begin the running period of the budgets, and say what it began with where `per` was another before."""
    with told_to_the_dba():
        begun = await ledger.begin_period(budgets_of(policy), system_clock())
    if begun is not None:
        tell(begun.words)
        event("period_begun", period=begun.period, epsilon=float(loss(begun.spent, begun.limit)))


def put_bounds(policy: Policy, catalog: Catalog, kept_boundses: Sequence[KeptBounds]) -> Policy:
    """The policy with what was found, as far as there is something."""
    kept = {(table_name(bounds.table), bounds.column): bounds for bounds in kept_boundses}
    known = {
        place: (_value(kept[place].lower, place, catalog), _value(kept[place].upper, place, catalog))
        for place in policy.auto_columns
        if place in kept
    }
    return policy.with_bounds(known)


def _value(text: str, place: tuple[TableName, str], catalog: Catalog) -> Bound:
    table = catalog.find_table(place[0])
    column = None if table is None else table.find_column(place[1])
    if column is not None and kind_of(column.type) in ("date", "timestamp"):
        return date.fromisoformat(text)
    number = Decimal(text)
    return int(number) if number == int(number) else number


async def read_kept(settings: Settings, catalog: Catalog) -> list[KeptBounds]:
    """Return what the ledger of the settings keeps; nothing where there is no ledger yet."""
    if isinstance(settings.ledger, Path) and not settings.ledger.exists():
        return []
    ledger = await open_ledger(settings, ledger_identity(catalog))
    try:
        return list(await ledger.bounds())
    finally:
        await ledger.close()


def as_words(kept: KeptBounds) -> str:
    """Return what was found, when, and for how much."""
    when = f"{kept.time:%Y-%m-%d %H:%M} UTC"
    return f"{kept.lower} to {kept.upper}, by the look of {when} for ε {kept.epsilon.normalize():f}"
