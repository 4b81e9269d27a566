"""Counters and clocks for an operator, in the one registry that the console shows.

None of them depends on a protected value. Counted are statements, refusals, charges and sessions, which follow from
texts, rules and the ledger; rows, groups and what a fault was about are not. How long the real database takes is told,
as an analyst can see it too: `pad_to` in the rules is about that.
"""

from contextlib import AbstractContextManager
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector

Stage = Literal["describe", "plan", "compare", "open", "charge", "database", "settle"]

REGISTRY: Final = CollectorRegistry()
ProcessCollector(registry=REGISTRY)

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)

_STATEMENTS: Final = Histogram(
    "noisegate_statement_seconds",
    "Relayed: from a client's first message to ReadyForQuery. Private: from its first message to its noised columns",
    ["path"],
    buckets=_SECONDS,
    registry=REGISTRY,
)
RELAYED: Final = _STATEMENTS.labels("relayed")
PRIVATE: Final = _STATEMENTS.labels("private")

_STAGES: Final = Histogram(
    "noisegate_stage_seconds", "Parts of a private statement", ["stage"], buckets=_SECONDS, registry=REGISTRY
)
_BY_STAGE: Final = {
    stage: _STAGES.labels(stage) for stage in ("describe", "plan", "compare", "open", "charge", "database", "settle")
}


def stage(name: Stage) -> AbstractContextManager[object]:
    """Note how long a part of a private statement takes, whether it succeeds or not."""
    return _BY_STAGE[name].time()


OPENED: Final = _BY_STAGE["open"]

ANSWERS: Final = Counter(
    "noisegate_answers", "Private answers: drawn, served again, or both", ["source"], registry=REGISTRY
)
REFUSALS: Final = Counter(
    "noisegate_refusals", "Refusals that clients received, by kind", ["kind", "sqlstate"], registry=REGISTRY
)
FORBIDDEN: Final = Counter(
    "noisegate_forbidden", "Refusals of commands and functions that are always refused", registry=REGISTRY
)
LOGINS: Final = Counter("noisegate_logins", "Clients that logged in", registry=REGISTRY)
LOGINS_REFUSED: Final = Counter(
    "noisegate_logins_refused", "Clients that did not, by SQLSTATE", ["sqlstate"], registry=REGISTRY
)
DATABASE_FAILURES: Final = Counter(
    "noisegate_database_failures", "Statements that were not charged, since the database was away", registry=REGISTRY
)
BUDGET_ALERTS: Final = Counter(
    "noisegate_budget_alerts", "Accounts that reached so many percent of their budget", ["percent"], registry=REGISTRY
)
FAULTS: Final = Counter("noisegate_faults", "Failures after a charge that stopped an analyst", registry=REGISTRY)
LEDGER_FAILURES: Final = Counter(
    "noisegate_ledger_failures", "Statements that the ledger kept from an answer", registry=REGISTRY
)
LEDGER_COMMIT: Final = Histogram(
    "noisegate_ledger_commit_seconds",
    "One transaction of the ledger, of one or more jobs",
    buckets=_SECONDS,
    registry=REGISTRY,
)
LEDGER_JOBS: Final = Counter("noisegate_ledger_jobs", "Jobs of the ledger that were committed", registry=REGISTRY)
TWINS_MADE: Final = Counter("noisegate_twins_made_again", "Twins that were lost and made again", registry=REGISTRY)
WORKERS_ENDED: Final = Counter(
    "noisegate_workers_ended", "Planning processes that died or ran out of time", registry=REGISTRY
)
RELOADS: Final = Counter("noisegate_reloads", "Times that the rules were read again", ["outcome"], registry=REGISTRY)
