"""Chaos for some seconds, with a ledger in a file and with three proxies on one in PostgreSQL."""

from pathlib import Path

import pytest

from tests.soak.soak import soak


@pytest.mark.parametrize(("proxies", "shared_ledger"), [(1, False), (2, False), (3, True)])
def test_the_invariants_hold_whatever_is_killed(tmp_path: Path, proxies: int, *, shared_ledger: bool) -> None:
    report = soak(tmp_path, seconds=20, proxies=proxies, shared_ledger=shared_ledger, seed=proxies)

    assert report.answers > 0
    assert report.actions.total() > 1
