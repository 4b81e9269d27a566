"""What fuzzing has found to reach new code breaks nothing, and neither does what real tools send."""

from pathlib import Path
from random import Random

import psycopg
import pytest

from tests.conftest import RealDatabase
from tests.fuzz import targets
from tests.support.catalogs import catalog_of

_MUTATIONS = 3  # of each seed


def _kept(target: str) -> list[Path]:
    return sorted((targets.CORPUS / target).iterdir())


@pytest.mark.parametrize("path", _kept("wire"), ids=lambda path: path.name)
def test_bytes_are_a_message_or_a_violation(path: Path) -> None:
    targets.wire(path.read_bytes())


def test_a_statement_is_planned_or_refused(shop: RealDatabase) -> None:
    seeds = list(targets.seeds())
    mixed = [targets.mutated(seed, seeds, Random(number)) for seed in seeds for number in range(_MUTATIONS)]
    with psycopg.connect(shop.dsn, autocommit=True) as connection:
        check = targets.statements(connection, catalog_of(shop.dsn))
        for data in [*(path.read_bytes() for path in _kept("statements")), *seeds, *mixed]:
            check(data)
