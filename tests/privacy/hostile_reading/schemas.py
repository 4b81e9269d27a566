"""Schemas that a hostile reader made up, with rules, units that leave, and what is asked of them.

Each has ordinary DDL that a database may well have and that a proof may overlook: types, casts, operators and
collations of its own, keys of unlike types, partitions and children, and the ends of every type.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Schema:
    """Tables with rows, the rules of tables, and scripts that each take one unit away."""

    name: str
    tables: str
    rules: str
    leaves: tuple[str, ...]
    statements: tuple[str, ...]
    needs_icu: bool = False
    answered: int = 10  # of a hundred statements at least


_EVERY_COLUMN = (
    "SELECT {c}, count(*) FROM t GROUP BY 1",
    "SELECT {c}, count(DISTINCT person_id), sum(n) FROM t GROUP BY 1",
    "SELECT count(DISTINCT {c}) FROM t",
    "SELECT count({c}) FROM t WHERE {c} IS NOT NULL",
    "SELECT n, count(*) FROM (SELECT n, {c}, row_number() OVER (PARTITION BY person_id ORDER BY w) rn FROM t) q"
    " WHERE rn = 1 AND {c} IS NOT NULL GROUP BY n",
    "SELECT n, count(*) FROM (SELECT DISTINCT ON (person_id) person_id, n, {c} FROM t ORDER BY person_id, w) q"
    " WHERE {c} IS NOT NULL GROUP BY n",
    "SELECT n, count(*) FROM (SELECT n, rank() OVER (PARTITION BY person_id ORDER BY {c}) rn FROM t) q WHERE rn = 1"
    " GROUP BY n",
    "SELECT count(*) FROM (SELECT person_id, {c}, count(*) k FROM t GROUP BY 1, 2) q WHERE k > 5",
    "SELECT k, count(*) FROM (SELECT person_id, max({c}) k FROM t GROUP BY 1) q GROUP BY k",
    "SELECT count(*) FROM (SELECT n, lag({c}) OVER (PARTITION BY person_id ORDER BY n) k FROM t) q"
    " WHERE k IS NOT NULL AND n > 3",
    "SELECT n, count(*) FROM (SELECT n, {c} FROM t UNION ALL SELECT n, {c} FROM t WHERE n > 5) q"
    " WHERE {c} IS NOT NULL GROUP BY n",
    "SELECT n, count(*) FROM (SELECT n, {c} FROM t INTERSECT SELECT n, {c} FROM t WHERE n > 5) q"
    " WHERE {c} IS NOT NULL GROUP BY n",
    "SELECT count(*) FROM t a JOIN t b USING (person_id, {c})",
    "SELECT count(*) FROM t a WHERE {c} IN (SELECT {c} FROM t b WHERE b.person_id = a.person_id AND b.n > 3)",
    "SELECT count(*) FROM t a WHERE {c} NOT IN (SELECT {c} FROM t b WHERE b.person_id = a.person_id AND b.n > 3)",
    "SELECT count(*) FROM t a LEFT JOIN t b ON a.person_id = b.person_id AND a.{c} = b.{c} WHERE b.n IS NULL",
    "SELECT count(*) FROM t WHERE {c}::text > 'a'",
)
_OF_AN_ORDER = (
    "SELECT count(*) FROM (SELECT count(*) OVER (PARTITION BY person_id ORDER BY {c}"
    " RANGE BETWEEN {o} PRECEDING AND {o} FOLLOWING) k FROM t) q WHERE k > 1",
    "SELECT count(*) FROM (SELECT count(*) OVER (PARTITION BY person_id ORDER BY {c} DESC"
    " RANGE BETWEEN CURRENT ROW AND {o} FOLLOWING EXCLUDE TIES) k FROM t) q WHERE k > 1",
    "SELECT sum({c}), avg({c}), stddev({c}) FROM t",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY {c}), min({c}), max({c}) FROM t",
    "SELECT sum(k) FROM (SELECT person_id, sum({c}) k FROM t GROUP BY 1) q",
    "SELECT count(*) FROM (SELECT {c} - lag({c}) OVER (PARTITION BY person_id ORDER BY n) k FROM t) q"
    " WHERE k IS NOT NULL",
    "SELECT count(*) FROM t WHERE {c} + {o} > {c}",
    "SELECT count(*) FROM t WHERE {c} * 2 > {c}",
    "SELECT date_trunc('month', {c}), count(*) FROM t GROUP BY 1",
    "SELECT extract(epoch FROM {c}), count(*) FROM t GROUP BY 1",
    "SELECT width_bucket({c}, -1, 1, 4), count(*) FROM t GROUP BY 1",
    "SELECT round({c}), count(*) FROM t GROUP BY 1",
    "SELECT {c}::integer, count(*) FROM t GROUP BY 1",
    "SELECT {c}::numeric(6, 2), count(*) FROM t GROUP BY 1",
    "SELECT {c}::date, count(*) FROM t GROUP BY 1",
    "SELECT count(*) FROM t a LEFT JOIN LATERAL (SELECT * FROM t b WHERE b.person_id = a.person_id AND b.{c} <= a.{c}"
    " ORDER BY b.{c} LIMIT 1) x ON true WHERE x.n > 2",
    "SELECT count(*) FROM t a WHERE {c} >= ALL (SELECT {c} FROM t b WHERE b.person_id = a.person_id)",
    "SELECT count(*) FROM people p WHERE (SELECT sum({c}) FROM t b WHERE b.person_id = p.id) > 0",
)
_OF_PAIRS = (
    "SELECT count(*) FROM t WHERE {c} < {o}",
    "SELECT count(*) FROM t a JOIN t b ON a.person_id = b.person_id AND a.{c} = b.{o}",
    "SELECT greatest({c}, {o}), count(*) FROM t GROUP BY 1",
    "SELECT count(*) FROM t WHERE {c} - {o} > {c}",
)


def _each(templates: tuple[str, ...], columns: dict[str, str]) -> tuple[str, ...]:
    return tuple(template.format(c=column, o=other) for column, other in columns.items() for template in templates)


_PEOPLE = "CREATE TABLE people (id integer PRIMARY KEY); INSERT INTO people SELECT generate_series(1, 6);"
_LEAVES = tuple(
    f"DELETE FROM t WHERE person_id = {number}; DELETE FROM people WHERE id = {number}" for number in (1, 2, 6)
)

# Casts that call functions which read tables or fail, and equalities that are coarser than labels.
_OWN_TYPES = Schema(
    "types, casts and operators of its own",
    f"""{_PEOPLE}
CREATE TYPE mood AS ENUM ('a', 'A', 'b'); CREATE DOMAIN mood_domain AS mood; CREATE TYPE plain AS ENUM ('x', 'y');
CREATE TYPE badge AS (word text, number integer); CREATE TYPE words AS RANGE (subtype = text, collation = "C");
CREATE FUNCTION shown(mood) RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT CASE WHEN EXISTS (SELECT FROM public.people WHERE id = 1) THEN 'x' ELSE 'y' END $$;
CREATE CAST (mood AS text) WITH FUNCTION shown(mood) AS IMPLICIT;
CREATE FUNCTION shown(badge) RETURNS text LANGUAGE sql STABLE AS
    $$ SELECT (1 / (SELECT count(*) - 6 FROM public.people))::text $$;
CREATE CAST (badge AS text) WITH FUNCTION shown(badge) AS ASSIGNMENT;
CREATE CAST (plain AS text) WITH INOUT AS ASSIGNMENT;
CREATE TABLE t (person_id integer, m mood, md mood_domain, ms mood[], p plain, b badge, bs badge[], r words, j jsonb,
    i interval, tz timetz, f real, nu numeric, by bytea, ip inet, bits bit(3), cash money, n integer, w text);
INSERT INTO t SELECT 1 + i % 6, 'a', 'A', '{{a,b}}', 'x', '(x,1)', '{{}}', '[a,b)', '{{"a": "b", "c": 1}}',
    (ARRAY['1 month', '30 days', '170000000 years', '2147483647 hours'])[1 + i % 4]::interval, '10:00+02',
    (ARRAY['0', '-0', 'NaN', '1'])[1 + i % 4]::real, (ARRAY['5.0', '5.00', 'NaN', '1e131071'])[1 + i % 4]::numeric,
    '\\x00', '1.2.3.4/24', '010', 5, i % 10, 'w' FROM generate_series(1, 60) i WHERE i % 6 < 5 OR i = 5;
""",
    """unit: people.id
tables:
  people: {unit: id}
  t:
    unit: person_id
    rows_per_unit: 3
    columns: {n: {lower: 0, upper: 9}, f: {lower: 0, upper: 1}, nu: {lower: 0, upper: 9}}
""",
    _LEAVES,
    (
        *_each(_EVERY_COLUMN, dict.fromkeys("m md ms p b bs r j i tz f nu by ip bits cash".split(), "")),
        "SELECT count(*) FROM t WHERE m = 'a'",
        "SELECT count(*) FROM t WHERE md IN ('a', 'b')",
        "SELECT count(*) FROM t WHERE ms[1] = 'a'",
        "SELECT count(*) FROM t WHERE 'a' = ANY (ms)",
        "SELECT count(*) FROM t WHERE lower(m) = 'x'",
        "SELECT count(*) FROM t WHERE concat(b, m) = 'x'",
        "SELECT count(*) FROM t WHERE w || md = 'x'",
        "SELECT count(*) FROM t WHERE (b).word = 'x'",
        "SELECT count(*) FROM t WHERE b = ROW('x', 1)::badge",
        "SELECT nullif(md, 'a'), count(*) FROM t GROUP BY 1",
        "SELECT count(*) FROM t WHERE p::text = 'x' AND concat(p, w) > 'a'",
        "SELECT count(*) FROM t WHERE lower(r) = 'a' OR isempty(r)",
    ),
)

_OPERATORS = """
CREATE FUNCTION folded(mood) RETURNS text LANGUAGE sql IMMUTABLE AS
    'SELECT pg_catalog.lower(pg_catalog.textin(pg_catalog.enum_out($1)))';
CREATE FUNCTION mood_cmp(mood, mood) RETURNS integer LANGUAGE sql IMMUTABLE AS
    'SELECT pg_catalog.bttextcmp(public.folded($1), public.folded($2))';
""" + "".join(
    f"""CREATE FUNCTION mood_{name}(mood, mood) RETURNS boolean LANGUAGE sql IMMUTABLE AS
    'SELECT public.mood_cmp($1, $2) {sign} 0';
    CREATE OPERATOR public.{sign} (leftarg = mood, rightarg = mood, function = mood_{name});
"""
    for name, sign in (("lt", "<"), ("le", "<="), ("eq", "="), ("ge", ">="), ("gt", ">"))
)
# An enum whose default equality is another one: GROUP BY, DISTINCT, PARTITION BY and ORDER BY go by it, = does not.
_OWN_EQUALITY = Schema(
    "an enum with an operator class of its own",
    f"""CREATE TYPE mood AS ENUM ('a', 'A', 'b'); {_OPERATORS}
CREATE OPERATOR CLASS mood_ops DEFAULT FOR TYPE mood USING btree AS OPERATOR 1 public.<, OPERATOR 2 public.<=,
    OPERATOR 3 public.=, OPERATOR 4 public.>=, OPERATOR 5 public.>, FUNCTION 1 mood_cmp(mood, mood);
CREATE TABLE people (id integer PRIMARY KEY); CREATE TABLE t (person_id integer, m mood, n integer, w text);
INSERT INTO people SELECT generate_series(1, 6);
INSERT INTO t SELECT 1 + i % 2, CASE WHEN i % 4 < 2 THEN 'a' ELSE 'A' END::mood, i, 'w' FROM generate_series(1, 60) i;
""",
    """unit: people.id
tables:
  people: {unit: id}
  t: {unit: person_id, rows_per_unit: 3, columns: {n: {lower: 0, upper: 9}}}
""",
    _LEAVES,
    (
        *_each(_EVERY_COLUMN, {"m": ""}),
        "SELECT m, count(*) FROM (SELECT DISTINCT ON (person_id) m FROM t ORDER BY person_id, w) q GROUP BY 1",
        "SELECT x, count(*) FROM (SELECT first_value(m) OVER (PARTITION BY person_id ORDER BY m) x FROM t) s"
        " GROUP BY x",
        "SELECT m, count(*) FROM (SELECT DISTINCT person_id, m FROM t) q GROUP BY m",
        "SELECT m, count(*) FROM (SELECT person_id, m, count(*) c FROM t GROUP BY 1, 2) q WHERE c > 3 GROUP BY m",
    ),
    answered=5,
)

_UNITS_OF_OWN_EQUALITY = Schema(
    "a unit whose type has an operator class of its own",
    f"""CREATE TYPE mood AS ENUM ('a', 'A', 'b'); {_OPERATORS}
CREATE OPERATOR CLASS mood_ops DEFAULT FOR TYPE mood USING btree AS OPERATOR 1 public.<, OPERATOR 2 public.<=,
    OPERATOR 3 public.=, OPERATOR 4 public.>=, OPERATOR 5 public.>, FUNCTION 1 mood_cmp(mood, mood);
CREATE TABLE people (m mood PRIMARY KEY); CREATE TABLE t (m mood, n integer, w text);
INSERT INTO people VALUES ('a'), ('b');
INSERT INTO t SELECT (ARRAY['a', 'A', 'b'])[1 + i % 3]::mood, i % 10, CASE i % 3 WHEN 0 THEN 'x' ELSE 'y' END
FROM generate_series(1, 60) i;
""",
    """unit: people.m
tables:
  people: {unit: m}
  t: {unit: m, rows_per_unit: 3, columns: {n: {lower: 0, upper: 9}}}
""",
    tuple(f"DELETE FROM t WHERE m OPERATOR(pg_catalog.=) '{label}'" for label in "aAb"),
    (
        "SELECT count(*) FROM t",
        "SELECT w, count(*) FROM t GROUP BY w",
        "SELECT w, count(DISTINCT m) FROM t GROUP BY w",
        "SELECT count(*) FROM (SELECT n, row_number() OVER (PARTITION BY m ORDER BY n) r FROM t) q WHERE r < 3",
        "SELECT w, count(*) FROM (SELECT w, count(*) OVER (PARTITION BY m) c FROM t) q WHERE c > 20 GROUP BY w",
        "SELECT count(*) FROM people JOIN t USING (m)",
    ),
    answered=0,
)

_COLLATIONS = Schema(
    "collations of its own",
    f"""{_PEOPLE}
CREATE COLLATION folding (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION german (provider = icu, locale = 'de-x-icu');
CREATE DOMAIN folded AS text COLLATE folding; CREATE DOMAIN german_text AS text COLLATE german;
CREATE DOMAIN folded_list AS text[] COLLATE folding;
CREATE TABLE codes (code text COLLATE folding, region text); CREATE UNIQUE INDEX ON codes (code COLLATE "C");
INSERT INTO codes VALUES ('bob', 'n'), ('BOB', 's');
CREATE TABLE t (person_id integer, nd text COLLATE folding, de text COLLATE german, ndd folded, ded german_text,
    a text[] COLLATE folding, ad folded_list, ade text[] COLLATE german, ch char(5) COLLATE german,
    vc varchar(5) COLLATE folding, n integer, w text);
INSERT INTO t SELECT 1 + i % 6, x, x, x, x, ARRAY[x, 'A'], ARRAY[x], ARRAY['ä', x], x, x, i % 10, 'w'
FROM (SELECT i, (ARRAY['Bob', 'bob', 'BOB', 'bob '])[1 + i % 4] x FROM generate_series(1, 60) i) q;
""",
    """unit: people.id
tables:
  people: {unit: id}
  codes: public
  t: {unit: person_id, rows_per_unit: 3, columns: {n: {lower: 0, upper: 9}}}
""",
    _LEAVES,
    (
        *_each(_EVERY_COLUMN, dict.fromkeys("nd de ndd ded a ad ade ch vc".split(), "")),
        "SELECT a[1], count(*) FROM t GROUP BY 1",
        "SELECT count(*) FROM t WHERE a[1] LIKE 'b%'",
        "SELECT count(*) FROM t WHERE a[1] = ade[1]",
        "SELECT count(*) FROM t WHERE a @> ARRAY['a']",
        "SELECT count(*) FROM t WHERE a && ade",
        "SELECT count(*) FROM t WHERE w = ANY (a) OR de = ANY (ade) OR de = ANY (a)",
        "SELECT count(*) FROM t WHERE ade[1] < de",
        "SELECT count(*) FROM t WHERE de = ded AND de || ade[1] > w",
        "SELECT region, count(*) FROM t JOIN codes ON code = nd GROUP BY 1",
        "SELECT region, count(*) FROM t LEFT JOIN codes ON code = de GROUP BY 1",
    ),
    needs_icu=True,
)

_EXTREMES = """
    (ARRAY['infinity', '-infinity', '4713-01-01 BC', '5874897-12-31', '2024-02-29', NULL, '9999-12-31'])
        [1 + k % 7]::date,
    (ARRAY['infinity', '-infinity', '4713-01-01 BC', '294276-12-31 23:59:59.999999', '2024-02-29', NULL, '9999-12-31'])
        [1 + k % 7]::timestamp,
    (ARRAY['infinity', '-infinity', '4713-01-02 BC', '294276-12-31 12:00', '2024-10-27 00:30+00', NULL, '9999-12-31'])
        [1 + k % 7]::timestamptz,
    (ARRAY['NaN', 'Infinity', '-Infinity', '1.7976931348623157e308', '5e-324', NULL, '-0'])[1 + k % 7]::float8,
    (ARRAY['NaN', 'Infinity', '-Infinity', '3.4028235e38', '1e-45', NULL, '-0'])[1 + k % 7]::real,
    (ARRAY['NaN', 'Infinity', '-Infinity', '1e131071', '1e-16383', NULL, '0.500'])[1 + k % 7]::numeric,
    (ARRAY['9223372036854775807', '-9223372036854775808', '0', '1', '-1', NULL, '2'])[1 + k % 7]::bigint,
    (ARRAY['2147483647', '-2147483648', '0', '1', '-1', NULL, '2'])[1 + k % 7]::integer,
    (ARRAY['32767', '-32768', '0', '1', '-1', NULL, '2'])[1 + k % 7]::smallint,
    (ARRAY['170000000 years', '-170000000 years', '2147483647 hours', '-2147483648 days', '1 month', NULL, '0'])
        [1 + k % 7]::interval,
    (ARRAY['24:00', '00:00', '12:00', '23:59:59.999999', '1:00', NULL, '3:00'])[1 + k % 7]::time,
    (ARRAY['', ' ', 'a', 'a ', '2024-02-30', NULL, '٣'])[1 + k % 7]
"""
_OFFSETS = {
    **{"d": "interval '1 day'", "ts": "interval '1 year'", "tz": "interval '1 month'", "iv": "interval '1 day'"},
    **{"tm": "interval '1 hour'", "f": "1.5", "r": "1.5", "nu": "1.5", "b": "10", "i": "10", "s": "10"},
}
_ENDS = Schema(
    "the ends of every type",
    f"""{_PEOPLE}
CREATE TABLE places (id integer PRIMARY KEY, region text, nu numeric, f float8, d date, tz timestamptz, w name,
    ch char(4));
INSERT INTO places VALUES (1, 'n', 'NaN', 'NaN', 'infinity', 'infinity', 'a', 'a'),
    (2, 's', 0, 'Infinity', '-infinity', '-infinity', 'b', ''), (3, NULL, 1e131071, '-0', NULL, '2024-01-01', '', 'b');
CREATE TABLE t (person_id integer, n integer, place integer, d date, ts timestamp, tz timestamptz, f float8, r real,
    nu numeric, b bigint, i integer, s smallint, iv interval, tm time, w text);
INSERT INTO t SELECT p, k % 8, 1 + k % 4, {_EXTREMES}
FROM generate_series(1, 6) p, generate_series(0, 20) k WHERE p < 6 OR k < 1;
""",
    """unit: people.id
tables:
  people: {unit: id}
  places: public
  t:
    unit: person_id
    rows_per_unit: 3
    columns:
      n: {lower: 0, upper: 9}
      f: {lower: -1, upper: 1}
      r: {lower: -1, upper: 1}
      nu: {lower: -5, upper: 9.5}
      b: {lower: -5, upper: 5}
      i: {lower: -3, upper: 3}
      s: {lower: -3, upper: 3}
      d: {lower: 2000-01-01, upper: 2024-12-31}
      ts: {lower: 2000-01-01, upper: 2024-12-31}
      tz: {lower: 2000-01-01, upper: 2024-12-31}
""",
    _LEAVES,
    (
        *_each((*_EVERY_COLUMN, *_OF_AN_ORDER), _OFFSETS),
        *(
            template.format(c=one, o=other)
            for one in _OFFSETS
            for other in _OFFSETS
            if one < other
            for template in _OF_PAIRS
        ),
        *_each(
            (
                "SELECT count(*) FROM t JOIN places p ON p.{c} = t.{o}",
                "SELECT region, count(*) FROM t JOIN places p ON p.{c} = t.{o} GROUP BY 1",
                "SELECT count(*) FROM t WHERE {o} NOT IN (SELECT {c} FROM places)",
                "SELECT p.{c}, count(*) FROM t LEFT JOIN places p ON p.id = t.place GROUP BY 1",
            ),
            {"nu": "nu", "f": "f", "d": "d", "tz": "tz", "w": "w", "ch": "w"},
        ),
    ),
)

_KEYS = {
    "interval": "'1 day','24:00:01','170000000 years','-170000000 years','2147483647 hours 1 second','1 month'",
    "float8": "'NaN','Infinity','-Infinity','-0','5e-324','1.7976931348623157e308'",
    "real": "'NaN','Infinity','-0','1e-45','3.4028235e38','16777216'",
    "numeric": "'NaN','1e131071','1e-16383','5.00','0','-1e131071'",
    "text": "'',' ','a','a ','A','1:a'",
    "varchar(5)": "'',' ','a','a ','A','1:a'",
    "char(5)": "'','b','a','c ','A','1:a'",
    "name": "'',' ','a','a ','A','1:a'",
    "date": "'infinity','-infinity','4713-01-01 BC','5874897-12-31','2024-01-01','0001-01-01 BC'",
    "timestamp": "'infinity','-infinity','4713-01-01 BC','294276-12-31 23:59:59.999999','2024-01-01','0001-01-01 BC'",
    "timestamptz": "'infinity','-infinity','4713-01-02 BC','294276-12-31','2024-10-27 00:30+00','2024-10-27 01:30+00'",
    "time": "'24:00','00:00','12:00','12:00:00.000001','1:00','2:00'",
    "timetz": "'24:00+15:59','00:00-15:59','12:00+01','11:00+00','1:00+00','2:00+00'",
    "uuid": ",".join(f"'{digit * 8}-0000-0000-0000-000000000000'" for digit in "123456"),
    "mood": "'a','A','b','c','d',''",
    "mood_domain": "'a','A','b','c','d',''",
    "decimal_domain": "'1.00','2','3','4','5','NaN'",
    "bytea": "'\\x','\\x00','a','b','c','d'",
    '"char"': "'a','b','c','d','e',''",
    "bit(3)": "'000','001','010','011','100','101'",
    "integer[]": "'{}','{1}','[2:2]={1}','{NULL}','{1,2}','{{1}}'",
    "jsonb": "'1','2','{}','[]','null','true'",
    "badge": "'(a,1)','(a,2)','(b,1)','(,)','(A,1)','(c,1)'",
    "inet": "'1.2.3.4','1.2.3.4/24','::1','1.2.3.5','1.2.3.6','1.2.3.7'",
    "money": "'1','2','3','4','5','6'",
    "int4range": "'empty','[1,2)','[1,3)','(,)','[5,)','(,5)'",
    "oid": "'1','2','3','4','5','4294967295'",
    "bigint": "'9223372036854775807','-9223372036854775808','0','1','2','3'",
}
_ROW_STATEMENTS = (
    "SELECT count(*), sum(n) FROM {t} WHERE n > 1",
    "SELECT w, count(*) FROM {t} GROUP BY w",
    "SELECT k, count(*) FROM {t} GROUP BY k",
    "SELECT count(DISTINCT k), count(DISTINCT v) FROM {t}",
    "SELECT count(*) FROM {t} a JOIN {t} b USING (k)",
    "SELECT count(*) FROM {t} a WHERE k IN (SELECT v FROM {t})",
    "SELECT tag, count(*) FROM {t} JOIN tags ON tags.k = place GROUP BY tag",
    "SELECT tag, count(*) FROM {t} JOIN tags ON tags.k >= place GROUP BY tag",
    "SELECT count(*) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY n) r FROM {t}) q WHERE r = 1",
    "SELECT count(*) FROM (SELECT k, l, count(*) c FROM {t} JOIN tags ON tags.k >= place GROUP BY 1, 2) q WHERE c > 1",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM {t}",
    "SELECT count(*) FROM (SELECT k FROM {t} UNION ALL SELECT v FROM {t}) q",
)


def _rows_as_units() -> Iterator[Schema]:
    """Tables whose primary key is of a type, alone and as one of two columns."""
    for number, (kind, values) in enumerate(_KEYS.items()):
        for extra in ("", ", l"):
            table = f"rows{number}{extra.removeprefix(', ')}"
            rows = f"unnest(ARRAY[{values}]) WITH ORDINALITY AS u (x, p)"
            if "{" in values:  # of an array PostgreSQL would make one of two dimensions
                rows = f"unnest(ARRAY[{values}]::text[]) WITH ORDINALITY AS u (x, p)"
            more = f"INSERT INTO {table} SELECT x::{kind}, 1, p, p % 3, 'w', x::{kind} FROM {rows};" * bool(extra)
            yield Schema(
                f"rows as units by {kind}{extra}",
                f"""CREATE TABLE {table} (k {kind}, l integer, n integer, place integer, w text, v {kind},
                    PRIMARY KEY (k{extra}));
                INSERT INTO {table} SELECT x::{kind}, 0, p, p % 3, 'w', x::{kind} FROM {rows}; {more}""",
                f"  {table}: {{columns: {{n: {{lower: 0, upper: 9}}}}}}\n",
                tuple(
                    f"DELETE FROM {table} WHERE ctid = (SELECT ctid FROM {table} ORDER BY ctid OFFSET {place} LIMIT 1)"
                    for place in (0, 1, 5)
                ),
                tuple(statement.format(t=table) for statement in _ROW_STATEMENTS),
            )


def _together() -> Schema:
    parts = tuple(_rows_as_units())
    return Schema(
        "rows as units",
        "CREATE TYPE mood AS ENUM ('a', 'A', 'b', 'c', 'd', ''); CREATE DOMAIN mood_domain AS mood;"
        " CREATE DOMAIN decimal_domain AS numeric; CREATE TYPE badge AS (word text, number integer);"
        " CREATE TABLE tags (k integer, tag text); INSERT INTO tags VALUES (1, 'x'), (1, 'y'), (2, 'x'), (3, 'z');"
        + "".join(part.tables for part in parts),
        "unit: row\ntables:\n  tags: public\n" + "".join(part.rules for part in parts),
        ("",),
        (),
    )


ROWS_AS_UNITS, ROW_PARTS = _together(), tuple(_rows_as_units())

_PARTITIONS = Schema(
    "partitions, children and views",
    """
CREATE TABLE people (id integer PRIMARY KEY); INSERT INTO people SELECT generate_series(1, 6);
CREATE TABLE listed (person_id integer, n integer, w text) PARTITION BY LIST (w);
CREATE TABLE listed_a PARTITION OF listed FOR VALUES IN ('a');
CREATE TABLE listed_other PARTITION OF listed DEFAULT;
CREATE TABLE hashed (id integer, person_id integer, PRIMARY KEY (id, person_id)) PARTITION BY HASH (person_id);
CREATE TABLE hashed0 PARTITION OF hashed FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE hashed1 PARTITION OF hashed FOR VALUES WITH (modulus 2, remainder 1);
CREATE TABLE ranged (person_id integer UNIQUE, n integer) PARTITION BY RANGE (person_id);
CREATE TABLE ranged0 PARTITION OF ranged FOR VALUES FROM (MINVALUE) TO (3);
CREATE TABLE ranged1 PARTITION OF ranged FOR VALUES FROM (3) TO (MAXVALUE);
CREATE TABLE base (k integer PRIMARY KEY, n integer, w text); CREATE TABLE child () INHERITS (base);
CREATE TABLE open (k integer PRIMARY KEY, w text); CREATE TABLE more_open () INHERITS (open);
CREATE TABLE t (k integer, n integer, w text);
CREATE VIEW few AS SELECT k AS person_id, n, w FROM t WHERE n > 1;
CREATE VIEW first_rows AS SELECT * FROM t LIMIT 3;
CREATE VIEW places_of_all AS SELECT k, row_number() OVER (ORDER BY n) AS n FROM t;
CREATE VIEW one_each AS SELECT DISTINCT ON (w) w, k, n FROM t ORDER BY w, n;
CREATE VIEW grouped AS SELECT w, count(*) AS n FROM t GROUP BY w;
INSERT INTO listed SELECT 1 + i % 3, i % 5, (ARRAY['a', 'b', NULL, 'c'])[1 + i % 4] FROM generate_series(1, 60) i;
INSERT INTO hashed SELECT i, 1 + i % 3 FROM generate_series(1, 60) i;
INSERT INTO ranged SELECT i, i FROM generate_series(1, 6) i;
INSERT INTO base VALUES (1, 1, 'a'); INSERT INTO child SELECT 1 + i % 3, i % 5, 'a' FROM generate_series(1, 60) i;
INSERT INTO open VALUES (1, 'a'), (2, 'b'); INSERT INTO more_open VALUES (1, 'x'), (1, 'y'), (1, 'z');
INSERT INTO t SELECT 1 + i % 3, i % 5, 'w' || i % 4 FROM generate_series(1, 60) i;
""",
    """unit: people.id
tables:
  people: {unit: id}
  listed: {unit: person_id, rows_per_unit: 3, columns: {n: {lower: 0, upper: 4}}}
  hashed: {unit: person_id, rows_per_unit: 3}
  ranged: {unit: person_id}
  base: {unit: k, rows_per_unit: 3, columns: {n: {lower: 0, upper: 4}}}
  open: public
  t: {unit: k -> ranged.person_id, rows_per_unit: 3, columns: {n: {lower: 0, upper: 4}}}
  few: view
  first_rows: view
  places_of_all: view
  one_each: view
  grouped: view
""",
    tuple(
        "; ".join(
            f"DELETE FROM {table} WHERE {column} = {number}"
            for table, column in (
                *(("listed", "person_id"), ("hashed", "person_id"), ("t", "k"), ("base", "k")),
                *(("ranged", "person_id"), ("people", "id")),
            )
        )
        for number in (1, 2, 3)
    ),
    (
        *(f"SELECT count(*) FROM {name}" for name in "listed hashed ranged base t few grouped".split()),
        *(f"SELECT count(*) FROM {name} WHERE n < 5" for name in ("first_rows", "places_of_all", "one_each")),
        *(f"SELECT w, count(*), sum(n) FROM {name} GROUP BY w" for name in ("listed", "base", "t", "few", "one_each")),
        "SELECT open.w, count(*) FROM ranged JOIN open ON open.k = ranged.person_id GROUP BY 1",
        "SELECT count(*) FROM people p LEFT JOIN ranged r ON r.person_id = p.id LEFT JOIN open ON open.k = r.n",
        "SELECT count(*) FROM ranged JOIN hashed USING (person_id)",
        "SELECT count(*) FROM people p JOIN base b ON b.k = p.id",
        "SELECT count(*), sum(t.n) FROM t JOIN ranged ON ranged.person_id = t.k",
        "SELECT count(*) FROM ranged LEFT JOIN t ON ranged.person_id = t.k WHERE t.n > 1",
        "SELECT count(*) FROM ranged WHERE EXISTS (SELECT FROM t WHERE t.k = ranged.person_id AND t.n = 4)",
        "SELECT count(*) FROM ranged FULL JOIN t ON ranged.person_id = t.k",
        "SELECT w, count(DISTINCT k) FROM t GROUP BY 1",
    ),
)

# Objects that a superuser put among PostgreSQL's own, for an enum alone: they are taken before those of any enum.
_OWN_CATALOG = Schema(
    "an operator and a function of its own in pg_catalog",
    f"""{_PEOPLE} CREATE TYPE mood AS ENUM ('a', 'b'); CREATE TABLE t (person_id integer, m mood, n integer, w text);
INSERT INTO t SELECT 1 + i % 6, 'a', i % 10, 'w' FROM generate_series(1, 60) i;
CREATE FUNCTION is_there(mood, mood) RETURNS boolean LANGUAGE sql STABLE AS
    'SELECT EXISTS (SELECT FROM public.people WHERE id = 1)';
CREATE OPERATOR pg_catalog.= (leftarg = mood, rightarg = mood, function = is_there);
CREATE FUNCTION pg_catalog.enum_larger(mood, mood) RETURNS mood LANGUAGE sql STABLE AS
    $$ SELECT CASE WHEN EXISTS (SELECT FROM public.people WHERE id = 1) THEN 'a' ELSE 'b' END::public.mood $$;
""",
    """unit: people.id
tables:
  people: {unit: id}
  t: {unit: person_id, rows_per_unit: 3, columns: {n: {lower: 0, upper: 9}}}
""",
    _LEAVES,
    (
        *_each(_EVERY_COLUMN, {"m": ""}),
        "SELECT count(*) FROM t WHERE m = 'b'",
        "SELECT k, count(*) FROM (SELECT person_id, coalesce(m, 'b') k FROM t GROUP BY 1, 2) q GROUP BY k",
    ),
    answered=5,
)

_MANY = range(175)
# Rows of a few kilobytes of which PostgreSQL would make texts and rows of more than a gigabyte.
_LARGE = Schema(
    "large values",
    """CREATE TABLE people (id integer PRIMARY KEY); INSERT INTO people SELECT generate_series(1, 6);
CREATE TABLE t (id integer PRIMARY KEY, person_id integer, n integer, v text, j jsonb, a text[]);
INSERT INTO t SELECT 1, 1, 1, repeat('€', 21800), jsonb_build_object('a', (SELECT jsonb_agg(1e131071::numeric)
    FROM generate_series(1, 9000)), 'b', 1e131071::numeric, 'c', repeat('"', 70000)), ARRAY[repeat('x', 70000)];
INSERT INTO t SELECT i, i, 1, 'b', '{"a": "b"}', '{x}' FROM generate_series(2, 6) i;
""",
    """unit: people.id
tables:
  people: {unit: id}
  t: {unit: person_id, rows_per_unit: 3, columns: {n: {lower: 0, upper: 9}}}
""",
    ("DELETE FROM t WHERE person_id = 1",),
    (
        "SELECT count(*) FROM t WHERE j ->> 'a' = 'b'",
        "SELECT j ->> 'a', count(*) FROM t GROUP BY 1",
        "SELECT count(*) FROM t WHERE j #>> '{a}' = 'b'",
        "SELECT count(*) FROM t WHERE jsonb_extract_path_text(j, 'a') IS NULL",
        "SELECT count(DISTINCT j ->> 'a'), count(j ->> 'c') FROM t",
        "SELECT count(*) FROM t WHERE (j ->> 'b')::numeric > 1",
        "SELECT a[1], count(*) FROM t GROUP BY 1",
        f"""SELECT count(*) FROM (SELECT *, row_number() OVER (PARTITION BY person_id ORDER BY n) rn FROM
            (SELECT person_id, n, {", ".join(f"repeat(v, 100) AS a{each}" for each in _MANY)} FROM t) s) q
            WHERE rn = 1 AND {" AND ".join(f"a{each} > 'a'" for each in _MANY)}""",
    ),
)

SCHEMAS = (_OWN_TYPES, _OWN_EQUALITY, _UNITS_OF_OWN_EQUALITY, _OWN_CATALOG, _COLLATIONS, _ENDS, _PARTITIONS, _LARGE)
REPLAYED = (_OWN_TYPES, _ENDS)
