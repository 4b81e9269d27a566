"""Check SQL over public tables before the real database has it: a taken-over planner may have written anything.

Its login reads public tables alone, and PostgreSQL keeps it to that; but catalogs are open to everybody, and they count
the rows of protected tables. So no word of the SQL is a name of theirs, and every call is of a function on the lists
that planners write from. It is one query, which ends nowhere before its end.
"""

import re
from collections.abc import Iterator
from typing import Final

from rules.catalog import TableName
from rules.frozen import frozen
from rules.kernel import templates
from rules.planner.plan import PublicQuery
from rules.planner.public_query import DATE_ORDERS
from rules.refusal import Mismatch
from rules.sql import public_sql

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    |(?P<text>'(?:[^']|'')*'|[eE]'(?:[^'\\]|''|\\\\)*')(?!')
    |(?P<quoted>"(?:[^"]|"")+")(?!")
    |(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)(?![A-Za-z_$])
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)(?![A-Za-z0-9_$'"&])
    |(?P<cast>::)
    |(?P<sign>[-+*/<>=~!@#%^&|?`]+)
    |(?P<mark>[(),.\[\]:])""",
    re.VERBOSE,
)
_FUNCTIONS: Final = public_sql.FUNCTIONS | templates.CALLED | {"generate_series"}
_BEFORE_BRACKETS: Final = templates.KEYWORDS | frozenset(
    """
    as asc at between both by cast coalesce cube day days escape except exists fetch filter first following from
    greatest grouping having hour intersect isnull join last lateral leading least limit materialized minute month next
    notnull nullif nulls of offset on only operator over overlay partition placing position preceding range rollup row
    rows second select sets similar some substring symmetric time to trailing trim union unknown using values window
    with within without year zone
    """.split()
)
_TYPES: Final = public_sql.TYPES | frozenset(
    """
    bigint bool boolean bytea bpchar char character date decimal double precision float4 float8 int int2 int4 int8
    integer interval json jsonb jsonpath name numeric real smallint text time timestamp timestamptz uuid varchar varying
    """.split()
)
_OPENING: Final = {")": "(", "]": "["}
_CATALOG: Final = "pg_catalog"
_CATALOGS: Final = frozenset(  # what is of them and does not begin with pg_
    """
    information_schema regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc
    regprocedure regrole regtype
    """.split()
)
_CTE: Final = "noisegate cte "

Token = tuple[str, str]  # its kind, and its text: of names as PostgreSQL reads them


@frozen
class PublicNames:
    """What a checked text names."""

    functions: frozenset[str]  # of pg_catalog
    operators: frozenset[str]
    names: frozenset[str]  # all that stand alone: columns and the like
    tables: frozenset[TableName]  # what may be one, by its schema


def check_public(query: PublicQuery) -> PublicNames:
    """Return what a query names; raises Mismatch where it is none that planners write."""
    if query.date_order not in DATE_ORDERS:
        raise _refused()
    tokens = list(_tokens(query.sql))
    _check_brackets(tokens)
    functions, operators = set[str](), {text for kind, text in tokens if kind == "sign"}
    names, tables = set[str](), set[TableName]()
    for place, (kind, text) in enumerate(tokens):
        if kind not in ("word", "quoted") or _text(tokens, place - 1) == ".":
            continue
        parts = [text, *_after(tokens, place)]
        end = place + 2 * len(parts) - 1
        if _is_operator(tokens, place):
            continue
        if len(parts) > 2 or any(_is_of_catalogs(part) for part in (parts[1:] if text == _CATALOG else parts)):
            raise _refused()
        if _text(tokens, end) == "(":
            _check_call(tokens, place, parts)
            functions.add(parts[-1])
        elif text == _CATALOG and parts[-1] not in _TYPES | public_sql.COLLATIONS:
            raise _refused()
        names |= {text} if len(parts) == 1 else set()
        tables |= {TableName(*parts)} if len(parts) == 2 else set()
    return PublicNames(frozenset(functions), frozenset(operators), frozenset(names), frozenset(tables))


def _tokens(sql: str) -> Iterator[Token]:
    place = 0
    while place < len(sql):
        token = _TOKEN.match(sql, place)
        if token is None:
            raise _refused()
        kind, text = token.lastgroup or "", token[0]
        place = token.end()
        if kind == "sign" and ("--" in text or "/*" in text):
            raise _refused()
        if kind != "space":
            yield kind, _named(kind, text)


def _named(kind: str, text: str) -> str:
    return text[1:-1].replace('""', '"') if kind == "quoted" else text.lower() if kind == "word" else text


def _check_brackets(tokens: list[Token]) -> None:
    """None closes what was not opened here: the text stays inside the brackets that stand around it."""
    opened: list[str] = []
    for place, (kind, text) in enumerate(tokens):
        if kind != "mark":
            continue
        if text in "([":
            opened.append(text)
        elif text in _OPENING and (not opened or opened.pop() != _OPENING[text]):
            raise _refused()
        elif text == "." and (place == 0 or tokens[place - 1][0] not in ("word", "quoted")):
            raise _refused()  # (a row).name may be a call
    if opened or not tokens:
        raise _refused()


def _after(tokens: list[Token], place: int) -> Iterator[str]:
    """The names that follow one after points."""
    while _text(tokens, place + 1) == "." and place + 2 < len(tokens):
        place += 2
        yield tokens[place][1]


def _is_operator(tokens: list[Token], place: int) -> bool:
    """OPERATOR(pg_catalog.=)"""
    written = [text for _, text in tokens[max(0, place - 2) : place + 4]]
    match written:
        case ["operator", "(", "pg_catalog", ".", _, ")"] if tokens[place + 2][0] == "sign":
            return True
    return False


def _is_of_catalogs(name: str) -> bool:
    return name.startswith("pg_") or name in _CATALOGS


def _check_call(tokens: list[Token], place: int, parts: list[str]) -> None:
    """A name before a bracket is a function on the list, a type with its length, or a name for columns."""
    kind, before, name = tokens[place][0], _text(tokens, place - 1), parts[-1]
    if name in _FUNCTIONS | _TYPES and parts[:-1] in ([], [_CATALOG]):
        return
    is_keyword = kind == "word" and name in _BEFORE_BRACKETS
    if len(parts) > 1 or not (is_keyword or before == "as" or name.startswith(_CTE)):
        raise _refused()


def _text(tokens: list[Token], place: int) -> str:
    """A word, a mark or a sign; nothing of texts and of names in quotes."""
    kind, text = tokens[place] if 0 <= place < len(tokens) else ("", "")
    return "" if kind in ("text", "quoted") else text


def _refused() -> Mismatch:
    return Mismatch("the plan has a query over public tables that is not allowed to run")
