"""What a session asks of the rules: to read a text, to plan a private statement, to answer it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from proxy.execute.promises import Promises
from proxy.execute.service import Answer
from proxy.execute.synopses import SynopsisState
from rules.mechanisms.release_plan import Block
from rules.planner.plan import NeedsInner, Plan, PreviewRows, Request
from rules.release.release import Noised
from rules.sql.session_settings import SettingLimits
from rules.sql.statement import Reading, Statement


class StatementService(Protocol):
    """`proxy.execute.service.Service`, as sessions see it. Whatever it does not do, it raises as a Refusal."""

    @property
    def limits(self) -> SettingLimits:
        """What the rules in force say of one statement."""

    def limits_of(self, analyst: str) -> SettingLimits:
        """What they say of a statement of one analyst."""

    @property
    def promises(self) -> Promises:
        """What was promised for noisegate.within."""

    async def read(self, text: str, analyst: str) -> Reading: ...

    def may_touch(self, statement: Statement) -> bool: ...

    def is_protected(self, schema: str, name: str) -> bool:
        """Whether the twin cannot answer what reads this table."""

    def synopsis(self, schema: str) -> SynopsisState | None:
        """The synopsis of this name, if the rules have one."""

    def preview_rows(self, analyst: str) -> tuple[PreviewRows, ...]:
        """Synthetic rows that previews show this analyst, where the rules say so."""

    def find_plan(self, request: Request) -> Plan | NeedsInner | None:
        """What `plan` would say, where it is at hand."""

    def find_answer(self, plan: Plan, *, analyst: str, session: str) -> Answer | None:
        """What `answer` would give with reuse, where it is at hand and costs nothing."""

    async def plan(self, request: Request, analyst: str) -> Plan | NeedsInner: ...

    async def find_released(
        self, blocks: Sequence[Block], *, analyst: str, session: str, time_zone: str
    ) -> Sequence[tuple[Block, Noised]] | None:
        """What is on the analyst's account of all these blocks; None where something of it would have to be paid."""

    async def check_affordable(self, first: Plan, rest: Plan, *, analyst: str, session: str, reuse: bool) -> None:
        """Whether a part that is paid first leaves enough for the rest."""

    async def answer(
        self,
        plan: Plan,
        *,
        analyst: str,
        session: str,
        timeout_seconds: float,
        reuse: bool = True,
        own: Mapping[str, tuple[str, ...]] = ...,
    ) -> Answer: ...
