"""The certificate and what a login is bound to."""

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from proxy.server.tls import Tls
from tests.server.relay import self_signed


def test_a_login_is_bound_to_the_certificate_by_the_hash_of_its_signature(certificate: tuple[Path, Path]) -> None:
    parsed = x509.load_pem_x509_certificate(certificate[0].read_bytes())

    assert Tls.load(*certificate).end_point == parsed.fingerprint(hashes.SHA384())


def test_a_signature_that_names_no_hash_binds_nothing(tmp_path: Path) -> None:
    assert Tls.load(*self_signed(tmp_path, signature="ed25519")).end_point is None


def test_nothing_older_than_tls_1_2_is_spoken(tls: Tls) -> None:
    assert tls.context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_a_key_that_asks_for_a_passphrase_is_refused_and_nobody_is_asked(
    certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    key = serialization.load_pem_private_key(certificate[1].read_bytes(), None)
    locked = tmp_path / "locked.key"
    encryption = serialization.BestAvailableEncryption(b"open sesame")
    encoding, shape = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked.write_bytes(key.private_bytes(encoding, shape, encryption))

    with pytest.raises(ssl.SSLError, match="encrypted"):
        Tls.load(certificate[0], locked)


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Tls.load(tmp_path / "a.crt", tmp_path / "a.key")
