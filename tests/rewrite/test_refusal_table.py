"""The catalogue of refusals in rules/README.md says what the code says, word by word."""

from pathlib import Path

import pytest

from tests.rewrite.planned import Planner

README = Path(__file__).parents[2] / "rules" / "README.md"
START = "| statement | code | message | hint |\n|---|---|---|---|\n"


def rows() -> list[list[str]]:
    """The cells of the table, statement first."""
    _, _, rest = README.read_text(encoding="utf-8").partition(START)
    lines = rest.partition("\n\n")[0].splitlines()
    return [[cell.strip().replace("\\|", "|") for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize(("statement", "code", "message", "hint"), rows(), ids=lambda cell: cell[:40])
def test_the_readme_tells_the_refusal_as_it_is(
    planner: Planner, statement: str, code: str, message: str, hint: str
) -> None:
    refusal = planner.refusal(statement.strip("`"))

    assert (refusal.sqlstate, refusal.message, refusal.hint) == (code, message, hint)


def test_the_table_is_there() -> None:
    assert len(rows()) >= 20
