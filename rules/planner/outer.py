"""The analyst's statement around its private blocks, cut from PostgreSQL's own tree.

Everything above a block is post-processing and stays as it was written; the block itself becomes a sub-select over
arrays of noised columns, and a system view the rows of an array that is filled when it is answered. Casts stand at the
leaves only: a cast of a result column would change names, DISTINCT and ORDER BY.
"""

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import Final

from rules.bind.scope import ROW_HINT
from rules.mechanisms.noised_outputs import Count
from rules.mechanisms.release_plan import Bar
from rules.planner.arrays import Naming, Parts, Place, joined, select_of
from rules.planner.error_bars import (
    BARS,
    REPLICATE,
    aggregates_in,
    argument_of,
    bar_name,
    check_none_left,
    end_of_bar,
    error_bar,
)
from rules.planner.find_blocks import ABOVE, is_aggregate, replace_leaves
from rules.planner.key_columns import as_written
from rules.planner.public_query import closed_table, find_closed
from rules.planner.results import put_marks
from rules.planner.tables import Tables, drop_unused_ctes, replace_relations, source, tables_in
from rules.planner.undefined import UNDEFINED, check_divisors, null_where_undefined
from rules.refusal import Mismatch, NotAllowed, NotSupported, Refusal, UnknownParameter
from rules.sql.grammar import deparse_with_holes, parse
from rules.sql.selects import column_name
from rules.sql.system_views import SCHEMA, SystemView, find_virtual
from rules.sql.tree import Index, Json, Node, bodies, items, kind, strings

_FIRST_SOURCE: Final = 1 << 20  # stands for the arrays of a block: a number that no parameter of PostgreSQL's can have


class SystemViewHoles:
    """The virtual relations of one statement. Their holes come after all others, in the order of `names`."""

    def __init__(self, search_path: Sequence[str], holes: int) -> None:
        self._search_path, self._holes = search_path, holes
        self._names: list[str] = []

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def put_into(self, tree: Node) -> Node:
        """The statement with arrays in place of virtual relations: its holes are numbered from here on."""
        if all(self._find(schema, name) is None for schema, name in tables_in(tree)):
            return tree
        return replace_relations(tree, self._rows)

    def _rows(self, schema: str | None, name: str) -> Node | None:
        """The rows as values of the relation's own type, so that its name still stands for a whole row."""
        virtual = self._find(schema, name)
        if virtual is None:
            return None
        if name not in self._names:
            self._names.append(name)
        hole = self._holes + 1 + self._names.index(name)
        return source(f"pg_catalog.unnest(${hole}::pg_catalog.text[]::{virtual.qualified}[]) AS {name}")

    def _find(self, schema: str | None, name: str) -> SystemView | None:
        return find_virtual(SCHEMA if schema is None and SCHEMA in self._search_path else schema or "", name)


def check_parameters(written: Index, given: int) -> None:
    """Numbers after the client's own are those of arrays in the outer statement."""
    for body in written.bodies("ParamRef"):
        number = body.get("number", 0)
        if not isinstance(number, int) or not 0 < number <= given:
            raise UnknownParameter(f"there is no parameter ${number}", about=f"${number}")


def outer_statement(
    tree: Node, places: list[Place], system_views: SystemViewHoles, words: AbstractSet[str] = frozenset()
) -> Parts:
    """Rewrite the tree in place of its blocks and of virtual relations, and return its text with holes."""
    sources: dict[str | int, Parts] = {}
    for hole, place in reversed([*enumerate(places, start=_FIRST_SOURCE)]):  # one inside another's clauses before that
        sources[hole] = select_of(place, _rewrite(place, hole))
    drop_unused_ctes(tree)
    if places and not words.isdisjoint(UNDEFINED):
        null_where_undefined(tree)
    parts = deparse_with_holes(system_views.put_into(tree))
    return joined(chain.from_iterable(sources.get(part, (part,)) for part in parts))


def check_outer(tree: Node, tables: Tables, words: AbstractSet[str]) -> None:
    """No protected table may stay in what runs on the twin, whose protected tables are empty, nor a closed one, nor a
    bar, nor what fails whatever the answer is."""
    if tables.are_read(tree):
        raise _find_argument(tree, tables) or Mismatch("a protected table would be left in the outer statement")
    if (name := find_closed(tree, tables)) is not None:
        raise closed_table(name, "Join it inside of the query that aggregates protected rows.")
    if not words.isdisjoint(BARS):
        check_none_left(tree)
    if not words.isdisjoint(UNDEFINED):
        check_divisors(tree)


def check_without_blocks(tree: Node, tables: Tables) -> None:
    """Refuse a statement that reads protected rows at a place where no block can stand."""
    drop_unused_ctes(tree)
    if tables.are_read(tree):
        raise _find_argument(tree, tables) or NotAllowed("the statement would return protected rows", hint=ROW_HINT)


def _find_argument(tree: Node, tables: Tables) -> Refusal | None:
    """The refusal of a function in FROM whose arguments read a protected table: they are no part of any block."""
    named = sorted((table for body in bodies(tree, "RangeFunction") for table in tables_in(body)), key=str)
    for schema, name in named:
        if tables.find_protected(schema, name) is not None:
            message = "a subquery over protected rows is not supported in the arguments of a function in FROM"
            hint = (
                f"Select it beside the function: FROM (SELECT count(*) AS n FROM {name}) AS s, generate_series(1, s.n)"
            )
            return NotSupported(message, hint=hint, about=name)
    return None


def _rewrite(place: Place, hole: int) -> Naming:
    """Rewrite a block's SELECT over its arrays, and return how it names their columns."""
    body, leaves, types = place.body, place.leaves, place.key_types

    def key(number: int) -> Json:
        return as_written(_column(place.name, f"k{number + 1}"), leaves.keys[number], types[number], place.site)

    def measure(node: Json) -> Json:
        number = leaves.find_aggregate(node)
        if number is None:
            raise Mismatch("an aggregate was not planned")
        return _column(place.name, f"m{place.outputs[number] + 1}")

    def call(node: Json) -> Json:
        return _error_bar(node, place, key, measure) if bar_name(node) else _level(node, place)

    def replaced(node: Json) -> Json:
        return replace_leaves(node, leaves, key, measure, call)

    names = {name for target in items(body, "targetList") if (name := _output_name(target))}
    targets = _targets(place, key, replaced)
    for clause in ABOVE:
        if clause in ("sortClause", "distinctClause"):
            body[clause] = [_sorted(item, names, replaced) for item in items(body, clause)]
        elif clause != "targetList" and clause in body:
            body[clause] = replaced(body[clause])
    body["targetList"] = targets
    body["fromClause"] = [_source(place.name, hole)]
    naming = Naming.of(body, leaves)
    for clause in ("whereClause", "groupClause"):
        body.pop(clause, None)
    if having := body.pop("havingClause", None):
        body["whereClause"] = having
    if place.marked is not None:
        put_marks(body, place.marked, place.name)
    _rename_arrays(body, place.name, naming.prefix)
    return naming


def _targets(place: Place, on_key: Callable[[int], Json], replaced: Callable[[Json], Json]) -> list[Json]:
    """The select list over the arrays. A constant that is a key is NULL in totals, and else what it is."""
    totalled = {key.item: number for number, key in enumerate(place.site.keys) if place.site.sets}

    def shown(item: int, target: Json) -> Json:
        if item in totalled:
            return {"ResTarget": {**kind(target)[1], "val": on_key(totalled[item])}}
        return _shown_bare(target, place, on_key) if item in place.bare else replaced(target)

    return [_target(target, shown(item, target)) for item, target in enumerate(items(place.body, "targetList"))]


def _shown_bare(target: Json, place: Place, on_key: Callable[[int], Json]) -> Json:
    """An item that is a count or a sum as it is, from the column that is not below zero, if there is one."""

    def shown(node: Json) -> Json:
        output = _output_of(node, place)
        return _column(place.name, f"{'s' if output in place.block.shown else 'm'}{output + 1}")

    return replace_leaves(target, place.leaves, on_key, shown)


def _error_bar(
    bar: Json, place: Place, on_key: Callable[[int], Json], on_aggregate: Callable[[Json], Json]
) -> Json:  # fmt: skip
    """A bar over the replicates of the outputs in it; that of a bare count is not shown below zero."""
    argument, leaves, bars = argument_of(bar), place.leaves, place.block.bars
    if is_aggregate(argument) and (alone := Bar(_output_of(argument, place), bar_name(bar))) in bars:
        made = end_of_bar(bar, on_aggregate(argument), _column(place.name, f"r{bars.index(alone) + 1}"))
        return _not_negative(made) if bar_name(bar) != "margin" and _is_count(argument, place) else made
    names = {number: f"m{place.outputs[number] + 1}" for number in aggregates_in(argument, leaves)}

    def replicate(node: Json) -> Json:
        number = leaves.find_aggregate(node)
        if number is None:
            raise Mismatch("an aggregate was not planned")
        return _column(REPLICATE, names[number])

    level = partial(_level, place=place)
    released = replace_leaves(argument, leaves, on_key, on_aggregate, level)
    replicated = replace_leaves(argument, leaves, on_key, replicate, level)
    arrays = {
        f"m{output + 1}": _column(place.name, f"r{bars.index(Bar(output)) + 1}")
        for output in dict.fromkeys(place.outputs[number] for number in names)
    }
    made = error_bar(bar, released, replicated, arrays, place.block.level)
    return _not_negative(made) if bar_name(bar) != "margin" and _is_count(argument, place) else made


def _output_of(aggregate: Json, place: Place) -> int:
    number = place.leaves.find_aggregate(aggregate)
    if number is None:
        raise Mismatch("an aggregate was not planned")
    return place.outputs[number]


def _level(node: Json, place: Place) -> Json:
    """GROUPING(a, b) is a number for each grouping set: one bit for every key that the set leaves out. Else it is 0."""
    name, body = kind(node)
    if name != "GroupingFunc":
        return None
    if not place.site.sets:
        return _expression("0::integer")
    keys = [place.leaves.find_key(argument) for argument in items(body, "args")]
    if None in keys:  # a constant
        raise Mismatch("an argument of GROUPING is no key")
    bits = [sum((key not in level) << at for at, key in enumerate(reversed(keys))) for level in place.site.sets]
    return _expression(f"(ARRAY[{', '.join(map(str, bits))}])[{place.name}.k{len(place.site.keys) + 1}]")


def _expression(text: str) -> Json:
    (piece,) = parse(f"SELECT {text}")
    return kind(items(kind(piece.tree)[1], "targetList")[0])[1].get("val")


def _output_name(target: Json) -> str:
    body = kind(target)[1]
    return str(body.get("name") or column_name(body.get("val")))


def _target(target: Json, replaced: Json) -> Json:
    """A select item keeps the name that PostgreSQL gives it."""
    return {"ResTarget": {**kind(replaced)[1], "name": _output_name(target)}}


def _is_count(node: Json, place: Place) -> bool:
    number = place.leaves.find_aggregate(node) if is_aggregate(node) else None
    return number is not None and isinstance(place.block.outputs[place.outputs[number]], Count)


def _not_negative(count: Json) -> Json:
    """GREATEST alone would make 0 of a NULL: a group without numbers has no bar."""
    zero: Json = {"TypeCast": {"arg": {"A_Const": {"ival": {}}}, "typeName": _type("int8")}}
    most: Json = {"MinMaxExpr": {"op": "IS_GREATEST", "args": [count, zero], "location": -1}}
    missing: Json = {"NullTest": {"arg": count, "nulltesttype": "IS_NOT_NULL", "location": -1}}
    when: Json = {"CaseWhen": {"expr": missing, "result": most, "location": -1}}
    return {"CaseExpr": {"args": [when], "location": -1}}


def _sorted(item: Json, names: set[str], replaced: Callable[[Json], Json]) -> Json:
    """In ORDER BY and DISTINCT ON a bare name is first of all an output column, which keeps its name."""
    node = kind(item)[1].get("node") if kind(item)[0] == "SortBy" else item
    fields = strings(kind(node)[1].get("fields")) if kind(node)[0] == "ColumnRef" else ()
    return item if len(fields) == 1 and fields[0] in names else replaced(item)


def _column(table: str, name: str) -> Json:
    return {"ColumnRef": {"fields": [{"String": {"sval": table}}, {"String": {"sval": name}}], "location": -1}}


def _type(name: str) -> Json:
    return {"names": [{"String": {"sval": "pg_catalog"}}, {"String": {"sval": name}}], "typemod": -1, "location": -1}


def _rename_arrays(body: Node, table: str, prefix: str) -> None:
    """Follow columns of the arrays to the names that they have there, if these are others."""
    for reference in bodies(body, "ColumnRef") if prefix else ():
        fields = strings(reference.get("fields"))
        if fields[0] == table:
            reference["fields"] = [{"String": {"sval": table}}, {"String": {"sval": f"{prefix}{fields[-1]}"}}]


def _source(name: str, hole: int) -> Json:
    """(SELECT $hole) AS _ng1: what comes after SELECT is put there as text, which need not be read and printed."""
    item: Json = {"ResTarget": {"val": {"ParamRef": {"number": hole, "location": -1}}, "location": -1}}
    body: Node = {"targetList": [item], "limitOption": "LIMIT_OPTION_DEFAULT", "op": "SETOP_NONE"}
    return {"RangeSubselect": {"subquery": {"SelectStmt": body}, "alias": {"aliasname": name}}}
