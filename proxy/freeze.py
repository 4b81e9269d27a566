"""Freeze the schema of a running proxy: as the lock file has it, or as it was at the start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from proxy.load_config import lock_of, read_lock, tell
from proxy.log import warn
from rules.catalog import Catalog
from rules.policy.freeze import Seen, Unseen, find_unseen, hide_unseen, see
from rules.policy.model import Policy


@dataclass(frozen=True)
class Freeze:
    """The schema as it was seen: what appears later is hidden from analysts until the DBA acknowledges it."""

    rules: Path
    seen: Seen | None = None
    unseen: tuple[Unseen, ...] = ()  # what is hidden now, for operators

    def read_again(self, policy: Policy, catalog: Catalog) -> "Freeze":
        """At the start and when rules are loaded, which are acts of the DBA."""
        seen = read_lock(self.rules)
        if seen is None:
            tell(
                f"warning: there is no {lock_of(self.rules).name}: the schema as it is now is taken as seen, at each "
                f"start and reload anew. noisegate lock {self.rules} keeps it"
            )
        return replace(self, seen=seen or see(policy, catalog))

    def hide(self, policy: Policy, catalog: Catalog) -> Policy:
        """The rules as analysts meet them."""
        return policy if self.seen is None else hide_unseen(policy, catalog, self.seen)

    def told(self, policy: Policy, catalog: Catalog, before: Sequence[Unseen]) -> "Freeze":
        """Say what is hidden now and was not before."""
        unseen = () if self.seen is None else find_unseen(policy, catalog, self.seen)
        for late in unseen:
            if late not in before:
                finding = late.finding(lock_of(self.rules).name, str(self.rules))
                tell(str(finding))
                warn("hidden_until_locked", place=late.place)
        return replace(self, unseen=unseen)
