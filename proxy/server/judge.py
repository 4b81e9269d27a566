"""What a statement needs before the twin may have it: nothing, a refusal, or a closer look."""

import re
from collections.abc import Callable
from typing import Final

from proxy.server.names import MOST_BYTES, RESERVED, Names, Prepared
from proxy.server.service_port import StatementService
from rules.refusal import NotAllowed, NotSupported, Refusal, TooComplex
from rules.sql.commands import check_setting, is_ours
from rules.sql.statement import Kind, Reading, Statement

READS: Final = frozenset({Kind.QUERY, Kind.DECLARE, Kind.COPY_OUT, Kind.EXPLAIN, Kind.PREPARE})
NAMES: Final = frozenset({Kind.PREPARE, Kind.EXECUTE, Kind.DEALLOCATE, Kind.DISCARD})

_HOLD: Final = re.compile(r"\bwith\s+hold\b", re.IGNORECASE)

UNREADABLE: Final = NotSupported(
    "this statement is not understood by the proxy",
    hint="Write it in plain SQL, one statement at a time.",
)
FUNCTION_CALL: Final = NotSupported(
    "function calls of the protocol are not supported", hint="SELECT function(…) works."
)
TOO_MANY_PREPARED: Final = TooComplex(
    f"more than {MOST_BYTES // 1024**2} MB of prepared statements", hint="DEALLOCATE those that are done with."
)
RESERVED_NAME: Final = NotAllowed(f'names that begin with "{RESERVED}" are reserved for the proxy')


def find_refusal(statement: Statement, service: StatementService, names: Names) -> Refusal | None:
    """Why a statement is refused for what it is, whatever it reads; its place is in the statement's own text."""
    if statement.kind is Kind.PREPARE and names.are_full:
        return TOO_MANY_PREPARED
    if statement.kind is Kind.FORBIDDEN:
        return statement.refusal or UNREADABLE
    if (statement.name or "").startswith(RESERVED):
        return RESERVED_NAME
    return _setting_refusal(statement, service)


def odd_strings() -> Refusal:
    """For a text that PostgreSQL reads in another way than the grammar of the proxy."""
    return NotSupported(
        "standard_conforming_strings = off changes where strings end", hint="SET standard_conforming_strings = on;"
    )


def is_plain(statement: Statement, service: StatementService, names: Names) -> bool:
    """Whether the twin may have a statement untouched, and unobserved."""
    if statement.kind is Kind.FORBIDDEN or (statement.name or "").startswith(RESERVED):
        return False
    if any(is_ours(name) for name, _ in statement.settings):
        return False
    if statement.kind in READS and may_touch(statement, service, names):
        return False
    if statement.names_prepared or statement.kind is Kind.DEALLOCATE:
        return statement.name is not None and names.find_prepared(statement.name) is None
    return statement.kind is not Kind.DISCARD


def needs_transaction(statement: Statement) -> bool:
    """Whether PostgreSQL refuses a statement outside a transaction: nothing should be paid for it there."""
    return statement.kind is Kind.DECLARE and _HOLD.search(statement.text) is None


def may_touch(statement: Statement, service: StatementService, names: Names) -> bool:
    """Whether a statement names what may be closed, or a temporary view, which may read that."""
    return service.may_touch(statement) or names_view(statement, names)


def names_view(statement: Statement, names: Names) -> bool:
    return any(names.may_be_view(relation.name) for relation in statement.relations)


def may_be_private(statement: Statement, service: StatementService, names: Names) -> bool:
    """Whether the tables that a statement names have to be resolved before it runs."""
    if statement.names_prepared:
        return True  # its name may have been prepared a moment ago
    return statement.kind in READS and statement.kind is not Kind.PREPARE and may_touch(statement, service, names)


def needs_look(statement: Statement, service: StatementService, names: Names) -> bool:
    """Whether a statement, once prepared, may read protected tables or change names when it runs."""
    return (
        statement.kind in NAMES
        or statement.names_prepared
        or (statement.kind in READS and may_touch(statement, service, names))
    )


def are_plain(reading: Reading, service: StatementService, names: Names) -> bool:
    return not reading.unreadable and all(is_plain(each, service, names) for each in reading.statements)


def effect_of(statement: Statement, names: Names, forget: Callable[[], None]) -> None:
    """What a statement that has run did to the names of prepared statements. `forget`: all are gone, ours too."""
    match statement.kind:
        case Kind.PREPARE if statement.name is not None:
            inside = Statement(Kind.QUERY, statement.query, 0, statement.relations)
            names.prepare(statement.name, Prepared(inside, is_as_written=False))
        case Kind.DEALLOCATE if statement.name is not None:
            names.prepare(statement.name, None)
        case Kind.DEALLOCATE:
            names.forget_prepared()
            forget()
        case Kind.DISCARD if statement.name == "all":
            names.forget_prepared()
            forget()


def _setting_refusal(statement: Statement, service: StatementService) -> Refusal | None:
    """A value that no statement could be answered with is refused when it is SET, as far as it can be seen there."""
    try:
        for name, value in statement.settings:
            if is_ours(name):
                check_setting(name, value, service.limits)
    except Refusal as refusal:
        return refusal
    return None
