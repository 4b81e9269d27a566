"""Faults to plant into the kernel: a part of a function's text, and what a careless author would have written there.

The text has to be there once, so a fault that no longer fits is told. The function itself gets the other code, so all
that imported it by name has it too.
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from textwrap import dedent
from types import CodeType, FunctionType
from typing import Any

import psycopg
import pytest

from rules.functions.math import arithmetic
from rules.kernel import (
    added,
    bounded,
    expressions,
    forms,
    ground,
    keys,
    relation,
    relations,
    render,
    rows,
    source,
    summand,
    templates,
)
from rules.kernel import measures as distances
from rules.kernel.render import Renderer
from rules.kernel.special import blocks
from tests.support.kept import forgotten

OF_INTERVALS = "an interval told by a text, which it has not on every server"
_wrap_of_bins = vars(keys.Bins)["wrap"].fget
Edit = tuple[Callable[..., Any], str, str]  # a function, what it says, and what it would say instead

_TIED = "tied = _tied(script.equal, left, right)"
_MEETING = "tied = _tied(script.equal, source, other)"


def _untied(kind: str) -> tuple[Edit]:
    return ((Renderer._join, _TIED, f"tied = script.equal if script.kind == '{kind}' else {_TIED[7:]}"),)


OF_ROWS: dict[str, tuple[Edit, ...]] = {
    "a backslash that a setting makes an escape": ((expressions.quoted_text, r'if "\\" in text', "if not text"),),
    # Units meet.
    "an inner join without the equality of units": _untied("inner"),
    "a left join without it": _untied("left"),
    "a right join without it": _untied("right"),
    "a full join without it": _untied("full"),
    "a left join that has it in WHERE": (
        (
            Renderer._join,
            "on = _conditions(tied, script.condition, names)\n    where = (*one.where, *two.where)",
            "on = _conditions(script.equal, script.condition, names) if script.kind == 'left' else "
            "_conditions(tied, script.condition, names)\n"
            "    where = (*one.where, *two.where, *(f'({names[a]} = {names[b]} OR {names[b]} IS NULL)' "
            "for a, b in tied if script.kind == 'left'))",
        ),
    ),
    "EXISTS, NOT EXISTS and IN without it": ((Renderer._semi, _MEETING, "tied = script.equal"),),
    "a correlated subquery without it": ((Renderer._correlated, _MEETING, "tied = script.equal"),),
    "links of other tables than the key's": (
        (relation.are_linked, "place is not None and place == other.get(right)", "place is not None"),
    ),
    "the parent's key cast to the child's type": (
        (
            Renderer._scan,
            "{quoted_name(hop.target_column)}{by} = {alias}",
            "{quoted_name(hop.target_column)}{'' if hop.target_column == 'code' else '::integer'} = {alias}",
        ),
    ),
    "public rows kept without a partner": (
        (relations._joined_with_public, "keeps_public = script.kind", "keeps_public = False if True else script.kind"),
    ),
    "public rows filtered by protected ones": (
        (relations._semi, "if source.unit is None and other.unit is not None", "if False"),
    ),
    "aggregates of protected rows beside public ones": (
        (relations._correlated, "if source.unit is None:", "if False:"),
        (relations._correlated, "if other.unit is not None:", "if source.unit and other.unit:"),
    ),
    "a union's unit that is another column": (
        (relations._union_all, " or taken != tuple(None if unit is None else unit.column for unit in units)", ""),
    ),
    "a union's unit that is rounded": ((relations._union_all, "not is_kept or ", ""),),
    "columns of the types that are said of them": (
        (expressions.check_columns, "known is not column.type and known != column.type", "known is None"),
    ),
    # Groups, windows and their ties.
    "GROUP BY without the unit": (
        (Renderer._per_unit, "groups = {unit: inner.names[unit]}", 'groups = {unit: f"min({inner.names[unit]})"}'),
        (Renderer._per_unit, "for place in range(len(groups)))", "for place in range(1, len(groups))) or '()'"),
    ),
    "PARTITION BY without the unit": ((Renderer._window, "[inner.names[unit], *(", "['1', *("),),
    "ties left to the order of rows": (
        (Renderer._window, "decided = [*order, *filter(None, ties)] if", "decided = order if"),
    ),
    "the number of a row that is added to something": ((render._tells_equals_apart, "bool(calls & ORDINAL) or ", ""),),
    "frames of rows whose ties are left to their order": (
        (render._tells_equals_apart, 'frame.startswith("ROWS") or ', ""),
    ),
    "frames as they come": ((render._over, "if frame and", "if False and"),),
    "one column left out of ties": (
        (Renderer._window, "for number in last if tells]", "for number in last[:-1] if tells]"),
    ),
    "ties between equal values that differ": ((added.last_order, 'return f"numeric_send({sql})"', "return sql"),),
    "ties between intervals that are equal and differ": (
        (added.last_order, 'return f"interval_send({sql})"', "return sql"),
    ),
    "ties by a text that a function of the database's owner makes": (
        (added.last_order, "if is_decided:", "if True:"),
        (added.last_order, 'return ""', 'return f"({sql})::text"'),
    ),
    "a superset whose windows have another order": (
        (rows.Rows.candidates, "if self.has_identity and isinstance(table.script, Scan)", "if self.has_identity"),
    ),
    # One row of a unit.
    "one row of each of two": (
        (relations._joined_units, "one.is_single and two.is_single", "one.is_single or two.is_single"),
    ),
    "one row whatever public rows it meets": (
        (relations._joined_with_public, " and any(key <= equated for key in public.keys)", ""),
    ),
    "many to one taken as one to one": ((ground.follow, 'unique and equal == "same" and', "unique and"),),
    "a unit told in a type with another equality": (
        (ground.follow, 'key is None or equality(type_of(column), type_of(key)) != "same"', "False"),
    ),
    "one row of a unit in all groups": (
        (relations._per_unit, "is_single = all(number in same for number, _ in script.keys)", "is_single = True"),
    ),
    "one value where an outer join has none, or some": (
        (relations._joined_units, 'if script.kind == "inner" else kept.determined', "if True else kept.determined"),
    ),
    "one value of whatever public rows it meets": (
        (
            relations._joined_with_public,
            "frozenset(public.types) if is_single else frozenset()",
            "frozenset(public.types)",
        ),
    ),
    "one value of what is computed": (
        (relations._project, "if known.unit and ids_in(expression) <= known.determined}", "}"),
    ),
    "one value in all groups of a unit": (
        (
            relations._per_unit,
            "determined=frozenset(types) if is_single else frozenset(same)",
            "determined=frozenset(types)",
        ),
    ),
    "groups of a unit that are told by the unit alone": (
        (relations._per_unit, "[unit, *(number for number, _ in script.keys)]", "[unit]"),
    ),
    "the unit of rows that an outer join may lack": (
        (relations._joined_units, '(script.kind == "inner" and one.is_far)', "one.is_far"),
    ),
    "the children of a table with a key": ((render._rows_of, '"ONLY " if table.is_plain else ""', '""'),),
    # Templates.
    "templates as they come": ((expressions.expression_sql, "check_template(template)", "None"),),
    "computed columns of the types that are said of them": (
        (expressions.typed_sql, "if isinstance(expression, Apply)", "if False"),
    ),
    "computed keys of the types that are said of them": (
        (expressions.key_wrap, "is_computed=isinstance(expression, Apply)", "is_computed=False"),
    ),
    "any column as a table's own": ((render._canonical, "is_stored=is_stored(source, expression)", "is_stored=True"),),
    "names that a script gives to types": ((added.type_sql, "if kind.name and", "if False and"),),
    "numbers of a union that are said to be labels": ((added.in_one_type, 'in ("bpchar", "enum")', '== "bpchar"'),),
    "constants that are said to be labels": ((render._constant, 'constant.type.kind == "enum"', "False"),),
    "words that are names of columns": (
        (templates._is_in_phrase, 'and before == "(" and opened[-1][1] == "extract" and after == "from"', ""),
    ),
    "bytes that are said to be some": ((added.last_order, "not is_stored or word", "word"),),
    "aggregates in the order of rows": ((expressions.call_sql, "added = check_call(call.sql)", "added = None"),),
    "sums of doubles": (
        (expressions.call_sql, 'not in ("integer", "numeric")', 'not in ("integer", "numeric", "float")'),
    ),
    "one value of several rows": ((relations._correlated, "if not all(", "if False and not all("),),
    "operands beside what stands around them": ((expressions._filled, "if is_operand(template)", "if True"),),
    "columns that are computed when they are read": ((ground.ground_table, "if not column.unreadable", "if True"),),
    "a divisor without its guard": (
        (arithmetic._divisor, "is_guarded = right.sure.has(Fraction(0))", "is_guarded = False"),
    ),
}
OF_COLLATIONS: dict[str, tuple[Edit, ...]] = {
    "texts that are compared as those of a domain": (
        (added._compared_by_bytes, '::text COLLATE "default")', "::text)"),
    ),
}
OF_ADDED: dict[str, tuple[Edit, ...]] = {
    "values ordered by a text that is too long": ((added.last_order, "return sql", "return f'({sql})::text'"),),
    "values ordered by a text that a function makes": (
        (added.last_order, "if is_decided:", "if True:"),
        (added.last_order, 'return ""', 'return f"({sql})::text"'),
    ),
    "groups of values by a text that a function makes": (
        (added.canonical, "case _ if kind.is_other_text", 'case _ if kind.kind == "other"'),
    ),
    "equal values that tie": (
        (added.last_order, "not is_stored or word not in _EXACT", "not is_stored or kind.name != 'numeric[]'"),
    ),
    OF_INTERVALS: ((added.row_identity, "encode(interval_send({}), 'hex')", "({})::text"),),
}
_IF = """if kind.name == "{}":
                return f"({{sql}})::text"
            if is_decided:"""
OF_LARGE: dict[str, tuple[Edit, ...]] = {
    "a document ordered by its text": ((added.last_order, "if is_decided:", _IF.format("jsonb")),),
    "an array of numbers ordered by its text": ((added.last_order, "if is_decided:", _IF.format("numeric[]")),),
    "an array of days ordered by its text": (
        (added.last_order, "return sql", 'return f"({sql})::text" if kind.name == "date[]" else sql'),
    ),
    "an array of texts ordered by its text": (
        (
            added.last_order,
            "return f'({sql}) COLLATE \"C\"'",
            'return f\'({sql}{"" if kind.kind == "text" else "::text"}) COLLATE "C"\'',
        ),
    ),
    "a part of a document of any length": (
        (added.typed, "(CASE WHEN pg_column_size({sql}) <= {LONGEST_TEXT} THEN {sql} END)", "{sql}"),
    ),
    "texts with blanks of any length": ((added.stored, "not (kind.size and kind.size <= LONGEST_TEXT)", "False"),),
}
OF_ROW_UNITS: dict[str, tuple[Edit, ...]] = {
    "rows of two tables that are one unit": (
        (relation.check_same_units, "if one.unit.kind != two.unit.kind:", "if False:"),
    ),
    "units of two kinds in a union": ((relations._union_all, "len(kinds) > 1 or ", ""),),
    "rows that nothing tells apart, several times": (
        (relations._joined_with_public, "if kept.unit.column is None and not is_single:", "if False:"),
    ),
    "several values of a key told without their lengths": ((added.row_identity, "char_length({text}) || ':' || ", ""),),
    "an identity under another column's number": (
        (relations._identity_column, "None if script.unit in names.values() else script.unit", "script.unit"),
    ),
}
OF_STATEMENTS: dict[str, tuple[Edit, ...]] = {
    "group keys as they are spelled": ((added.canonical, 'return f"trim_scale(({sql})::numeric)"', "return sql"),),
    "found keys as they are spelled": (
        (
            added.canonical_key,
            "({canonical(kind, typed(kind, sql) if is_computed else f'({sql})')})",
            "({sql})",
        ),
    ),
    "a plain GROUP BY where one row was not proved": (
        (bounded._form, "if rows.proved_one and", "if rows.proved_one or"),
    ),
    "NULL units kept": (
        (source.source_of, '["u IS NOT NULL"] if rows.has_identity else []', "[]"),
        (Renderer._scan, '(f"{own} IS NOT NULL",) if path.nullable else ()', "()"),
    ),
    "rows that may change read twice": ((bounded._form, " or not source.is_steady", ""),),
    "rows that a locale's letters decide read twice": ((rows._is_by_locale, "_BY_LETTERS.search(sql)", "False"),),
    "rows that a pattern's letters decide read twice": ((rows._is_by_locale, '"substring" in sql', "False"),),
    "rows that the order of texts decides read twice": ((rows._is_by_locale, "return are_sorted", "return False"),),
    "rows that are sorted by texts read twice": ((rows._may_change, "isinstance(part, SortKey)", "False"),),
    "rows that a type of others decides read twice": (
        (rows._may_change, "_BY_ZONE.search(part.sql)", 're.search("zone|tz", part.sql)'),
    ),
    "rows of other servers read twice": (
        (rows._is_steady, "relation.table is not None and relation.table.may_change", "False"),
    ),
    "rows of a foreign table taken for our own": (
        (ground.ground_table, "table.foreign or table.has_children", "table.has_children"),
    ),
    "rows that Citus distributes taken for our own": (
        (ground.ground_table, "table.distribution is not None", "False"),
    ),
    "rows of a table with children read twice": (
        (ground.ground_table, "table.foreign or table.has_children", "table.foreign"),
    ),
    "rows that an index may miss taken for whole": ((ground.ground_table, " or bool(table.outdated)", ""),),
    "rows that a window orders by what may change read twice": ((rows._is_steady, "UnionAll | Window", "UnionAll"),),
    "rows of a union that casts what may change read twice": ((rows._is_steady, "UnionAll | Window", "Window"),),
    # Labels.
    "no test of membership": (
        (keys.listed_sql, 'kind = "JOIN" if len(patterns) == 1 else "LEFT JOIN"', 'kind = "LEFT JOIN"'),
        (keys.listed_sql, 'else f"{value} IS NOT NULL")', 'else "")'),
    ),
    "a short list that every row is in": ((keys._few, "{' '.join(branches)} END", "{' '.join(branches)} ELSE 0 END"),),
    "a short list whose NULL is anything": ((keys._few, '"{column} IS NULL"', '"true"'),),
    "labels sent as text": ((keys.listed_sql, '"{name}_{number}.place"', '"{name}_{number}.k0::text"'),),
    "a label listed twice": (
        (keys._join, "min(place)::int4 AS place", "place::int4 AS place"),
        (keys._join, "({function} GROUP BY {values})", "({function})"),
    ),
    "found keys of any length": ((added.is_short, "if kind.kind not in", "if True or kind.kind not in"),),
    # The integer of a row.
    "no clamp": ((summand._seen, "least(greatest({whole}, {lattice.low}), {lattice.high})", "{whole}"),),
    "a clamp wider than the bounds": ((summand._seen, "{lattice.high})", "{lattice.high + 1})"),),
    "scaled before it is clamped": (
        (summand._from_numeric, "{clamp.format('({0})::numeric', low, high)}", "({{0}})::numeric"),
    ),
    "products not clamped": ((source.Columns.summand, "clamped(product, summand.lattice)", "product"),),
    "columns clamped by their product alone": (
        (
            source.Columns.summand,
            "factor.sql(self.summand(factor.summand))",
            "factor.sql(self.read(factor.summand.expression, '({0} * 100)::int8'))",
        ),
    ),
    "NaN not looked for": ((summand._seen, "CASE WHEN {there} THEN", "CASE WHEN true THEN"),),
    "bins of what is not clamped": (
        (_wrap_of_bins, "(({self.summand.wrap()})", "(round(least(greatest(({{0}})::numeric, -1e9), 1e9))::int8"),
    ),
    # Shares.
    "the cap of rows not cut": ((forms.Frame.share, "if not self.caps.scales_rows:", "if True:"),),
    "shares of the rows of one group": (
        (forms._measured, "{frame.by_unit('sum(n)', 'n')}::int8 AS c", "n::int8 AS c"),
        (forms.with_rows, "{frame.by_unit('sum(n)', 'n')}::int8 AS c", "n::int8 AS c"),
    ),
    "shares rounded up": (
        (
            forms.Frame.share,
            '"div({term.summed}::numeric * {factor * self.caps.rows}, c)::int8"',
            '"ceil({term.summed}::numeric * {factor * self.caps.rows} / c)::int8"',
        ),
    ),
    "corrections for more rows than the cap": (
        (forms._corrected, "HAVING count(*) > {frame.caps.rows}", "HAVING count(*) > {frame.caps.rows + 1}"),
    ),
    "saturated before the correction": (
        (
            forms._corrected,
            'f"{factors[term.number]}::numeric * {term.total}"',
            'saturated(f"{factors[term.number]}::numeric * {term.total}")',
        ),
    ),
    "a unit's total not capped": ((forms._value, "if cap is None:", "if True:"),),
    "cases of a pivot that overlap": ((source._case, "= {int(case.number)}", ">= {int(case.number)}"),),
    "a unit's only row not capped": (
        (forms._plain, 'f"least(greatest({term.value}, -{total}), {total})"', "term.value"),
    ),
    "measures of one case in one vector": ((bounded._vectors, "seen.get((case.pivot, case.number), 0)", "0"),),
    "units and values of several cases in one vector": (
        (bounded._vectors, " or isinstance(measure, Units | DistinctMeasure)", ""),
    ),
    "capped sums in one vector": ((bounded._is_capped, "measure.total is not None", "False"),),
    # Units, groups and different values.
    "pairs of unit and group not cut": (
        (
            forms._unit,
            '"{frame.factors[term.number] * most}::int8 / greatest(d{term.number}, {most})"',
            '"{frame.factors[term.number]}"',
        ),
    ),
    "the cap of groups ignored": ((forms._unit, '"rn <= {most}"', '"rn > 0"'),),
    "a row for each where nothing is asked": ((forms.statement_sql, "if shown else", "if True else"),),
    "groups in which nobody counts": ((forms.statement_sql, '"" if threshold is None else', '"" if True else'),),
    "different values not cut": ((forms._different, '" WHERE rn <= {frame.caps.rows}"', '" WHERE rn > 0"'),),
    "different values counted once for each group": (
        (distances.sensitivity, "_of(1, caps.rows * measure.reach)", "_of(1, caps.groups * measure.reach)"),
    ),
    "more of a step than the whole": ((bounded.tally, "least(total, rungs[rung + 1])", "total"),),
    # Blocks of units.
    "a unit in more groups of blocks than count": ((blocks.block_values, "rn <= {most}", "rn > 0"),),
    "a unit in several blocks": ((blocks.block_values, "hashed('u', f", "hashed('u, length(v1::text)', f"),),
    "a block's value that comes or goes, and none that is replaced": (
        (blocks._measured, "Sensitivity(1, 2 * most, 2 * most, 2)", "Sensitivity(1, most, most, 1)"),
    ),
    "numbers of a block summed as doubles": ((blocks._aggregate, '"{name}::numeric"', '"{name}::float8"'),),
    "values of blocks scaled before they are clamped": (
        (blocks._cell, '"least(greatest(v, {low}::{kind}), {high}::{kind})::numeric"', '"v::numeric"'),
    ),
    "a unit on several rungs": ((bounded._totals, "FROM units GROUP BY u)", "FROM units GROUP BY u, g1)"),),
}


def assert_found(edits: tuple[Edit, ...], *oracles: Callable[[], object]) -> None:
    """One of the oracles reports the fault: by a broken claim, or because PostgreSQL fails on a row."""
    with planted(*edits), pytest.raises((AssertionError, psycopg.Error)) as found:
        for oracle in oracles:
            oracle()
    if isinstance(found.value, psycopg.Error):
        assert found.value.sqlstate is not None
        assert not found.value.sqlstate.startswith("42"), f"the fault is no SQL: {found.value}"


@contextmanager
def planted(*edits: Edit) -> Iterator[None]:
    """The kernel with these edits, as long as this lasts."""
    texts: dict[FunctionType, str] = {}
    for function, old, new in edits:
        assert isinstance(function, FunctionType)
        text = texts.get(function) or dedent(inspect.getsource(function))
        assert text.count(old) == 1, f"{function.__qualname__} does not say {old} once"
        texts[function] = text.replace(old, new)
    with ExitStack() as stack:
        stack.enter_context(forgotten())
        for function, text in texts.items():
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _compiled(function, text[text.index("def ") :])
        yield


def _compiled(function: FunctionType, text: str) -> CodeType:
    names: dict[str, Any] = {}
    exec(compile(text, function.__code__.co_filename, "exec"), function.__globals__, names)
    made: FunctionType = names[function.__name__]
    return made.__code__
