"""The log's word on every refusal that a client is told: who, which statement, what for; of its text nothing."""

from proxy.log import event, warn
from proxy.metrics import FORBIDDEN, REFUSALS
from proxy.session.recent_refusals import RECENT
from rules.refusal import Refusal
from rules.sql.statement import Kind, Statement


def log_refusal(analyst: str, refusal: Refusal, statement: Statement | None = None, *, fingerprint: str = "") -> None:
    """Note a refusal; a command or a function that is forbidden whatever it reads is named."""
    REFUSALS.labels(type(refusal).__name__, refusal.sqlstate).inc()
    name = fingerprint or ("" if statement is None else statement.fingerprint)
    RECENT.note(analyst, refusal, name, "" if statement is None else statement.shape)
    about = {"analyst": analyst, "kind": type(refusal).__name__, "sqlstate": refusal.sqlstate}
    if name:
        about["statement"] = name
    if statement is not None and statement.kind is Kind.FORBIDDEN:
        FORBIDDEN.inc()
        warn("forbidden", **about, command=statement.command)
    else:
        event("refused", **about)
