"""No admitted expression fails on any row, and what the planner says of it is true: its type, its domain, its NULLs."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import product

import psycopg
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from rules.bind.expression import Binding
from rules.bind.scope import PlannerContext
from rules.functions.function import Needed
from rules.functions.registry import CLOCKS, FUNCTIONS, OPERATORS
from rules.kernel.expressions import expression_sql, quoted_text
from rules.refusal import NotSupported, Refusal
from rules.sql import syntax as s
from rules.sql.lower import parse_expression
from rules.values.domain import Range, Values
from rules.values.expression import Apply, Constant, Expression, Operand, columns_in, null_of
from rules.values.types import BOOLEAN, Type
from rules.values.value import text_of
from tests.properties import worst
from tests.properties.added import Worst, check_added
from tests.properties.examples import EXAMPLES, SYNTAX, columns_of, names_in, replaced, walk
from tests.properties.planning import DEPTH, Lab, thorough
from tests.support import lab as tables

RULES = tables.rules()
NUMBERS = ("i2", "i4", "i8", "n", "n2", "nw", "nd", "f4", "f8")
MOST_COLUMNS = 3  # of one expression, all of whose worst values meet
ZONE = "Europe/Berlin"
_PASSED = "({0} IS NULL OR {0} IS NOT DISTINCT FROM {1})"
_NO_LONGER = "({0} IS NULL OR octet_length({0}) <= octet_length({1}))"
_declared = st.none() | st.integers(0, worst.MOST_DECLARED - 1)
_TWINS = 150_000  # the types of a statement are those of the twin, which is no older
_ATTEMPT = """
CREATE FUNCTION pg_temp.attempt(statement text, OUT failed boolean, OUT answer text) LANGUAGE plpgsql AS $$
BEGIN
    failed := false; EXECUTE statement INTO answer;
EXCEPTION WHEN OTHERS THEN
    failed := true;
END $$
"""


def test_all_that_the_registry_knows_has_an_example() -> None:
    """What is added to the registry without one fails here."""
    seen = {name for expression in SYNTAX.values() for name in names_in(expression)}
    assert not {*FUNCTIONS, *OPERATORS, *CLOCKS} - seen


def _reads_clock(syntax: s.Expression) -> bool:
    calls = [each for each in walk(syntax) if isinstance(each, s.Call)]
    return any(call.name in CLOCKS or (call.name == "age" and len(call.arguments) == 1) for call in calls)


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize("nullable", [True, False], ids=["nullable", "never NULL"])
def test_an_example_is_admitted_and_fails_on_no_row(lab: Lab, text: str, nullable: bool) -> None:
    if is_too_new(lab, text):
        with pytest.raises(NotSupported, match="needs PostgreSQL"):
            bound(lab, SYNTAX[text], nullable=nullable)
        return
    for declared in (None, *range(worst.MOST_DECLARED)):
        made = bound(lab, SYNTAX[text], nullable=nullable, declared=declared, as_key=declared is not None)
        check(lab, text, made, nullable=nullable)


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_facts_of_every_operation_in_an_example_are_true(lab: Lab, text: str) -> None:
    """What it says of NULLs, of values that it passes on, and of lengths, each tried on its own arguments."""
    if is_too_new(lab, text):
        return
    for node in applications(bound(lab, SYNTAX[text], nullable=True)):
        for place, argument in enumerate(node.arguments):
            if node.strict and not isinstance(argument, Constant):
                arguments = (*node.arguments[:place], null_of(argument.type.plain()), *node.arguments[place + 1 :])
                (is_null,) = run(lab, text, replace(node, arguments=arguments), "count(x) = 0")[:1]
                assert is_null, f"{text}\n{node.name} is not NULL where its argument {place} is"
        for claimed, template in (node.passes, _PASSED), (node.is_short, _NO_LONGER):
            if claimed:
                fact = Apply("", template, (node, node.arguments[0]), BOOLEAN)
                assert run(lab, text, fact, "bool_and(x)")[0], f"{text}\n{node.name}: {template} does not hold"


def applications(made: Expression) -> Iterator[Apply]:
    if isinstance(made, Apply):
        yield made
        for argument in made.arguments:
            yield from applications(argument)


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
def test_arithmetic_of_every_pair_of_numbers_fails_on_no_row(lab: Lab, operator: str) -> None:
    """The guards of one type must bear the worst of the other: the least bigint has no abs()."""
    for one, other in product((*NUMBERS, "7", "2.5", "-1"), NUMBERS):
        for text in (f"{one} {operator} {other}", f"{other} {operator} {one}"):
            try:
                made = bound(lab, parse_expression(text), nullable=True)
            except NotSupported:
                assert operator == "%", text  # PostgreSQL has none for doubles
            else:
                check(lab, text, made, nullable=True)


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_has_the_type_that_postgresql_gives_it(lab: Lab, text: str) -> None:
    """With its digits: the proxy runs no statement whose columns look otherwise to PostgreSQL."""
    if is_too_new(lab, text) or lab.connection.info.server_version < _TWINS:
        return
    made = bound(lab, SYNTAX[text], nullable=True)
    columns = (f"NULL::{worst.PAIRED[name][0].sql} AS {name}" for name in sorted({*columns_of(SYNTAX[text])}))
    theirs = _described(lab, f"SELECT {text} FROM (SELECT {', '.join(columns)}) AS s")
    assert theirs == _described(lab, f"SELECT NULL::{made.type.sql}"), f"{text} is not {made.type.sql}"


def _described(lab: Lab, sql: str) -> tuple[int, int]:
    """The type of the first column, and its digits."""
    prepared = lab.connection.pgconn.prepare(b"", sql.encode())
    assert prepared.status == psycopg.pq.ExecStatus.COMMAND_OK, prepared.error_message
    described = lab.connection.pgconn.describe_prepared(b"")
    return described.ftype(0), described.fmod(0)


@pytest.mark.parametrize("text", [example for example in EXAMPLES if not _reads_clock(SYNTAX[example])])
def test_an_example_means_what_postgresql_says(lab: Lab, text: str) -> None:
    """On usual values, and wherever PostgreSQL itself has no error."""
    if is_too_new(lab, text):
        return
    made = bound(lab, SYNTAX[text], nullable=True)
    used = columns_used(made)
    ours = expression_sql(made, {worst.column(name, nullable=True).id: name for name in used})
    row = ", ".join(f"%L::{worst.PAIRED[name][0].sql} AS {name}" for name in used)
    same = made.type.sql
    theirs = f"SELECT ({text.replace('%', '%%')})::{same}::text FROM (SELECT {row}) AS s"
    written = f"format({', '.join((quoted_text(theirs), *used))})"
    with lab.connection.transaction(force_rollback=True):
        lab.connection.execute(_ATTEMPT)
        differing = lab.connection.execute(
            f"SELECT {written}, (pg_temp.attempt({written})).*, x FROM (SELECT *, ({ours})::{same}::text AS x "
            f"FROM {worst.tame_rows(used)} OFFSET 0) AS s WHERE x IS DISTINCT FROM (pg_temp.attempt({written})).answer"
        ).fetchall()
    assert not [each for each in differing if not each[1]], f"{ours}\n{differing[0]}"


# Equal values of them may differ, or functions of the database would be called.
UNORDERED = {"double precision[]"}.union(
    """
    "char" bpchar[] interval[] json jsonb numeric[] numrange point public.made public.made[] public.pair public.pair[]
    public.plain[] public.shown public.shown[] public.span regclass tsvector
    """.split()
)


@pytest.mark.extended
def test_what_the_kernel_adds_by_itself_fails_on_no_row_and_calls_no_function_of_the_database(
    every_type: Worst,
) -> None:
    """Of types of every kind: the database's own, domains over each, arrays, values without a text."""
    unordered = check_added(every_type)
    assert {name for name in unordered if not name.endswith("_domain")} == UNORDERED


LONG = ("power(n2, 100)",)  # some seconds


@pytest.mark.parametrize(
    "text", [pytest.param(each, marks=pytest.mark.extended if each in LONG else ()) for each in EXAMPLES]
)
def test_an_example_fails_on_no_row_of_other_types_of_its_kind(lab: Lab, text: str) -> None:
    """numeric(400, 0) for numeric, character(4) for text, timestamp(0) for timestamp: all columns or the first one."""
    names = tuple(dict.fromkeys(columns_of(SYNTAX[text])))
    for other in worst.COLUMNS:
        alike = [name for name in names if worst.PAIRED[name][0].kind == worst.COLUMNS[other][0].kind]
        for replacing in dict.fromkeys((tuple(alike), tuple(alike[:1]))):
            if replacing:
                _check_instead(lab, text, {name: s.Name((other,)) for name in replacing})


def _check_instead(lab: Lab, text: str, places: dict[str, s.Expression]) -> None:
    for declared in (None, 0):
        syntax = replaced(SYNTAX[text], places)
        try:
            made = bound(lab, syntax, nullable=True, declared=declared, as_key=declared is not None)
            check(lab, f"{text} of {places}", made, nullable=True)
        except (Refusal, psycopg.errors.UndefinedFunction):
            continue  # as the twin says before anything is planned


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize("place", range(min(DEPTH, worst.MOST_LIES)))
def test_an_example_fails_on_no_row_whatever_conditions_say(lab: Lab, text: str, place: int) -> None:
    """A guard stands in an expression's own text: what is believed of its columns makes none unnecessary."""
    if is_too_new(lab, text):
        return
    try:
        made = bound(lab, SYNTAX[text], nullable=False, believed=place)
    except Refusal as refusal:
        event(f"refused: {refusal.message[:60]}")
        return
    run(lab, text, made)


@pytest.mark.parametrize("text", EXAMPLES)
@pytest.mark.parametrize("place", range(min(DEPTH, worst.MOST_CONSTANTS)))
def test_an_example_fails_of_no_constant(lab: Lab, text: str, place: int) -> None:
    """In the place of a column, of all of them, and in a CASE beside it, where no guard of a column helps."""
    names = tuple(dict.fromkeys(columns_of(SYNTAX[text])))
    for chosen in {names, names[:1], names[-1:]}:
        constants = {name: worst.constant(name, place) for name in chosen}
        beside = {name: _or_column(constant, name) for name, constant in constants.items()}
        for places in [constants, beside]:
            try:
                run(lab, f"{text} of {places}", bound(lab, replaced(SYNTAX[text], places), nullable=True))
            except (Refusal, Needed, psycopg.errors.UndefinedFunction):
                continue  # as the twin says before anything is planned


def _or_column(given: s.Expression, name: str) -> s.Expression:
    return s.Case(None, ((s.Name(("b",)), given),), s.Name((name,)))


SPANS = ("-1 month 3 hours", "100 years", "00:00:00.000001", "-4000000 days", "4000000 days -95999999:59:59", "29 days")


@pytest.mark.parametrize("text", [example for example in EXAMPLES if "interval '" in example])
def test_an_example_fails_of_no_interval(lab: Lab, text: str) -> None:
    for span in SPANS:
        syntax = parse_expression(re.sub(r"interval '[^']*'", f"interval '{span}'", text))
        for declared in (None, *range(worst.MOST_DECLARED)):
            with suppress(Refusal, Needed):
                check(lab, f"{text} of {span}", bound(lab, syntax, nullable=True, declared=declared), nullable=True)


@thorough
@given(data=st.data(), nullable=st.booleans(), as_key=st.booleans())
def test_what_examples_are_put_together_to_fails_on_no_row(
    lab: Lab,
    data: st.DataObject,
    nullable: bool,
    as_key: bool,
) -> None:
    """Examples take the places of the columns of other examples, whose types they have."""
    known = [text for text in EXAMPLES if not is_too_new(lab, text)]
    syntax = _nested(lab, data, data.draw(st.sampled_from(known)), depth=data.draw(st.integers(1, 3)))
    try:
        made = bound(lab, syntax, nullable=nullable, declared=data.draw(_declared), as_key=as_key)
    except Refusal as refusal:
        event(f"refused: {refusal.message[:60]}")
        return
    if len(columns_used(made)) > MOST_COLUMNS:
        return
    try:
        check(lab, repr(syntax), made, nullable=nullable)
    except psycopg.errors.UndefinedFunction:  # whatever the rows: the twin says so before anything is planned
        event("no such function")


def check(lab: Lab, text: str, made: Expression, *, nullable: bool) -> None:
    """The expression over every combination of its columns' worst values, and what is said of it."""
    tests = {
        "type": f"bool_and(pg_typeof(x) IN ({_types(made.type)}))",
        "nulls": "true" if made.nullable else "bool_and(x IS NOT NULL)",
        "domain": f"coalesce(bool_and({_inside(made)}) FILTER (WHERE x IS NOT NULL), true)",
        **_surely(made),
    }
    row = run(lab, text, made, *tests.values(), nullable=nullable)
    for name, holds in zip(tests, row, strict=False):
        assert holds, f"{text}\nwhat is said of its {name} is wrong: {made}"


def run(lab: Lab, text: str, made: Expression, *tests: str, nullable: bool = True) -> tuple[object, ...]:
    """Answers about x, the expression over every combination of its columns' worst values."""
    used = columns_used(made)
    sql = expression_sql(made, {worst.column(name, nullable=True).id: name for name in used})
    rows = worst.rows(used, nullable=nullable, server_version=lab.catalog.version)
    inner = f"SELECT {sql} AS x FROM {rows} OFFSET 0"
    try:
        with lab.connection.transaction(force_rollback=True):
            row = lab.connection.execute(f"SELECT {', '.join((*tests, 'count(x)'))} FROM ({inner}) AS s").fetchone()
    except psycopg.errors.UndefinedFunction:
        raise
    except psycopg.Error as error:
        raise AssertionError(f"{text}\n{sql}\n{error}") from error
    assert row is not None
    return tuple(row)


def _surely(made: Expression) -> dict[str, str]:
    """Whether what is sure of a number or moment is true of it; NaN is in any bounds."""
    sure = made.sure
    if not (made.type.is_number or made.type.is_time):
        return {}
    inside = " AND ".join(_bounds(made.type, sure.low, sure.high)) or "true"
    found = {"sure bounds": f"coalesce(bool_and({inside}) FILTER (WHERE x IS NOT NULL AND x::text <> 'NaN'), true)"}
    if made.type.kind == "numeric" and sure.digits is not None:
        found["sure digits"] = f"coalesce(bool_and(scale(x) <= {sure.digits}), true)"
    return found


def _types(given: Type) -> str:
    """real is computed with as double precision, and texts are told apart by nothing."""
    texts = ("text", "varchar", "bpchar")
    same = {"float": ("real", "double precision"), "text": texts}.get(given.kind, (given.sql,))
    return ", ".join(f"pg_typeof(NULL::{text})" for text in same)


def _inside(made: Expression) -> str:
    """Whether x lies in the domain; of doubles it is known up to rounding."""
    match made.domain:
        case Values(items=items) if made.type.kind not in ("interval", "other"):
            texts = [text for item in items if (text := text_of(item, made.type, ZONE)) is not None]
            if len(texts) < len(items):
                return "true"  # instants whose zone was some seconds off: such groups are not listed
            shown = ", ".join(f"{quoted_text(text)}::{made.type.sql}" for text in texts)
            return f"x IN ({shown})" if shown else "false"
        case Range(low=low, high=high, step=step) if made.type.is_number or made.type.is_time:
            return " AND ".join((*_bounds(made.type, low, high), *_multiple(made.type, step))) or "true"
    return "true"


def _bounds(given: Type, low: Fraction | None, high: Fraction | None) -> Iterator[str]:
    if given.is_time:
        shown = (None if bound is None else text_of(bound, given.plain()) for bound in (low, high))
        yield from (f"x {sign} '{text}'" for sign, text in zip((">=", "<="), shown, strict=True) if text is not None)
        return
    slack = Fraction(1, 10**9) if given.kind == "float" else Fraction(0)
    for sign, bound, side in (">=", low, -1), ("<=", high, 1):
        if bound is not None:
            limit = bound + side * abs(bound) * slack
            if limit.denominator.bit_length() > 14_000:
                continue  # Python prints no more digits
            yield f"x::numeric * {limit.denominator} {sign} {limit.numerator}"


def _multiple(given: Type, step: Fraction | None) -> Iterator[str]:
    if step is not None and given.kind in ("integer", "numeric"):
        yield f"x::numeric * {step.denominator} % {step.numerator} = 0"


def bound(
    lab: Lab,
    syntax: s.Expression,
    *,
    nullable: bool,
    declared: int | None = None,
    as_key: bool = False,
    believed: int | None = None,
) -> Expression:
    world = PlannerContext(RULES, lab.catalog, time_zone=ZONE, now="2024-02-29 23:59:59.999999+00:00")

    def leaf(each: s.Expression) -> Operand | None:
        if not isinstance(each, s.Name):
            return None
        if believed is not None:
            return worst.believed(each.parts[0], believed)
        return worst.column(each.parts[0], nullable=nullable, declared=declared)

    return Binding(leaf, world, replace(world.setting, as_key=as_key)).bind(syntax)


def _nested(lab: Lab, data: st.DataObject, text: str, depth: int) -> s.Expression:
    """An example with other examples in the places of some of its columns."""
    if depth == 0:
        return SYNTAX[text]
    places = dict[str, s.Expression]()
    for name in dict.fromkeys(columns_of(SYNTAX[text])):
        known = (example for example in EXAMPLES if not is_too_new(lab, example))
        fitting = [text for text in known if _kind(lab, text) == worst.PAIRED[name][0].kind]
        if len(fitting) > 0 and data.draw(st.booleans()):
            places[name] = _nested(lab, data, data.draw(st.sampled_from(fitting)), depth - 1)
        if data.draw(st.integers(0, 3)) == 0:
            constant = worst.constant(name, data.draw(st.integers(0, worst.MOST_CONSTANTS - 1)))
            places[name] = _or_column(constant, name)
    return replaced(SYNTAX[text], places)


def is_too_new(lab: Lab, text: str) -> bool:
    """Whether the server of this run does not have what an example needs."""
    known = (FUNCTIONS.get(name) for name in names_in(SYNTAX[text]))
    return any(found is not None and found.since * 10_000 > lab.catalog.version for found in known)


_KINDS: dict[str, str] = {}


def _kind(lab: Lab, text: str) -> str:
    if text not in _KINDS:
        _KINDS[text] = bound(lab, SYNTAX[text], nullable=True).type.kind
    return _KINDS[text]


def columns_used(made: Expression) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column.name for column in columns_in(made)))
