"""The console's language: parse a handful of commands before any of them runs."""

import re
from dataclasses import dataclass
from typing import Final

from rules.refusal import Refusal

_TOKEN: Final = re.compile(
    r"""\s*(?:--[^\n]*\s*)*(?:(?P<name>"(?:[^"]|"")*")|(?P<word>[A-Za-z0-9_.$-]+)|(?P<end>;)|$)"""
)

SHOWN: Final[dict[str, tuple[str, ...]]] = {
    "ANALYSTS": ("analyst", "sessions", "epsilon_left", "stopped"),
    "SESSIONS": ("id", "analyst", "peer", "state", "seconds", "running_seconds", "statement"),
    "BUDGETS": ("account", "epsilon", "spent", "left", "ever_spent"),
    "POOL": ("limit", "in_use", "idle", "waiting", "paused"),
    "TWINS": ("twin", "running", "closed_tables"),
    "FAULTS": ("analyst", "time", "charge", "cause"),
    "RULES": ("key", "value"),
    "UNSEEN": ("table", "column", "change"),
    "VERSION": ("version",),
    "HELP": ("command", "effect"),
}
HELP: Final = (
    ("SHOW ANALYSTS", "analysts of the rules: their sessions, their remaining budget, and whether a fault stops them"),
    ("SHOW SESSIONS", "open sessions, with the id for KILL, and how long each running statement has run"),
    ("SHOW BUDGETS", "what is spent and left in the running period"),
    ("SHOW POOL", "connections to the real database"),
    ("SHOW TWINS", "the twins, and public tables that could not be copied"),
    ("SHOW FAULTS", "faults that stop analysts now"),
    ("SHOW RULES", "the rules in force"),
    ("SHOW UNSEEN", "parts of the schema that are hidden, as they are newer than the lock or the rules"),
    ("SHOW VERSION", "the version of the proxy"),
    ("HELP", "this list, as SHOW HELP"),
    ("RELOAD", "read rules and certificate again, as SIGHUP does"),
    ("PAUSE", "let running statements on the real database end, and hold new ones"),
    ("RESUME", "let it begin"),
    ("KILL id", "end a session; KILL ANALYST name: all of an analyst's"),
    ("FORGIVE name", "let an analyst query again after a fault has stopped the account"),
    ("GRANT EPSILON n TO name", "let an analyst spend so much more in the running period, within the budget of all"),
    ("REFRESH TWIN", "look at the real database's schema and public tables now"),
)
_COMPLETION: Final = re.compile(
    r"SELECT pg_catalog\.lower\(name\) FROM pg_catalog\.pg_settings\s+"
    r"WHERE pg_catalog\.lower\(name\) LIKE pg_catalog\.lower\('([A-Za-z]*)%'\)\s+LIMIT \d+"
)  # which psql 15 and later asks when somebody presses the tab key after SHOW
_SETTING: Final = re.compile(r"""\s*SET\s(?:[^;'"]|'[^']*'|"[^"]*")*""", re.IGNORECASE)
_TRANSACTIONS: Final = {
    **dict.fromkeys(("BEGIN", "START"), "BEGIN"),
    **dict.fromkeys(("COMMIT", "END"), "COMMIT"),
    **dict.fromkeys(("ROLLBACK", "ABORT"), "ROLLBACK"),
}


class SyntaxProblem(Refusal):
    """A text that is no command."""

    sqlstate = "42601"  # syntax_error


@dataclass(frozen=True, slots=True)
class Command:
    """One command: SHOW, KILL …; or BEGIN, COMMIT, ROLLBACK and SET, which drivers send and which do nothing.

    COMPLETE is psql's question for the words that may follow SHOW.
    """

    verb: str
    arguments: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that it answers with."""
        if self.verb == "COMPLETE":
            return ("lower",)
        return SHOWN[self.arguments[0]] if self.verb == "SHOW" else ()


def commands_of(text: str) -> list[Command]:
    """The commands of a text; raises SyntaxProblem, with the position.

    Example:
        >>> commands_of("show pool; kill analyst ada;")
        [Command(verb='SHOW', arguments=('POOL',)), Command(verb='KILL', arguments=('ANALYST', 'ada'))]
    """
    if completion := _COMPLETION.fullmatch(text):
        return [Command("COMPLETE", (completion[1],))]
    commands: list[Command] = []
    words: list[str] = []
    start = at = 0
    while at < len(text):
        if not words and (setting := _SETTING.match(text, at)):  # which need be no words
            commands.append(Command("SET"))
            at = setting.end()
            continue
        token = _TOKEN.match(text, at)
        if token is None:
            raise SyntaxProblem(f'syntax error at or near "{text[at:].strip()[:1]}"', position=at + 1, hint=_HINT)
        if token["name"] or token["word"]:
            start = start if words else token.end() - len(token["name"] or token["word"])
            words.append(token["word"] or token["name"][1:-1].replace('""', '"'))
        elif words:
            commands.append(_command(words, start))
            words = []
        at = token.end() if token.end() > at else len(text)
    return [*commands, _command(words, start)] if words else commands


def completions(prefix: str) -> list[tuple[str]]:
    """The words that may follow SHOW and begin so, in lower case, as psql wants them."""
    return [(name.lower(),) for name in SHOWN if name.startswith(prefix.upper())]


_AMOUNT: Final = re.compile(r"\d{1,6}(?:\.\d{1,9})?")
_DIGIT: Final = re.compile(r"[1-9]")
_HINT: Final = "SHOW HELP lists the commands."


def _command(words: list[str], start: int) -> Command:
    verb, rest = words[0].upper(), tuple(words[1:])
    upper = tuple(word.upper() for word in rest)
    if verb in _TRANSACTIONS:
        return Command(_TRANSACTIONS[verb])
    match verb, upper:
        case "SET", _:
            return Command("SET")
        case "SHOW", (what,) if what in SHOWN:
            return Command("SHOW", (what,))
        case "HELP", ():
            return Command("SHOW", ("HELP",))
        case (("RELOAD" | "PAUSE" | "RESUME"), ()):
            return Command(verb)
        case "KILL", ("ANALYST", _):
            return Command("KILL", ("ANALYST", rest[1]))
        case "KILL", (number,) if number.isdecimal():
            return Command("KILL", (number,))
        case "FORGIVE", (_,):
            return Command("FORGIVE", rest)
        case "GRANT", ("EPSILON", amount, "TO", _):
            if not (_AMOUNT.fullmatch(amount) and _DIGIT.search(amount)):
                hint = "Write it with at most six digits, and nine after the point: GRANT EPSILON 0.5 TO name"
                raise SyntaxProblem(
                    f'GRANT EPSILON takes a number above 0, not "{amount}"', position=start + 1, hint=hint
                )
            return Command("GRANT", (amount, rest[3]))
        case "REFRESH", ("TWIN",):
            return Command("REFRESH")
    raise SyntaxProblem(f'"{" ".join(words)}" is no command of the console', position=start + 1, hint=_HINT)
