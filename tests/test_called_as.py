"""Commands to be pasted work where the program was started by a path, as the README starts it."""

import shlex
from pathlib import Path

import pytest

from proxy.called_as import called_as


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "a venv" / "bin" / "noisegate"
    made.parent.mkdir(parents=True)
    made.write_text("#!/bin/sh\n", encoding="utf-8")
    made.chmod(0o755)
    return made


def test_a_program_that_no_shell_finds_is_told_by_its_path(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.chdir(program.parent.parent)
    monkeypatch.setattr("sys.argv", ["bin/noisegate", "demo"])
    assert shlex.split(called_as()) == [str(program)]


def test_one_that_a_shell_finds_is_told_by_its_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setattr("sys.argv", [str(program), "demo"])
    assert called_as() == "noisegate"


def test_the_path_of_another_program_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", [str(tmp_path / "__main__.py")])
    assert called_as() == "noisegate"
