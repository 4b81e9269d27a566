"""What is deployed: the image's steps, the compose file, the unit of systemd, Kubernetes and the lock file."""

import json
import posixpath
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from proxy.cli import make_parser
from rules.policy.load import load_policy
from tests.support.markdown import ROOT

DOCKER = ROOT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
KUBERNETES: dict[str, dict[str, Any]] = {
    each["kind"]: each for each in yaml.safe_load_all((DOCKER / "kubernetes.yaml").read_text())
}
UNIT = (DOCKER / "noisegate.service").read_text().replace("\\\n", " ")
PIN = re.compile(r"^([a-z0-9][a-z0-9-]*)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pod() -> dict[str, Any]:
    spec: dict[str, Any] = KUBERNETES["StatefulSet"]["spec"]["template"]["spec"]
    return spec


def _steps(word: str) -> list[str]:
    return re.findall(rf"^ *{word} +(.*)$", DOCKERFILE, re.MULTILINE)


def test_the_commands_that_run_are_those_that_there_are() -> None:
    (command,) = _steps("CMD")
    parser = make_parser()

    assert parser.parse_args(yaml.safe_load(command)).metrics_port == 9187
    assert parser.parse_args(_pod()["containers"][0]["args"]).metrics_host == "0.0.0.0"
    (start,) = re.findall(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)
    assert parser.parse_args(shlex.split(start)[1:]).plaintext == "nowhere"


def test_nothing_runs_with_more_rights_than_it_needs() -> None:
    service, pod = COMPOSE["services"]["noisegate"], _pod()

    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    inside = pod["containers"][0]["securityContext"]
    assert inside == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["runAsUser"] == int(_steps("USER")[0])
    assert not any(place.endswith(".yaml:ro") for place in service["volumes"]), (
        "a replaced file stays the old one inside"
    )
    assert {"mem_limit", "cpus", "pids_limit", "restart", "healthcheck"} <= service.keys()
    assert {"NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="} <= set(UNIT.splitlines())


def test_the_rules_of_the_examples_load() -> None:
    variables = {"NOISEGATE_DATABASE": "dbname=shop"}
    policy = load_policy(KUBERNETES["ConfigMap"]["data"]["rules.yaml"], "rules.yaml", variables)

    assert policy.logins is not None
    assert policy.logins.file is not None
    mounts = [mount["mountPath"] for mount in _pod()["containers"][0]["volumeMounts"]]
    assert any(policy.logins.file.startswith(place) for place in mounts)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_takes_the_unit_and_calls_it_safe(tmp_path: Path) -> None:
    unit = tmp_path / "noisegate.service"
    unit.write_text(UNIT.replace("/opt/noisegate/bin/noisegate", sys.executable))

    verified = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)

    assert [line for line in verified.stderr.splitlines() if unit.name in line] == []


def test_the_lock_has_a_hash_for_every_dependency_at_the_versions_of_the_tests() -> None:
    text = (ROOT / "requirements.lock").read_text()
    locked = {name: version for name, version, _ in PIN.findall(text)}
    pinned = {
        _normal(name): version
        for name, _, version in (line.partition("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
        if version
    }
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]

    assert text.count("==") == len(locked)
    assert {_normal(re.split(r"[^\w.-]", each)[0]) for each in needed} <= locked.keys()
    assert {name: pinned.get(name, version) for name, version in locked.items()} == locked


def test_the_bill_of_materials_lists_what_the_lock_has() -> None:
    bill = json.loads((ROOT / "sbom.cdx.json").read_text())
    locked = {(name, version) for name, version, _ in PIN.findall((ROOT / "requirements.lock").read_text())}

    assert {(each["name"], each["version"]) for each in bill["components"]} == locked


def _copied() -> list[str]:
    """The sources of every COPY from the build context."""
    return [word for step in _steps("COPY") if "--from" not in step for word in shlex.split(step)[:-1]]


def _rules_of_dockerignore(text: str) -> list[tuple[bool, re.Pattern[str]]]:
    """Whether each line leaves files out, and the paths that it means, as docker reads them."""
    lines = (line.strip() for line in text.splitlines() if not line.startswith("#"))
    rules = []
    for line in filter(None, lines):
        pattern = posixpath.normpath(line.removeprefix("!").strip()).lstrip("/")
        tokens = re.findall(r"\*\*/?|\*|\?|\[[^]]*\]|\\.|.", pattern)
        meanings = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
        words = (meanings.get(token) or (token if token[0] == "[" else re.escape(token[-1])) for token in tokens)
        rules.append((not line.startswith("!"), re.compile("".join(words))))
    return rules


def _is_left_out(path: str, rules: list[tuple[bool, re.Pattern[str]]]) -> bool:
    """The last line that means a path or a folder above it decides."""
    names = [path, *(str(parent) for parent in PurePosixPath(path).parents)]
    means = (leaves_out for leaves_out, pattern in reversed(rules) if any(map(pattern.fullmatch, names)))
    return next(means, False)


DOCKERIGNORE = _rules_of_dockerignore((ROOT / ".dockerignore").read_text())


def _files_of(name: str) -> list[Path]:
    paths = [ROOT / name, *(ROOT / name).rglob("*")]
    return [path for path in paths if path.is_file() and "__pycache__" not in path.parts]


@pytest.mark.parametrize(
    ("text", "left_out", "kept"),
    [
        ("*\n!proxy\n", {"a", "a/b", "prox/y"}, {"proxy", "proxy/cli.py"}),
        ("*\n!/docker/../proxy/\n**/__pycache__", {"proxy/a/__pycache__", "proxy/__pycache__/b.pyc"}, {"proxy/a.py"}),
        ("#a\na/*.py\n! a/b.py\n", {"a/c.py"}, {"#a", "a", "a/b.py", "a/b/c.py", "b/a/c.py"}),
        ("a?c\n[ab].txt\n\\*x\na/**/z", {"abc", "a.txt", "*x", "a/z", "a/b/c/z"}, {"a/c", "c.txt", "xx", "az"}),
        ("**/x.*\n", {"x.a", "a/b/x.c", "x.a/y"}, {"a/xa"}),
    ],
)
def test_the_lines_of_dockerignore_are_read_as_docker_reads_them(text: str, left_out: set[str], kept: set[str]) -> None:
    rules = _rules_of_dockerignore(text)

    assert {path for path in left_out | kept if _is_left_out(path, rules)} == left_out


def test_all_that_the_image_copies_is_here_and_is_sent_to_the_builder() -> None:
    copied = _copied()
    files = [str(path.relative_to(ROOT)) for name in copied for path in _files_of(name)]

    assert {"proxy", "requirements.lock"} <= set(copied)
    assert [name for name in copied if not _files_of(name)] == []
    assert [file for file in files if _is_left_out(file, DOCKERIGNORE)] == []


def test_no_secret_and_no_compiled_file_is_sent_to_the_builder() -> None:
    never = ("docker/.env", ".git/config", ".venv/bin/python", "noisegate/secrets.env", "rules/__pycache__/x.pyc")

    assert [path for path in never if not _is_left_out(path, DOCKERIGNORE)] == []


@pytest.mark.long
def test_the_steps_of_the_image_make_a_proxy_that_runs(tmp_path: Path) -> None:
    source = tmp_path / "src"
    for path in (path for name in _copied() for path in _files_of(name)):
        name = path.relative_to(ROOT)
        if not _is_left_out(str(name), DOCKERIGNORE):
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, source / name)
    environment = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "HOME": str(tmp_path)}
    for step in _steps("RUN"):
        if "useradd" not in step:
            line = step.replace("/opt/", f"{tmp_path}/opt/").replace("/src", str(source))
            done = subprocess.run(
                ["/bin/sh", "-ec", line], env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
    program = tmp_path / "opt/noisegate/bin/noisegate"

    said = subprocess.run([program, "--version"], env=environment, capture_output=True, text=True, check=True)

    assert said.stdout.startswith("noisegate ")
