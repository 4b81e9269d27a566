"""What every client asks, and what it must get: one question, so that all of them are served one release."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

from tests.support import shop

CITIES = "SELECT city, count(*) FROM customers GROUP BY city ORDER BY city NULLS LAST"
"""A private answer with a group for each declared value and one for NULL."""

AMOUNTS = "SELECT status, count(*), avg(amount), sum(amount) FROM orders WHERE amount > {} GROUP BY status"
"""A private answer with a parameter: numeric, bigint and an enum in one row."""

ROWS = "SELECT * FROM customers LIMIT 3"
"""What is refused with 42501."""

RULES = shop.RULES.replace("{epsilon: 1, max_epsilon: 10,", "{epsilon: 10, max_epsilon: 10,")
"""The shop's rules with so little noise that an answer can be told from a guess."""

NOISE = 3
"""At ε = 10 a count of customers is further off with a probability below 10^-13."""

STATUSES = ["open", "paid", "sent", "returned"]


def check_cities(rows: Iterable[tuple[str | None, int]], truth: Mapping[str | None, int]) -> None:
    """The right groups, in order, with counts near the truth: an empty table would say 0."""
    answer = dict(rows)
    assert list(answer) == [*sorted(city for city in truth if city), None]
    for city, count in answer.items():
        assert isinstance(count, int)
        assert abs(count - truth[city]) <= NOISE


def check_amounts(rows: Iterable[tuple[object, int, object, object]]) -> None:
    """All statuses in the enum's order, with averages and sums that hang together.

    About 390 orders of each are counted; noise moves them by more than 200 with a probability below 10^-11.
    """
    answer = list(rows)
    assert [_text(row[0]) for row in answer] == STATUSES
    for _, count, average, total in answer:
        assert 150 < count < 750
        assert 100 < Decimal(str(average)) < 450
        assert Decimal(str(total)) > 10_000


def _text(value: object) -> str:
    """An enum is unknown to most drivers: some hand on its bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
