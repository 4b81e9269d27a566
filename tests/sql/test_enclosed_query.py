"""The query inside DECLARE and COPY is found where PostgreSQL finds it."""

import pytest

from rules.sql.read import read
from rules.sql.statement import EnclosedQuery, split_around

QUERY = "SELECT ')' || $q$)$q$ AS \")\" FROM orders /* ) /* ) */ */ WHERE note = E'\\')' -- )\n AND (1 = 1)"


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("COPY (", ") TO STDOUT"),
        ("copy /* ( for */ (", ") to stdout with (format csv, delimiter '(')"),
        ("COPY(", ")TO STDOUT (FORMAT binary)"),
        ("DECLARE c CURSOR FOR", ""),
        ('declare "for" no scroll cursor /* for */ with hold\nfor', ""),
        ("DECLARE c BINARY INSENSITIVE CURSOR WITHOUT HOLD FOR", ""),
        ("", ""),
    ],
)
def test_what_stands_around_a_query_is_kept(head: str, tail: str) -> None:
    text = f"{head} {QUERY}{tail}" if head else QUERY
    (statement,) = read(text).statements

    around = split_around(statement)

    assert around is not None
    assert (around.head, around.query.strip(), around.tail) == (head, QUERY, tail)
    assert around.put("SELECT 1").split() == f"{head} SELECT 1{tail}".split()


@pytest.mark.parametrize(
    "text", ["COPY orders TO STDOUT", "COPY orders (id, note) TO STDOUT", "EXPLAIN ANALYZE SELECT 1", "BEGIN"]
)
def test_where_no_query_is_none_is_found(text: str) -> None:
    (statement,) = read(text).statements

    assert split_around(statement) is None


def test_a_query_by_itself_has_nothing_around_it() -> None:
    (statement,) = read("SELECT 1").statements

    assert split_around(statement) == EnclosedQuery("", "SELECT 1", "")


def test_what_is_explained_is_left_to_the_planner_as_a_whole() -> None:
    (statement,) = read("EXPLAIN (FORMAT JSON) SELECT 1").statements

    assert split_around(statement) == EnclosedQuery("", "EXPLAIN (FORMAT JSON) SELECT 1", "")
