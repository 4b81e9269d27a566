"""Local rows: constructors that write into the SQL that the rows of a unit follow from that unit's rows alone.

Let D be a database and D|u the one with all public tables and, of protected tables, the rows of unit u only. A relation
R is *local* if for every D, every u and every plan the rows of R(D) with unit u are, as a multiset of canonical values,
exactly R(D|u). Then R(D) is the disjoint union of R(D|u) over all units, and removing u removes R(D|u) and nothing
else. Every constructor here makes local relations of local ones; its docstring says why, and `render` writes what it
says.

What a script claims is checked or written, never believed: which table is protected and on which way its rows find
their unit come from `Ground`, the equality of units is written into every place where rows of two protected relations
meet, and that a unit has one row at most follows from unique keys of tables alone.

Of catalogs two facts are believed: a key that PostgreSQL enforces now is unique (it is read in the snapshot of the
statement), and the target of a hop is found by such a key.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from rules.kernel import script as k
from rules.kernel.added import canonical
from rules.kernel.expressions import check_columns
from rules.kernel.ground import Ground, GroundTable, RowAsUnit, UnitPath
from rules.kernel.relation import LINK_HINT, Known, Relation, Types, Unit, check_meeting, check_new, check_same_units
from rules.kernel.statement import SEAL
from rules.kernel.templates import AGGREGATES, check_template
from rules.refusal import Mismatch, NotAllowed
from rules.values.expression import Column, ids_in
from rules.values.types import BOOLEAN, TEXT, Type, equality, find_common


def build(script: k.Script, ground: Ground) -> Relation:
    """Replay a script through the constructors; raises a Refusal where it cannot be made local."""
    match script:
        case k.Scan():
            return _scan(script, ground)
        case k.Values():
            return _values(script)
        case k.Filter(source=source):
            return _filter(script, build(source, ground))
        case k.Project(source=source):
            return _project(script, build(source, ground))
        case k.Join(left=left, right=right):
            return _join(script, build(left, ground), build(right, ground))
        case k.Semi(source=source, other=other):
            return _semi(script, build(source, ground), build(other, ground))
        case k.PerUnit(source=source):
            return _per_unit(script, build(source, ground))
        case k.Correlated(source=source, other=other):
            return _correlated(script, build(source, ground), build(other, ground))
        case k.Window(source=source):
            return _window(script, build(source, ground))
        case k.UnionAll(branches=branches):
            return _union_all(script, tuple(build(branch, ground) for branch in branches))


def _scan(script: k.Scan, ground: Ground) -> Relation:
    """The rows of a table, each with the unit at the end of its way. Local: a row, and the rows that its unique keys
    find, are in D|u exactly if the last of them is of unit u. Rows whose way ends nowhere or at NULL are left out."""
    table = ground.table(script.table)
    numbers = [number for number, _ in script.columns]
    if len(set(numbers)) < len(numbers) or any(name not in table.types for _, name in script.columns):
        raise Mismatch("the plan reads a column that the table does not have")
    types = {number: table.types[name] for number, name in script.columns}
    names = {name: number for number, name in script.columns}
    keys = frozenset(frozenset(names[name] for name in key) for key in table.keys if key <= names.keys())
    match table.unit:
        case None:
            known = Known(types, keys=keys)
        case RowAsUnit(key=key):
            unit = Unit(str(table.name), _identity_column(script, key, names))
            types |= {unit.column: TEXT} if unit.column is not None and unit.column not in types else {}
            known = Known(types, unit, is_single=True, determined=frozenset(types), keys=keys)
        case UnitPath() as path:
            known = _with_path(script, table, path, types, names, keys, ground)
    told = table.identity if table.identity is not None and table.identity <= names.keys() else None
    known = replace(known, identity=None if told is None else frozenset(names[name] for name in told))
    return Relation(script, (), known, table, SEAL)


def _identity_column(script: k.Scan, key: tuple[str, ...], names: Mapping[str, int]) -> int | None:
    """A key of one column is the identity itself, and has to be read; several are told as one text, under a number of
    its own."""
    match key:
        case ():
            return None
        case (only,):
            number = names.get(only)
        case _:
            number = None if script.unit in names.values() else script.unit
    if number is None:
        raise Mismatch("the plan has no number for the identity of a row")
    return number


def _with_path(
    script: k.Scan, table: GroundTable, path: UnitPath, types: dict[int, Type], names: Mapping[str, int],
    keys: frozenset[frozenset[int]], ground: Ground,
) -> Known:  # fmt: skip
    own = names.get(path.column) if not path.hops else script.unit
    if own is None or (path.hops and own in types):
        raise Mismatch("the plan has no number for the unit of a row")
    types[own] = path.type
    canonical(path.type, "")  # refuses types whose equal values differ
    unique = {name for key in table.keys if len(key) == 1 for name in key}
    origins = {number: (table.name, name) for name, number in names.items() if name in unique}
    first = path.hops[0] if path.hops else None
    links = {names[first.column]: (first.target, first.target_column)} if first and first.column in names else {}
    determined = frozenset(types) if path.is_unique else frozenset([own])
    return Known(types, Unit(ground.unit, own), path.is_unique, bool(path.hops), determined, keys, origins, links)


def _values(script: k.Values) -> Relation:
    """Constants: the same in every database."""
    if not script.columns or any(len(row) != len(script.columns) for row in script.rows):
        raise Mismatch("a row of the plan's constants lacks a column")
    types = [kind.plain() for _, kind in script.columns]
    if any(constant.type.plain() != kind for row in script.rows for constant, kind in zip(row, types, strict=True)):
        raise Mismatch("the plan has a constant of another type than its column's")
    return Relation(script, (), Known(dict(script.columns)), None, SEAL)


def _filter(script: k.Filter, source: Relation) -> Relation:
    """Local: whether a row stays follows from that row."""
    check_columns(script.condition, source.types)
    return Relation(script, (source,), source.known, None, SEAL)


def _project(script: k.Project, source: Relation) -> Relation:
    """Local: what is computed of a row follows from that row. The unit is passed on, never computed."""
    for number, expression in script.computed:
        check_new(number, source.types)
        check_columns(expression, source.types)
    known = source.known
    types = {**known.types, **{number: expression.type for number, expression in script.computed}}
    same = {number for number, expression in script.computed if known.unit and ids_in(expression) <= known.determined}
    return Relation(script, (source,), replace(known, types=types, determined=known.determined | same), None, SEAL)


def _join(script: k.Join, left: Relation, right: Relation) -> Relation:
    """Local: the partners of a row of unit u are rows of u, because the units are compared, or linked, or rows of a
    public relation, which is the same in D and D|u. Unmatched rows of either side keep their own unit."""
    check_meeting(script.equal, script.condition, left.types, right.types)
    if left.unit is not None and right.unit is not None:
        known = _joined_units(script, left, right)
    else:
        known = _joined_with_public(script, left, right)
    one, two = left.known.identity, right.known.identity
    identity = None if one is None or two is None else one | two  # what an outer join lacks is NULL in all of its own
    return Relation(script, (left, right), replace(known, identity=identity), None, SEAL)


def _joined_units(script: k.Join, left: Relation, right: Relation) -> Known:
    assert left.unit is not None and right.unit is not None
    check_same_units(left.known, right.known)
    one, two = left.known, right.known
    types = {**one.types, **two.types}
    origins, links = {**one.origins, **two.origins}, {**one.links, **two.links}
    if script.kind == "full":
        if script.unit is None or script.unit in types or left.unit.column is None or right.unit.column is None:
            raise Mismatch("the plan has no number for the unit of a full join")
        common = find_common([types[left.unit.column], types[right.unit.column]])
        if common is None:
            raise NotAllowed("unit columns of these types cannot be joined", hint=LINK_HINT)
        canonical(common, "")
        types[script.unit] = common.plain() if not common.name else common
        unit = Unit(left.unit.kind, script.unit)
        return Known(types, unit, determined=frozenset([script.unit]), origins=origins, links=links)
    kept = two if script.kind == "right" or (script.kind == "inner" and one.is_far) else one
    determined = one.determined | two.determined if script.kind == "inner" else kept.determined
    is_single = one.is_single and two.is_single
    return Known(types, kept.unit, is_single, kept.is_far, determined, origins=origins, links=links)


def _joined_with_public(script: k.Join, left: Relation, right: Relation) -> Known:
    one, two = left.known, right.known
    types = {**one.types, **two.types}
    if left.unit is None and right.unit is None:
        return Known(types)
    kept, public = (one, two) if left.unit is not None else (two, one)
    keeps_public = script.kind == "full" or script.kind == ("right" if left.unit is not None else "left")
    if keeps_public:
        raise NotAllowed("an outer join that keeps unmatched public rows would reveal protected rows", hint=LINK_HINT)
    equated = {number for pair in script.equal for number in pair}
    is_single = kept.is_single and any(key <= equated for key in public.keys)
    assert kept.unit is not None
    if kept.unit.column is None and not is_single:
        raise NotAllowed("rows of a table without a primary key cannot be duplicated by a join")
    determined = kept.determined | (frozenset(public.types) if is_single else frozenset())
    return Known(types, kept.unit, is_single, kept.is_far, determined, origins=kept.origins, links=kept.links)


def _semi(script: k.Semi, source: Relation, other: Relation) -> Relation:
    """Local: whether a partner exists follows from the row and from its unit's rows of the other relation."""
    check_meeting(script.equal, script.condition, source.types, other.types)
    if source.unit is None and other.unit is not None:
        raise NotAllowed("filtering public rows by protected rows would reveal protected rows", hint=LINK_HINT)
    if source.unit is not None and other.unit is not None:
        check_same_units(source.known, other.known)
    known = source.known
    if script.mark is not None:
        check_new(script.mark, source.types)
        known = replace(known, types={**known.types, script.mark: BOOLEAN})
    return Relation(script, (source, other), known, None, SEAL)


def _per_unit(script: k.PerUnit, source: Relation) -> Relation:
    """Local: a group has one unit, whose rows make all of it. Keys are canonical, so no order of rows shows in them."""
    unit = _identified(source)
    known, types = source.known, {unit: source.types[unit]}
    for number, expression in script.keys:
        if number != unit or expression != Column(unit, source.types[unit]):
            check_new(number, types)
        check_columns(expression, source.types)
        canonical(expression.type, "")
        types[number] = expression.type
    types |= _called(script.calls, types, source.types)
    plain = {expression.id: number for number, expression in script.keys if isinstance(expression, Column)} | {
        unit: unit
    }
    same = {number for number, expression in script.keys if ids_in(expression) <= known.determined} | {unit}
    is_single = all(number in same for number, _ in script.keys)
    made = Known(
        types,
        known.unit,
        is_single,
        determined=frozenset(types) if is_single else frozenset(same),
        identity=frozenset([unit, *(number for number, _ in script.keys)]),
        origins={plain[number]: place for number, place in known.origins.items() if number in plain},
        links={plain[number]: place for number, place in known.links.items() if number in plain},
    )
    return Relation(script, (source,), made, None, SEAL)


def _correlated(script: k.Correlated, source: Relation, other: Relation) -> Relation:
    """Local: an aggregate without GROUP BY is one value, of the row and its unit's rows of the other relation."""
    check_meeting(script.equal, script.condition, source.types, other.types)
    if not all(check_template(call.sql, is_call=True) & AGGREGATES for _, call in script.calls):
        raise Mismatch("the plan takes one value of several rows")
    if source.unit is None:
        raise NotAllowed("joining aggregates of protected rows to public rows would reveal protected rows")
    if other.unit is not None:
        check_same_units(source.known, other.known)
    types = {**source.types, **_called(script.calls, source.types, other.types)}
    return Relation(script, (source, other), replace(source.known, types=types), None, SEAL)


def _window(script: k.Window, source: Relation) -> Relation:
    """Local: a partition has one unit. What tells equal rows apart sees them in an order that ends in every column that
    is used later, in an order in which only identical values are equal: rows that tie then are interchangeable."""
    _identified(source)
    for expression in chain(script.partition, (key.expression for key in script.order)):
        check_columns(expression, source.types)
    for expression in script.partition:
        canonical(expression.type, "")
    calls = tuple((number, call) for number, call, _ in script.calls)
    types = {**source.types, **_called(calls, source.types, source.types)}
    return Relation(script, (source,), replace(source.known, types=types), None, SEAL)


def _union_all(script: k.UnionAll, branches: tuple[Relation, ...]) -> Relation:
    """Local: the rows of u are those of u in each branch. Units are of one kind, under one type and spelling."""
    for _, _, taken in script.columns:
        if len(taken) != len(branches) or any(n not in branch.types for n, branch in zip(taken, branches, strict=True)):
            raise Mismatch("a branch of the plan's union lacks a column")
    if not script.columns or not branches:
        raise Mismatch("the plan's union has nothing in it")
    types = {number: kind for number, kind, _ in script.columns}
    units = [branch.unit for branch in branches]
    if all(unit is None for unit in units):
        return Relation(script, branches, Known(types), None, SEAL)
    if any(unit is not None and unit.column is None for unit in units):
        raise NotAllowed("rows of a table without a primary key cannot be duplicated by a join")
    taken = next((taken for number, _, taken in script.columns if number == script.unit), ())
    kinds = {None if unit is None else unit.kind for unit in units}
    if len(kinds) > 1 or taken != tuple(None if unit is None else unit.column for unit in units):
        raise NotAllowed("UNION ALL of rows of different units is not supported over protected rows")
    assert units[0] is not None and script.unit is not None
    kind = types[script.unit]
    canonical(kind, "")
    for number, branch in zip(taken, branches, strict=True):
        is_kept = kind.kind in (branch.types[number].kind, "numeric")  # by the cast
        if not is_kept or equality(branch.types[number], kind) != "same":
            raise NotAllowed("UNION ALL of units of different types is not supported over protected rows")
    known = Known(types, Unit(units[0].kind, script.unit), determined=frozenset([script.unit]))
    return Relation(script, branches, known, None, SEAL)


def _called(calls: tuple[tuple[int, k.Call], ...], types: Types, read: Types) -> dict[int, Type]:
    """The types of calls, whose numbers are new, and whose arguments are columns that are read."""
    made: dict[int, Type] = {}
    for number, call in calls:
        check_new(number, {**types, **made})
        for argument in call.arguments:
            check_columns(argument, read)
        made[number] = call.type
    return made


def _identified(source: Relation) -> int:
    if source.unit is None or source.unit.column is None:
        raise NotAllowed("rows without a unit column cannot be grouped by unit")
    return source.unit.column
