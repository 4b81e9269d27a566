"""Two parsers, one meaning: what is planned is what PostgreSQL's own grammar read."""

from dataclasses import replace

import pytest

from rules.refusal import NotSupported
from rules.sql.grammar import parse
from rules.sql.lower import check_agreement, query_from
from rules.sql.normalize import Spelled, spelled
from rules.sql.syntax import Call, Constant, InList, Item, Name, Operator, Query, Select

EXPRESSIONS = """
a::numeric(10,2)
date '2020-01-01'
interval '1 day'
null
-1
$1
current_date
now()
a % b
a ^ b
-a ^ 2
- -a
a is null
a is not true
a is unknown
a is distinct from b
a is not distinct from b
not a
not not a
a between 1 and 2
a not between 1 and 2
a like 'b%'
a ilike b
a not like b
a !~ 'x'
a !~* 'x'
a not in (1, 2)
not (a in (1, 2))
a = any(array[1])
a <> all($1)
a in (select 1)
a = any(select 1)
a <> all (select 1)
not exists (select 1)
(select 1)
case a when 1 then 2 else 3 end
coalesce(a, b)
nullif(a, 0)
greatest(a, b)
x::text[]
y::public.status
y::"MyEnum"
z::timestamptz(3)
v::varchar(3)
t::float4
x::"char"
count(*) over ()
count(distinct a)
sum(x) filter (where y > 1)
sum(x) over (partition by a order by b desc nulls last rows 3 preceding)
percentile_cont(0.5) within group (order by x)
extract(epoch from a - b)
a at time zone 'Europe/Berlin'
substring(a from 1 for 2)
trim(leading 'x' from a)
position('a' in b)
left(a, 1)
a || b || c
a + b * c - d / e
a and (b or c) and d
x = 'it''s'
E'a\\nb'
1.5e3
.5
+5
9999999999999999999
date_trunc('month', x)::date
""".strip().splitlines()

QUERIES = (
    "select 1 from a x join b using (id) left join c on true natural join d cross join e full join f on a = b",
    "select 1 from a, b left join c on true, d",
    "select 1 from a join (b join c on x) on y",
    "select 1 from a right join b on x, c full join d on y",
    "with a(x) as materialized (select 1), r as (select 2) select distinct on (a) 1 from a order by a desc limit 1",
    "select a, b from t group by rollup (a, b)",
    "select a, b from t group by cube (a, b), c",
    "select a, b from t group by grouping sets ((a), (a, b), ())",
    "select 1 union all select 2 except select 3 order by 1 limit 4",
    "(select 1 order by 1) union (select 2)",
    "values (1, 2), (3, 4)",
    "select sum(x) over w, avg(y) over w from a window w as (partition by b order by c)",
    "select * from generate_series(1, 2) as g(x)",
    'select a.*, b.x from s.a as a, "B c" b',
    'select a as "select", b "from" from "order"',
    'select "upper()"(a), "x()".upper(b), "count("(c), "()"() from t',
    "with recursive r as (select 1 union all select 2 from r) select * from r",
    "select count(*) from (select 1 from t) as x where x.a = (select max(b) from (select 1 as b) q)",
)


def read_twice(text: str) -> tuple[Spelled, Query]:
    (piece,) = parse(text)
    return spelled(piece.tree), query_from(piece.tree)


@pytest.mark.parametrize("text", [f"select {expression} from t" for expression in EXPRESSIONS] + list(QUERIES))
def test_both_parsers_read_the_same(text: str) -> None:
    tree, query = read_twice(text)

    check_agreement(tree.tree, query)


@pytest.mark.parametrize("text", QUERIES)
def test_selects_have_the_same_numbers_in_both_trees(text: str) -> None:
    tree, query = read_twice(text)
    bodies = tree.selects

    found = _selects(query)

    assert sorted(select.index for select in found) == list(range(len(bodies)))
    for select in found:
        assert len(select.items) == len(bodies[select.index]["targetList"])  # type: ignore[arg-type]


def _selects(given: object) -> list[Select]:
    found = [given] if isinstance(given, Select) else []
    if isinstance(given, tuple):
        return [select for each in given for select in _selects(each)]
    if hasattr(given, "__dataclass_fields__"):
        found += [select for name in given.__dataclass_fields__ for select in _selects(getattr(given, name))]
    return found


MISREADINGS = (
    ("select a + b from t", Operator("-", (Name(("a",)), Name(("b",))))),
    ("select a in (1) from t", InList(Name(("a",)), (Constant("number", "1"),), negated=True)),
    ("select count(distinct a) from t", Call("count", (Name(("a",)),))),
    ("select lower(a) from t", Call("upper", (Name(("a",)),))),
    ("select a from t", Name(("b",))),
    ("select sum(a) filter (where b) from t", Call("sum", (Name(("a",)),))),
)


@pytest.mark.parametrize(("text", "misread"), MISREADINGS)
def test_a_misreading_ends_in_a_refusal(text: str, misread: Name | Operator | Call | InList) -> None:
    tree, query = read_twice(text)
    assert isinstance(query, Select)

    with pytest.raises(NotSupported):
        check_agreement(tree.tree, replace(query, items=(Item(misread),)))


@pytest.mark.parametrize(
    "text",
    [
        "select 1 from only t",
        "select 1 from t tablesample bernoulli (5)",
        "select 1 from a join b using (id) as j",
        "select 1 from (a join b using (id)) as j",
        "select 1 from t group by distinct rollup (a, b)",
        "select 1 from t order by a using >",
        'select 1 as "_ng" from t',
    ],
)
def test_what_the_planner_cannot_see_through_is_refused(text: str) -> None:
    with pytest.raises(NotSupported):
        read_twice(text)


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("(a, b)", "row"),
        ("a @@ c", "@@"),
        ("f(a => 1)", "f"),
        ("f(variadic a)", "f"),
        ("a[1]", "subscript"),
        ('a collate "C"', "collate"),
        ("a similar to b", "similar"),
        ("a::interval day", "cast"),
        ("|/ a", "|/"),
        ("+ a", "+"),
        ("a operator(evil.+) b", "operator"),
        ("_ng.between(1)", "_ng.between"),
        ('"coalesce"(a)', "coalesce"),
    ],
)
def test_what_the_planner_has_no_word_for_keeps_its_name_and_its_parts(text: str, operator: str) -> None:
    _, query = read_twice(f"select {text} from t")
    assert isinstance(query, Select)
    (item,) = query.items

    assert isinstance(item.expression, Operator)
    assert item.expression.name == operator


def test_aggregates_and_subqueries_inside_what_has_no_word_are_still_seen() -> None:
    _, query = read_twice("select (row(count(*), (select 1 from u))).f1 from t")
    assert isinstance(query, Select)

    assert [type(call).__name__ for call in _calls(query)] == ["Call"]
    assert len(_selects(query)) == 2


def _calls(given: object) -> list[Call]:
    found = [given] if isinstance(given, Call) else []
    if isinstance(given, tuple):
        return [call for each in given for call in _calls(each)]
    if hasattr(given, "__dataclass_fields__"):
        found += [call for name in given.__dataclass_fields__ for call in _calls(getattr(given, name))]
    return found
