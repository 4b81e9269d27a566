"""A proxy in front of a real PostgreSQL, on both event loops, with TLS and without."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
import uvloop

from proxy.server.tls import Tls
from proxy.settings import ServerSettings
from proxy.twin.embedded import Cluster
from tests.server.relay import USER, Relay, running_relay, self_signed

LOOPS = [pytest.param(uvloop.new_event_loop, id="uvloop"), pytest.param(asyncio.new_event_loop, id="asyncio")]


@pytest.fixture(scope="session")
def cluster(real_cluster: Cluster) -> Cluster:
    """A PostgreSQL that knows the analysts."""
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        for user in (USER, "grace"):
            known = connection.execute("SELECT FROM pg_roles WHERE rolname = %s", [user]).fetchone()
            if known is None:
                connection.execute(f'CREATE ROLE "{user}" LOGIN')
    return real_cluster


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def tls(certificate: tuple[Path, Path]) -> Tls:
    return Tls.load(*certificate)


@pytest.fixture(scope="module", params=LOOPS)
def relay(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[Relay]:
    """Without TLS."""
    with running_relay(cluster, new_loop=request.param) as relay:
        yield relay


@pytest.fixture(scope="module", params=LOOPS)
def tls_relay(request: pytest.FixtureRequest, cluster: Cluster, tls: Tls) -> Iterator[Relay]:
    """With TLS, and nothing but TLS."""
    new_loop: Callable[[], asyncio.AbstractEventLoop] = request.param
    settings = ServerSettings(port=0, plaintext_from="nowhere", drain_timeout_seconds=0)
    with running_relay(cluster, settings, tls=tls, new_loop=new_loop) as relay:
        yield relay
