"""An authority for the certificates of clients, as an operator has one."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_REVOKED = 77


@dataclass
class Authority:
    """Signs certificates; its bundle has its own certificate and the list of those that it has revoked."""

    directory: Path
    key: ec.EllipticCurvePrivateKey
    name: x509.Name
    bundle: Path

    @classmethod
    def make(cls, directory: Path) -> Self:
        key, name = ec.generate_private_key(ec.SECP256R1()), _name("authority")
        signing = _certificate(name, name, key.public_key()).add_extension(x509.BasicConstraints(True, None), True)
        now = datetime.now(UTC)
        revoked = x509.RevokedCertificateBuilder().serial_number(_REVOKED).revocation_date(now).build()
        crl = x509.CertificateRevocationListBuilder().issuer_name(name).last_update(now - timedelta(hours=1))
        signed = crl.next_update(now + timedelta(days=1)).add_revoked_certificate(revoked).sign(key, hashes.SHA256())
        pem = serialization.Encoding.PEM
        bundle = directory / "clients.pem"
        bundle.write_bytes(signing.sign(key, hashes.SHA256()).public_bytes(pem) + signed.public_bytes(pem))
        return cls(directory, key, name, bundle)

    def client(self, common_name: str, mail: str = "", *, revoked: bool = False) -> dict[str, str]:
        """A certificate and its key, as libpq is told of them."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(_name(common_name), self.name, key.public_key(), _REVOKED if revoked else 0)
        if mail:
            certificate = certificate.add_extension(x509.SubjectAlternativeName([x509.RFC822Name(mail)]), False)
        paths = {part: self.directory / f"{common_name}{mail}{revoked}.{part}" for part in ("sslcert", "sslkey")}
        paths["sslcert"].write_bytes(
            certificate.sign(self.key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
        paths["sslkey"].touch(0o600)
        paths["sslkey"].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return {name: str(path) for name, path in paths.items()}


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, serial: int = 0
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer, subject, key, None, now - timedelta(hours=1), now + timedelta(days=1)
    ).serial_number(serial or x509.random_serial_number())
