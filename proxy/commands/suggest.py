"""`noisegate suggest --epsilon`: a draft with ranges, caps and lists from a private look, charged to the ledger."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Final

from proxy.commands.basic import ConfigurationError, look_at, run, say
from proxy.commands.private_look import PrivateLook, Share, shares_of
from proxy.execute.clock import system_clock
from proxy.ledger.ledger import Ledger
from proxy.load_config import ledger_identity, make_ledger, open_ledger, tell
from proxy.settings import Settings
from proxy.wire.scram import Verifier
from rules.accounting.budgets import OWNER, budgets_of
from rules.catalog import Catalog, TableName
from rules.policy.load import load_policy
from rules.policy.look_bins import ColumnLook, LookResult
from rules.policy.model import Policy, table_name
from rules.policy.suggest import looks_for, suggest_rules
from rules.refusal import Refusal

_USUAL_DELTA: Final = Decimal("1e-6")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A look and what it may cost, on which ledger."""

    unit: str
    database: str
    epsilon: Decimal
    delta: Decimal
    ledger: Path | str
    anchor: Path | None


def suggest_privately(wanted: Wanted) -> int:
    """Print the draft; what was charged stays charged, whatever is made of it."""
    catalog = run(look_at(wanted.database)).catalog
    policy = _policy(wanted, catalog)
    settings = Settings(Path("draft"), wanted.ledger, wanted.anchor)
    if isinstance(wanted.ledger, Path) and not wanted.ledger.exists():
        make_ledger(settings, catalog)
        tell(f"made the ledger {wanted.ledger}: keep it, for it belongs to this database from now on")
    try:
        results, paid = run(_look(wanted, policy, catalog, settings))
    except Refusal as refusal:
        raise ConfigurationError(f"{refusal}. {refusal.detail} {refusal.hint}".rstrip(". ")) from None
    draft = suggest_rules(catalog, table_name(wanted.unit), results, paid).rstrip("\n")
    say(draft.replace("delta: 0  ", f"delta: {_budget_delta(wanted):f}  ") if wanted.delta else draft)
    return 0


def _policy(wanted: Wanted, catalog: Catalog) -> Policy:
    """The rules of the draft, by which the look is bounded; its δ is for this look and for what comes later."""
    try:
        text = suggest_rules(catalog, table_name(wanted.unit))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    verifier = str(Verifier.of_password(secrets.token_urlsafe(12), secrets.token_bytes(16)))
    policy = load_policy(text, "draft", {"NOISEGATE_DATABASE": wanted.database, "ADA_VERIFIER": verifier})
    budget = policy.budget.model_copy(update={"delta": _budget_delta(wanted)})
    return policy.model_copy(update={"budget": budget})


def _budget_delta(wanted: Wanted) -> Decimal:
    """Ten times the look's, of which half is for composition; an earlier look on this ledger may have used some."""
    return 10 * wanted.delta or _USUAL_DELTA


async def _look(
    wanted: Wanted, policy: Policy, catalog: Catalog, settings: Settings
) -> tuple[Mapping[tuple[TableName, str | None], LookResult], str]:
    ledger = await open_ledger(settings, ledger_identity(catalog))
    try:
        async with PrivateLook.opened(policy, catalog, ledger) as looking:
            column_looks = looks_for(catalog, policy, with_values=wanted.delta > 0)
            whole = Share(wanted.epsilon, wanted.delta)
            looks = [look for look in column_looks if await looking.is_possible(look, whole)]
            if not looks:
                raise ConfigurationError("nothing to look at: the draft asks for no range")
            await _check_left(wanted, policy, ledger)
            share = shares_of(wanted.epsilon, wanted.delta, looks)
            tell(f"{len(looks)} looks, each charged with ε {share.epsilon.normalize():f} before it is made")
            results = [(look, await looking.find(look, share)) for look in looks]
    finally:
        await ledger.close()
    spent = share.epsilon * len(looks)
    of_delta = f" and δ {wanted.delta.normalize()}" if wanted.delta else ""
    paid = f"looked at privately for ε {spent.normalize():f}{of_delta}, charged to {_shown(wanted.ledger)}"
    return _together(results), paid


async def _check_left(wanted: Wanted, policy: Policy, ledger: Ledger) -> None:
    """All or nothing: a look that ends half way has been paid for half."""
    own, shared, _ = await ledger.balances(OWNER, budgets_of(policy), system_clock())
    if (left := min(own.left, shared.left)) < wanted.epsilon:
        raise ConfigurationError(
            f"ε {wanted.epsilon} is more than what is left on this ledger: {left:.4g} of the draft's {shared.limit:f}"
        )


def _together(results: Sequence[tuple[ColumnLook, LookResult]]) -> dict[tuple[TableName, str | None], LookResult]:
    return {(look.table, look.column): result for look, result in results if result != LookResult()}


def _shown(ledger: Path | str) -> str:
    return str(ledger) if isinstance(ledger, Path) else "the ledger"
