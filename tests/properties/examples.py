"""Expressions over the columns of tests/properties/worst.py: the examples of all functions, and others of operators."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from rules.functions.function import listed
from rules.functions.registry import FUNCTIONS
from rules.sql import syntax as s
from rules.sql.lower import parse_expression

CONDITIONS = r"""
i4 BETWEEN SYMMETRIC 7 AND -1 | i4 NOT BETWEEN SYMMETRIC i4_ AND 0 | ts - ts_ > interval '30 days'
age(ts, ts_) <= '1 year' | i4 < ANY (ARRAY[1, 7]) | n >= ALL (ARRAY[0, 1.5]) | t LIKE ANY (ARRAY['a%', '%b'])
t NOT ILIKE ALL (ARRAY['B%', '_']) | i8 > ALL ('{}') | t ~ ANY ('{^a,b$}')
tm < '12:30:15.50' | tm BETWEEN '18:00' AND '24:00' | tz::time >= time '06:00' | tm IN ('18:00', '00:00:00') | tm = tm_
j ? 'a' | (j -> 'a') IS NULL | i4 = 7 | i4 = i8 | n <> f8 | f4 < f8 | i2 <= 2.5 | t > 'a'
tz >= '2024-01-01' | d = ts | ts < tz | m = 'sad' | u = u_ | b AND i4 > 0 | b OR t = 'a' | NOT b | i4 BETWEEN -1 AND 7
i4 NOT BETWEEN i4_ AND 7 | i4 IS NULL | t IS NOT NULL | b IS TRUE | b IS NOT TRUE | b IS FALSE | b IS NOT FALSE
b IS UNKNOWN | b IS NOT UNKNOWN | i4 IS DISTINCT FROM i8 | n IS NOT DISTINCT FROM f8 | t LIKE '%a\\' | t NOT LIKE '_'
t ILIKE 'B%' | t NOT ILIKE '%ä%' | i4 IN (1, 7) | t NOT IN ('a', '') | i4 = ANY (ARRAY[1, 2]) | t <> ALL ('{a,b}')
t LIKE NULL | t NOT ILIKE NULL
f8 IN (0, 1.5) | t ~~ 'a%' | t !~~ 'a_' | t ~~* 'B%' | t !~~* 'b%' | t ~ '^a+b?$'
t ~* 'BER[l-o]in|\d{4}-\d\d' | t !~ '(a|b)*c' | t !~* '\m[[:alpha:]]'
ta @> ARRAY['a']
ta @> ARRAY['a', NULL]::text[] | ta <@ '{a,b}' | ta && ta_ | 'a' = ANY (ta) | t <> ALL (ta) | i4 < ANY (ia)
7 = ANY (ia) | ia @> '{1,7}' | ia && ARRAY[1, 2] | j @> '{"a": {"b": [1]}}' | j <@ '[{"a": null}]'::jsonb | j @> j_
(j -> 'a')::boolean
"""

NUMBERS = r"""
i2 + i2_ | i4 - i4_ | i8 * i8_ | i8 / i8_ | i8 % i8_ | n + n_ | n - n_ | n * n_ | n / n_ | n % n_ | f8 + f8_
f8 - f8_ | f8 * f8_ | f8 / f8_ | f4 * f8 | f4 / f4_ | i4 / n | n / f8 | i8 * n | n2 * n2_ | n2 / n2_ | i4 ^ 8 | n ^ 2
f4 * f4_ | f4 - f4_ + f4 | CASE WHEN b THEN n2 END | coalesce(n2, n2_) | i8 * f4 | n - f4
f8 ^ 3 | - i2 | - i8 | - n | + f8 | @ i8 | @ n
n ^ 0 | f8 ^ -2 | f8 ^ 0.5 | i4 ^ -0.5 | f4 ^ 0
CASE WHEN b THEN i4 ELSE n END | CASE i4 WHEN 1 THEN 2 WHEN 7 THEN NULL ELSE 9 END
i8::integer | i8::smallint | f8::integer | f8::bigint | f4::smallint | n::integer | n::bigint | n::numeric(6,2)
f8::numeric(6,2) | f8::numeric | n::real | f8::real | n::double precision | i8::real | i4::numeric(4,1) | b::integer
t::integer | t::numeric | vc::float8 | t::bigint | vc::smallint | t::numeric(5,1) | t::real
i4 & 7 | i8 & i2 | i4|i4_ | i8|7 | i8 # -1
ia[1] | ia[2] + 1 | (j -> 'n')::numeric | (j -> 'n')::integer | (j -> 'a' -> 'b' -> 0)::float8
date_part('epoch', iv) / 60
d - d_
"""

TEXTS = r"""
ta[1] | ta[3] || '!' | (string_to_array(t, '-'))[2] | (string_to_array(m::text, 'a'))[1]
(regexp_match(t, '(\d+)-'))[1] | ta[2] = t
j #>> '{a,b}' | j #> '{a}' ->> 'b'
t || vc | t || i8 | d || t
j ->> 'a' | j -> 'a' -> 'b' ->> 0 | j ->> -1
(j ->> 'n')::numeric | (j ->> 'b')::date
m || '-' || b::text | m::text || '!'
t::varchar(3) | i8::text | n::text | f8::text | d::text | ts::text | tz::text | b::text | m::text
tm::text | u::text | f4::text | n2::text
CASE WHEN i4 > 0 THEN 'more' ELSE t END | CASE m WHEN 'sad' THEN 'no' END
ts >= to_timestamp('2025-01-31 13:45', 'YYYY-MM-DD HH24:MI')
d < to_date('31.01.2025', 'DD.MM.YYYY')
date_trunc('hour', ts) + interval '5 minutes' * floor(extract(minute FROM ts) / 5)
date_trunc('minute', tz) + floor(extract(second FROM tz) / 30) * interval '30 seconds'
d - interval '1 day 2 hours' * extract(day FROM d) | ts + interval '1 day' * extract(dow FROM ts)
tz - extract(dow FROM tz) * interval '1 day' | tz + interval '90 seconds' * least(greatest(f8, -1e6), 1e6)
ts - interval '90 seconds' * least(greatest(n, 0), 0.7)
ts + interval '1 day' * i4 | tz - i8 * interval '90 seconds' | d + f8 * interval '1 hour'
tz + interval '1 day 2 hours' * n | ts - interval '-1 week' * f4 | tz + interval '3 days -71 hours' * i4
interval '1 day' * i8 > interval '10 days'
"""

MOMENTS = r"""
d::timestamp | d::timestamptz | ts::time | tz::time | tm
date_trunc('hour', tz)::time | ts::date | tz::date | tz::timestamp | ts::timestamptz
t::date | t::timestamp | vc::date | t::uuid | t::boolean
vc::date::timestamptz | ts - ts_
d + 7 | 7 + d | d - 40 | d + i4 | d - i8::integer | d + interval '1 month' | ts + interval '1 year 2 days 03:04:05'
tz - interval '1 month' | tz + '1 day'
CASE WHEN b THEN d ELSE ts END | now() | current_date | current_timestamp
localtimestamp | transaction_timestamp() | statement_timestamp()
"""


EXAMPLES = (
    *(example for found in FUNCTIONS.values() for example in found.examples),
    *(each for text in (CONDITIONS, NUMBERS, TEXTS, MOMENTS) for each in listed(text)),
)
SYNTAX = {text: parse_expression(text) for text in EXAMPLES}


def walk(syntax: object) -> Iterator[object]:
    yield syntax
    if is_dataclass(syntax) and not isinstance(syntax, type):
        for field in fields(syntax):
            yield from walk(getattr(syntax, field.name))
    elif isinstance(syntax, tuple):
        for each in syntax:
            yield from walk(each)


def names_in(syntax: s.Expression) -> Iterator[str]:
    yield from (each.name for each in walk(syntax) if isinstance(each, s.Call | s.Operator))


def columns_of(syntax: s.Expression) -> Iterator[str]:
    yield from (each.parts[0] for each in walk(syntax) if isinstance(each, s.Name))


def replaced(syntax: s.Expression, places: dict[str, s.Expression]) -> s.Expression:
    """The expression with others in the places of its columns."""
    found = _put(syntax, places)
    assert isinstance(found, s.Expression)
    return found


def _put(part: object, places: dict[str, s.Expression]) -> object:
    match part:
        case s.Name(parts=(name,)):
            return places.get(name, part)
        case tuple():
            return tuple(_put(each, places) for each in part)
    if is_dataclass(part) and not isinstance(part, type):
        return replace(part, **{field.name: _put(getattr(part, field.name), places) for field in fields(part)})
    return part
