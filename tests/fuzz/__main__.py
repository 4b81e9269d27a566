"""Fuzz what reads bytes of strangers, guided by coverage; needs the extra `fuzz`.

    python -m tests.fuzz wire|statements [--seconds 60] [--keep]

Inputs that reach code which none before has reached go to build/fuzz, and with --keep to the corpus, which the tests
try again each time. The exit code is not 0 where an input breaks something; the input is in a file that is named.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NoReturn

import atheris
import psycopg

with atheris.instrument_imports(include=["rules", "proxy.wire"]):
    from proxy.twin.embedded import Cluster
    from tests.conftest import make_shop
    from tests.fuzz import targets
    from tests.support.catalogs import catalog_of

_BUILD = Path("build/fuzz")
_MOST_SECONDS = 20  # after which an input counts as one that hangs
_MOST_MEGABYTES = 2048
_SHARE_OF_BYTES = 0.1  # of mutations that know no SQL


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Fuzz what reads bytes of strangers.")
    parser.add_argument("target", choices=["wire", "statements"])
    parser.add_argument("--seconds", type=int, default=60, help="how long to run (default: 60)")
    parser.add_argument("--keep", action="store_true", help="add to the corpus what reaches new code")
    given = parser.parse_args()
    options = _options(given.target, given.seconds, keep=given.keep)
    if given.target == "wire":
        _fuzz(options, targets.wire)
    cluster = Cluster.start()
    try:
        dsn = make_shop(cluster, "shop").dsn
        if (child := os.fork()) == 0:
            connection, mutator = psycopg.connect(dsn, autocommit=True), _Mutator(list(targets.seeds()))
            _fuzz(options, targets.statements(connection, catalog_of(dsn)), custom_mutator=mutator)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    finally:
        cluster.stop()


def _options(target: str, seconds: int, *, keep: bool) -> list[str]:
    """For libFuzzer, which writes what is new to the first folder."""
    corpus, found, begin = targets.CORPUS / target, _BUILD / target, _BUILD / f"{target}-seeds"
    for folder in (corpus, found, begin):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(targets.seeds() if target == "statements" else ()):
        (begin / f"{number:04}").write_bytes(seed)
    return [
        f"-max_len={targets.MOST_BYTES}",
        f"-timeout={_MOST_SECONDS}",
        f"-rss_limit_mb={_MOST_MEGABYTES}",
        f"-max_total_time={seconds}",
        f"-artifact_prefix={_BUILD}/{target}-",
        f"-use_counters={int(not keep)}",  # how often code is reached says less than that it is
        *map(str, [corpus, begin] if keep else [found, corpus, begin]),
    ]


def _fuzz(options: Sequence[str], target: targets.Target, **mutators: "_Mutator") -> NoReturn:
    """It ends the process."""
    sys.setrecursionlimit(targets.DEEPEST)
    atheris.Setup([sys.argv[0], *options], target, **mutators)
    atheris.Fuzz()
    raise AssertionError("libFuzzer has returned")


class _Mutator:
    """Mixes statements, and sometimes bytes."""

    def __init__(self, seeds: list[bytes]) -> None:
        self._seeds = seeds

    def __call__(self, data: bytes, most_bytes: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < _SHARE_OF_BYTES:
            return bytes(atheris.Mutate(data, most_bytes))
        return targets.mutated(data, self._seeds, random)[:most_bytes]


if __name__ == "__main__":
    main()
