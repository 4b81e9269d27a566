"""What the proxy makes of what it is given."""

import resource
from pathlib import Path

import psycopg
import pytest

from proxy.load_config import ConfigurationError, ledger_place, raise_open_files, read_tls, secret_of, told_to_the_dba
from proxy.server.tls import write_certificate
from proxy.settings import ServerSettings
from rules.accounting.store import LedgerError


def test_a_stranger_is_not_told_by_a_salt_that_a_restart_changes(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)
    settings = ServerSettings(certificate=certificate, private_key=key)

    assert secret_of(settings) == secret_of(settings)
    assert key.read_bytes() not in secret_of(settings)
    assert secret_of(ServerSettings()) != secret_of(ServerSettings())


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    certificate, key = write_certificate(tmp_path)

    with pytest.raises(ConfigurationError, match=f"{key} with {certificate}"):
        read_tls(ServerSettings(certificate=key, private_key=certificate))
    with pytest.raises(ConfigurationError, match=r"missing\.crt with"):
        read_tls(ServerSettings(certificate=tmp_path / "missing.crt", private_key=key))


def test_open_files_are_raised_to_what_clients_need_or_the_proxy_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (256, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, new: limits.update(now=new))

    raise_open_files(ServerSettings(max_connections=1000, max_logins=100))
    assert limits["now"] == (2300, 4096)
    raise_open_files(ServerSettings(max_connections=10))
    assert limits["now"] == (2300, 4096)

    with pytest.raises(ConfigurationError, match="--max-connections 1898"):
        raise_open_files(ServerSettings(max_connections=5000, max_logins=100))


def test_a_ledger_that_cannot_be_used_is_told_to_the_dba_by_its_cause() -> None:
    """A start has no statement that is not answered."""
    failed = LedgerError("the statement is not answered", reason="out_of_order")
    failed.__cause__ = psycopg.errors.ObjectNotInPrerequisiteState("cannot acquire lock mode ExclusiveLock")
    with pytest.raises(ConfigurationError, match=r"^the ledger cannot be used: .* is it a standby"), told_to_the_dba():
        raise failed


@pytest.mark.parametrize("password", ["p[w", "[", "p]w", "p#w", "p?w"])
def test_a_password_of_a_ledger_may_have_the_signs_that_libpq_reads(password: str) -> None:
    place = f"postgresql://noisegate:{password}@db/ledger"

    assert ledger_place(place) == place
