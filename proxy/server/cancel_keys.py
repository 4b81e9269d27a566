"""Keys that cancel: given to a client at its login, shown by another connection of it later.

They are the proxy's own; those of the twin's backends never leave.
"""

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from proxy.wire.backend import BackendKeyData
from proxy.wire.startup import LONG_KEYS_SINCE_MINOR, CancelRequest

_SHORT_BYTES: Final = 4  # all that protocol 3.0 has room for
_LONG_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class _Holder:
    secret: bytes
    cancel: Callable[[], None]


class CancelKeys:
    """Who may be cancelled by which key."""

    def __init__(self) -> None:
        self._holders: dict[int, _Holder] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def issue(self, process_id: int, minor: int, cancel: Callable[[], None]) -> BackendKeyData:
        """A new key, as long as the client's version of the protocol allows."""
        secret = secrets.token_bytes(_LONG_BYTES if minor >= LONG_KEYS_SINCE_MINOR else _SHORT_BYTES)
        self._holders[process_id] = _Holder(secret, cancel)
        return BackendKeyData(process_id, secret)

    def forget(self, key: BackendKeyData) -> None:
        """The client is gone. Its number may have been given to another already: that one stays."""
        holder = self._holders.get(key.process_id)
        if holder is not None and holder.secret is key.secret:
            del self._holders[key.process_id]

    def cancel(self, request: CancelRequest) -> bool:
        """Cancel if the key is right. Nothing that the client that shows the key can see depends on it."""
        holder = self._holders.get(request.process_id)
        if holder is None or not hmac.compare_digest(holder.secret, request.secret):
            return False
        holder.cancel()
        return True
