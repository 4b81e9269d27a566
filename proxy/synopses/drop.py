"""Drop a synopsis or a cube: a mark in the ledger takes away what was made, for every proxy, until it is made again.

What was paid stays paid, and stays in the ledger.
"""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final

from proxy.execute.rulebook import Rulebook
from rules.accounting.store import Charge, KeptRelease, LedgerStore, Release
from rules.mechanisms.cost import Mechanism
from rules.policy.synopses import account_name

_DROPPED: Final = "dropped"
_SESSION: Final = "synopsis"


async def drop(name: str, rulebook: Rulebook, ledger: LedgerStore, now: datetime) -> bool:
    """Mark what was made last as dropped; return whether there was anything. It costs nothing."""
    account = account_name(name)
    made = await ledger.newest_of(account)
    if not made or is_mark(made):
        return False
    shape = f"drop {account}"
    charge = Charge(now, account, _SESSION, shape, rulebook.policy.unit, (), (), statement=shape, shape=shape)
    receipt = await ledger.charge(charge, rulebook.budgets)
    await ledger.settle(receipt.charge, [Release(account, _DROPPED, Mechanism.pure(Decimal(0)), (), ())])
    return True


async def is_dropped(name: str, ledger: LedgerStore) -> bool:
    """Tell whether nothing was made since it was dropped."""
    return is_mark(await ledger.newest_of(account_name(name)))


def is_mark(kept: Iterable[KeptRelease]) -> bool:
    """Tell whether these releases are the mark of a drop."""
    return any(each.release.measure == _DROPPED for each in kept)
