"""The samples as databases, and an analyst for each."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from proxy.twin.embedded import Cluster
from tests import samples
from tests.samples.asking import Analyst


@pytest.fixture(scope="session")
def analysts(real_cluster: Cluster) -> Iterator[dict[str, Analyst]]:
    with ExitStack() as stack:
        made = {}
        for sample in samples.SAMPLES:
            connection = stack.enter_context(samples.database(real_cluster, sample))
            made[sample.name] = Analyst.of(sample, connection, real_cluster.dsn(f"sample_{sample.name}"))
        yield made


@pytest.fixture(scope="session")
def rental(analysts: dict[str, Analyst]) -> Analyst:
    return analysts["rental"]


@pytest.fixture(scope="session")
def music(analysts: dict[str, Analyst]) -> Analyst:
    return analysts["music"]


@pytest.fixture(scope="session")
def trading(analysts: dict[str, Analyst]) -> Analyst:
    return analysts["trading"]
