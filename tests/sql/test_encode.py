"""The tree as bytes: exactly what protobuf's own reader of dicts makes of it."""

import sys
from collections.abc import Iterator

import pytest
from google.protobuf import json_format
from postgast import pg_query_pb2

from rules.sql.encode_tree import encode_statement
from rules.sql.grammar import deparse, parse, trees_without_places
from rules.sql.tree import bodies, holders, same, walk

TEXTS = (
    "select 0, -1, 9223372036854775807, '', 'ä', true, false, null, 1.5 from only a.b as c(x) for update",
    "with recursive r as materialized (select 1) select distinct on (a) count(*) filter (where b) over (order by c) "
    "from r, lateral f(1) with ordinality limit 3 offset 4",
    "declare c scroll cursor with hold for select 1",
    "copy (select 1) to stdout with (format csv, header)",
    "fetch backward all from c",
    "set local timezone to 'UTC'",
)


@pytest.fixture
def deep_stack() -> Iterator[None]:
    """As the workers have it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("text", TEXTS)
def test_bytes_are_those_of_protobuf_itself(text: str) -> None:
    (piece,), (tree,) = parse(text), trees_without_places(text)
    message = pg_query_pb2.ParseResult(version=180004)
    json_format.ParseDict(tree, message.stmts.add().stmt)

    for _ in range(2):  # names that were encoded once are kept
        assert pg_query_pb2.ParseResult.FromString(encode_statement(piece.tree)) == message


@pytest.mark.parametrize("name", ['"select"', '"a.b"', '"A"', '"a""b"', '"$1"', '"/*"', "w"])
@pytest.mark.parametrize(
    "text",
    [
        "select rank() over {0} from t window {0} as (order by a)",
        "select rank() over ({0} order by b) from t window {0} as (partition by a)",
        "select f({0} => 1)",
        "select * from a join b using (c) as {0}",
    ],
)
def test_names_keep_the_quotes_that_they_need(text: str, name: str) -> None:
    (piece,) = parse(text.format(name))
    (again,) = parse(deparse(piece.tree))

    assert same(again.tree, piece.tree)


@pytest.mark.parametrize(
    "text", ["select " + " + ".join(["1"] * 1900), "select * from (" * 40 + "select 1" + ") as x" * 40]
)
def test_deep_trees_are_printed(text: str, deep_stack: None) -> None:
    (piece,) = parse(text)
    (again,) = parse(deparse(piece.tree))

    assert same(again.tree, piece.tree)


@pytest.mark.parametrize(
    "text",
    [
        *TEXTS,
        """select ',"location":5' as ",}", '{"location":7,' as "{""location"":7", a."," from ",""stmt_len"":3}" as a""",
        "select x in (1, 2), array[1, 2], case when x then 1 end, (select 1) from t",
    ],
)
def test_trees_without_places_are_those_with_places_but_for_them(text: str) -> None:
    plain, whole = trees_without_places(text), [piece.tree for piece in parse(text)]

    assert len(plain) == len(whole)
    for one, other in zip(plain, whole, strict=True):
        assert same(one, other)
        assert not [node for node in walk(one) if "location" in node]


@pytest.mark.parametrize("name", ["partition", "range", "rows", "groups"])
def test_a_window_that_is_made_of_one_with_the_name_of_a_frame(name: str) -> None:
    text = 'SELECT f({0} => 1) OVER ("{0}" ROWS 1 PRECEDING), g() OVER "{0}" FROM t WINDOW "{0}" AS (ORDER BY a)'
    (piece,) = parse(text.format(name))
    (again,) = parse(deparse(piece.tree))

    assert {body["refname"] for body in holders(again.tree, "refname")} == {f"{name} "}
    (window,) = bodies(again.tree, "WindowDef")
    assert window["name"] == f"{name} "
    assert [body["name"] for body in bodies(again.tree, "NamedArgExpr")] == [name]


@pytest.mark.parametrize(
    ("function", "printed"),
    [
        ("json_array(1)", 'LATERAL (SELECT JSON_ARRAY(1)) "json_array"("json_array")'),
        ("json_object('a': 1) AS j", "LATERAL (SELECT JSON_OBJECT('a': 1)) j(j)"),
        ("json_value(a, '$') AS v(w)", "LATERAL (SELECT JSON_VALUE(a , '$')) v(w)"),
        ("json_exists(a, '$')", """LATERAL (SELECT JSON_EXISTS(a , '$')) "json_exists"("json_exists")"""),
        ("nullif(1, 2) n", "LATERAL (SELECT NULLIF(1, 2)) n(n)"),
        ("f(1) AS x(y)", "f(1) x(y)"),
        ("coalesce(1, 2)", "COALESCE(1, 2)"),
    ],
)
def test_what_stands_in_from_in_place_of_a_function_is_printed(function: str, printed: str) -> None:
    (piece,) = parse(f"SELECT * FROM t, {function}")

    assert deparse(piece.tree) == f"SELECT * FROM t, {printed}"
