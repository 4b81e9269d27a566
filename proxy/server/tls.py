"""Our certificate: the context of the handshakes, the hash that binds a login to it, and one that nobody vouches for.

The last is enough to encrypt, for the demo and for a first try.
"""

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from proxy.wire.conversation import ALPN

_CRL: Final = b"-----BEGIN X509 CRL-----"

_VALID_FOR = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class Tls:
    """One certificate, loaded. Load anew to change it: connections that run keep the old one."""

    context: ssl.SSLContext
    end_point: bytes | None
    """tls-server-end-point (RFC 5929); None where the certificate's signature names no hash (Ed25519)."""

    @classmethod
    def load(cls, certificate: Path, private_key: Path, client_authorities: Path | None = None) -> Self:
        """Read PEM files, the server's certificate first. Raises OSError or ssl.SSLError.

        Clients may show a certificate that one of the authorities has signed; the file may hold their CRLs too.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
        context.set_alpn_protocols([ALPN])
        context.load_cert_chain(certificate, private_key, password=_no_password)
        if client_authorities is not None:
            context.load_verify_locations(client_authorities)
            context.verify_mode = ssl.CERT_OPTIONAL
            if _CRL in client_authorities.read_bytes():
                context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
        return cls(context, _end_point(certificate.read_bytes()))


def names_of(certificate: bytes | None) -> frozenset[str]:
    """The names in a client's certificate (DER), which was verified: its common name, and its other names as texts.

    Two common names are none: readers differ on which of them counts.
    """
    if certificate is None:
        return frozenset()
    try:
        read = x509.load_der_x509_certificate(certificate)
        common = [str(attribute.value) for attribute in read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        return frozenset([*(common if len(common) == 1 else ()), *_other_names(read)])
    except (ValueError, UnsupportedAlgorithm):
        return frozenset()


def _other_names(certificate: x509.Certificate) -> list[str]:
    try:
        subject_alternative_name = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    kinds = (x509.DNSName, x509.RFC822Name, x509.UniformResourceIdentifier)
    return [name for kind in kinds for name in subject_alternative_name.get_values_for_type(kind)]


def _no_password() -> str:
    raise ssl.SSLError("the private key is encrypted; give one that is not")


def _end_point(pem: bytes) -> bytes | None:
    certificate = x509.load_pem_x509_certificate(pem)
    try:
        algorithm = certificate.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return None
    if algorithm is None:
        return None
    weak = isinstance(algorithm, hashes.MD5 | hashes.SHA1)  # RFC 5929, 4.1: SHA-256 in their place
    return certificate.fingerprint(hashes.SHA256() if weak else algorithm)


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
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
