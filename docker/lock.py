"""Write requirements.lock: what the image installs, with the hash of every file that pip may take for it.

Run by `make lock`, from the repository's folder. pip resolves for each platform and release of Python that is served,
at the versions of constraints.txt.
"""

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Final

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
MACHINES: Final = ("x86_64", "aarch64")
GLIBC: Final = ("_2_28", "_2_27", "_2_26", "_2_24", "_2_17", "2014", "_2_12", "2010", "_2_5", "1")
BUILD: Final = "hatchling"  # builds our own wheel
HEADER: Final = """\
# What the image installs, with hashes: pip install --require-hashes -r requirements.lock
# For Linux with glibc on x86-64 and arm64, Python 3.11 to 3.14. Made anew by: make lock
"""
Found = tuple[str, str, str]


def main() -> int:
    """Resolve, and write."""
    with ThreadPoolExecutor(2) as threads:
        resolved = list(threads.map(lambda target: _resolve(*target), product(PYTHONS, MACHINES)))
    hashes: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name, version, digest in (each for found in resolved for each in found):
        hashes[name, version].add(digest)
    names = [name for name, _ in hashes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        sys.stderr.write(f"resolved to several versions: {', '.join(twice)}; pin them in constraints.txt\n")
        return 1
    lines = [HEADER]
    for (name, version), digests in sorted(hashes.items()):
        lines.append(" \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{each}" for each in sorted(digests))]))
    Path("requirements.lock").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def _resolve(python: str, machine: str) -> list[Found]:
    """What pip would install there, without our own package."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--dry-run",
            "--ignore-installed",
            "--no-warn-conflicts",
        ]
        command += ["--report", str(report), "--target", folder, "-c", "constraints.txt"]
        command += ["--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
        for glibc in GLIBC:
            command += ["--platform", f"manylinux{glibc}_{machine}"]
        subprocess.run([*command, BUILD, *_dependencies()], check=True)
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [
        (
            re.sub(r"[-_.]+", "-", each["metadata"]["name"]).lower(),
            each["metadata"]["version"],
            each["download_info"]["archive_info"]["hashes"]["sha256"],
        )
        for each in installed
    ]


def _dependencies() -> list[str]:
    """Those of our own package; its markers are true on every platform that is served here."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [str(each).partition(";")[0] for each in project["dependencies"]]


if __name__ == "__main__":
    sys.exit(main())
