"""What a client may ask of the twin before its session: settings by name, and nothing of a backend's own switches.

`options` is the command line of a backend, `PGOPTIONS` to libpq: -W lets it sleep before it hears anybody. Settings
that are read at its start alone can do so too.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from rules.refusal import BadSetting
from rules.sql.session_settings import check_setting_name, is_ours

AT_START: Final = frozenset({"post_auth_delay", "ignore_system_indexes", "local_preload_libraries"})
"""Settings that any role may bring, and that do something only when a backend starts."""

_WORD: Final = re.compile(r"(?:[^\s\\]|\\.)+", re.DOTALL)  # a backslash keeps what follows in the word
_SETTING: Final = re.compile(r"([A-Za-z_][\w.-]*)=.*", re.DOTALL)
_HINT: Final = "Write options as -c name=value, as in PGOPTIONS='-c statement_timeout=5s'."


def check_startup(parameters: Mapping[str, str]) -> None:
    """Refuse a startup that asks for more than settings of the session, or for a setting of ours that there is not.

    Values of ours are checked when the session has them, with everything else that it has.
    """
    for given in dict.fromkeys((*parameters, *_named(parameters.get("options", "")))):
        name = given.replace("-", "_")
        if name.lower() in AT_START:
            raise BadSetting(
                f'parameter "{given}" cannot be set at connection start', hint="Remove it from the connection string."
            )
        if is_ours(name):
            check_setting_name(name)


def _named(options: str) -> Iterator[str]:
    """The settings that the command line names; anything else in it is refused."""
    words = iter(re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL) for word in _WORD.findall(options))
    for word in words:
        given = next(words, "") if word == "-c" else word.removeprefix("-c" if word.startswith("-c") else "--")
        found = _SETTING.fullmatch(given)
        if found is None or given == word:
            raise BadSetting(f'option "{word}" is not allowed', hint=_HINT)
        yield found[1]
