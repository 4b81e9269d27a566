"""The programs of the twin's server: the wheel's, or those of a PostgreSQL that the machine has."""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from proxy.process_isolation import bare_environment
from proxy.twin.embedded import ClusterError, can_run, server_binaries

TWIN_VERSIONS: Final = range(16, 19)  # that the twin's walls were tried on
_PROGRAMS: Final = ("postgres", "initdb")
_VERSION: Final = re.compile(r"\(PostgreSQL\) (\d+)")
_EXAMPLE: Final = "name the bin directory of a server, as /usr/lib/postgresql/18/bin"


@dataclass(frozen=True, slots=True)
class ServerPrograms:
    """Where they are, and their major version."""

    directory: Path
    version: int

    @classmethod
    def of_wheel(cls, server_version: int) -> Self:
        """Those that stand for a server of this version."""
        version = version_for(server_version)
        return cls(server_binaries(version), version)

    @classmethod
    def of_machine(cls, directory: Path, server_version: int) -> Self:
        """Those of a directory, if they can stand for a server of this version; raises ClusterError."""
        for name in _PROGRAMS:
            if not os.access(directory / name, os.X_OK):
                raise ClusterError(f"{directory} has no program {name}: {_EXAMPLE}")
        if not can_run(directory):
            raise ClusterError(f"{directory}: the user of the twin cannot run the programs there")
        version = _major(directory)
        if version not in TWIN_VERSIONS:
            served = f"{TWIN_VERSIONS[0]} to {TWIN_VERSIONS[-1]}"
            raise ClusterError(f"{directory} is PostgreSQL {version}, and the twin can be {served}")
        if version < server_version // 10_000:
            words = f"{directory} is PostgreSQL {version}, older than the database, which is {server_version // 10_000}"
            raise ClusterError(f"{words}: it could not show its schema")
        return cls(directory, version)


def version_for(server_version: int) -> int:
    """The wheel's PostgreSQL that stands for this one: never an older one, which could not show its schema."""
    return 16 if server_version < 170000 else 18


def _major(directory: Path) -> int:
    command = [str(directory / "postgres"), "--version"]
    done = subprocess.run(command, env=bare_environment(), capture_output=True, text=True, check=False)
    found = _VERSION.search(done.stdout)
    if found is None:
        raise ClusterError(f"{directory}/postgres does not say its version: {_EXAMPLE}")
    return int(found[1])
