"""Find how a plan depends on time: whether its statement reads the clock, and with which time zones it computes."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec

from rules.planner.plan import NeedsInner, Plan, Request
from rules.sql.grammar import Node, bodies, holders, items, strings
from rules.values.time_zones import noting_zones

Others = ParamSpec("Others")
Planning = Callable[Concatenate[Request, Others], Plan | NeedsInner]


def telling_zones(make: Planning[Others]) -> Planning[Others]:
    """Planning, after which each plan knows its zones."""

    @wraps(make)
    def made(request: Request, /, *args: Others.args, **kwargs: Others.kwargs) -> Plan | NeedsInner:
        with noting_zones() as notes:
            plan = make(request, *args, **kwargs)
        return replace(plan, zones=notes.uses(request.time_zone)) if isinstance(plan, Plan) else plan

    return made


_CLOCKS = frozenset(("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp"))


def reads_clock(query: Node) -> bool:
    """Return whether the moment of the statement stands anywhere in it."""
    return bool(holders(query, "SQLValueFunction")) or any(map(_is_clock, bodies(query, "FuncCall")))


def _is_clock(body: Node) -> bool:
    function = strings(body.get("funcname"))[-1]
    return function in _CLOCKS or (function == "age" and len(items(body, "args")) == 1)
