"""Passwords that are checked without being known."""

import hashlib
from collections.abc import Sequence

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scramp import ScramClient

from proxy.twin.embedded import Cluster
from proxy.wire.codec import ProtocolViolation
from proxy.wire.scram import PLAIN, PLUS, BadPassword, ScramServer, Verifier
from proxy.wire.startup import LoginRefused

SALT = bytes(range(16))
ADA = Verifier.of_password("rosebud", SALT)
END_POINT = hashlib.sha256(b"a certificate").digest()


def exchange(
    verifiers: Verifier | Sequence[Verifier],
    password: str,
    mechanism: bytes = PLAIN,
    *,
    server: bytes | None,
    client: bytes | None,
) -> None:
    """All four messages; raises what the server raises, and fails if the client does not believe the server."""
    binding = None if client is None else ("tls-server-end-point", client)
    caller = ScramClient([mechanism.decode()], "somebody else", password, channel_binding=binding)
    scram = ScramServer("ada", [verifiers] if isinstance(verifiers, Verifier) else verifiers, mechanism, server)
    caller.set_server_first(scram.first(caller.get_client_first().encode()).decode())
    caller.set_server_final(scram.final(caller.get_client_final().encode()).decode())


def first_words(header: str, bare: str = "n=,r=abcdef") -> bytes:
    return (header + bare).encode()


def test_the_right_password_opens_with_and_without_channel_binding() -> None:
    exchange(ADA, "rosebud", server=None, client=None)
    exchange(ADA, "rosebud", server=END_POINT, client=None)
    exchange(ADA, "rosebud", PLUS, server=END_POINT, client=END_POINT)


@settings(max_examples=25, deadline=None)
@given(password=st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1))
def test_no_other_password_opens(password: str) -> None:
    if password != "rosebud":
        with pytest.raises(BadPassword):
            exchange(ADA, password, server=None, client=None)


def test_the_certificate_of_a_man_in_the_middle_does_not_open() -> None:
    with pytest.raises(LoginRefused) as caught:
        exchange(ADA, "rosebud", PLUS, server=END_POINT, client=hashlib.sha256(b"another").digest())
    assert caught.value.sqlstate == "28000"


def test_a_client_that_was_told_of_no_channel_binding_although_we_offered_it_is_refused() -> None:
    with pytest.raises(LoginRefused) as caught:
        ScramServer("ada", [ADA], PLAIN, END_POINT).first(first_words("y,,"))
    assert caught.value.sqlstate == "28000"
    assert ScramServer("ada", [ADA], PLAIN, None).first(first_words("y,,"))


@pytest.mark.parametrize(
    ("mechanism", "end_point", "words"),
    [
        (PLAIN, END_POINT, first_words("p=tls-server-end-point,,")),
        (PLAIN, None, first_words("p=tls-server-end-point,,")),
        (PLUS, END_POINT, first_words("n,,")),
        (PLUS, END_POINT, first_words("y,,")),
        (PLUS, END_POINT, first_words("p=tls-unique,,")),
        (PLUS, END_POINT, first_words("p=tls-exporter,,")),
        (PLAIN, None, first_words("n,a=eve,")),
        (PLAIN, None, first_words("x,,")),
        (PLAIN, None, first_words("n,,", "m=ext,n=,r=abc")),
        (PLAIN, None, first_words("n,,", "n=")),
        (PLAIN, None, first_words("n,,", "n=,r=")),
        (PLAIN, None, first_words("n,,", "n=,r=a\0b")),
        (PLAIN, None, b"n,,n=,r=\xff"),
        (PLAIN, None, b"n,,"),
        (PLAIN, None, b""),
    ],
)
def test_first_words_that_break_the_rules_are_refused(mechanism: bytes, end_point: bytes | None, words: bytes) -> None:
    with pytest.raises((ProtocolViolation, LoginRefused)):
        ScramServer("ada", [ADA], mechanism, end_point).first(words)


@pytest.mark.parametrize("mechanism", [PLUS, b"SCRAM-SHA-1", b"PLAIN", b""])
def test_a_mechanism_that_was_not_offered_cannot_be_chosen(mechanism: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        ScramServer("ada", [ADA], mechanism, None)


@given(words=st.binary(max_size=60), proof=st.binary(max_size=60))
def test_garbage_is_refused_and_nothing_else(words: bytes, proof: bytes) -> None:
    with pytest.raises((ProtocolViolation, LoginRefused)):
        ScramServer("ada", [ADA], PLAIN, None).first(words)
    scram = ScramServer("ada", [ADA], PLAIN, None)
    scram.first(first_words("n,,"))
    with pytest.raises((ProtocolViolation, LoginRefused)):
        scram.final(proof)


@given(
    words=st.text("ncrpaesivm=,* yA1+/\0é", max_size=40),
    proof=st.text("ncrpaesivm=,* yA1+/\0é", max_size=40).map("c=biws,{}".format),
)
def test_garbage_that_looks_like_scram_is_refused_or_answered_and_nothing_else(words: str, proof: str) -> None:
    for header in ("", "n,,", "n,,n="):
        try:
            ScramServer("ada", [ADA], PLAIN, None).first((header + words).encode())
        except (ProtocolViolation, LoginRefused):
            continue
    scram = ScramServer("ada", [ADA], PLAIN, None)
    nonce = scram.first(first_words("n,,")).decode().split(",")[0]
    for claim in (proof, f"c=biws,{nonce},p={proof}", f"c=biws,{nonce},p=AAAA"):
        with pytest.raises((ProtocolViolation, LoginRefused)):
            ScramServer("ada", [ADA], PLAIN, None).final(claim.encode())
    with pytest.raises(BadPassword):
        scram.final(f"c=biws,{nonce},p=AAAA".encode())


@pytest.mark.parametrize("name", ["", "*", "ada", "a=2Cb", "=", "é"])
def test_the_name_inside_scram_is_ignored(name: str) -> None:
    assert ScramServer("ada", [ADA], PLAIN, None).first(first_words("n,,", f"n={name},r=abc"))


def test_two_passwords_open_at_once_and_each_gets_the_proof_of_its_own() -> None:
    new = Verifier.of_password("new", SALT)

    for password in ("rosebud", "new"):
        for verifiers in ((ADA, new), (new, ADA)):
            exchange(verifiers, password, server=None, client=None)
    with pytest.raises(BadPassword):
        exchange((ADA, new), "old", server=None, client=None)


@pytest.mark.parametrize("password", ["rosebud", "naïve café", "p\u00a0w", "ﬁne", "日本語"])
def test_our_verifier_is_the_one_that_postgresql_makes(real_cluster: Cluster, password: str) -> None:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS scram_test")
        connection.execute(psycopg.sql.SQL("CREATE ROLE scram_test PASSWORD {}").format(password))
        row = connection.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'scram_test'").fetchone()
        connection.execute("DROP ROLE scram_test")
    assert row is not None

    theirs = Verifier.parse(row[0])

    assert str(theirs) == row[0]
    assert Verifier.of_password(password, theirs.salt, theirs.iterations) == theirs


def test_a_password_that_cannot_be_typed_alike_everywhere_makes_no_verifier() -> None:
    with pytest.raises(ValueError, match="SASLprep"):
        Verifier.of_password("bell\a", SALT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rosebud",
        "md5f00",
        str(ADA).replace("4096", "1"),
        str(ADA).replace("4096", "999999999"),
        str(ADA).replace("SHA-256", "SHA-1"),
        str(ADA)[:-4],
        str(ADA) + "\n",
        "SCRAM-SHA-256$4096:AAAA$" + str(ADA).split("$")[2],
    ],
)
def test_what_is_no_verifier_or_a_weak_one_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"verifier|padding|base64"):
        Verifier.parse(text)
