"""Nobody but the kernel has its seal, and nothing in the product goes around it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AROUND = re.compile(r"\b(?:import|from) (?:pickle|marshal|copyreg)\b|object\.__(?:setattr|new)__")


@pytest.mark.parametrize("package", ["rules", "proxy"])
def test_no_module_outside_of_the_kernel_has_its_seal(package: str) -> None:
    for file in (ROOT / package).rglob("*.py"):
        if ROOT / "rules" / "kernel" not in file.parents:
            assert not re.search(r"kernel\.seal|\bSEAL\b", file.read_text()), file


@pytest.mark.parametrize("package", ["rules", "proxy"])
def test_no_module_makes_values_around_their_constructors(package: str) -> None:
    for file in (ROOT / package).rglob("*.py"):
        assert not AROUND.search(file.read_text()), file
