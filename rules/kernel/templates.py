"""Templates of expressions: every word in one is on a list, and no argument can change what stands around it.

The registry writes templates, and a script carries them. Whoever wrote one, it is let through only if every word in it
is on a list: so no template can select, call a function that reads a table, a setting or the clock, or end a statement.

Words on a list are not enough. A column may be called `day`: read by its name, it would be one that no script says it
reads, and pass for a constant. So what could be a name stands only where PostgreSQL reads it as another word. `x OR y`
beside the equality of units would leave the equality to choice, and two minus signs that meet begin a comment, in which
a constant's text may end the line. So a filled template that is no one operand stands in parentheses, and a hole
touches no word, number, text or other hole: what fills it is read as it stands. Names of types have no holes.
"""

import re
from functools import lru_cache
from typing import Literal

from rules.refusal import Mismatch

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<text>'(?:[^'{}\\]|''|\{\{|\}\})*')
    |(?P<hole>\{(?:[0-9]{1,5}|over)\})
    |(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*|"(?:left|right|substring|overlay|position|trim)")
    |(?P<cast>::)
    |(?P<collation>"C"|"default")
    |(?P<sign>[-+*/<>=~!@#%^&|?]+)
    |(?P<mark>[(),\[\]:])""",
    re.VERBOSE,
)
_TYPE = re.compile(
    r"""(?:"(?:[^"{}\0]|"")+"|[a-z_][a-z0-9_$]*)(?:\.(?:"(?:[^"{}\0]|"")+"|[a-z_][a-z0-9_$]*))?"""
    r"""(?:[ ](?:varying|precision))?(?:\([0-9]+(?:,-?[0-9]+)?\))?(?:[ ](?:with|without)[ ]time[ ]zone)?(?:\[\])*"""
)
_SIGNS = frozenset(
    "+ - * / % ^ = <> != < <= > >= || ~ ~* !~ !~* ~~ ~~* !~~ !~~* & | # << >> "
    "-> ->> #> #>> @> <@ && ? ?| ?& @ |/ ||/".split()
)
# None of them makes a window: OVER is written by the renderer, with the unit in front.
# PostgreSQL takes none of them for the name of a column.
KEYWORDS = frozenset(
    """all and any array case collate desc distinct else end false from group ilike in is like not null or order then
    true when where""".split()
)
FIELDS = frozenset(
    """century day decade dow doy epoch hour isodow isoyear microseconds millennium milliseconds minute month quarter
    second week year""".split()
)
# Immutable functions of pg_catalog, and a few that read nothing but the pinned settings TimeZone and DateStyle, or, as
# pg_column_size, how a value of the row is stored.
FUNCTIONS = frozenset(
    """abs acos acosd acosh age array_length array_lower array_position array_upper ascii asin asind asinh atan atan2
    atan2d atand atanh bit_length btrim cardinality cbrt ceil ceiling char_length character_length chr coalesce
    concat concat_ws cos cosd cosh cot cotd date date_bin date_part date_trunc degrees div exp extract float8
    floor format gcd greatest hashint4extended hashint8extended hashtextextended initcap isfinite
    jsonb_extract_path jsonb_extract_path_text jsonb_typeof justify_days justify_hours justify_interval lcm least
    left length like_escape ln log log10 lower lpad ltrim make_date make_interval make_time make_timestamp
    make_timestamptz md5 min_scale mod normalize nullif num_nonnulls num_nulls numeric octet_length overlaps
    overlay pg_column_size pi position pow power radians regexp_count regexp_instr regexp_like regexp_match
    regexp_replace regexp_substr repeat replace reverse right round row rpad rtrim scale sha256 sign
    similar_to_escape sin sind sinh split_part sqrt starts_with string_to_array strpos substr substring tan tand
    tanh time timetz timezone to_char to_date to_hex to_number to_timestamp translate trim trim_scale trunc upper
    width_bucket""".split()
)
AGGREGATES = frozenset(
    """avg bool_and bool_or count every max min mode percentile_cont percentile_disc stddev stddev_pop stddev_samp sum
    var_pop var_samp variance""".split()
)
# Window functions that tell rows apart which an ORDER BY leaves equal, and those that treat equal rows alike.
ORDINAL = frozenset(("row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth_value"))
RANKS = frozenset(("rank", "dense_rank", "percent_rank", "cume_dist"))
_SUMS = "sum|avg|stddev|stddev_pop|stddev_samp|variance|var_pop|var_samp"
_PLACES = "mode|percentile_cont|percentile_disc"
_IN_ORDER = frozenset(f"{_SUMS}|{_PLACES}|min|max".split("|"))
_ADDED = re.compile(
    rf"\b(?:(?P<sum>{_SUMS})\((?P<distinct>DISTINCT )?(?:\{{0\}}|trim_scale\(\{{0\}}\))\)|(?:min|max)\(\{{0\}}\)"
    rf"|(?:{_PLACES})\([0-9.]*\) WITHIN GROUP \(ORDER BY \{{0\}}(?: DESC)?\))"
)
CALLED = FUNCTIONS | AGGREGATES | ORDINAL | RANKS
_TOUCHING = frozenset(("hole", "word", "number", "text", "type"))
_TAKING_FROM = frozenset(("extract", "substring", "trim", "overlay"))


@lru_cache(10_000)
def check_template(template: str, *, is_call: bool = False) -> frozenset[str]:
    """Refuse what an expression is not made of; return the functions that it calls."""
    tokens = _tokens(template)
    calls: set[str] = set()
    opened: list[tuple[str, str]] = []  # brackets, and the words before them
    for place, (kind, text) in enumerate(tokens):
        word = text.lower().strip('"')
        following = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        match kind:
            case "word" if following == "(" and word in CALLED:
                calls.add(word)
            case "word" if word == "from":
                is_distinct = place > 0 and tokens[place - 1][1].lower() == "distinct"
                if not is_distinct and not (opened and opened[-1][1] in _TAKING_FROM):
                    raise _refused(template)
            case "word" | "collation" if word not in KEYWORDS and not _is_in_phrase(tokens, place, opened):
                raise _refused(template)
            case "sign" if not _is_sign(text):
                raise _refused(template)
            case "mark" if text in "([":
                before = tokens[place - 1] if place else ("", "")
                opened.append((text, before[1].lower().strip('"') if before[0] == "word" else ""))
            case "mark" if text in ")]":
                if not opened or opened.pop()[0] != {")": "(", "]": "["}[text]:
                    raise _refused(template)
            case _:
                pass
    if opened or not tokens or (calls & (AGGREGATES | ORDINAL | RANKS) and not is_call):
        raise _refused(template)
    return frozenset(calls)


@lru_cache(1_000)
def check_call(template: str) -> Literal["exact", "canonical"] | None:
    """What the first argument of an aggregate has to be for the result to be that of every order of rows.

    Sums are of exact numbers, for those of doubles depend on their order; of values that are picked, or told apart,
    equal ones have to be identical. A template says so by its form: what is added or picked is the argument itself.
    None of all else, of which every order makes the same.
    """
    is_picked, found = False, 0
    check_template(template, is_call=True)
    for match in _ADDED.finditer(template):
        is_picked, found = is_picked or not match["sum"] or match["distinct"] is not None, found + 1
    words = [token[1].lower() for token in _tokens(template) if token[0] == "word"]
    if found != sum(word in _IN_ORDER for word in words):
        raise _refused(template)
    return ("canonical" if is_picked else "exact") if found else None


@lru_cache(10_000)
def is_operand(template: str) -> bool:
    """Tell whether what a template makes is one operand wherever it stands: a hole, a constant, a call, or parentheses
    around all of it."""
    tokens = _tokens(template)
    (kind, text), last = tokens[0], len(tokens) - 1
    if last == 0:
        return kind in ("hole", "number", "text") or text.lower() in ("true", "false", "null")
    first = 0 if text == "(" else 1
    if first and not (kind == "word" and text.lower().strip('"') in CALLED and tokens[1][1] == "("):
        return False
    depth = 0
    for place, (_, mark) in enumerate(tokens[first:], first):
        depth += (mark in ("(", "[")) - (mark in (")", "]"))
        if depth == 0:
            return place == last
    return False


def check_type(name: str) -> str:
    """A type's name as it stands in a cast, which is checked to be one."""
    if _TYPE.fullmatch(name) is None:
        raise Mismatch("the plan names an invalid type")
    return name


def _tokens(template: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    place, before = 0, "space"
    while place < len(template):
        token = (_TYPE if before == "cast" else _TOKEN).match(template, place)
        if token is None:
            raise _refused(template)
        kind = "type" if before == "cast" else token.lastgroup or ""
        if "hole" in (kind, before) and {kind, before} <= _TOUCHING and "{over}" not in (token[0], tokens[-1][1]):
            raise _refused(template)
        if kind != "space":
            tokens.append((kind, token[0]))
        elif before == "cast":
            kind = "cast"
        place, before = token.end(), kind
    return tokens


def _is_in_phrase(tokens: list[tuple[str, str]], place: int, opened: list[tuple[str, str]]) -> bool:
    """Tell whether a word that could be the name of a column stands where PostgreSQL reads it as another one."""
    kind, before = tokens[place - 1] if place else ("", "")
    match tokens[place][1].lower():
        case '"c"' | '"default"':
            return before.lower() == "collate"
        case "by":
            return before.lower() == "order"
        case "between" | "filter" | "within":  # behind an operand
            return kind == "hole" or before == ")"
        case word:
            after = tokens[place + 1][1].lower() if place + 1 < len(tokens) else ""
            return word in FIELDS and before == "(" and opened[-1][1] == "extract" and after == "from"


def _is_sign(text: str) -> bool:
    """An operator, or one with signs of numbers behind it; never the beginning of a comment."""
    if "--" in text or "/*" in text:
        return False
    return text in _SIGNS or (text.endswith("-") and text[:-1].rstrip("-") in _SIGNS)


def _refused(template: str) -> Mismatch:
    return Mismatch("the plan has an expression that is not allowed to run", detail=f"It reads: {template[:200]}")
