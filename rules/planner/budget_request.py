"""noisegate.request(5, 'why'): asks the DBA for more budget. It reads nothing; the ledger keeps it.

It stands alone in its statement, so that it is asked once whenever the statement is run, and never by a view or row by
row.
"""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Final

from rules.accounting.store import BudgetRequest
from rules.planner.plan import Plan, Request
from rules.policy.model import Policy
from rules.refusal import BadSetting, NotSupported
from rules.sql.grammar import deparse, parse
from rules.sql.selects import query_of
from rules.sql.system_views import REQUEST, SCHEMA
from rules.sql.tree import Json, Node, holders, items, kind, strings

MOST_REASON: Final = 500  # characters
_USE: Final = "SELECT noisegate.request(5, 'why'); asks for an ε of 5 more in this period."
_NAMES: Final = ("epsilon", "reason")
_ALONE: Final = frozenset(("targetList", "limitOption", "op"))


def request_plan(tree: Node, request: Request, policy: Policy) -> Plan | None:
    """The plan of a statement that is such a request; None of any other."""
    query = query_of(tree)
    if query is None or not any(map(is_request, holders(query, "FuncCall"))):
        return None
    if request.explains:
        raise NotSupported("EXPLAIN of noisegate.request is not supported", hint=_USE)
    body = kind(query)[1]
    targets = items(body, "targetList")
    call = kind(targets[0])[1].get("val") if len(targets) == 1 else None
    if kind(tree)[0] != "SelectStmt" or call is None or not is_request(call) or not body.keys() <= _ALONE:
        raise NotSupported("noisegate.request must stand alone in a SELECT", hint=_USE, about="request")
    arguments = {name: _text(node, request) for name, node in _arguments(call)}
    epsilon, reason = arguments.get("epsilon"), arguments.get("reason")
    if epsilon is None or reason is None:
        raise NotSupported("noisegate.request takes two constants: an ε and a reason", hint=_USE, about="request")
    wanted = BudgetRequest(_epsilon(epsilon, policy), _reason(reason))
    name = str(kind(targets[0])[1].get("name") or REQUEST)
    hole = len(request.parameter_types) + 1
    head, _, rest = deparse(_answer(name)).partition("$1")
    return Plan((), (head, hole, rest), hole - 1, Decimal(0), Decimal(0), wanted=wanted)


def is_request(node: Json) -> bool:
    name, body = kind(node)
    return name == "FuncCall" and tuple(strings(body.get("funcname"))) == (SCHEMA, REQUEST)


def _arguments(call: Json) -> Iterator[tuple[str, Json]]:
    """By their names, also where they are given by place; PostgreSQL has checked that each is there once."""
    for place, argument in enumerate(items(kind(call)[1], "args")):
        is_named = kind(argument)[0] == "NamedArgExpr"
        body = kind(argument)[1]
        yield (str(body.get("name")), body.get("arg")) if is_named else (_NAMES[min(place, 1)], argument)


def _text(node: Json, request: Request) -> str | None:
    """A constant, be it cast or not, or the value of a parameter."""
    name, body = kind(node)
    match name:
        case "TypeCast":
            return _text(body.get("arg"), request)
        case "ParamRef":
            number = body.get("number")
            return request.parameters[number - 1] if isinstance(number, int) else None
        case "A_Const":
            value = next((node for node in body.values() if isinstance(node, dict)), None)
            return None if value is None else str(next(iter(value.values()), 0))
    return None


def _epsilon(text: str, policy: Policy) -> Decimal:
    most = policy.budget.epsilon
    try:
        epsilon = Decimal(text.strip())
    except InvalidOperation:
        epsilon = Decimal("NaN")
    if not (epsilon.is_finite() and 0 < epsilon <= most and len(text) <= 40):
        example = min(most, Decimal(1)).normalize()
        hint = f"All analysts together have {most:f}. For example: SELECT noisegate.request({example:f}, 'why')"
        raise BadSetting(f"the requested ε must be above 0 and at most {most:f}", hint=hint)
    return epsilon


def _reason(text: str) -> str:
    """It is shown to a DBA at a terminal, so it holds nothing that a terminal obeys."""
    reason = " ".join(text.split())
    if not reason or len(reason) > MOST_REASON or not reason.isprintable():
        raise BadSetting(
            f"the reason of a request is a text of 1 to {MOST_REASON} characters", hint="Say what you need it for."
        )
    return reason


def _answer(name: str) -> Node:
    (piece,) = parse("SELECT ($1::pg_catalog.text[])[1]")
    kind(items(kind(piece.tree)[1], "targetList")[0])[1]["name"] = name
    return piece.tree
