"""Our certificate: the context of the handshakes, and the hash that binds a login to it."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from proxy.wire.conversation import ALPN

_CRL: Final = b"-----BEGIN X509 CRL-----"


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
