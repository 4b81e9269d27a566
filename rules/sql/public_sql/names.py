"""Functions, operators, types and collations of pg_catalog that the real database is asked for over public tables.

None of them reads a table, a setting or a file that its arguments do not hold, changes anything, waits, runs a text as
SQL, or makes much out of little (repeat, lpad, generate_series, array_agg): memory there is everybody's.
"""

from typing import Final

_AGGREGATES = """
avg bit_and bit_or bool_and bool_or corr count covar_pop covar_samp every max min mode percentile_cont percentile_disc
regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop
stddev_samp sum var_pop var_samp variance
"""
_WINDOWS = """
cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
"""
_NUMBERS = """
abs acos acosd asin asind atan atan2 atan2d atand cbrt ceil ceiling cos cosd cot cotd degrees div exp floor gcd lcm ln
log log10 min_scale mod pi power radians round scale sign sin sind sqrt tan tand trim_scale trunc width_bucket
"""
_TEXTS = """
ascii bit_length btrim char_length character_length chr concat concat_ws initcap left length like_escape lower ltrim md5
normalize octet_length overlay position quote_ident quote_literal regexp_count regexp_instr regexp_like regexp_match
regexp_replace regexp_split_to_array regexp_substr replace reverse right rtrim sha224 sha256 sha384 sha512
similar_to_escape split_part starts_with string_to_array strpos substr substring to_ascii to_hex translate upper
convert_to decode encode
"""
_TIMES = """
age date_bin date_part date_trunc extract isfinite justify_days justify_hours justify_interval make_date
make_interval make_time make_timestamp make_timestamptz now overlaps statement_timestamp timezone to_char to_date
to_number to_timestamp transaction_timestamp
"""
_SEARCH = """
numnode phraseto_tsquery plainto_tsquery querytree setweight strip to_tsquery to_tsvector ts_rank ts_rank_cd
websearch_to_tsquery
"""
_VALUES = """
array_length array_lower array_ndims array_position array_positions array_remove array_to_string array_upper cardinality
bit_count daterange get_bit get_byte int4range int8range isempty numrange tsrange tstzrange
jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_each
jsonb_each_text jsonb_exists jsonb_extract_path jsonb_extract_path_text jsonb_object_keys jsonb_path_exists
jsonb_path_match jsonb_path_query_first jsonb_typeof json_array_elements json_array_elements_text json_array_length
json_each json_each_text json_extract_path json_extract_path_text json_object_keys json_typeof lower_inc lower_inf
num_nonnulls num_nulls to_json to_jsonb unnest upper_inc upper_inf broadcast family host hostmask masklen netmask
network
"""

FUNCTIONS: Final = frozenset(" ".join((_AGGREGATES, _WINDOWS, _NUMBERS, _TEXTS, _TIMES, _SEARCH, _VALUES)).split())
OPERATORS: Final = frozenset(
    "+ - * / % ^ |/ ||/ @ & | # ~ << >> || = <> != < <= > >= ~~ !~~ ~~* !~~* ~* !~ !~* ^@ @@ @> <@ && -|- &< &> "
    "-> ->> #> #>> ? ?| ?& @? << <<= >>= && !!".split()
)
TYPES: Final = frozenset(
    "bool int2 int4 int8 numeric float4 float8 text varchar bpchar char name date time timetz timestamp timestamptz "
    "interval uuid bytea json jsonb tsvector tsquery inet cidr macaddr bit varbit money int4range int8range numrange "
    "daterange tsrange tstzrange".split()
)
COLLATIONS: Final = frozenset(("C", "POSIX", "default", "ucs_basic"))
CLOCKS: Final = {
    "SVFOP_CURRENT_DATE": "CURRENT_DATE",
    "SVFOP_CURRENT_TIME": "CURRENT_TIME",
    "SVFOP_CURRENT_TIMESTAMP": "CURRENT_TIMESTAMP",
    "SVFOP_LOCALTIME": "LOCALTIME",
    "SVFOP_LOCALTIMESTAMP": "LOCALTIMESTAMP",
}
