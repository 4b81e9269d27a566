"""One line of JSON an event, of numbers and short names: there is no way to log a text that might quote data."""

import json
import logging
import re
import time
from typing import Final

_LOGGER: Final = logging.getLogger("noisegate")
_NAME: Final = re.compile(r"[A-Za-z0-9_.:@/\[\]-]{1,64}")
_WITHHELD: Final = "(withheld)"

NAMED: Final = frozenset({"analyst", "database", "file", "host", "kind", "peer", "place", "reason", "sqlstate"})
"""The fields that may hold a name. A string in any other field is withheld: it might be a literal or a value."""

Value = int | float | bool | str | None


def event(name: str, **fields: Value) -> None:
    """Say that something happened."""
    _write(logging.INFO, name, fields)


def warn(name: str, **fields: Value) -> None:
    """Say that something happened which somebody should look at."""
    _write(logging.WARNING, name, fields)


def start_logging(level: int = logging.INFO) -> None:
    """Write the events from this level on to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(level)
    _LOGGER.propagate = False


def _write(level: int, name: str, fields: dict[str, Value]) -> None:
    if _LOGGER.isEnabledFor(level):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        head = {"time": now, "level": logging.getLevelName(level).lower(), "event": name}
        _LOGGER.log(level, json.dumps(head | {key: _harmless(key, value) for key, value in fields.items()}))


def _harmless(field: str, value: Value) -> Value:
    """A number says how much, a name says who or where; neither quotes."""
    if isinstance(value, str) and (field not in NAMED or _NAME.fullmatch(value) is None):
        return _WITHHELD
    return value
