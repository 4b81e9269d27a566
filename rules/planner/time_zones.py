"""A plan tells which time zones it computes with."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec

from rules.planner.plan import NeedsInner, Plan, Request
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
