"""Plans of statements: made by worker processes, enforced by the kernel of this process, and remembered."""

from dataclasses import replace
from typing import Final, Protocol

from proxy.execute.rulebook import Rulebook
from proxy.metrics import stage
from proxy.recent_values import RecentValues
from rules.catalog import Catalog
from rules.planner.plan import NeedsInner, Plan, Request
from rules.policy.model import Policy
from rules.release.sensitivity import enforced
from rules.sql.statement import Reading

_BYTES: Final = 16 * 1024 * 1024  # of requests and plans, as they are piped: a short text can have many groups


class Planner(Protocol):
    """Reads and plans in processes that may be killed. `proxy.execute.worker_pool` has the one that is used."""

    async def load(self, policy: Policy, catalog: Catalog) -> None: ...

    async def read(self, text: str, analyst: str) -> Reading: ...

    async def plan(self, request: Request, analyst: str) -> tuple[Plan | NeedsInner, int]:
        """Plan a statement, or say what comes first; and how many bytes that has."""


class Plans:
    """The plans of all sessions. A plan depends on its request and the rules alone, so it is remembered, enforced."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self._kept: RecentValues[tuple[int, Request], Plan | NeedsInner] = RecentValues(_BYTES)

    async def plan(self, request: Request, analyst: str, rulebook: Rulebook) -> Plan | NeedsInner:
        """Plan one statement, or refuse it, or say what must be answered before."""
        if (known := self.find(request, rulebook)) is not None:
            return known
        with stage("plan"):
            plan, size = await self._planner.plan(request, analyst)
        if isinstance(plan, Plan):
            plan = _enforced(replace(plan, time_zone=request.time_zone, generation=rulebook.generation), rulebook)
            if plan.depends_on_time:
                return plan
        self._kept.keep((rulebook.generation, replace(request, now="")), plan, size)
        return plan

    def find(self, request: Request, rulebook: Rulebook) -> Plan | NeedsInner | None:
        """Find the plan of a statement that was planned by these rules before."""
        return self._kept.find((rulebook.generation, replace(request, now="")))


def _enforced(plan: Plan, rulebook: Rulebook) -> Plan:
    """Put the numbers of the statements that are run here into a plan, whatever the planner said of them."""
    kernel, size = rulebook.kernel, rulebook.policy.group_size
    blocks, foreseen = (tuple(enforced(block, kernel, size) for block in part) for part in (plan.blocks, plan.foreseen))
    return replace(plan, blocks=blocks, foreseen=foreseen)
