"""What is printed of a tree is read as that tree again: no condition loses its parentheses."""

from itertools import product

import pytest

from rules.sql.encode_tree import fence
from rules.sql.grammar import Unreadable, deparse, parse
from rules.sql.tree import Json, kind, same

CONDITIONS = (
    *("{} > c", "c > {}", "{} = c", "{} IN (c)", "c NOT IN ({})", "{} LIKE c", "c ILIKE {}", "{} BETWEEN c AND d"),
    *("c BETWEEN {} AND d", "c NOT BETWEEN SYMMETRIC d AND {}", "{} IS NULL", "{} IS NOT TRUE", "NOT {}", "{} AND c"),
    *("c OR {}", "{} IS DISTINCT FROM c", "c IS NOT DISTINCT FROM {}", "{} = ANY (c)", "{} IN (SELECT c)"),
    *("{} = ALL (SELECT c)", "{} SIMILAR TO 'x'", "EXISTS (SELECT {})"),
)
AROUND = (*CONDITIONS, "{}::text", "{} + c", "c - {}", "{} || c", "CASE {} WHEN c THEN d END", "f({})", "ARRAY[{}]")


@pytest.mark.parametrize("around", AROUND)
def test_a_condition_inside_an_operator_keeps_its_parentheses(around: str) -> None:
    for inner, depth in product(CONDITIONS, ("a", "(a = b)", "(a AND b)")):
        text = f"SELECT {around.format(f'({inner.format(depth)})')}"
        tree = parse(text)[0].tree
        printed = deparse(tree)
        try:
            (again,) = parse(printed)
        except Unreadable:
            raise AssertionError(f"{text} became {printed}") from None
        assert same(again.tree, _fenced(tree)), f"{text} became {printed}"


def test_what_needs_no_parentheses_is_printed_as_it_is() -> None:
    text = "SELECT (a + b) > c AND (d OR NOT e) FROM t WHERE x IN (1, 2) AND y IS NULL"

    assert deparse(parse(text)[0].tree) == text


def _fenced(node: Json) -> Json:
    if isinstance(node, list):
        return [_fenced(child) for child in node]
    if not isinstance(node, dict):
        return node
    inner = {key: _fenced(child) for key, child in node.items()}
    name, body = kind(inner)
    return {name: fence(name, body)} if name else inner
