"""What a client reads when something goes wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.session.errors import error_response, fatal, find_denial
from proxy.wire.backend import ErrorResponse
from proxy.wire.codec import ProtocolViolation
from proxy.wire.startup import LoginRefused
from rules.refusal import BudgetSpent, NotAllowed, Refusal


def test_a_refusal_keeps_all_that_it_has_to_say() -> None:
    refusal = NotAllowed("rows are not shown", detail="why", hint="what else", position=8)

    assert error_response(refusal).fields == {
        "S": "ERROR",
        "V": "ERROR",
        "C": "42501",
        "M": "rows are not shown",
        "D": "why",
        "H": "what else",
        "P": "8",
    }


def test_what_a_refusal_does_not_say_is_left_out() -> None:
    assert set(error_response(BudgetSpent("no budget")).fields) == {"S", "V", "C", "M"}


def test_each_kind_has_its_sqlstate() -> None:
    assert error_response(ProtocolViolation("bad"), "FATAL").sqlstate == "08P01"
    assert error_response(LoginRefused("3D000", "no")).sqlstate == "3D000"
    assert ErrorResponse.decode(fatal("57P01", "bye")).fields["V"] == "FATAL"


@given(text=st.text(min_size=1))
def test_an_unknown_exception_says_nothing_of_itself(text: str) -> None:
    try:
        raise RuntimeError(text)
    except RuntimeError as error:
        fields = error_response(error).fields

    assert fields == error_response(ValueError()).fields


@pytest.mark.parametrize(
    "name",
    [
        "table pg_authid",
        "table sql_parts",
        "view transforms",
        "view _pg_foreign_data_wrappers",
        "view _pg_foreign_servers",
        "view _pg_user_mappings",
    ],
)
def test_what_postgresql_itself_closes_is_told_in_its_own_words(name: str) -> None:
    said = error_response(NotAllowed(f"permission denied for {name}"))

    assert find_denial(said.encode(), {}) is None


@pytest.mark.parametrize("name", ["table orders", "table transforms", "view sql_parts"])
def test_a_protected_table_that_the_twin_closes_is_told_in_ours(name: str) -> None:
    refusal = find_denial(error_response(NotAllowed(f"permission denied for {name}")).encode(), {})

    assert refusal is not None
    assert "FOR UPDATE" in refusal.hint


def test_a_public_table_that_could_not_be_read_is_not_said_to_be_too_large() -> None:
    said = error_response(NotAllowed("permission denied for table notices")).encode()
    unreadable = find_denial(said, {"notices": "the proxy could not read it"})
    large = find_denial(said, {"notices": "it has more than 29 rows (--max-public-rows)"})

    assert unreadable is not None
    assert large is not None
    assert "noisegate check" in unreadable.hint
    assert "raise --max-public-rows" in large.hint
    assert "--max-public-rows" not in unreadable.hint


@given(message=st.text(), hint=st.text())
def test_any_text_can_be_sent(message: str, hint: str) -> None:
    response = error_response(Refusal(message, hint=hint))

    assert ErrorResponse.decode(response.encode()) == response


@pytest.mark.parametrize("position", [1, 10**6])
def test_a_position_is_a_number_from_one(position: int) -> None:
    assert error_response(Refusal("x", position=position)).fields["P"] == str(position)
