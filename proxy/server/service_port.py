"""What a session asks of the rules: to read a text, to plan a private statement, to answer it."""

from typing import Protocol

from proxy.query.service import Answer
from rules.rewrite.plan import First, Plan, Request
from rules.sql.commands import Limits
from rules.sql.statement import Reading, Statement


class StatementService(Protocol):
    """`proxy.query.service.Service`, as sessions see it. Whatever it does not do, it raises as a Refusal."""

    @property
    def limits(self) -> Limits:
        """What the rules in force say of one statement."""

    async def read(self, text: str, analyst: str) -> Reading: ...

    def may_touch(self, statement: Statement) -> bool: ...

    def is_protected(self, schema: str, name: str) -> bool:
        """Whether the twin cannot answer what reads this table."""

    async def plan(self, request: Request, analyst: str) -> Plan | First: ...

    async def check_affordable(self, first: Plan, rest: Plan, *, analyst: str, session: str, reuse: bool) -> None:
        """Whether a part that is paid first leaves enough for the rest."""

    async def answer(
        self, plan: Plan, *, analyst: str, session: str, timeout_seconds: float, reuse: bool = True
    ) -> Answer: ...
