"""What a client needs that is not in the test environment: found, or its tests are skipped by name and reason."""

import importlib
import shutil
from types import ModuleType

import pytest

HOW = "python -m tests.clients installs it where it can be had"


def module(name: str) -> ModuleType:
    """A Python client."""
    try:
        return importlib.import_module(name)
    except ImportError:
        pytest.skip(f"{name} is not here: {HOW}")


def program(name: str, *places: str) -> str:
    """A client's program, on the PATH or where Debian puts it."""
    found = shutil.which(name) or next((place for place in places if shutil.which(place)), None)
    if found is None:
        pytest.skip(f"{name} is not here: {HOW}")
    return found
