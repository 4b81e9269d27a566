"""The table of tests/README.md names tests that there are."""

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMED = re.findall(r"\| `(\S+)::(\w+)` \|", (HERE / "README.md").read_text())


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_leak_has_the_test_that_would_see_it(file: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (HERE / file).read_text(), re.MULTILINE)


def test_none_of_them_is_missing() -> None:
    assert len(set(NAMED)) == 34
