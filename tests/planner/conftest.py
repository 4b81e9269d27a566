"""A planner over the shop."""

import pytest

from tests.conftest import RealDatabase
from tests.planner.planned import Planner


@pytest.fixture(scope="session")
def planner(shop: RealDatabase) -> Planner:
    return Planner(shop.dsn)
