"""Relations over the wide world in any combination: joins of several, groups of a unit, windows, unions, LATERAL."""

from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from tests.properties.wide_expressions import KIND_OF, Expressions, Place
from tests.support.windows import FRAMES, FUNCTIONS

_TABLES = {
    "people": "age level height vip mood born city tag nick uid dur",
    "visits": "place_id grade cost share score n big flag kind tag nick mood day at seen dur ci uid cc",
    "items": "line amount label flag weight",
    "parts": "size note ok",
    "places": "region size code lat flag",
    "spots": "region size flag",
    "pairs": "n flag b c",
    "loose": "n flag c",
}
# By which columns a table's rows are of one unit with another's: names of what they are.
_LINKS = {
    "people": {"unit": "id"},
    "visits": {"unit": "person_id", "visit": "id", "place": "place_id"},
    "items": {"visit": "visit_id", "item": "id"},
    "parts": {"item": "item_id", "part": "id"},
    "places": {"place": "id"},
    "spots": {},
    "pairs": {},
    "loose": {},
}
PROTECTED, PUBLIC = ("people", "visits", "visits", "visits", "items", "parts"), ("places", "spots")
_BY_UNIT = ("unit", "visit", "item", "part")


@dataclass
class Item:
    """One item of FROM: its text, its name, its columns by kind, and the columns by which it is linked."""

    text: str
    name: str
    columns: dict[str, list[str]]
    links: dict[str, str] = field(default_factory=dict)
    is_public: bool = False

    def place(self) -> Place:
        columns = {kind: tuple(f"{self.name}.{name}" for name in names) for kind, names in self.columns.items()}
        units = (f"{self.name}.{self.links['unit']}",) if "unit" in self.links else ()
        return Place(columns, units)


class Sources:
    def __init__(self, random: Random, *, by_row: bool = False) -> None:
        self._random, self._by_row, self._count = random, by_row, 0

    def one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def number(self, most: int) -> int:
        return self._random.randint(0, most)

    def _name(self) -> str:
        self._count += 1
        return f"a{self._count}"

    def table(self, known: tuple[str, ...]) -> Item:
        table, name = self.one(*known), self._name()
        columns: dict[str, list[str]] = {}
        for column in _TABLES[table].split():
            columns.setdefault(KIND_OF.get(column, "number"), []).append(column)
        links = dict(_LINKS[table])
        if self._by_row:
            links = {"unit": "id"} if "id" in links.values() else {}
        return Item(f"{table} AS {name}", name, columns, links, table in PUBLIC)

    def item(self, depth: int) -> Item:
        """A protected relation that has a name."""
        if depth <= 0 or self.number(2) == 0:
            known = ("people", "visits", "items", "pairs", "loose") if self._by_row else PROTECTED
            return self.table(known)
        match self.number(10):
            case 10:
                return self._different(depth - 1)
            case 0 | 1:
                return self._grouped(depth - 1)
            case 2 | 3:
                return self._windowed(depth - 1)
            case 4:
                return self._first(depth - 1)
            case 5 | 6:
                return self._united(depth - 1)
        return self._selected(depth - 1)

    def source(self, depth: int) -> tuple[str, Place]:
        """FROM and WHERE, and what may stand in expressions over them."""
        first = self.item(depth)
        text, items = first.text, [first]
        where: list[str] = []
        for _ in range((0, 1, 1, 1, 2, 3)[self.number(5)]):
            text = self._joined(text, items, where, depth)
        place = self._merged(items)
        pick = Expressions(self._random, place)
        where += [pick.condition(3) for _ in range((0, 0, 0, 1, 2)[self.number(4)])]
        return f"{text} WHERE {' AND '.join(where)}" if where else text, place

    def _merged(self, items: list[Item]) -> Place:
        columns: dict[str, tuple[str, ...]] = {}
        units: tuple[str, ...] = ()
        places = tuple(f"{item.name}.{item.links['place']}" for item in items if "place" in item.links)
        for item in items:
            place = item.place()
            units += place.units
            for kind, names in place.columns.items():
                columns[kind] = (*columns.get(kind, ()), *names)
        return Place(columns, units, None if self._by_row else self._subquery, places)

    def _joined(self, text: str, items: list[Item], where: list[str], depth: int) -> str:
        if self.number(3) == 0:
            return self._with_public(text, items, where)
        if self.number(7) == 0 and (lateral := self._lateral(items)) is not None:
            items.append(lateral)
            return f"{text} {self.one('CROSS JOIN', 'LEFT JOIN')} LATERAL {lateral.text}".replace(
                f"LEFT JOIN LATERAL {lateral.text}", f"LEFT JOIN LATERAL {lateral.text} ON true"
            )
        other = self.item(depth - 1)
        link = self._link(items, other)
        if link is None:
            return text
        items.append(other)
        more = "" if self.number(2) else f" AND {Expressions(self._random, self._merged(items)).condition(1)}"
        kind = self.one("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN", ",")
        if self.number(5) == 0 and len(items) == 2 and items[0].links.get("unit") == other.links.get("unit", ""):
            return f"{text} {kind.replace(',', 'JOIN')} {other.text} USING ({other.links['unit']})"
        if kind == ",":
            where.append(f"{link}{more}")
            return f"{text} CROSS JOIN {other.text}"
        return f"{text} {kind} {other.text} ON {link}{more}"

    def _link(self, items: list[Item], other: Item) -> str | None:
        links = [
            f"{item.name}.{item.links[kind]} = {other.name}.{other.links[kind]}"
            for item in items
            for kind in _BY_UNIT
            if kind in item.links and kind in other.links
        ]
        return self.one(*links) if links else None

    def _with_public(self, text: str, items: list[Item], where: list[str]) -> str:
        other = self._ranked() if self.number(3) == 0 else self.table(PUBLIC)
        other.is_public = True
        by_key = [
            f"{item.name}.{item.links['place']} = {other.name}.{other.links['place']}"
            for item in items
            if "place" in item.links and "place" in other.links
        ]
        place = self._merged([*items, other])
        pick = Expressions(self._random, place)
        loose = f"{pick.column('number')} {self.one('=', '<', '>=')} {pick.column('number')}"
        equal = [f"{pick.column('text')} = {other.name}.{mine}" for mine in other.columns.get("text", ())]
        link = self.one(*by_key, *by_key, loose, *equal, pick.condition(1))
        items.append(other)
        kind = self.one("JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", ",")
        if kind == ",":
            where.append(link)
            return f"{text} CROSS JOIN {other.text}"
        if len(items) == 2 and self.number(2) == 0:
            return f"{other.text} {self.one('LEFT JOIN', 'JOIN')} {text} ON {link}"
        return f"{text} {kind} {other.text} ON {link}"

    def _ranked(self) -> Item:
        """An answer that is released first."""
        name, key = self._name(), self.one("city", "vip", "level")
        order = self.one("ORDER BY x2 DESC, x1 LIMIT 2", "", "HAVING count(*) > 0")
        text = f"(SELECT {key} AS x1, count(*) AS x2 FROM people GROUP BY 1 {order}) AS {name}"
        return Item(
            text, name, {KIND_OF[key]: ["x1"], "number": ["x2"]} if key != "level" else {"number": ["x1", "x2"]}
        )

    def _lateral(self, items: list[Item]) -> Item | None:
        units = [f"{item.name}.{item.links['unit']}" for item in items if "unit" in item.links]
        if not units or self._by_row:
            return None
        name, unit = self._name(), self.one(*units)
        if self.number(1):
            numbers = [column for item in items for column in item.place().of("number")]
            near = f" AND q.n < {self.one(*numbers)}" if numbers and self.number(1) else ""
            aggregates = "count(*) AS n, max(q.n) AS big, bool_or(q.flag) AS flag"
            text = f"(SELECT {aggregates} FROM visits AS q WHERE q.person_id = {unit}{near}) AS {name}"
            return Item(text, name, {"number": ["n", "big"], "bool": ["flag"]})
        order = self.one("ORDER BY q.n LIMIT 1", "ORDER BY q.grade DESC, q.kind LIMIT 2", "")
        columns = "q.person_id, q.id, q.n, q.grade, q.flag, q.kind"
        text = f"(SELECT {columns} FROM visits AS q WHERE q.person_id = {unit} AND q.n > 0 {order}) AS {name}"
        known = {"number": ["n", "grade"], "bool": ["flag"], "text": ["kind"]}
        return Item(text, name, known, {"unit": "person_id", "visit": "id"})

    def _subquery(self, place: Place) -> str:
        """FROM visits … tied to the unit of the row around it."""
        unit = self.one(*place.units)
        both = Place(
            {**place.columns, "number": (*place.of("number"), "q.n", "q.grade"), "bool": (*place.of("bool"), "q.flag")}
        )
        more = f" AND {Expressions(self._random, both).condition(1)}" if self.number(1) else ""
        joined = self.one(
            "", "", " JOIN items AS r ON r.visit_id = q.id", " LEFT JOIN places AS r ON r.id = q.place_id"
        )
        return f"FROM visits AS q{joined} WHERE q.person_id = {unit}{more}"

    def _selected(self, depth: int) -> Item:
        """A SELECT in FROM: some columns under other names, and computed ones."""
        text, place = self.source(depth)
        name, pick = self._name(), Expressions(self._random, place)
        listed: list[str] = []
        columns: dict[str, list[str]] = {}

        def add(sql: str, kind: str) -> None:
            columns.setdefault(kind, []).append(f"x{len(listed)}")
            listed.append(f"{sql} AS x{len(listed)}")

        links = {}
        if place.units:
            links["unit"] = f"x{len(listed)}"
            listed.append(f"{self.one(*place.units)} AS x{len(listed)}")
        for kind in ("number", "number", "text", "bool", "moment", "other"):
            if place.of(kind):
                add(self.one(*place.of(kind)), kind)
        add(pick.number(2), "number")
        add(pick.text(2), "text")
        add(pick.condition(2), "bool")
        return Item(f"(SELECT {', '.join(listed)} FROM {text}) AS {name}", name, columns, links)

    def _grouped(self, depth: int) -> Item:
        """Groups of each unit: by it alone, or by something else too."""
        text, place = self.source(depth)
        if not place.units:
            return self.table(PROTECTED)
        name, pick, unit = self._name(), Expressions(self._random, place), self.one(*place.units)
        keys = [
            (kind, self.one(*place.of(kind)))
            for kind in ("number", "bool", "text")
            if place.of(kind) and self.number(1)
        ]
        columns: dict[str, list[str]] = {"number": ["n", "m"], "bool": ["flag"]}
        for number, (kind, _) in enumerate(keys):
            columns.setdefault(kind, []).append(f"x{number}")
        by = "".join(f", {key} AS x{number}" for number, (_, key) in enumerate(keys))
        made = f"count(*) AS n, {self.one('max', 'min', 'sum', 'avg', 'var_pop')}({pick.number(1)}) AS m"
        made += f", {self.one('bool_or', 'bool_and')}({pick.condition(1)}) AS flag"
        having = f" HAVING count(*) {self.one('>', '=', '<')} {self.one('0', '1', '3')}" if self.number(3) == 0 else ""
        grouped = ", ".join(str(place + 1) for place in range(len(keys) + 1))
        sql = f"(SELECT {unit} AS id{by}, {made} FROM {text} GROUP BY {grouped}{having}) AS {name}"
        return Item(sql, name, columns, {"unit": "id"})

    def _different(self, depth: int) -> Item:
        """SELECT DISTINCT of a unit and something else, a window perhaps; or groups whose windows are asked for."""
        text, place = self.source(depth)
        if not place.units:
            return self.table(PROTECTED)
        name, pick, unit = self._name(), Expressions(self._random, place), self.one(*place.units)
        number, flag = pick.column("number"), pick.column("bool")
        columns = {"number": ["x1"], "bool": ["x2"]}
        match self.number(2):
            case 0:
                of = self.one("count(*)", "rank()", f"sum({number})")
                window = f"PARTITION BY {unit}, {flag} ORDER BY {number}"
                sql = f"SELECT DISTINCT {unit} AS id, {of} OVER ({window}) AS x1, {flag} AS x2 FROM {text}"
            case 1:
                over = f"OVER (PARTITION BY {unit} ORDER BY {flag})"
                of = self.one("lag(count(*))", f"sum(max({number}))", "row_number()", "first_value(count(*))")
                sql = f"SELECT {unit} AS id, {of} {over} AS x1, {flag} AS x2 FROM {text} GROUP BY 1, 3"
            case _:
                sql = f"SELECT DISTINCT {unit} AS id, {number} AS x1, {flag} AS x2 FROM {text} GROUP BY 1, 2, 3"
        return Item(f"({sql}) AS {name}", name, columns, {"unit": "id"})

    def _windowed(self, depth: int) -> Item:
        """Visits, or any relation with a unit, with a window or two; and perhaps the first rows by them."""
        inner = self.item(depth)
        if "unit" not in inner.links:
            inner = self.table(("visits",) if not self._by_row else ("people",))
        name, place = self._name(), inner.place()
        pick = Expressions(self._random, place)
        unit = place.units[0]
        partition = ", ".join([unit, *(pick.any() for _ in range(self.number(3) // 2))])
        order = ", ".join(
            f"{pick.column(self.one('number', 'bool', 'moment', 'text'))}{self.one('', ' DESC', ' NULLS FIRST')}"
            for _ in range(self.number(2))
        )
        made, columns = [], {kind: list(names) for kind, names in inner.columns.items()}
        called_by = self._name()
        for number in range(1 + self.number(1)):
            function, kind = self._random.choice(FUNCTIONS)
            frame = self.one(*FRAMES) if kind else ""
            called = function.format(pick.column("number"))
            over = f"PARTITION BY {partition}{f' ORDER BY {order}' if order else ''} {frame}"
            made.append(f"{called} OVER ({over}) AS w{called_by}{number}")
            columns.setdefault("number", []).append(f"w{called_by}{number}")
        text = f"(SELECT {inner.name}.*, {', '.join(made)} FROM {inner.text}) AS {name}"
        found = Item(text, name, columns, inner.links)
        if self.number(1):
            return found
        tests = ("{} = 1", "{} <= 2", "{} BETWEEN 2 AND 3", "{} IN (1, 3)", "{} < 2.5", "1 >= {}", "{0} = {0}")
        test = self.one(*tests).format(f"w{called_by}0")
        outer = self._name()
        return Item(f"(SELECT * FROM {text} WHERE {test}) AS {outer}", outer, columns, inner.links)

    def _first(self, depth: int) -> Item:
        inner = self.item(depth)
        if "unit" not in inner.links:
            inner = self.table(("visits",) if not self._by_row else ("people",))
        name, place = self._name(), inner.place()
        pick = Expressions(self._random, place)
        keys = [place.units[0], *([pick.any()] if self.number(2) == 0 else [])]
        order = ", ".join([*keys, pick.column("number")])
        text = f"(SELECT DISTINCT ON ({', '.join(keys)}) {inner.name}.* FROM {inner.text} ORDER BY {order}) AS {name}"
        return Item(text, name, inner.columns, inner.links)

    def _united(self, depth: int) -> Item:
        """Two relations, or one with itself, by columns of the same kinds."""
        name = self._name()
        sides = [self.source(depth) for _ in range(2)]
        kinds = [kind for kind in ("number", "text", "bool", "other") if all(place.of(kind) for _, place in sides)]
        if not all(place.units for _, place in sides):
            return self._selected(depth)
        selects, shown = [], self.number(1)
        for text, place in sides:
            listed = [f"{self.one(*place.units)} AS id"] if shown else []
            listed += [f"{self.one(*place.of(kind))} AS x{number}" for number, kind in enumerate(kinds)]
            selects.append(f"SELECT {', '.join(listed) or '1'} FROM {text}")
        columns = {kind: [f"x{number}"] for number, kind in enumerate(kinds)}
        links = {"unit": "id"} if shown else {}
        word = self.one("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT") if shown else "UNION ALL"
        return Item(f"({f' {word} '.join(selects)}) AS {name}", name, columns, links)


def statement(random: Random, *, by_row: bool = False) -> str:
    """One aggregating SELECT over a source."""
    source, place = Sources(random, by_row=by_row).source(random.choice((0, 1, 1, 2, 2, 3)))
    pick = Expressions(random, place)
    keys = [pick.key() for _ in range(random.choice((0, 0, 1, 1, 2)))]
    items = [*keys, *(pick.aggregate() for _ in range(random.randint(1, 3)))]
    places = ", ".join(str(place + 1) for place in range(len(keys)))
    levels = random.choice(("{}", "{}", "{}", "ROLLUP ({})", "GROUPING SETS (({}), ())")).format(places)
    group = f" GROUP BY {levels}" if keys else ""
    return f"SELECT {', '.join(items)} FROM {source}{group}"


def statements(*, by_row: bool = False, most: int = 4) -> st.SearchStrategy[tuple[str, ...]]:
    """Several at once, by one number: Hypothesis would try parts of one statement in many others."""

    def made(seed: int) -> tuple[str, ...]:
        random = Random(seed)
        return tuple(statement(random, by_row=by_row) for _ in range(random.randint(1, most)))

    return st.integers(0, 2**48).map(made)
