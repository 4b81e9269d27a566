"""The questions, read from the files beside this one: what is asked for in words, and the SQL.

A question "(rows)" asks for rows or for single people: it has to be refused. "[2]" says that the first two columns name
a group; without it those are the leading columns that are no numbers.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.samples import SAMPLES, Sample

_HEAD = re.compile(r"-- (?:\[(?P<keys>\d)\] )?(?P<words>.*?)(?P<rows> \(rows\))?")


@dataclass(frozen=True, slots=True)
class Question:
    """One question about one of the samples."""

    sample: Sample
    words: str
    sql: str
    keys: int | None
    is_for_rows: bool


def questions() -> list[Question]:
    """Read all questions."""
    return [question for sample in SAMPLES for question in _of(sample)]


def _of(sample: Sample) -> list[Question]:
    lines = (Path(__file__).parent / f"{sample.name}.sql").read_text(encoding="utf-8").splitlines()
    return [_question(sample, head, sql) for head, sql in zip(lines[::2], lines[1::2], strict=True)]


def _question(sample: Sample, head: str, sql: str) -> Question:
    found = _HEAD.fullmatch(head)
    assert found is not None, head
    keys = None if found["keys"] is None else int(found["keys"])
    return Question(sample, found["words"], sql.removesuffix(";"), keys, found["rows"] is not None)
