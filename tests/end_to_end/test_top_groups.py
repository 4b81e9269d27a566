"""The largest groups of a list, through a running proxy: chosen where that is better, and paid for once."""

from collections.abc import Iterator
from decimal import Decimal

import psycopg
import pytest

from tests.support.running import Noisegate

Session = psycopg.Connection

BY_PRODUCT = (
    "SELECT i.product_id, count(DISTINCT o.customer_id) AS people FROM order_items i JOIN orders o ON o.id = i.order_id"
    " WHERE i.product_id BETWEEN 1 AND {} GROUP BY i.product_id"
)
TOP = f"{BY_PRODUCT} ORDER BY people DESC LIMIT {{}}"


@pytest.fixture
def session(proxy: Noisegate) -> Iterator[Session]:
    with psycopg.connect(proxy.dsn(), autocommit=True) as connection:
        connection.execute("SET noisegate.epsilon = 2")
        yield connection


def charges(session: Session) -> list[tuple[Decimal, Decimal]]:
    return session.execute("SELECT epsilon, rho FROM noisegate.ledger ORDER BY time").fetchall()


def explained(session: Session, sql: str) -> str:
    return "\n".join(row[0] for row in session.execute(f"EXPLAIN {sql}"))


def told(session: Session, sql: str) -> tuple[list[tuple[int, int]], str]:
    words: list[str] = []
    session.add_notice_handler(lambda notice: words.append(notice.message_primary or ""))
    return session.execute(sql).fetchall(), "\n".join(words)


def test_a_few_of_many_groups_are_chosen_and_counted_with_less_noise(session: Session) -> None:
    rows, words = told(session, TOP.format(30, 3))
    (epsilon, rho) = charges(session)[-1]

    assert len(rows) == 3
    assert [people for _, people in rows] == sorted((people for _, people in rows), reverse=True)
    assert "3 of 30 groups were chosen privately" in words
    assert session.execute("SELECT margin, groups_left_out FROM noisegate.last").fetchall() == [
        (Decimal(9), "all but the 3 largest, chosen privately")
    ]
    assert epsilon == 2
    assert rho == Decimal("0.541667")  # 1/2 + 1/24: of the counts, and of the choice
    assert explained(session, TOP.format(30, 3)).count("Gumbel noise of scale 3") == 1


def test_what_was_chosen_is_shown_again_for_nothing(session: Session) -> None:
    rows, _ = told(session, TOP.format(29, 3))
    before = charges(session)

    assert told(session, TOP.format(29, 3))[0] == rows
    assert charges(session) == before
    assert "served again: all" in explained(session, TOP.format(29, 3))


def test_others_pay_for_the_choice_and_the_counts_once(proxy: Noisegate, session: Session) -> None:
    rows, _ = told(session, TOP.format(28, 3))
    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as other:
        other.execute("SET noisegate.epsilon = 2")
        assert other.execute(TOP.format(28, 3)).fetchall() == rows
        assert charges(other)[-1][0] == 2


def test_where_all_groups_are_on_the_account_nothing_is_chosen(session: Session) -> None:
    counted: dict[int, int] = dict(session.execute(BY_PRODUCT.format(27)).fetchall())
    before = charges(session)
    rows, words = told(session, TOP.format(27, 3))

    assert charges(session) == before
    assert "chosen privately" not in words
    assert [people for _, people in rows] == sorted(counted.values(), reverse=True)[:3]


@pytest.mark.parametrize(
    "sql",
    [
        TOP.format(30, 11),  # too many of them
        TOP.format(30, 3).replace("DESC", "ASC"),
        TOP.format(30, 3).replace("count(DISTINCT o.customer_id)", "count(*)"),
        TOP.format(30, 3).replace("people DESC", "i.product_id DESC"),
        TOP.format(30, 3).replace(" AS people", " AS people, sum(count(DISTINCT o.customer_id)) OVER ()"),
        TOP.format(30, 3).replace("ORDER BY", "HAVING count(DISTINCT o.customer_id) > 3 ORDER BY"),
        TOP.format(30, 3).replace("LIMIT 3", "FETCH FIRST 3 ROWS WITH TIES"),
    ],
)
def test_elsewhere_all_groups_are_noised(session: Session, sql: str) -> None:
    assert "Gumbel" not in explained(session, sql)


def test_groups_that_are_skipped_are_chosen_too(session: Session) -> None:
    assert "4 of 30 chosen privately" in explained(session, f"{TOP.format(30, 3)} OFFSET 1")


def test_a_price_does_not_tell_which_groups_were_chosen_for_others(session: Session, proxy: Noisegate) -> None:
    rows = "FROM order_items i JOIN orders o ON o.id = i.order_id"
    counts = "count(*) AS n, count(DISTINCT o.customer_id) AS people"
    listed = f"SELECT i.product_id, {counts} {rows} WHERE i.product_id BETWEEN 1 AND 27 GROUP BY i.product_id"
    chosen = {product for product, *_ in session.execute(f"{listed} ORDER BY people DESC LIMIT 3")}
    products = (min(chosen), min(set(range(1, 28)) - chosen))

    with psycopg.connect(proxy.dsn("bob"), autocommit=True) as other:
        other.execute("SET noisegate.epsilon = 0.5")
        asked = f"SELECT count(*) {rows} WHERE i.product_id = {{}}"
        prices = [explained(other, asked.format(product)).partition("tables")[0] for product in products]

    assert prices[0] == prices[1]
