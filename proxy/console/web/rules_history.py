"""Versions of a rules file that the console made: kept next to it, with author and time, and restored by one click.

A file that was changed by hand in between is kept too, as somebody's. Nothing of a version is ever deleted here.
"""

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rules.refusal import Refusal

BY_HAND: Final = "(by hand)"
CHANGED: Final = "somebody else has changed the rules file"
AGAIN: Final = "Open the table and change it again."
_DIGITS: Final = 5
_OURS: Final = 0o700


class NotWritten(Refusal):
    """The rules file could not be replaced."""

    sqlstate = "55000"  # object_not_in_prerequisite_state


@dataclass(frozen=True, slots=True)
class Version:
    """One state of the rules file."""

    number: int
    time: str
    operator: str
    change: str
    digest: str


class RulesHistory:
    """The versions of one rules file."""

    def __init__(self, rules: Path) -> None:
        self._rules = rules.resolve()
        self._folder = self._rules.with_suffix(".history")

    def versions(self) -> list[Version]:
        """The newest first, without what an end in the middle of a save has left."""
        versions = (_read(path) for path in self._folder.glob("*.json"))
        return sorted((version for version in versions if version is not None), key=lambda version: -version.number)

    def find(self, number: int) -> tuple[Version, str] | None:
        """A version and its text."""
        version = next((version for version in self.versions() if version.number == number), None)
        return None if version is None else (version, self._text(number).read_text(encoding="utf-8"))

    def current(self) -> str:
        return self._rules.read_text(encoding="utf-8")

    def replace(self, before: str, text: str, operator: str, change: str) -> Version:
        """Write the rules file as a whole or not at all, and keep what it was; `before` is what it has to be now."""
        try:
            if self.current() != before:
                raise NotWritten(CHANGED, hint=AGAIN)
            newest = next(iter(self.versions()), None)
            if newest is None or newest.digest != digest_of(before):
                self._keep(before, BY_HAND, "as the file was found")
            version = self._keep(text, operator, change)
            try:
                self._put(before, text)
            except BaseException:
                self._forget(version)
                raise
        except OSError as error:
            raise NotWritten(f"the rules file or its history cannot be written: {error.strerror}") from None
        return version

    def take_back(self, version: Version, text: str, before: str) -> None:
        """Undo what the proxy did not take; a file that was changed by hand meanwhile stays as it is."""
        self._forget(version)
        with suppress(NotWritten):
            self._put(text, before)

    def _put(self, before: str, text: str) -> None:
        """Replace the file, with its rights and on the disk: who reads it meanwhile finds one or the other."""
        status = self._rules.stat()
        newline = "\r\n" if b"\r\n" in self._rules.read_bytes() else "\n"
        made = _write(self._rules, text, status.st_mode & 0o777, newline)
        with suppress(PermissionError):  # the owner of a file may not be allowed to give it away
            os.chown(made, status.st_uid, status.st_gid)
        if self.current() != before:
            made.unlink()
            raise NotWritten(CHANGED, hint=AGAIN)
        made.replace(self._rules)

    def _forget(self, version: Version) -> None:
        for path in (self._about(version.number), self._text(version.number)):
            path.unlink()

    def _keep(self, text: str, operator: str, change: str) -> Version:
        """Verifiers stand in it, so it is readable by us alone. Without what is said of it a text is no version."""
        self._folder.mkdir(mode=_OURS, exist_ok=True)
        self._folder.chmod(_OURS)
        taken = (path.stem for path in self._folder.iterdir())
        number = max((int(stem) for stem in taken if stem.isdecimal()), default=0) + 1
        version = Version(number, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}", operator, change, digest_of(text))
        for path, content in ((self._text(number), text), (self._about(number), json.dumps(asdict(version)))):
            _write(path, content, 0o600).replace(path)
        return version

    def _text(self, number: int) -> Path:
        return self._folder / f"{number:0{_DIGITS}}.yaml"

    def _about(self, number: int) -> Path:
        return self._folder / f"{number:0{_DIGITS}}.json"


def _read(about: Path) -> Version | None:
    try:
        version = Version(**json.loads(about.read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        return None
    return version if about.with_suffix(".yaml").exists() else None


def _write(beside: Path, text: str, mode: int, newline: str = "\n") -> Path:
    """A file with this text, whole and on the disk, that can take the place of another one."""
    with tempfile.NamedTemporaryFile(
        "w", dir=beside.parent, prefix=".", delete=False, encoding="utf-8", newline=newline
    ) as made:
        try:
            made.write(text)
            made.flush()
            os.fchmod(made.fileno(), mode)
            os.fsync(made.fileno())
        except BaseException:  # a disk that is full: verifiers stand in the half that was written
            Path(made.name).unlink()
            raise
    return Path(made.name)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
