"""What is known of a relation's rows, held against these rows and those of the tables."""

from collections import Counter, defaultdict

from rules.kernel.ground import UnitPath
from rules.kernel.relation import Place, Relation
from rules.kernel.render import Renderer
from rules.kernel.script import Scan
from rules.replay import Kernel
from tests.kernel.world import World

Row = tuple[str | None, ...]
Rows = Counter[Row]


def rows_sql(relation: Relation) -> str:
    """All rows as texts, the unit first."""
    source = Renderer().render(relation, frozenset(relation.types))
    columns = (f"({source.names[number]})::text" for number in _numbers(relation))
    return f"SELECT {', '.join(columns)} {source.clause()}"


def check_known(world: World, name: str, relation: Relation, rows: Rows) -> None:
    """Raises an AssertionError where a row denies what the relation says of all."""
    known, places = relation.known, {number: place for place, number in enumerate(_numbers(relation))}
    by_unit: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows.elements():
        by_unit[row[0]].append(row)
    assert None not in by_unit, f"{name}: rows without a unit"
    for of_unit in by_unit.values():
        assert len(of_unit) == 1 or not known.is_single, f"{name}: two rows of one unit"
        for number in known.determined:
            assert len({row[places[number]] for row in of_unit}) == 1, f"{name}: two values of one unit"
    for key in known.keys:
        told = [cells for row in rows.elements() if None not in (cells := tuple(row[places[n]] for n in sorted(key)))]
        assert len(told) == len(set(told)), f"{name}: two rows with one key"
    if known.identity is not None:
        told = [tuple(row[places[number]] for number in sorted(known.identity)) for row in rows.elements()]
        assert len(told) == len(set(told)), f"{name}: two rows with one identity"
    for number, place in known.origins.items():
        pairs = {(row[0], row[places[number]]) for row in rows if row[places[number]] is not None}
        assert pairs <= _units_of(world, place), f"{name}: a value of another unit's row"
    for number, place in known.links.items():
        found = _units_of(world, place)
        pairs = {(row[0], row[places[number]]) for row in rows}
        assert {pair for pair in pairs if pair[1] in {value for _, value in found}} <= found, f"{name}: another's row"


def _numbers(relation: Relation) -> tuple[int, ...]:
    assert relation.unit is not None
    assert relation.unit.column is not None
    return tuple(dict.fromkeys((relation.unit.column, *relation.types)))


def _units_of(world: World, place: Place) -> set[Row]:
    """The values of a table's column, each with the unit of its row."""
    table, name = place
    path = world.ground.table(table).unit
    assert isinstance(path, UnitPath)
    own = () if path.hops else ((2, path.column),)
    relation = Kernel(world.ground).relation(Scan(table, ((1, name), *own), 2))
    numbers = _numbers(relation)
    value = numbers.index(1)
    return {(row[0], row[value]) for row in world.connection.execute(rows_sql(relation).encode())}
