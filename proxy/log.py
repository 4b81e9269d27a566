"""One line of JSON an event, of numbers and short names: no text that might quote data, but what a fault has run."""

import json
import logging
import re
import time
from typing import Final

_LOGGER: Final = logging.getLogger("noisegate")
_NAME: Final = re.compile(r"[A-Za-z0-9_.:@/\[\]-]{1,64}")
_COMMAND: Final = re.compile(r"[A-Za-z0-9_ ]{1,64}")
_WITHHELD: Final = "(withheld)"
_STATEMENT: Final = "inner_sql"
"""The one field that holds a text. It has the analyst's literals and no answer, and a fault cannot be found without."""

NAMED: Final = frozenset(
    {
        *("analyst", "database", "file", "host", "kind", "operator", "peer", "place", "reason", "role", "sqlstate"),
        *("statement", "user"),
    }
)
"""The fields that may hold a name. A string in any other field is withheld: it might be a literal or a value.

`statement` is the fingerprint of a text without its constants, `reason` one of our own words for a cause.
"""
COMMAND: Final = "command"
"""The field for an SQL command, which may be of several words, or for a function."""

Value = int | float | bool | str | None


def event(name: str, **fields: Value) -> None:
    """Say that something happened."""
    _write(logging.INFO, name, fields)


def warn(name: str, **fields: Value) -> None:
    """Say that something happened which somebody should look at."""
    _write(logging.WARNING, name, fields)


def alarm(name: str, *, inner_sql: str, **fields: Value) -> None:
    """Say that something happened which must not, and what was run on the real database when it did."""
    _write(logging.ERROR, name, {**fields, _STATEMENT: inner_sql})


def start_logging(level: int = logging.INFO) -> None:
    """Write the events from this level on to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(level)
    _LOGGER.propagate = False
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # which no line tells
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # it quotes servers, and we say what has failed


def _write(level: int, name: str, fields: dict[str, Value]) -> None:
    if _LOGGER.isEnabledFor(level):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        head = {"time": now, "level": logging.getLevelName(level).lower(), "event": name}
        line = json.dumps(head | {key: _harmless(key, value) for key, value in fields.items()})
        place = "log.py", 0  # looking for the caller takes as long as all the rest
        _LOGGER.handle(_LOGGER.makeRecord(_LOGGER.name, level, *place, line, (), None))


def _harmless(field: str, value: Value) -> Value:
    """A number says how much, a name says who or where; neither quotes."""
    if not isinstance(value, str) or field == _STATEMENT:
        return value
    if not value and field in NAMED:
        return None
    form = _COMMAND if field == COMMAND else _NAME if field in NAMED else None
    return value if form is not None and form.fullmatch(value) else _WITHHELD
