"""A certificate that nobody vouches for: enough to encrypt, for the demo and for a first try."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

VALID_FOR = timedelta(days=365)


def write_certificate(directory: Path, names: Sequence[str] = ()) -> tuple[Path, Path]:
    """Write server.crt and server.key for this machine and these names, the key readable by its owner alone.

    Returns both paths; raises FileExistsError rather than replace a key.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    certificate, private_key = directory / "server.crt", directory / "server.key"
    descriptor = os.open(private_key, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    certificate.write_bytes(_certificate(key, names).public_bytes(serialization.Encoding.PEM))
    return certificate, private_key


def _certificate(key: ec.EllipticCurvePrivateKey, names: Sequence[str]) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    here = [
        *map(x509.DNSName, ("localhost", *names)),
        *(x509.IPAddress(ip_address(text)) for text in ("127.0.0.1", "::1")),
    ]
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
