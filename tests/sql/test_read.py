"""PostgreSQL's grammar says what a text holds; hostile and odd texts included."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.refusal import Refusal
from rules.sql.read import read
from rules.sql.statement import Kind, Statement
from tests.end_to_end.attacks import OTHER_STATEMENTS


def only(text: str) -> Statement:
    (statement,) = read(text).statements
    return statement


def tables(text: str) -> list[tuple[str | None, str]]:
    return [(relation.schema, relation.name) for relation in only(text).relations]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT 1", Kind.QUERY),
        ("VALUES (1)", Kind.QUERY),
        ("TABLE t", Kind.QUERY),
        ("DECLARE c CURSOR FOR SELECT 1", Kind.DECLARE),
        ("COPY (SELECT 1) TO STDOUT", Kind.COPY_OUT),
        ("PREPARE p AS SELECT 1", Kind.PREPARE),
        ("EXECUTE p(1)", Kind.EXECUTE),
        ("EXPLAIN SELECT 1", Kind.EXPLAIN),
        ("BEGIN", Kind.TRANSACTION),
        ("START TRANSACTION READ ONLY", Kind.TRANSACTION),
        ("ROLLBACK TO SAVEPOINT x", Kind.TRANSACTION),
        ("SET search_path = a", Kind.SET),
        ("RESET ALL", Kind.SET),
        ("DEALLOCATE ALL", Kind.DEALLOCATE),
        ("DISCARD ALL", Kind.DISCARD),
        ("FETCH 3 FROM c", Kind.OTHER),
        ("MOVE FORWARD 2 c", Kind.OTHER),
        ("CLOSE ALL", Kind.OTHER),
        ("SHOW ALL", Kind.OTHER),
        ("LISTEN x", Kind.OTHER),
        ("UNLISTEN *", Kind.OTHER),
    ],
)
def test_a_statement_has_its_kind(text: str, kind: Kind) -> None:
    assert only(text).kind is kind


@pytest.mark.parametrize("attack", OTHER_STATEMENTS, ids=lambda attack: attack.name)
def test_what_is_no_query_is_refused_by_kind(attack: tuple[str, str, tuple[str, ...]]) -> None:
    statement = only(attack[1])

    if statement.kind is not Kind.EXPLAIN:
        assert statement.kind is Kind.FORBIDDEN
        assert statement.refusal is not None
        assert statement.refusal.sqlstate in attack[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT * FROM a, s.b JOIN c ON true", [(None, "a"), ("s", "b"), (None, "c")]),
        ("WITH a AS (SELECT 1 FROM b) SELECT * FROM a", [(None, "b")]),
        ("WITH a AS (SELECT 1 FROM a) SELECT * FROM a", [(None, "a")]),  # its own definition still means the table
        ("WITH RECURSIVE a AS (SELECT 1 UNION SELECT * FROM a) SELECT * FROM a", []),
        ("SELECT (SELECT 1 FROM a) FROM (SELECT 2 FROM b) c WHERE EXISTS (SELECT 1 FROM d)", None),
        ("WITH a AS (SELECT 1) SELECT * FROM s.a", [("s", "a")]),
        ("SELECT orders FROM t", [(None, "t")]),
        ("SELECT 'orders'::regclass", []),
        ("COPY t TO STDOUT", [(None, "t")]),
        ("DECLARE c CURSOR FOR SELECT 1 FROM t", [(None, "t")]),
        ("EXPLAIN SELECT 1 FROM t", [(None, "t")]),
        ("PREPARE p AS SELECT 1 FROM t", [(None, "t")]),
        ('SELECT 1 FROM "T x"', [(None, "T x")]),
    ],
)
def test_the_tables_of_a_statement_are_found(text: str, expected: list[tuple[str | None, str]] | None) -> None:
    assert tables(text) == (expected or tables(text))
    if expected is None:
        assert sorted(tables(text), key=str) == [(None, "a"), (None, "b"), (None, "d")]


def test_positions_count_characters_from_one_in_the_statement() -> None:
    first, second = read("SELECT 'é'; SELECT 'ü', 1 FROM tab").statements

    assert (first.start, second.start) == (0, 12)
    (relation,) = second.relations
    assert relation.position is not None
    assert second.text[relation.position - 1 :] == "tab"


def test_comments_around_a_statement_do_not_hide_it() -> None:
    assert only("/* hi */ -- there\nSELECT 1 FROM t -- end").text.startswith("SELECT")
    assert read("/* nothing */").statements == ()


def test_prepared_statements_are_known_by_name_type_and_text() -> None:
    statement = only("PREPARE p (int, numeric(10,2)) AS SELECT count(*) FROM t WHERE a > $1")

    assert statement.name == "p"
    assert statement.parameter_types == ("int", "numeric(10, 2)")
    assert statement.query == "SELECT count(*) FROM t WHERE a > $1"
    assert only("EXECUTE p(1 + 2, 'x')").arguments == ("1 + 2", "'x'")


@pytest.mark.parametrize(
    ("options", "analyzes"), [("ANALYZE", True), ("(ANALYZE)", True), ("(ANALYZE off)", False), ("", False)]
)
def test_explain_says_whether_it_runs(options: str, analyzes: bool) -> None:
    assert only(f"EXPLAIN {options} SELECT 1").analyze is analyzes


def test_a_long_name_is_cut_as_postgresql_cuts_it_before_anyone_looks_at_it() -> None:
    assert tables(f'SELECT * FROM "{"é" * 40}"') == [(None, "é" * 31)]
    assert tables(f'WITH "{"x" * 70}a" AS (SELECT 1) SELECT * FROM "{"x" * 70}b"') == []


def test_what_the_grammar_does_not_accept_is_unreadable() -> None:
    assert read("SELECT (((").unreadable
    assert not read("").unreadable


@given(st.text(max_size=200))
def test_any_text_is_read_or_unreadable(text: str) -> None:
    if "\0" in text:
        return
    try:
        reading = read(text)
    except (Refusal, UnicodeEncodeError):
        return
    assert all(statement.text in text for statement in reading.statements)
