"""The analyst's statement around its private blocks, cut from PostgreSQL's own tree.

Everything above a block is post-processing and stays as it was written; the block itself becomes a sub-select over
arrays of noised columns, and a system view the rows of an array that is filled when it is answered. Casts stand at the
leaves only: a cast of a result column would change names, DISTINCT and ORDER BY.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rules.mechanisms.noised_outputs import Count
from rules.mechanisms.release_plan import Bar, Block
from rules.planner.error_bars import REPLICATE, aggregates_in, argument_of, bar_name, end_of_bar, error_bar
from rules.planner.find_blocks import ABOVE, BlockSite, Leaves, is_aggregate, replace_leaves
from rules.planner.key_columns import as_written, named_below
from rules.planner.results import Marked, put_marks
from rules.planner.tables import replace_relations, source, tables_in
from rules.refusal import Mismatch
from rules.sql.grammar import deparse, parameters, parse
from rules.sql.normalize.to_text import quoted
from rules.sql.selects import column_name
from rules.sql.system_views import SCHEMA, SystemView, find_virtual
from rules.sql.tree import Json, Node, holders, items, kind, strings
from rules.values.types import SpanForm

_MONTH = 2_629_800  # seconds of a twelfth of the year that extract(epoch FROM …) counts


@dataclass(frozen=True, slots=True)
class Arrays:
    """The columns of one block's answer, and the number of the first."""

    block: Block
    first_column: int


@dataclass(frozen=True, slots=True)
class Place:
    """One block in the text, or one for each of its grouping sets, which have equal outputs."""

    body: Node  # its SELECT in PostgreSQL's tree
    leaves: Leaves
    arrays: tuple[Arrays, ...]
    site: BlockSite
    name: str  # of the sub-select: _ng1
    outputs: tuple[int, ...]  # which output of the block each aggregate is
    bare: frozenset[int]  # items of its select list that the client sees as they are: an output, cast or rounded
    marked: Marked | None = None  # the items of it that are NULL where noise could have made them

    @property
    def block(self) -> Block:
        """Any of them: what is the same of all is read from it."""
        return self.arrays[0].block


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


def outer_statement(tree: Node, places: list[Place], system_views: SystemViewHoles) -> tuple[str | int, ...]:
    """Rewrite the tree in place of its blocks and of virtual relations, and return its text with holes."""
    for place in reversed(places):  # a block inside another's clauses before the one around it
        _rewrite(place)
    _drop_unused_ctes(tree)
    return _with_holes(deparse(system_views.put_into(tree)))


def _rewrite(place: Place) -> None:
    body, leaves = place.body, place.leaves

    def key(number: int) -> Json:
        return as_written(_column(place.name, f"k{number + 1}"), leaves.keys[number])

    def measure(node: Json) -> Json:
        number = leaves.find_aggregate(node)
        if number is None:
            raise Mismatch("an aggregate was not planned")
        return _column(place.name, f"m{place.outputs[number] + 1}")

    def bar(node: Json) -> Json:
        return _error_bar(node, place, key, measure) if bar_name(node) else None

    def replaced(node: Json) -> Json:
        return replace_leaves(_levels(node, place), leaves, key, measure, bar)

    names = {name for target in items(body, "targetList") if (name := _output_name(target))}
    targets = _targets(place, key, replaced)
    for clause in ABOVE:
        if clause in ("sortClause", "distinctClause"):
            body[clause] = [_sorted(item, names, replaced) for item in items(body, clause)]
        elif clause != "targetList" and clause in body:
            body[clause] = replaced(body[clause])
    body["targetList"] = targets
    body["fromClause"] = [_arrays(place)]
    for clause in ("whereClause", "groupClause"):
        body.pop(clause, None)
    if having := body.pop("havingClause", None):
        body["whereClause"] = having
    if place.marked is not None:
        put_marks(body, place.marked, place.name)


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

    released = replace_leaves(argument, leaves, on_key, on_aggregate)
    replicated = replace_leaves(argument, leaves, on_key, replicate)
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


def _levels(node: Json, place: Place) -> Json:
    """GROUPING(a, b) is a number for each grouping set: one bit for every key that the set leaves out. Else it is 0."""
    match node:
        case list():
            return [_levels(child, place) for child in node]
        case {"GroupingFunc": dict() as body}:
            if not place.site.sets:
                return _expression("0::integer")
            keys = [place.leaves.find_key(argument) for argument in items(body, "args")]
            if None in keys:  # a constant
                raise Mismatch("an argument of GROUPING is no key")
            bits = [sum((key not in level) << at for at, key in enumerate(reversed(keys))) for level in place.site.sets]
            return _expression(f"(ARRAY[{', '.join(map(str, bits))}])[{place.name}.k{len(place.site.keys) + 1}]")
        case dict() if kind(node)[0] != "SelectStmt":
            return {name: _levels(child, place) for name, child in node.items()}
    return node


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


def _arrays(place: Place) -> Json:
    """(SELECT a.k1::text AS k1, … FROM unnest($3::text[], …) AS a(k1, …)) AS _ng1, or UNION ALL of several"""
    if len(place.arrays) == 1 and (place.block.sets or not place.site.sets):
        (only,), keys = place.arrays, range(len(place.site.keys))
        selects = [_array_select(only, keys, {}, has_set=bool(place.block.sets), marked=place.marked)]
    else:
        types = dict[int, str]()
        for array, keys_of_set in zip(place.arrays, place.site.sets, strict=True):
            types |= {key: column.type for key, column in zip(keys_of_set, array.block.keys, strict=True)}
        levels = enumerate(zip(place.arrays, place.site.sets, strict=True), start=1)
        selects = [_array_select(arrays, own, types, level=number) for number, (arrays, own) in levels]
    named = [f", u.k{number + 1} AS {quoted(name)}" for name, number in named_below(place.body, place.leaves).items()]
    rows = " UNION ALL ".join(selects)
    around = f"SELECT u.*{''.join(named)} FROM ({rows}) AS u" if named else rows
    (piece,) = parse(f"SELECT FROM ({around}) AS {place.name}")
    return items(kind(piece.tree)[1], "fromClause")[0]


def _array_select(
    arrays: Arrays,
    keys: Sequence[int],
    types: Mapping[int, str],
    *,
    has_set: bool = False,
    level: int | None = None,
    marked: Marked | None = None,
) -> str:
    """The columns of one block; as a level of grouping sets with NULL for keys that it has not, and its number."""
    columns = _column_types(arrays.block, has_set=has_set)
    holes = [arrays.first_column + number for number in range(len(columns))]
    if marked is not None:
        columns |= {f"x{item + 1}": "boolean" for item in marked.holes}
        holes += marked.holes.values()
    casts = {name: f"a.{name}::{of}" for name, of in columns.items()}
    for place, form in enumerate(arrays.block.spans, start=1):
        casts |= {name: justified(casts[name], form) for name in (f"m{place}", f"s{place}") if name in casts}
    if level is not None:
        own = {key: casts.pop(f"k{place}") for place, key in enumerate(keys, start=1)}
        levelled = {f"k{key + 1}": own.get(key, f"NULL::{of}") for key, of in sorted(types.items())}
        casts = {**levelled, f"k{len(types) + 1}": str(level), **casts}
    listed = ", ".join(f"{value} AS {name}" for name, value in casts.items())
    if not columns:  # the total of a query without aggregates: always one row
        return f"SELECT {listed}"
    texts = ", ".join(f"${number}::text[]" for number in holes)
    return f"SELECT {listed} FROM unnest({texts}) AS a({', '.join(columns)})"


def justified(seconds: str, form: SpanForm) -> str:
    """An interval of seconds alone as PostgreSQL shows one of its kind: with days, and an age with months of a year."""
    if not form:
        return seconds
    if form == "days":
        return f"pg_catalog.justify_hours({seconds})"
    months = f"pg_catalog.trunc(extract(epoch FROM {seconds}) / {_MONTH})"
    days = f"pg_catalog.justify_hours({seconds} - {months}::double precision * interval '{_MONTH} seconds')"
    return f"(pg_catalog.make_interval(months => {months}::integer) + {days})"


def _column_types(block: Block, *, has_set: bool) -> dict[str, str]:
    """The types of a block's arrays, in their order: keys, outputs, error bars, and what is shown of outputs."""
    types = {f"k{place}": column.type for place, column in enumerate(block.keys, start=1)}
    if has_set:
        types[f"k{len(block.keys) + 1}"] = "integer"
    types |= {f"m{place}": output_type for place, output_type in enumerate(block.output_types, start=1)}
    for place, bar in enumerate(block.bars, start=1):
        types[f"r{place}"] = block.output_types[bar.output] + "[]" * (bar.end is None)
    return types | {f"s{output + 1}": block.output_types[output] for output in block.shown}


def _drop_unused_ctes(tree: Node) -> None:
    """A CTE that only a block read is part of that block now; it must not stay behind and read the empty twin."""
    owners = holders(tree, "withClause")
    for owner in reversed(owners):  # inner ones first: what they drop may have been the last use of another
        clause = owner.pop("withClause")
        assert isinstance(clause, dict)
        ctes = {str(kind(cte)[1].get("ctename")): cte for cte in items(clause, "ctes")}
        used = _tables_in(owner) & ctes.keys()
        waiting = list(used)
        while waiting:
            more = (_tables_in(ctes[waiting.pop()]) & ctes.keys()) - used
            used |= more
            waiting += more
        if used:
            kept = [cte for name, cte in ctes.items() if name in used]
            owner["withClause"] = clause | {"ctes": kept}


def _tables_in(node: Json) -> set[str]:
    """The names without a schema that stand for tables anywhere in a tree."""
    return {str(part["relname"]) for part in holders(node, "relname") if "schemaname" not in part}


def _with_holes(text: str) -> tuple[str | int, ...]:
    data = text.encode()
    parts: list[str | int] = []
    at = 0
    for number, start, end in parameters(text):
        parts += [data[at:start].decode(), number]
        at = end
    return (*parts, data[at:].decode())
