"""`noisegate user`: add, rotate, expire and remove analysts, in the rules file and the file of verifiers.

Both are changed as texts, so that comments stay; what is written was read as rules before.
"""

import argparse
import json
import os
import secrets
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from getpass import getpass
from pathlib import Path
from tempfile import NamedTemporaryFile

from proxy.commands.basic import Names, add_rules, epsilon_of, moment_of, say
from proxy.execute.clock import system_clock
from proxy.load_config import ConfigurationError, read_rules
from proxy.load_logins import VerifiersError, line_of, read_filed, read_verifiers, verifiers_path, without_name
from proxy.wire.scram import USUAL_ITERATIONS, Verifier
from rules.policy.check_budget import wrong_name
from rules.policy.load import load_policy
from rules.policy.model import Policy
from rules.policy.rules_yaml import CannotEdit, RulesError, put, remove

GRACE = timedelta(days=7)
_IN_FORCE = "in force: at once for passwords in a file, after SIGHUP or RELOAD for the rules"


@dataclass(frozen=True, slots=True)
class NewUser:
    """A new analyst, and the budget."""

    name: str
    role: str | None = None
    epsilon: Decimal | None = None
    until: datetime | None = None


@dataclass
class Files:
    """The texts of both files, changed here and written together at the end."""

    rules: Path
    policy: Policy
    text: str
    verifiers: Path | None
    lines: str
    before: tuple[str, str]  # both as they were read

    @classmethod
    def read(cls, rules: Path) -> "Files":
        policy = read_rules(rules)
        path, lines = verifiers_path(policy, rules), ""
        if path is not None:
            read_filed(policy, rules)
            lines = path.read_text(encoding="utf-8")
        text = rules.read_text(encoding="utf-8")
        return cls(rules, policy, text, path, lines, (text, lines))

    def write(self) -> None:
        """Replace what has changed, each file in one step; raises ConfigurationError where it would be no rules."""
        try:
            policy = load_policy(self.text, str(self.rules), os.environ, needs_verifiers=False)
            filed = read_verifiers(self.lines, str(self.verifiers))
        except (RulesError, VerifiersError) as error:
            raise ConfigurationError(
                f"nothing is written: with this change the rules file has errors\n{error}"
            ) from None
        both = sorted(name for name in filed if name in policy.accounts and policy.accounts[name].password is not None)
        if both:
            raise ConfigurationError(f"nothing is written: {both[0]} would have a password in both files")
        lines = "" if self.verifiers is None else self.verifiers.read_text(encoding="utf-8")
        if (self.rules.read_text(encoding="utf-8"), lines) != self.before:
            raise ConfigurationError("nothing is written: somebody else has changed the file; run it again")
        if self.verifiers is not None and self.lines != lines:
            _replace(self.verifiers, self.lines)
        if self.text != self.before[0]:
            _replace(self.rules, self.text)

    def set(self, name: str, key: str, value: str) -> None:
        self.text = _edited(lambda: put(self.text, ("analysts", name, key), value))


def add(rules: Path, user: NewUser) -> int:
    """Add an analyst with a password that is asked for, or made up where there is no terminal to ask at."""
    files, name = Files.read(rules), user.name
    if name in files.policy.accounts:
        raise ConfigurationError(f"{name} is already in the rules; run noisegate user rotate to set a new password")
    if wrong := wrong_name(name):
        raise ConfigurationError(f"{name} cannot be added: {wrong}; choose another name")
    if user.until is not None and user.until <= system_clock():
        raise ConfigurationError(f"--until {_moment(user.until)} has passed: {name} could never log in")
    password, is_made = _new_password()
    verifier = _verifier(password)
    keys = {"role": user.role, "epsilon": None if user.epsilon is None else f"{user.epsilon:f}"}
    written = {key: json.dumps(text) if key == "role" else text for key, text in keys.items() if text is not None}
    if user.until is not None:
        written["valid_until"] = _moment(user.until)
    if files.verifiers is None:
        written = {"password": json.dumps(str(verifier)), **written}
    else:
        files.lines = _with_line(files.lines, line_of(name, verifier))
    entry = ", ".join(f"{key}: {value}" for key, value in written.items())
    files.text = _edited(lambda: put(files.text, ("analysts", name), f"{{{entry}}}"))
    files.write()
    _tell(f"{name} is added", password, is_made)
    return 0


def rotate(rules: Path, name: str, *, grace: timedelta = GRACE) -> int:
    """Add a new password. The old one ends after a while; in the rules the next rotation ends it."""
    files = Files.read(rules)
    account = _analyst(files, name)
    password, is_made = _new_password()
    filed = read_filed(files.policy, rules).get(name, ())
    if filed:
        old, now = filed[-1].verifier, system_clock()
        verifier = _verifier(password, old)
        ends = now + grace
        kept = _with_line(without_name(files.lines, name), line_of(name, old, ends)) if grace else ""
        files.lines = _with_line(kept or without_name(files.lines, name), line_of(name, verifier))
        old_one = f"the old one is valid until {_moment(ends)}" if grace else "the old password is no longer valid"
    elif account is not None:
        old = Verifier.parse(account[-1])
        verifier = _verifier(password, old)
        texts = [str(old), str(verifier)] if grace else [str(verifier)]
        files.set(name, "password", json.dumps(texts if len(texts) > 1 else texts[0]))
        old_one = (
            "the old one is valid until you rotate with --grace 0" if grace else "the old password is no longer valid"
        )
    else:
        place = "" if files.verifiers is None else f", or run noisegate password --user {name} >> {files.verifiers}"
        raise ConfigurationError(
            f"{name} has no password yet: set the variable of the rules that is to hold its verifier{place}"
        )
    files.write()
    _tell(f"{name} has a new password; {old_one}", password, is_made)
    return 0


def expire(rules: Path, name: str, at: datetime | None) -> int:
    """Let nobody log in with a name from a moment on: now, unless another one is given."""
    files, moment = Files.read(rules), at or system_clock()
    _analyst(files, name)
    files.set(name, "valid_until", _moment(moment))
    files.write()
    say(f"{name} cannot log in from {_moment(moment)} on; sessions that are open go on\n{_IN_FORCE}")
    return 0


def remove_user(rules: Path, name: str) -> int:
    """Take an analyst out of both files. What was spent stays in the ledger."""
    files = Files.read(rules)
    _analyst(files, name)
    if len(files.policy.analysts) == 1:
        raise ConfigurationError(
            f"{name} is the only analyst of the rules; run noisegate user expire to end the logins"
        )
    files.text = _edited(lambda: remove(files.text, ("analysts", name)))
    files.lines = without_name(files.lines, name)
    files.write()
    say(f"{name} is removed; the ledger keeps the account, also for another {name}\n{_IN_FORCE}")
    return 0


def _analyst(files: Files, name: str) -> tuple[str, ...] | None:
    """The verifiers that an analyst has in the rules."""
    if name not in files.policy.analysts:
        raise ConfigurationError(f"there is no analyst {name} in {files.rules}")
    return files.policy.analysts[name].password


def _new_password() -> tuple[str, bool]:
    """A password, and whether it was made up: at a terminal an empty answer lets us, elsewhere an empty input."""
    if sys.stdin.isatty():
        password = getpass("Password (empty: one is made up): ")
        if password and password != getpass("Again: "):
            raise ConfigurationError("the two passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    return (password, False) if password else (secrets.token_urlsafe(18), True)


def _verifier(password: str, beside: Verifier | None = None) -> Verifier:
    salt = secrets.token_bytes(16) if beside is None else beside.salt
    try:
        return Verifier.of_password(password, salt, USUAL_ITERATIONS if beside is None else beside.iterations)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _tell(words: str, password: str, is_made: bool) -> None:
    say(f"{words}\n{_IN_FORCE}")
    if is_made:
        say(f"password, shown once: {password}")


def _with_line(text: str, line: str) -> str:
    return f"{text}{'' if not text or text.endswith(chr(10)) else chr(10)}{line}\n"


def _moment(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}+00:00"


def _edited(edit: Callable[[], str]) -> str:
    try:
        return edit()
    except CannotEdit as error:
        raise ConfigurationError(str(error)) from None


def _replace(path: Path, text: str) -> None:
    """In one step, with the rights that the file has: nobody reads half of it."""
    real = path.resolve()
    with NamedTemporaryFile("w", encoding="utf-8", dir=real.parent, prefix=f".{real.name}.", delete=False) as file:
        scratch = Path(file.name)
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            status = real.stat()
            scratch.chmod(status.st_mode & 0o7777)
            with suppress(PermissionError):  # only root gives files away
                os.chown(scratch, status.st_uid, status.st_gid)
            scratch.replace(real)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise


_MOST_DIGITS = 4  # of days: some 27 years


def add_to(names: "Names[argparse.ArgumentParser]") -> None:
    """Add it, with its four actions."""
    parser = names.add_parser(
        "user",
        help="add, rotate, expire and remove analysts",
        description="Change analysts in the rules file, and their passwords there or in the file of verifiers that it "
        "names. Comments stay. A password is asked for, read from standard input, or made up and shown once.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    _add(actions)
    _rotate(actions)
    expired = _action(actions, "expire", "end the logins of a name")
    expired.add_argument("--at", type=moment_of, metavar="TIME", help="from then on, as 2027-01-31 (default: now)")
    expired.set_defaults(run=lambda options: expire(options.rules, options.name, options.at))
    removed = _action(actions, "remove", "remove an analyst; the ledger keeps the account")
    removed.set_defaults(run=lambda options: remove_user(options.rules, options.name))


def _add(actions: "Names[argparse.ArgumentParser]") -> None:
    parser = _action(actions, "add", "add an analyst")
    parser.add_argument("--role", help="one of the roles of the rules")
    parser.add_argument("--epsilon", type=epsilon_of, metavar="E", help="ε of this analyst in a period")
    parser.add_argument("--until", type=moment_of, metavar="TIME", help="the name can log in until then")
    parser.set_defaults(
        run=lambda options: add(options.rules, NewUser(options.name, options.role, options.epsilon, options.until))
    )


def _rotate(actions: "Names[argparse.ArgumentParser]") -> None:
    parser = _action(actions, "rotate", "set a new password; the old one stays valid for a while")
    parser.add_argument(
        "--grace", type=_days, default=GRACE, metavar="DAYS", help="how long the old password stays valid (default: 7)"
    )
    parser.set_defaults(run=lambda options: rotate(options.rules, options.name, grace=options.grace))


def _action(actions: "Names[argparse.ArgumentParser]", action: str, words: str) -> argparse.ArgumentParser:
    parser = actions.add_parser(action, help=words, description=f"{words[0].upper()}{words[1:]}.")
    add_rules(parser)
    parser.add_argument("name", type=_name, metavar="NAME", help="name of the analyst")
    return parser


def _name(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name must not be empty")
    return text


def _days(text: str) -> timedelta:
    if not text.isascii() or not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of days, such as 7')
    return timedelta(days=int(text))
