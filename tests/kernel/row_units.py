"""Rows that are units of their own: what tells one from another, and what may never meet."""

import psycopg
import pytest

from rules.catalog import Catalog, Key, Table, TableName, TypeName
from rules.catalog import Column as CatalogColumn
from rules.kernel.ground import Ground
from rules.kernel.measures import Units
from rules.kernel.script import Call, Correlated, Join, PerUnit, Scan, Script, Semi, UnionAll
from rules.policy.load import load_policy
from rules.refusal import Refusal
from rules.replay import Kernel
from rules.values.expression import TRUE
from rules.values.types import INT8, TEXT
from tests.kernel.hostile import of
from tests.kernel.statements import answer
from tests.support import lab

SCHEMA = """
CREATE TABLE public.pairs (a text, b text, PRIMARY KEY (a, b)); CREATE TABLE public.singles (a text PRIMARY KEY);
CREATE TABLE public.others (a text PRIMARY KEY); CREATE TABLE public.loose (a text); CREATE TABLE public.open (a text);
INSERT INTO public.pairs VALUES ('1', '11'), ('11', '1'), ('1:1', '1'), ('1', '1:1');
CREATE TABLE public.spans (a text, b interval, PRIMARY KEY (a, b));
INSERT INTO public.spans VALUES
    ('1', interval '2147483647 hours' + interval '10 hours'), ('1', '1 day'), ('2', '1 day');
"""
_RULES = "unit: row\ntables:\n  pairs: {}\n  singles: {}\n  others: {}\n  loose: {}\n  spans: {}\n  open: public\n"
_KEYS = {"pairs": ("a", "b"), "singles": ("a",), "others": ("a",), "loose": (), "open": (), "spans": ("a", "b")}


def _scan(name: str, first: int, *columns: str, unit: int | None = None) -> Scan:
    return Scan(TableName("public", name), tuple(enumerate(columns or ("a",), first)), unit)


_SINGLES, _OTHERS, _LOOSE, _OPEN = _scan("singles", 0), _scan("others", 10), _scan("loose", 20), _scan("open", 30)
_COUNTED = ((90, Call("count(*){over}", (), INT8)),)
UNSOUND: dict[str, Script] = {
    "a join of rows of two tables": Join("inner", _SINGLES, _OTHERS),
    "rows of a table that are looked for in another": Semi(_SINGLES, _OTHERS, (), TRUE),
    "rows of a table that are counted beside another's": Correlated(_SINGLES, _OTHERS, (), TRUE, _COUNTED),
    "a union of rows of two tables": UnionAll((_SINGLES, _OTHERS), ((80, TEXT, (0, 10)),), 80),
    "rows that nothing tells apart, several times": Join("inner", _LOOSE, _OPEN),
    "rows that nothing tells apart, twice": UnionAll((_LOOSE, _LOOSE), ((80, TEXT, (20, 20)),), None),
    "rows that nothing tells apart, by their unit": PerUnit(_LOOSE, (), _COUNTED),
    "a key that is not read": _scan("pairs", 1, "a"),
    "a key of one column that is not read": Scan(TableName("public", "singles"), (), 5),
    "a key whose number is another column's": _scan("pairs", 1, "a", unit=1),
}


def _column(table: str, name: str, number: int) -> CatalogColumn:
    kind = "interval" if (table, name) == ("spans", "b") else "text"  # of 2^31 hours older servers have no text
    return CatalogColumn(name, TypeName(kind, kind), number)


def ground() -> Ground:
    """Anew each time: what it says of a table is kept."""
    head, rest = lab.RULES[: lab.RULES.index("unit:")], lab.RULES[lab.RULES.index("budget:") :]
    tables = tuple(
        Table(
            TableName("public", name),
            "table",
            tuple(_column(name, each, n) for n, each in enumerate(key or ("a",), 1)),
            (Key("key", key, primary=True),) if key else (),
        )
        for name, key in _KEYS.items()
    )
    policy = load_policy(f"{head}{_RULES}{rest}", "rules.yaml", {"DATABASE": "x"})
    return Ground(policy, Catalog("x", 180000, "", "UTF8", tables))


def check_row_units(connection: psycopg.Connection) -> None:
    """Raises an AssertionError where two rows are one unit, or where rows of several units meet."""
    for name, script in UNSOUND.items():
        with pytest.raises(Refusal):
            Kernel(ground()).bounded(of(script))
            raise AssertionError(name)
    rows = PerUnit(_scan("pairs", 1, "a", "b", unit=5), (), _COUNTED)
    bounded = Kernel(ground()).bounded(of(rows, (), (Units(),)))
    with connection.transaction(force_rollback=True):
        connection.execute(SCHEMA)
        assert answer(connection, bounded) == {(): (4,)}, "two rows are one unit"
        for keyed in (_scan("spans", 1, "a", "b", unit=5), PerUnit(_scan("spans", 1, "a", "b", unit=5), (), _COUNTED)):
            statement = Kernel(ground()).bounded(of(keyed, (), (Units(),)))
            assert answer(connection, statement) == {(): (3,)}, "two intervals are one unit"
