"""Who is let in: the right proof at the right time from the right place, and all others look alike."""

import asyncio
import secrets
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient

from proxy.load_logins import VerifiersError, find_oddities, line_of, read_verifiers
from proxy.server.accounts import Account, Accounts, Attempt, DatedVerifier
from proxy.wire.authentication import AuthenticationSASLContinue, Exchange, ProvedByCertificate
from proxy.wire.frontend import SASLInitialResponse, SASLResponse
from proxy.wire.scram import PLAIN, BadPassword, Verifier
from proxy.wire.startup import LoginRefused
from tests.policy.test_check import policy

SALT, SECRET, NOW = bytes(range(16)), secrets.token_bytes(32), datetime(2026, 11, 22, tzinfo=UTC)
ROSEBUD, SLED = (Verifier.of_password(word, SALT) for word in ("rosebud", "sled"))
SLOW = Verifier.of_password("rosebud", secrets.token_bytes(24), iterations=10_000)
HERE, ELSEWHERE = "10.1.2.3", "192.0.2.1"


def exchange(
    account: Account | None, *, host: str = HERE, names: tuple[str, ...] = (), secret: bytes = SECRET
) -> Exchange:
    accounts = {"slow": Account((DatedVerifier(SLOW),))} | ({} if account is None else {"ada": account})
    found = Accounts(accounts, secret, clock=lambda: NOW)
    return asyncio.run(found.exchange(Attempt("ada", host, certificate_names=frozenset(names))))


def shown(tried: Exchange, scram: ScramClient) -> str:
    """Salt and iterations, as the client is told them."""
    reply = tried.answer(SASLInitialResponse(PLAIN, scram.get_client_first().encode()).encode())
    words = AuthenticationSASLContinue.decode(reply).data.decode()
    scram.set_server_first(words)
    return words.partition(",")[2]


def opens(tried: Exchange, password: str) -> bool:
    """Whether the password lets anybody in; refused is 28P01 and nothing else."""
    scram = ScramClient([PLAIN.decode()], "x", password)
    shown(tried, scram)
    try:
        tried.answer(SASLResponse(scram.get_client_final().encode()).encode())
    except LoginRefused as error:
        assert type(error) is BadPassword
        assert (error.sqlstate, str(error)) == ("28P01", 'password authentication failed for user "ada"')
        return False
    assert tried.is_proved
    return True


def until(verifier: Verifier, hours: float | None) -> DatedVerifier:
    return DatedVerifier(verifier, None if hours is None else NOW + timedelta(hours=hours))


MAYBE_HOURS = st.none() | st.sampled_from([-100.0, -0.01, 0.0, 0.01, 100.0])


@given(
    first=MAYBE_HOURS,
    second=MAYBE_HOURS,
    whole=MAYBE_HOURS,
    network=st.none() | st.sampled_from(["10.0.0.0/8", "10.1.2.3/32", "192.0.2.0/24", "::/0"]),
    certificate=st.none() | st.sampled_from(["ada", "Ada"]),
    password=st.sampled_from(["rosebud", "sled", "neither"]),
)
def test_the_right_proof_opens_when_and_where_the_rules_say_so_and_never_else(
    first: float | None,
    second: float | None,
    whole: float | None,
    network: str | None,
    certificate: str | None,
    password: str,
) -> None:
    account = Account(
        (until(ROSEBUD, first), until(SLED, second)),
        certificate=certificate,
        valid_until=None if whole is None else NOW + timedelta(hours=whole),
        networks=None if network is None else (ip_network(network),),
    )

    is_in = opens(exchange(account, names=("ada", "other")), password)

    at = {"rosebud": first, "sled": second, "neither": -1}[password]
    in_time = all(number is None or number > 0 for number in (at, whole))
    assert is_in == (in_time and (network or "10.").startswith("10.") and certificate in (None, "ada"))


@pytest.mark.parametrize(
    "account",
    [
        None,
        Account(),
        Account(needs_password=False, certificate="ada"),
        Account((DatedVerifier(ROSEBUD),), networks=(ip_network("192.0.2.0/24"),)),
        Account((DatedVerifier(ROSEBUD),), valid_until=NOW),
        Account((DatedVerifier(ROSEBUD, NOW),)),
        Account((DatedVerifier(ROSEBUD),), certificate="ada"),
        Account((DatedVerifier(SLED),)),
    ],
)
def test_whoever_may_not_in_is_asked_twice_alike_and_has_a_wrong_password(account: Account | None) -> None:
    words = [shown(exchange(account), ScramClient([PLAIN.decode()], "x", "rosebud")) for _ in range(2)]

    assert words[0] == words[1]
    assert not opens(exchange(account), "rosebud")


def test_a_salt_does_not_depend_on_where_somebody_comes_from_or_when() -> None:
    account = Account((DatedVerifier(ROSEBUD),), networks=(ip_network("10.0.0.0/8"),))
    tries = [(account, HERE), (account, ELSEWHERE), (replace(account, valid_until=NOW), HERE)]

    assert (
        len({shown(exchange(account, host=host), ScramClient([PLAIN.decode()], "x", "x")) for account, host in tries})
        == 1
    )


def test_an_ipv4_address_within_ipv6_is_the_one_that_it_maps() -> None:
    account = Account((DatedVerifier(ROSEBUD),), networks=(ip_network("10.0.0.0/8"),))

    assert opens(exchange(account, host="::ffff:10.1.2.3"), "rosebud")
    assert not opens(exchange(account, host=""), "rosebud")


def test_a_certificate_alone_opens_where_no_password_is_asked_for() -> None:
    account = Account((), needs_password=False, certificate="ada")

    assert isinstance(exchange(account, names=("ada",)), ProvedByCertificate)
    assert not isinstance(exchange(account, names=("eve",)), ProvedByCertificate)
    assert not isinstance(exchange(replace(account, valid_until=NOW), names=("ada",)), ProvedByCertificate)


def test_a_stranger_looks_like_one_of_the_accounts() -> None:
    accounts = Accounts({"ada": Account((DatedVerifier(ROSEBUD),)), "slow": Account((DatedVerifier(SLOW),))}, SECRET)
    found = set()
    for number in range(50):
        tried = asyncio.run(accounts.exchange(Attempt(f"eve{number}", HERE)))
        found.add(shown(tried, ScramClient([PLAIN.decode()], "x", "x")).partition("i=")[2])

    assert found == {"4096", "10000"}


def test_another_process_without_the_secret_cannot_tell_a_stranger() -> None:
    first, second = (exchange(None, secret=secrets.token_bytes(32)) for _ in range(2))
    words = {shown(exchange, ScramClient([PLAIN.decode()], "x", "x")) for exchange in (first, second)}

    assert len(words) == 2


NAMES = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), min_size=1, max_size=20)


@given(names=st.lists(NAMES, unique=True, max_size=4))
def test_a_file_is_read_as_it_was_written(names: list[str]) -> None:
    text = "\n".join(["; of pgbouncer", "# of ours", "", *(line_of(name, ROSEBUD) for name in names)])

    assert read_verifiers(text, "f") == {name: (DatedVerifier(ROSEBUD),) for name in names}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"ada"', 'f:1: a line has "name" "verifier"'),
        ("ada rosebud", 'f:1: a line has "name" "verifier"'),
        ('\n"ada" "rosebud"', "f:2: not a SCRAM-SHA-256 verifier"),
        (f'"ada" "{ROSEBUD}" "soon"', 'f:1: "soon" is no date'),
        (f'"ada" "{ROSEBUD}"\n"ada" "{SLOW}"', "f:2: .*--beside"),
        (f'"ada" "{ROSEBUD}"\n' * 3, "f:3: .*more than 2"),
    ],
)
def test_a_broken_file_says_where_and_how_and_quotes_no_password(text: str, words: str) -> None:
    with pytest.raises(VerifiersError, match=words) as caught:
        read_verifiers(text, "f")

    assert "rosebud" not in str(caught.value)


def test_a_verifier_of_the_file_may_end_earlier_than_the_account() -> None:
    text = f'"ada" "{ROSEBUD}" "2026-11-22"\n"ada" "{SLED}" "2026-11-22 01:00+01:00"\n"ada2" "{SLED}"'

    assert [verifier.until for verifier in read_verifiers(text, "f")["ada"]] == [NOW, NOW]


def test_what_has_expired_is_told_to_the_dba() -> None:
    accounts = {
        "ada": Account((until(ROSEBUD, -1),)),
        "bob": Account((until(ROSEBUD, -1), until(SLED, None))),
        "cy": Account((until(ROSEBUD, 1),)),
        "dee": Account((until(ROSEBUD, None),), valid_until=NOW),
    }

    assert find_oddities(policy(), Path("rules.yaml"), Accounts(accounts, SECRET, clock=lambda: NOW)) == [
        "ada cannot log in: the password expired at 2026-11-21 23:00 UTC",
        "one of two passwords of bob expired at 2026-11-21 23:00 UTC: take it out",
        "dee cannot log in: valid_until was 2026-11-22 00:00 UTC",
    ]
