"""A CASE lists the groups that its branches can give, and no others."""

from decimal import Decimal

import pytest

from rules.bind.inner_answers import InnerAnswer
from rules.mechanisms.release_plan import PublicGroups
from rules.planner.plan import NeedsInner, Request
from rules.planner.planner import plan
from tests.planner.planned import Planner

TOP = "(SELECT city AS city__, count(*) AS n FROM customers GROUP BY 1 ORDER BY 2 DESC LIMIT 2) AS best"
BEST = f"customers LEFT JOIN {TOP} ON city = best.city__"
BACKWARDS = f"{TOP} RIGHT JOIN customers ON best.city__ = city"
KEPT = "CASE WHEN best.city__ IS NOT NULL THEN city ELSE 'Others' END"


def groups(planner: Planner, source: str, key: str) -> list[str | None]:
    """The groups of a key, once the best cities are known to be Porto and Lyon."""
    request = Request(
        f"SELECT {key}, count(*) FROM {source} GROUP BY 1",
        ("pg_catalog", "public"),
        epsilon=Decimal(1),
        delta=Decimal("1e-9"),
    )
    made = plan(request, planner.policy, planner.catalog)
    while isinstance(made, NeedsInner):
        rows = (("Porto", "90"), ("Lyon", "80"))
        known = InnerAnswer(made.inner, ("city__", "n"), ("text", "bigint"), rows)
        request = Request(request.text, request.search_path, (), (), Decimal(1), Decimal("1e-9"), released=(known,))
        made = plan(request, planner.policy, planner.catalog)
    found = made.blocks[-1].groups
    assert isinstance(found, PublicGroups)
    return [group[0] for group in found.rows]


@pytest.mark.parametrize(
    ("source", "key", "expected"),
    [
        (BEST, KEPT, ["Lyon", "Others", "Porto"]),
        (BACKWARDS, KEPT, ["Lyon", "Others", "Porto"]),
        (BEST, "CASE WHEN best.n > 85 THEN city ELSE 'Others' END", ["Lyon", "Others", "Porto"]),
        (BEST, "CASE WHEN best.n > 1 AND city <> 'Lyon' THEN city ELSE 'Others' END", ["Others", "Porto"]),
        (f"{BEST} AND is_vip", KEPT, ["Lyon", "Others", "Porto"]),
        (f"(SELECT {KEPT} AS k FROM {BEST}) AS t", "k", ["Lyon", "Others", "Porto"]),
        (f"{BEST} JOIN orders ON customer_id = customers.id", KEPT, ["Lyon", "Others", "Porto"]),
        ("customers", "CASE WHEN city IN ('Berlin', 'Graz') THEN city ELSE 'Others' END", ["Berlin", "Graz", "Others"]),
        (
            "customers",
            "CASE city WHEN 'Graz' THEN city WHEN 'Lyon' THEN 'L' ELSE 'Others' END",
            ["Graz", "L", "Others"],
        ),
        ("customers", "CASE WHEN is_vip THEN city END", ["Berlin", "Graz", "Lyon", "Porto", None]),
    ],
)
def test_a_branch_gives_what_its_test_lets_through(
    planner: Planner, source: str, key: str, expected: list[str | None]
) -> None:
    assert groups(planner, source, key) == expected


def test_without_the_test_every_value_is_a_group(planner: Planner) -> None:
    found = groups(planner, BEST, "CASE WHEN best.city__ IS NULL THEN city ELSE 'Others' END")

    assert {"Berlin", "Graz", "Others", None} <= set(found)
