"""Case files: what a tool sends, statement by statement, and what each must get.

A file is read line by line. Lines that begin with one of these marks are ours, all others are SQL as it is sent:

    --# title             a case: a conversation on a connection of its own
    --> outcome, words    what the statement below must get
    --$ value             a parameter of that statement, as text (\\N is NULL): it goes by the extended protocol
    --= value | value     a row that the statement above must give, in this order and with nothing else

Outcomes: `answer` (noised, names and types as the real database has them, numbers near its own), `again` (an answer
that is served without spending anything), `free` (no noise and no cost), `refused SQLSTATE: words`, and
`error SQLSTATE: words` for what PostgreSQL itself refuses.

Words behind a comma: `N rows`; `same` (free rows are the real database's own); `apart` (numbers are not compared,
where noise may well turn them, as in a rank); `other rows` (nor are the rows).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

Outcome = Literal["answer", "again", "free", "refused", "error"]

_MARK = re.compile(r"--(?P<mark>[#>$=]) ?(?P<text>.*)")
_PROMISE = re.compile(r"(?P<outcome>answer|again|free|refused|error)(?P<rest>.*)")


@dataclass
class Step:
    """One string that is sent, and what comes back."""

    outcome: Outcome
    sqlstate: str = ""
    says: str = ""  # a part of the error's message
    rows: int | None = None
    words: frozenset[str] = frozenset()
    parameters: list[str | None] = field(default_factory=list)
    expected: list[tuple[str, ...]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    @property
    def sql(self) -> str:
        return "\n".join(self.lines).strip()


@dataclass
class Case:
    """A conversation on one connection."""

    tool: str
    title: str
    steps: list[Step] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.tool}: {self.title}"


def read_cases(path: Path) -> list[Case]:
    """All cases of a file."""
    cases: list[Case] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = _MARK.fullmatch(line)
        if found is None:
            if cases and cases[-1].steps:
                cases[-1].steps[-1].lines.append(line)
        elif found["mark"] == "#":
            cases.append(Case(path.stem, found["text"]))
        elif found["mark"] == ">":
            cases[-1].steps.append(_promise(found["text"], f"{path.name}:{number}"))
        elif found["mark"] == "$":
            cases[-1].steps[-1].parameters.append(None if found["text"] == r"\N" else found["text"])
        else:
            cases[-1].steps[-1].expected.append(tuple(part.strip() for part in found["text"].split(" | ")))
    return cases


def all_cases(folder: Path) -> Iterator[Case]:
    """The cases of all files, by name."""
    for path in sorted(folder.glob("*.sql")):
        yield from read_cases(path)


def _promise(text: str, place: str) -> Step:
    found = _PROMISE.fullmatch(text)
    assert found, f"{place}: what is {text!r}?"
    outcome, rest = cast(Outcome, found["outcome"]), found["rest"]
    if outcome in ("refused", "error"):
        sqlstate, _, says = rest.strip().partition(": ")
        return Step(outcome, sqlstate, says)
    words = {word.strip() for word in rest.split(",") if word.strip()}
    counts = {word for word in words if word.endswith((" rows", " row"))} - {"other rows"}
    rows = int(counts.pop().split()[0]) if counts else None
    return Step(outcome, rows=rows, words=frozenset(words))
