"""Look at the database for the DBA: planned, bounded, charged and noised as statements of analysts are.

A look is charged to the account of all analysts, since they will see what is made of it, and to one of its own in the
ledger, which is nobody's. `noisegate suggest --epsilon` makes a draft with ranges, caps and lists from looks.
"""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from pathlib import Path
from typing import Final

from proxy.commands.basic import look_at, run, say
from proxy.engines.engines import real_database
from proxy.execute.clock import system_clock
from proxy.execute.rulebook import Rulebook
from proxy.execute.service import Service
from proxy.execute.worker_pool import PlannerPool
from proxy.ledger.ledger import Ledger
from proxy.load_config import ConfigurationError, ledger_identity, make_ledger, open_ledger, tell
from proxy.settings import Settings
from proxy.wire.scram import Verifier
from rules.accounting.budgets import OWNER, budgets_of
from rules.catalog import Catalog, TableName
from rules.mechanisms.draw import OpenDPNoise
from rules.planner.plan import NeedsInner, Plan, Request
from rules.policy.load import load_policy
from rules.policy.look_bins import ColumnLook, LookResult, found_range, found_rows, found_values
from rules.policy.model import Policy, table_name
from rules.policy.suggest import looks_for, suggest_rules
from rules.refusal import Refusal
from rules.release.release import shown_cells

_SECONDS: Final = 300.0
_MISSED: Final = Decimal("0.05")  # of looks may take noise in an empty bin for values

_USUAL_DELTA: Final = Decimal("1e-6")


@dataclass(frozen=True, slots=True)
class Share:
    """The cost of one look."""

    epsilon: Decimal
    delta: Decimal = Decimal(0)


class PrivateLook:
    """Asks for the DBA."""

    def __init__(self, service: Service) -> None:
        self._service = service

    @classmethod
    @asynccontextmanager
    async def opened(cls, policy: Policy, catalog: Catalog, ledger: Ledger) -> AsyncIterator["PrivateLook"]:
        """With a planner and a connection of its own."""
        async with AsyncExitStack() as stack:
            engine = real_database(policy.database).open_engine(connections=1, settings=policy.engine_settings)
            stack.push_async_callback(engine.close)
            planner = await PlannerPool.start(size=1)
            stack.push_async_callback(planner.close)
            await planner.load(policy, catalog)
            rulebook = Rulebook.of(policy, catalog, 0)
            yield cls(Service(rulebook, planner, engine, ledger, noise=OpenDPNoise(), clock=system_clock))

    async def is_possible(self, look: ColumnLook, share: Share) -> bool:
        """Return whether a look can be planned: nothing is read or paid."""
        try:
            return isinstance(await self._plan(look, share), Plan)
        except Refusal:
            return False

    async def find(self, look: ColumnLook, share: Share) -> LookResult:
        """Charge, look and say what noised counts tell of one look; raises a Refusal."""
        plan = await self._plan(look, share)
        assert isinstance(plan, Plan), "it was planned before"
        answer = await self._service.answer(plan, analyst=OWNER, session="look", timeout_seconds=_SECONDS, reuse=False)
        ((block, noised),) = answer.released
        groups, cells, _ = shown_cells(block, noised)
        counts = [(group[0], cell[0]) for group, cell in zip(groups, cells, strict=True)]
        if look.kind == "values":
            return found_values(counts)
        reach = noised.laws[0].reach(_MISSED / len(groups))
        return found_rows(counts, reach) if look.kind == "rows" else found_range(look, counts, reach)

    async def _plan(self, look: ColumnLook, share: Share) -> Plan | NeedsInner:
        request = Request(
            text=look.sql,
            search_path=("pg_catalog",),
            epsilon=share.epsilon,
            delta=share.delta if look.kind == "values" else Decimal(0),
            rows_per_unit=1,
            groups_per_unit=1 if look.kind == "values" else None,
            now=system_clock().isoformat(sep=" "),
        )
        return await self._service.plan(request, OWNER)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A look and what it may cost, on which ledger."""

    unit: str
    database: str
    epsilon: Decimal
    delta: Decimal
    ledger: Path | str
    anchor: Path | None


def shares_of(epsilon: Decimal, delta: Decimal, looks: Sequence[ColumnLook]) -> Share:
    """Equal parts of ε for all looks, and of δ for those that need it; rounded down."""
    values = sum(look.kind == "values" for look in looks)
    part = (epsilon / max(1, len(looks))).quantize(Decimal("1e-9"), ROUND_DOWN)
    return Share(part, delta / values if values else Decimal(0))


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
    place = str(wanted.ledger) if isinstance(wanted.ledger, Path) else "the ledger"
    paid = f"looked at privately for ε {spent.normalize():f}{of_delta}, charged to {place}"
    return {(look.table, look.column): result for look, result in results if result != LookResult()}, paid


async def _check_left(wanted: Wanted, policy: Policy, ledger: Ledger) -> None:
    """All or nothing: a look that ends half way has been paid for half."""
    own, shared, _ = await ledger.balances(OWNER, budgets_of(policy), system_clock())
    if (left := min(own.left, shared.left)) < wanted.epsilon:
        raise ConfigurationError(
            f"ε {wanted.epsilon} is more than what is left on this ledger: {left:.4g} of the draft's {shared.limit:f}"
        )
