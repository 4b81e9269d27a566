"""The same running proxy as the clients have."""

from tests.clients.conftest import proxy

__all__ = ["proxy"]
