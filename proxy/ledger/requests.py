"""Requests for more budget: filed by analysts, granted or refused by operators, all of it entries of the chain."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final

from proxy.ledger import charges
from proxy.ledger.connection import Connection
from proxy.ledger.integrity import append
from proxy.ledger.periods import running_period
from rules.accounting import chain
from rules.accounting.budgets import Budgets
from rules.accounting.store import BudgetRequest, FiledRequest, Grant
from rules.refusal import NotAllowed, Refusal, TooMany

MOST_OPEN: Final = 10  # of one analyst: each is an entry that is kept


class NoSuchRequest(Refusal):
    """A number that is no open request's."""

    sqlstate = "42704"  # undefined_object


@dataclass(frozen=True, slots=True)
class OperatorAnswer:
    """An operator's answer to a request: by whom, when, and in which words."""

    time: datetime
    operator: str
    words: str = ""


def file(
    connection: Connection, analyst: str, budget_request: BudgetRequest, budgets: Budgets, now: datetime
) -> FiledRequest:  # fmt: skip
    """Append a request for the running period."""
    open_ones = [request for request in filed(connection, budgets, now, analyst) if request.state == "open"]
    if len(open_ones) >= MOST_OPEN:
        raise TooMany(
            f"{MOST_OPEN} of your requests are open already",
            hint="Your DBA answers them; TABLE noisegate.requests lists them.",
        )
    period = running_period(connection, now, budgets)
    number = append(connection, chain.request_entry(analyst, now, period=period, terms=budget_request))
    return FiledRequest(number, now, analyst, period, budget_request)


def filed(
    connection: Connection, budgets: Budgets, now: datetime, analyst: str | None = None
) -> tuple[FiledRequest, ...]:  # fmt: skip
    """All requests, each with what became of it; an open one of an earlier period has lapsed."""
    period, requests = running_period(connection, now, budgets), dict[int, FiledRequest]()
    for number, fields in _entries(connection, analyst):
        request = int(fields.get("request", number))
        if fields["kind"] == "request":
            requests[request] = _request(request, fields)
        elif request in requests:  # a grant without a request answers none
            requests[request] = _answered(requests[request], fields)
    lapsed = (
        replace(request, state="lapsed") if request.state == "open" and request.period != period else request
        for request in requests.values()
    )
    return tuple(lapsed)


def grant(
    connection: Connection, number: int, answered: OperatorAnswer, budgets: Budgets, epsilon: Decimal | None
) -> FiledRequest:
    """Append a grant of what is asked for, or of another ε."""
    request = _open(connection, number, answered.time, budgets)
    if request.analyst not in budgets.analysts:
        raise NotAllowed(f"{request.analyst} is not in the rules any more")
    granted = request.terms.epsilon if epsilon is None else epsilon
    if granted > budgets.dataset.epsilon:
        raise NotAllowed(
            f"cannot grant ε {granted:f}: all analysts together have {budgets.dataset.epsilon:f}",
            hint="A grant cannot be taken back.",
        )
    about = answered.time, request.analyst, granted, answered.operator
    charges.grant(connection, Grant(*about, number, answered.words), budgets)
    return replace(request, state="granted", granted=granted, answer=answered.words, operator=answered.operator)


def refuse(connection: Connection, number: int, answered: OperatorAnswer, budgets: Budgets) -> FiledRequest:
    """Append that a request is not granted."""
    request = _open(connection, number, answered.time, budgets)
    entry = chain.refuse_entry(
        request.analyst, answered.time, request=number, operator=answered.operator, answer=answered.words
    )
    append(connection, entry)
    return replace(request, state="refused", answer=answered.words, operator=answered.operator)


def is_open(connection: Connection, analyst: str, number: int) -> bool:
    """Return whether nobody has answered a request, whatever its period."""
    return not any(
        fields.get("request") == number for _, fields in _entries(connection, analyst) if fields["kind"] != "request"
    )


def _open(connection: Connection, number: int, now: datetime, budgets: Budgets) -> FiledRequest:
    request = next((request for request in filed(connection, budgets, now) if request.number == number), None)
    if request is None:
        raise NoSuchRequest(f"there is no request {number}")
    if request.state != "open":
        because = "its period is over" if request.state == "lapsed" else f"it was {request.state} by {request.operator}"
        raise NoSuchRequest(f"request {number} is not open: {because}")
    return request


def _entries(connection: Connection, analyst: str | None) -> Iterator[tuple[int, chain.Fields]]:
    """The entries about requests, and grants without one, in their order."""
    query = "SELECT id, entry FROM entries WHERE kind IN ('request', 'grant', 'refuse')"
    of = ("", ()) if analyst is None else (" AND analyst = ?", (analyst,))
    for number, entry in connection.execute(f"{query}{of[0]} ORDER BY id", of[1]):
        fields = json.loads(entry)
        if fields["kind"] == "request" or "request" in fields:
            yield number, fields


def _request(number: int, fields: chain.Fields) -> FiledRequest:
    budget_request = BudgetRequest(Decimal(fields["epsilon"]), fields["reason"])
    return FiledRequest(
        number, datetime.fromisoformat(fields["time"]), fields["analyst"], fields["period"], budget_request
    )  # fmt: skip


def _answered(request: FiledRequest, fields: chain.Fields) -> FiledRequest:
    answer = {"answer": fields["answer"], "operator": fields["operator"]}
    if fields["kind"] == "refuse":
        return replace(request, state="refused", **answer)
    return replace(request, state="granted", granted=Decimal(fields["epsilon"]), **answer)
