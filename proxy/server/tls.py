"""Our certificate: the context of the handshakes, and the hash that binds a login to it."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from proxy.wire.conversation import ALPN


@dataclass(frozen=True, slots=True)
class Tls:
    """One certificate, loaded. Load anew to change it: connections that run keep the old one."""

    context: ssl.SSLContext
    end_point: bytes | None
    """tls-server-end-point (RFC 5929); None where the certificate's signature names no hash (Ed25519)."""

    @classmethod
    def load(cls, certificate: Path, private_key: Path) -> Self:
        """Read PEM files, the server's certificate first. Raises OSError or ssl.SSLError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION | ssl.OP_CIPHER_SERVER_PREFERENCE
        context.set_alpn_protocols([ALPN])
        context.load_cert_chain(certificate, private_key, password=_no_password)
        return cls(context, _end_point(certificate.read_bytes()))


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
