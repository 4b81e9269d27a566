"""What the proxy makes of what it is given."""

from pathlib import Path

from proxy.certificate import write_certificate
from proxy.given import secret_of
from proxy.settings import ServerSettings


def test_a_stranger_is_not_told_by_a_salt_that_a_restart_changes(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    settings = ServerSettings(certificate=certificate, private_key=key)

    assert secret_of(settings) == secret_of(settings)
    assert key.read_bytes() not in secret_of(settings)
    assert secret_of(ServerSettings()) != secret_of(ServerSettings())
