"""Notices and refusals of synthetic rows that one session reads."""

from typing import Final

from proxy.execute.synopses import without_bars
from proxy.session.interfaces import StatementService
from proxy.session.twin_probe import SessionState
from rules.sql.statement import Statement

QUIET: Final = ("warning", "error")  # of client_min_messages


class SyntheticRows:
    """The synopses that a session's statements name."""

    def __init__(self, service: StatementService, analyst: str) -> None:
        self._service, self._analyst = service, analyst
        self._known: set[str] = set()  # of which the session was told

    def check(self, statement: Statement) -> None:
        """Refuse what names a synopsis that this analyst cannot read: the twin would say less."""
        for relation in statement.relations:
            state = None if relation.schema is None else self._service.synopsis(relation.schema)
            if state is not None and (refusal := state.refusal(self._analyst)) is not None:
                raise refusal

    def told(self, statement: Statement, moment: SessionState) -> tuple[str, ...]:
        """Return what is to be said of the synopses that a statement reads, each once a session."""
        read = [relation for relation in moment.relations if relation is not None]
        schemas = dict.fromkeys(schema for schema, _ in read)
        states = [state for schema in schemas if (state := self._service.synopsis(schema)) is not None]
        if states and statement.bars and not any(self._service.is_protected(*relation) for relation in read):
            raise without_bars(statement.bars[0])
        new = [state for state in states if state.name not in self._known]
        self._known.update(state.name for state in new)
        is_quiet = moment.setting("noisegate.notices") == "off" or moment.setting("client_min_messages") in QUIET
        return () if is_quiet else tuple(state.notice for state in new)
