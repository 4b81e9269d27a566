"""Expressions over the columns of tests/properties/worst.py: at least one of everything that the registry knows."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace

from rules.sql import syntax as s
from rules.sql.parse import parse_expression

CONDITIONS = r"""
i4 BETWEEN SYMMETRIC 7 AND -1 | i4 NOT BETWEEN SYMMETRIC i4_ AND 0 | ts - ts_ > interval '30 days'
age(ts, ts_) <= '1 year' | i4 < ANY (ARRAY[1, 7]) | n >= ALL (ARRAY[0, 1.5]) | t LIKE ANY (ARRAY['a%', '%b'])
t NOT ILIKE ALL (ARRAY['B%', '_']) | i8 > ALL ('{}') | t ~ ANY ('{^a,b$}') | num_nonnulls(i4, t, u) = 2
tm < '12:30:15.50' | tm BETWEEN '18:00' AND '24:00' | tz::time >= time '06:00' | tm IN ('18:00', '00:00:00') | tm = tm_
num_nulls(b, d) > 0 | j ? 'a' | (j -> 'a') IS NULL | i4 = 7 | i4 = i8 | n <> f8 | f4 < f8 | i2 <= 2.5 | t > 'a'
tz >= '2024-01-01' | d = ts | ts < tz | m = 'sad' | u = u_ | b AND i4 > 0 | b OR t = 'a' | NOT b | i4 BETWEEN -1 AND 7
i4 NOT BETWEEN i4_ AND 7 | i4 IS NULL | t IS NOT NULL | b IS TRUE | b IS NOT TRUE | b IS FALSE | b IS NOT FALSE
b IS UNKNOWN | b IS NOT UNKNOWN | i4 IS DISTINCT FROM i8 | n IS NOT DISTINCT FROM f8 | t LIKE '%a\\' | t NOT LIKE '_'
t ILIKE 'B%' | t NOT ILIKE '%ä%' | i4 IN (1, 7) | t NOT IN ('a', '') | i4 = ANY (ARRAY[1, 2]) | t <> ALL ('{a,b}')
f8 IN (0, 1.5) | t ~~ 'a%' | t !~~ 'a_' | t ~~* 'B%' | t !~~* 'b%' | starts_with(t, vc) | t ~ '^a+b?$'
t ~* 'BER[l-o]in|\d{4}-\d\d' | t !~ '(a|b)*c' | t !~* '\m[[:alpha:]]' | vc SIMILAR TO '%(y|z)[^a]_'
(ts, ts_) OVERLAPS ('2024-01-01', interval '1 month') | (tz, interval '90 days') OVERLAPS (ts, d) | ta @> ARRAY['a']
ta @> ARRAY['a', NULL]::text[] | ta <@ '{a,b}' | ta && ta_ | 'a' = ANY (ta) | t <> ALL (ta) | i4 < ANY (ia)
7 = ANY (ia) | ia @> '{1,7}' | ia && ARRAY[1, 2] | j @> '{"a": {"b": [1]}}' | j <@ '[{"a": null}]'::jsonb | j @> j_
t LIKE 'a!%' ESCAPE '!' | t NOT ILIKE '\_x' ESCAPE '' | (j -> 'a')::boolean
t NOT SIMILAR TO 'a#%' ESCAPE '#' | regexp_like(t, '(?:ab){2,3}') | regexp_like(t, 'b', 'i')
"""

NUMBERS = r"""
i2 + i2_ | i4 - i4_ | i8 * i8_ | i8 / i8_ | i8 % i8_ | n + n_ | n - n_ | n * n_ | n / n_ | n % n_ | f8 + f8_
f8 - f8_ | f8 * f8_ | f8 / f8_ | f4 * f8 | f4 / f4_ | i4 / n | n / f8 | i8 * n | n2 * n2_ | n2 / n2_ | i4 ^ 8 | n ^ 2
f8 ^ 3 | - i2 | - i8 | - n | + f8 | @ i8 | @ n | abs(i2) | abs(f8) | round(n) | round(f8) | round(n, 2)
round(i8, -3) | round(n, -100) | trunc(n) | trunc(n, 3) | trunc(f8) | floor(n) | floor(f8) | ceil(n) | ceiling(f8)
sign(n) | sign(i4) | n ^ 0 | f8 ^ -2 | f8 ^ 0.5 | i4 ^ -0.5 | f4 ^ 0 | power(n2, 100) | cbrt(n) | pi() * f8
degrees(f8) | radians(n) | sin(f8) | cos(n) | tan(f8) | asin(f8) | acos(n) | atan(f8) | atan2(f8, n) | cbrt(f8)
log(2, n) | log(10.5, i4) | mod(i8, i8_) | mod(n, n_) | div(n, n_) | div(i8, i8_) | power(n, 3) | pow(f8, 2)
power(i4, 8) | sqrt(n) | sqrt(f8) | sqrt(i8) | ln(n) | ln(f8) | log(n) | log(f8) | log10(n) | exp(n) | exp(f8)
exp(i4) | width_bucket(n, 0, 100, 5) | width_bucket(n, ARRAY[-1, 0, 2.5]) | width_bucket(f8, ARRAY[0, 1.5])
width_bucket(f8, 0, 100, 5) | width_bucket(i4, 10, 0, 3) | width_bucket(n2, 0, 99.5, 7) | coalesce(i4, 0)
coalesce(i4, n, f8) | nullif(i4, 7) | nullif(n, f8) | greatest(i4, i8, 0) | least(n, f8) | least(i4, 5)
CASE WHEN b THEN i4 ELSE n END | CASE i4 WHEN 1 THEN 2 WHEN 7 THEN NULL ELSE 9 END | float8(n) | float8(i8)
i8::integer | i8::smallint | f8::integer | f8::bigint | f4::smallint | n::integer | n::bigint | n::numeric(6,2)
f8::numeric(6,2) | f8::numeric | n::real | f8::real | n::double precision | i8::real | i4::numeric(4,1) | b::integer
t::integer | t::numeric | vc::float8 | t::bigint | vc::smallint | t::numeric(5,1) | t::real | ascii(t) | bit_length(t)
length(t) | char_length(vc) | character_length(t) | octet_length(t) | strpos(t, vc) | position('a' IN t)
extract(year FROM d) | extract(epoch FROM tz) | extract(epoch FROM d) | extract(second FROM ts)
extract(week FROM tz) | extract(isoyear FROM d) | extract(decade FROM ts) | extract(century FROM ts)
extract(quarter FROM d) | extract(dow FROM tz) | extract(isodow FROM tz) | extract(doy FROM d) | extract(hour FROM tz)
extract(minute FROM ts) | date_part('month', tz) | date_part('epoch', ts) | date_part('day', d)
i4 & 7 | i8 & i2 | i4|i4_ | i8|7 | i8 # -1 | gcd(i4, 30) | gcd(i8, i8_) | lcm(i2, i4) | cardinality(ta)
array_length(ia, 1) | array_length(ta, 2)
ia[1] | ia[2] + 1 | (j -> 'n')::numeric | (j -> 'n')::integer | (j -> 'a' -> 'b' -> 0)::float8 | regexp_count(t, 'a+')
extract(epoch FROM iv) | date_part('epoch', iv) / 60
extract(day FROM ts - ts_) | extract(epoch FROM tz - tz_) | extract(year FROM age(ts, ts_))
extract(month FROM age(tz, d)) | extract(year FROM age(d, '2000-01-01')) | extract(day FROM age(ts))
extract(milliseconds FROM ts) | extract(millennium FROM d) | date_part('microseconds', tz)
extract(epoch FROM age(tz)) | extract(decade FROM age(ts, ts_)) | extract(century FROM age(ts, ts_))
extract(second FROM age(ts, ts_)) | extract(epoch FROM interval '90 sec' * (i4 % 7)) | extract(hour FROM ts - tz)
d - d_
"""

TEXTS = r"""
ta[1] | ta[3] || '!' | (string_to_array(t, '-'))[2] | (string_to_array(m::text, 'a'))[1]
(regexp_match(t, '(\d+)-'))[1] | ta[2] = t
j #>> '{a,b}' | j #> '{a}' ->> 'b' | to_hex(i4) | to_hex(i8) | overlay(t PLACING 'xy' FROM 2)
overlay(m::text PLACING 'oo' FROM 2 FOR 1) | overlay(t PLACING '' FROM 1 FOR 3)
lower(t) | upper(t) | initcap(t) | trim(t) | trim('a ' FROM t) | btrim(t, 'ab') | ltrim(t) | ltrim(t, 'a') | rtrim(t)
rtrim(t, ' b') | left(t, 3) | left(t, -3) | right(t, 2) | right(t, -2) | substring(t FROM 2 FOR 3)
substring(t, -5, 7) | substr(t, 2) | substring(t, 0) | replace(t, 'a', 'bcd') | replace(t, '', 'x')
regexp_replace(t, '[^0-9]+', '<\&>', 'g') | regexp_replace(t, '(a+)b', '\1') | substring(t FROM '(\d+)-')
substring(t, 'a+') | regexp_substr(t, '[a-c]+') | t || vc | t || i8 | d || t | concat_ws(', ', t, i4, b, NULL)
concat_ws('', m, b) | reverse(t) | j ->> 'a' | j -> 'a' -> 'b' ->> 0 | j ->> -1 | jsonb_typeof(j)
jsonb_extract_path_text(j, 'a', 'b') | jsonb_extract_path(j, 'a') ->> 'b' | (j ->> 'n')::numeric | (j ->> 'b')::date
reverse(m::text) | split_part(t, '-', 2) | split_part(m::text, 'a', 1) | split_part(t, '', 1)
translate(t, 'aba', 'xy') | translate(m::text, 'adda', 'x') | lpad(t, 5) | rpad(m::text, 4, 'xy')
lpad(m::text, 6, 'xy') | lpad(t, 0, '') | repeat(t, 3) | repeat(m::text, 2) | left(m::text, 2) | right(m::text, 0)
substring(m::text, 2, 2) | substring(m::text, -1, 3) | upper(m::text) | replace(m::text, 'a', 'oo')
btrim(m::text, 'sd') | m || '-' || b::text | m::text || '!' | concat(m, b) | repeat(t, 0) | concat(t, i4, b, NULL)
concat(vc, '-', m) | t::varchar(3) | i8::text | n::text | f8::text | d::text | ts::text | tz::text | b::text | m::text
tm::text | u::text | f4::text | n2::text | coalesce(t, vc) | nullif(t, 'a') | greatest(t, vc)
CASE WHEN i4 > 0 THEN 'more' ELSE t END | CASE m WHEN 'sad' THEN 'no' END | to_char(ts, 'YYYY-MM-DD HH24:MI:SS.US')
to_char(tz, 'IYYY-IW') | to_char(d, 'FMDay, DDth FMMonth Y,YYY BC') | to_char(tz, 'TMDay TZ OF')
to_char(d, 'J Q RM CC "text"') | ts >= to_timestamp('2025-01-31 13:45', 'YYYY-MM-DD HH24:MI')
d < to_date('31.01.2025', 'DD.MM.YYYY')
date_trunc('hour', ts) + interval '5 minutes' * floor(extract(minute FROM ts) / 5)
date_trunc('minute', tz) + floor(extract(second FROM tz) / 30) * interval '30 seconds'
d - interval '1 day 2 hours' * extract(day FROM d) | ts + interval '1 day' * extract(dow FROM ts)
tz - extract(dow FROM tz) * interval '1 day' | tz + interval '90 seconds' * least(greatest(f8, -1e6), 1e6)
ts - interval '90 seconds' * least(greatest(n, 0), 0.7)
"""

MOMENTS = r"""
date_trunc('month', tz) | date_trunc('week', ts) | date_trunc('quarter', d) | date_trunc('decade', ts)
date_trunc('day', tz) | date_trunc('hour', tz) | date_trunc('second', ts) | date_trunc('microseconds', ts)
tz AT TIME ZONE 'America/New_York' | ts AT TIME ZONE 'Europe/Berlin' | timezone('UTC', d) | date(tz) | date(ts)
d::timestamp | d::timestamptz | ts::time | tz::time | tm | coalesce(tm, '12:00') | greatest(tm, ts::time)
date_trunc('hour', tz)::time | ts::date | tz::date | tz::timestamp | ts::timestamptz | coalesce(d, ts)
greatest(ts, tz) | date_trunc('century', ts) | date_trunc('millennium', tz)
date_trunc('day', tz, 'America/New_York') | make_date(i4, 2, 29) | date_trunc('month', ts, 'UTC') | age(ts, ts_)
age(tz) | age(d, tz) | date_bin('15 minutes', tz, '2000-01-01') | make_date(2024, i2, i4)
date_bin('7 days', ts, timestamp '1999-12-31 12:00') | date_bin('1 day', d, '2024-01-01')
date_bin('1 day 2 hours', ts, timestamptz '2024-01-01') | date_bin('1 day', d, timestamp '2024-01-01')
to_timestamp(f8) | to_timestamp(i8)
to_timestamp(n) | isfinite(d) | t::date | t::timestamp | vc::date | t::uuid | t::boolean
vc::date::timestamptz | isfinite(tz) | ts - ts_ | tz + make_interval(days => 3, secs => 7) | d - make_interval(1, 2)
d + 7 | 7 + d | d - 40 | d + i4 | d - i8::integer | d + interval '1 month' | ts + interval '1 year 2 days 03:04:05'
tz - interval '1 month' | tz + '1 day' | nullif(d, '2024-02-29') | to_timestamp('2024-03-31 12', 'YYYY-MM-DD HH24')
to_date('20240229', 'YYYYMMDD') | CASE WHEN b THEN d ELSE ts END | now() | current_date | current_timestamp
localtimestamp | transaction_timestamp() | statement_timestamp()
"""


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for line in text.strip().splitlines() for each in line.split(" | "))


EXAMPLES = (*_listed(CONDITIONS), *_listed(NUMBERS), *_listed(TEXTS), *_listed(MOMENTS))
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
