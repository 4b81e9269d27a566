"""A question that is served by the cells of another one has the same numbers without noise, group by group."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

import psycopg
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from proxy.execute.released_cells import Bounded, CellReading
from rules.accounting.store import KeptRelease, Release
from rules.mechanisms.additive import noise_of
from rules.mechanisms.cells import ReleasedCells
from rules.mechanisms.cost import Mechanism
from rules.mechanisms.draw import OpenDPNoise, add
from rules.mechanisms.release_plan import Block, Measure, PublicGroups
from rules.planner.plan import Request
from rules.release import cells as sums_of_cells
from rules.release.cell_labels import Group
from rules.release.cells import are_alike, places_of
from rules.release.partitions import Places, asked_partition, common_atoms, partition_within
from tests.conftest import RealDatabase
from tests.planner.planned import Planner, shown
from tests.properties.planning import thorough
from tests.support import shop

# Some rows lie outside of what is declared, and no unit has more rows than count.
RULES = (
    (
        shop.RULES.replace("city: {values: [Berlin, Lyon, Porto, Graz]}", "city: {values: [Berlin, Lyon, Graz]}")
        .replace(
            "ordered_at: {lower: 2024-01-01, upper: 2026-12-31}", "ordered_at: {lower: 2024-01-01, upper: 2025-03-31}"
        )
        .replace("rows_per_unit: 40", "rows_per_unit: 1000")
    )
    + """\
synopses:
  people: {epsilon: 9, table: customers, cube: [city, segment, is_vip, country, birth_date by month], orders: [1]}
  daily: {epsilon: 9, table: orders, cube: [ordered_at by day, status, customers.city], orders: [1]}
"""
)

PLAIN = "orders"
ITEMS = "order_items AS i JOIN orders ON orders.id = i.order_id JOIN customers ON customers.id = orders.customer_id"
JOINED = "orders JOIN customers ON customers.id = customer_id"
CUSTOMERS: tuple[str, ...] = (
    "city", "segment", "is_vip", "country", "birth_date > '1990-01-01'", "segment = 'business'",
    "CASE WHEN segment IN ('business', 'consumer') THEN 'private' ELSE 'public' END", "city IS NULL", "upper(city)",
    "CASE WHEN is_vip THEN 'vip' ELSE segment::text END",
)  # fmt: skip
CUSTOMERS_WHERE = (
    "city = 'Lyon'", "city IN ('Lyon', 'Berlin')", "city IS NOT NULL", "city IS NULL", "segment = 'business'", "is_vip",
    "NOT is_vip", "country <> 'FR'", "segment IN ('business', 'consumer')", "'Graz' = city", "city = 'Porto'",
    "birth_date >= '1980-01-01'", "segment <> 'business'", "segment NOT IN ('business', 'consumer')", "city <> 'Lyon'",
    "'consumer' <> segment", "segment::text LIKE '%s%'", "city = 'Lyon' OR segment = 'business'",
    "city LIKE '%r%' OR is_vip", "CASE WHEN is_vip THEN segment = 'business' ELSE city IS NULL END",
    "(city = 'Lyon' AND is_vip OR city = 'Graz' AND segment = 'consumer')", "coalesce(city, 'none') <> 'Graz'",
    "country || segment::text <> 'DEbusiness'", "extract(month FROM birth_date) IN (1, 2) OR is_vip",
)  # fmt: skip
ORDERS: tuple[str, ...] = (
    "ordered_at::date", "date_trunc('day', ordered_at)", "date_trunc('week', ordered_at)::date", "status",
    "date_trunc('month', ordered_at)", "date_trunc('month', ordered_at)::date", "date_trunc('year', ordered_at)",
    "date_trunc('quarter', ordered_at)", "city", "extract(isodow FROM ordered_at)",
    "extract(year FROM ordered_at)", "extract(month FROM ordered_at)::int", "extract(quarter FROM ordered_at)",
    "extract(dow FROM ordered_at)", "to_char(ordered_at, 'YYYY-MM')", "extract(week FROM ordered_at)",
    "CASE WHEN status = 'returned' THEN 'back' ELSE 'gone' END",
)  # fmt: skip
STARTS = ("2024-03-01", "2024-03-04", "2024-03-25", "2024-04-01", "2024-05-06", "2024-03-04 12:00", "2024-10-01")
ENDS = ("2024-03-05", "2024-04-01", "2024-04-08", "2024-05-01", "2024-06-03", "2024-06-03 01:00", "2025-01-01")
ORDERS_WHERE = (
    "status = 'paid'", "status IN ('paid', 'sent')", "status <> 'paid'", "city = 'Lyon'",
    "ordered_at::date = '2024-03-05'",
    "extract(isodow FROM ordered_at) IN (6, 7)", "extract(year FROM ordered_at) = 2024",
    "extract(month FROM ordered_at) >= 4", "extract(dow FROM ordered_at)::int = 0",
    "(status = 'paid' OR extract(isodow FROM ordered_at) = 7)", "to_char(ordered_at, 'YYYY-MM') = '2024-04'",
    "(ordered_at < '2024-04-01' OR status IN ('paid', 'open'))", "(city LIKE 'B%' OR status = 'paid')",
    "extract(year FROM ordered_at)::int IN (2024, 2025)", "extract(year FROM ordered_at) > 2024",
    "extract(month FROM ordered_at) <> 3", "extract(quarter FROM ordered_at) IN (1, 4)",
    "date_trunc('month', ordered_at) >= '2025-03-01'", "ordered_at::date <= '2025-03-31'",
    "ordered_at + interval '1 day' >= '2025-04-01'", "date_trunc('quarter', ordered_at) = '2025-01-01'",
)  # fmt: skip
NUMBERS = "count(*), count(DISTINCT {unit}), count(*) FILTER (WHERE {condition}), sum({value})"


@st.composite
def windows(draw: st.DrawFn) -> list[str]:
    first, last = draw(st.sampled_from(STARTS)), draw(st.sampled_from(ENDS))
    ends = (f"ordered_at >= '{first}'", draw(st.sampled_from((f"ordered_at < '{last}'", f"ordered_at <= '{last}'"))))
    return [end for end in ends if draw(st.integers(0, 5))]


@st.composite
def questions(draw: st.DrawFn, kind: str) -> str:
    """A question of one kind: its keys and conditions."""
    keys, source = (CUSTOMERS, "customers") if kind == "customers" else (ORDERS, JOINED)
    if kind == "customers":
        numbers = NUMBERS.format(unit="id", condition="is_vip", value="extract(year FROM birth_date)")
        where = draw(st.lists(st.sampled_from(CUSTOMERS_WHERE), max_size=2, unique=True))
    else:
        numbers = NUMBERS.format(unit="customer_id", condition="amount > 100", value="amount")
        where = draw(windows()) + draw(st.lists(st.sampled_from(ORDERS_WHERE), max_size=1))
    by = draw(st.lists(st.sampled_from(keys), max_size=2, unique=True))
    if kind != "customers" and "city" not in " ".join((*by, *where)):
        source = draw(st.sampled_from((PLAIN, JOINED, "customers AS c JOIN orders ON c.id = customer_id AND c.is_vip")))
    told = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {numbers} FROM {source}{told}" + (f" GROUP BY {', '.join(by)}" if by else "")


def sums(asked: Block, known: Block) -> Iterator[sums_of_cells.Places]:
    """Each way in which the groups of a question are sums of the cells of another."""
    if asked.cells is None or known.cells is None or (text := known.cells.text()) is None:
        return
    released = ReleasedCells.read(text)
    assert released is not None and isinstance(asked.groups, PublicGroups) and isinstance(known.groups, PublicGroups)
    for view in asked.cells.views:
        if view.family == known.cells.family:
            found = places_of(asked.cells, view, released, asked.groups.rows, known.groups.rows)
            if found is not None:
                yield found


class Asking:
    """Plans questions in a zone, and runs them without noise."""

    def __init__(self, planner: Planner, zone: str) -> None:
        self._planner, self._zone = planner, zone
        self._blocks: dict[str, Block | None] = {}

    def block(self, sql: str) -> Block | None:
        """The only block of a question; None where no group can have rows, and nothing is asked."""
        if sql in self._blocks:
            return self._blocks[sql]
        path, now = ("pg_catalog", "public"), "2025-06-15 12:00:00+00:00"
        request = Request(text=sql, search_path=path, epsilon=Decimal(1), now=now, time_zone=self._zone)
        block, *more = self._planner.whole(request).blocks or (None,)
        assert not more
        self._blocks[sql] = block
        return block

    def numbers(self, block: Block) -> dict[Group, tuple[int, ...]]:
        with psycopg.connect(self._planner.dsn) as connection:
            connection.execute(f"SET LOCAL search_path = ''; SET LOCAL TimeZone = '{self._zone}'")
            rows = shown(block, connection.execute(self._planner.sql_of(block)).fetchall())
        width = len(block.keys)
        return {tuple(row[:width]): tuple(row[width:]) for row in rows}

    def check(self, asked: str, known: str) -> bool:
        """Whether one question is served by the other; where it is, the numbers are the same."""
        one, other = self.block(asked), self.block(known)
        if one is None or other is None:
            return False
        found = list(sums(one, other))
        if not found or one.cells is None or other.cells is None:
            return False
        assert isinstance(one.groups, PublicGroups) and isinstance(other.groups, PublicGroups)
        mine, theirs, nothing = self.numbers(one), self.numbers(other), (0,) * len(one.measures)
        names = [measure.name for measure in other.measures]
        for places in found:
            for group, cells in zip(one.groups.rows, places, strict=True):
                summed = [theirs.get(other.groups.rows[cell], nothing) for cell in cells]
                for index, measure in enumerate(one.measures):
                    adds_up = one.cells.adds_up[index] or (one.cells.units[index] and other.cells.is_in_one)
                    if cells and adds_up and measure.name in names:
                        total = sum(numbers[names.index(measure.name)] for numbers in summed)
                        assert mine.get(group, nothing)[index] == total, (asked, known, group, measure.name)
        return True

    def check_atoms(self, asked: str, known: str) -> bool:
        """Whether both divide the same rows; where they do, what is the same rows in both has the same numbers."""
        one, other = self.block(asked), self.block(known)
        if one is None or other is None or one.cells is None or other.cells is None:
            return False
        if (text := other.cells.text()) is None:
            return False
        assert isinstance(one.groups, PublicGroups) and isinstance(other.groups, PublicGroups)
        released, mine = ReleasedCells.read(text), asked_partition(one.cells, one.groups.rows)
        assert released is not None
        for view in one.cells.views:
            if mine is None or view.family != other.cells.family:
                continue
            theirs = partition_within(one.cells, view, released, other.groups.rows, mine)
            if theirs is not None:
                found = common_atoms([mine, theirs], self._zone).places
                if all(array is not None for array in found):
                    self._compare(one, other, found)
                    return True
        return False

    def _compare(self, one: Block, other: Block, places: Sequence[Places | None]) -> None:
        """Groups that share atoms are put together, until each heap is whole in both."""
        heaps: list[tuple[set[int], set[int]]] = []
        mine, theirs = (place.tolist() for place in places if place is not None)
        for group, cell in zip(mine, theirs, strict=True):
            touched = [heap for heap in heaps if group in heap[0] or cell in heap[1]]
            heaps = [heap for heap in heaps if heap not in touched]
            merged = {group}.union(*(each[0] for each in touched)), {cell}.union(*(each[1] for each in touched))
            heaps.append(merged)
        assert isinstance(one.groups, PublicGroups) and isinstance(other.groups, PublicGroups)
        assert one.cells is not None and other.cells is not None
        numbers, others, nothing = self.numbers(one), self.numbers(other), (0,) * len(one.measures)
        names = [measure.name for measure in other.measures]
        is_in_one = one.cells.is_in_one and other.cells.is_in_one
        for groups, cells in heaps:
            for index, measure in enumerate(one.measures):
                if -1 in cells or measure.name not in names:
                    continue
                if one.cells.adds_up[index] or (one.cells.units[index] and is_in_one):
                    left = sum(numbers.get(one.groups.rows[group], nothing)[index] for group in groups)
                    place = names.index(measure.name)
                    right = sum(others.get(other.groups.rows[cell], nothing)[place] for cell in cells)
                    assert left == right, (groups, cells, measure.name)


@pytest.fixture(scope="module")
def planner(shop: RealDatabase) -> Planner:
    return Planner(shop.dsn, RULES)


zones = st.sampled_from(["UTC", "Europe/Berlin", "America/Havana"])


@thorough
@given(asked=questions("customers"), known=questions("customers"), zone=zones)
def test_cells_of_people_add_up_to_what_they_serve(planner: Planner, asked: str, known: str, zone: str) -> None:
    asking = Asking(planner, zone)
    event("served" if asking.check(asked, known) else "not served")
    event("made to agree" if asking.check_atoms(asked, known) else "apart")


@pytest.mark.extended
@thorough
@given(asked=questions("orders"), known=questions("orders"), zone=zones)
def test_cells_of_moments_add_up_to_what_they_serve(planner: Planner, asked: str, known: str, zone: str) -> None:
    asking = Asking(planner, zone)
    event("served" if asking.check(asked, known) else "not served")
    event("made to agree" if asking.check_atoms(asked, known) else "apart")


IN_SPRING = "SELECT count(*) FROM orders WHERE ordered_at >= '2024-03-01' AND ordered_at < '2024-05-01'"
DAYS = f"{IN_SPRING} GROUP BY ordered_at::date"
BY_SEGMENT = "SELECT count(*) FROM customers GROUP BY segment"
BUSINESS = "SELECT count(*) FROM customers WHERE segment {}"
BY_STATUS = "SELECT count(*) FROM {} GROUP BY status"
BY_CITY = "SELECT count(*) FROM customers GROUP BY city"
MONTHS = f"{IN_SPRING} GROUP BY date_trunc('month', ordered_at)"
BORN = "SELECT count(*) FROM customers WHERE birth_date >= '1960-01-01' AND birth_date < '1980-01-01'"


@pytest.mark.parametrize(
    ("asked", "known", "is_served"),
    [
        ("SELECT count(*) FROM customers WHERE city = 'Lyon'", "SELECT count(*) FROM customers GROUP BY city", True),
        ("SELECT count(*) FROM customers WHERE city = 'Porto'", "SELECT count(*) FROM customers GROUP BY city", False),
        ("SELECT count(*) FROM customers", "SELECT count(*) FROM customers GROUP BY segment", True),
        ("SELECT count(*) FROM customers", "SELECT count(*) FROM customers GROUP BY city", False),
        (BUSINESS.format("<> 'business'"), BY_SEGMENT, True),  # the labels of an enum are all there are
        (BUSINESS.format("NOT IN ('business', 'consumer')"), BY_SEGMENT, True),
        (BUSINESS.format("<> 'business'"), BUSINESS.format("IN ('consumer', 'public sector')"), True),
        ("SELECT count(*) FROM customers WHERE city <> 'Lyon'", "SELECT count(*) FROM customers GROUP BY city", False),
        ("SELECT count(*) FROM customers GROUP BY city", "SELECT count(*) FROM customers GROUP BY city, is_vip", True),
        ("SELECT count(*) FROM orders WHERE ordered_at >= '2024-03-04' AND ordered_at < '2024-03-11'", DAYS, True),
        ("SELECT count(*) FROM orders WHERE ordered_at >= '2024-03-04' AND ordered_at <= '2024-03-11'", DAYS, False),
        ("SELECT count(*) FROM orders WHERE ordered_at >= '2024-02-26' AND ordered_at < '2024-03-11'", DAYS, False),
        ("SELECT count(*) FROM orders WHERE ordered_at::date >= '2024-03-04'", DAYS, False),
        (DAYS.replace("ordered_at::date", "date_trunc('month', ordered_at)"), DAYS, True),
        (DAYS.replace("ordered_at::date", "date_trunc('month', ordered_at)::date"), DAYS, True),
        (DAYS, DAYS.replace("ordered_at::date", "date_trunc('month', ordered_at)"), False),
        (DAYS.replace("2024-05-01", "2024-05-21"), DAYS, True),  # the days that are known
        (f"{DAYS}, status", DAYS, False),
        (DAYS, f"{DAYS}, status", True),
        (f"{IN_SPRING} AND extract(isodow FROM ordered_at) IN (6, 7)", DAYS, True),  # weekends
        (DAYS, DAYS.replace("GROUP", "AND extract(isodow FROM ordered_at) IN (6, 7) GROUP"), False),
        (f"{IN_SPRING} GROUP BY extract(month FROM ordered_at)", DAYS, True),
        (BY_STATUS.format(PLAIN), f"{BY_STATUS.format(JOINED)}, segment", True),  # each order has one customer
        (BY_STATUS.format(PLAIN), f"{BY_STATUS.format(JOINED)}, city", False),
        (BY_STATUS.format(PLAIN), f"{BY_STATUS.format(f'{JOINED} AND is_vip')}, segment", False),
        (BY_STATUS.format(JOINED), BY_STATUS.format(PLAIN), True),
        (BY_STATUS.format(f"{JOINED} WHERE is_vip"), BY_STATUS.format(PLAIN), False),
        (BY_STATUS.format(f"{JOINED} WHERE is_vip"), f"{BY_STATUS.format(JOINED)}, is_vip", True),
        (BY_STATUS.format(f"{JOINED} AND country = 'DE'"), BY_STATUS.format(PLAIN), False),
        (BY_STATUS.format("customers JOIN orders ON customer_id = customers.id"),
         f"{BY_STATUS.format('orders LEFT JOIN customers ON customers.id = customer_id')}, is_vip", True),
        (BY_STATUS.format("customers LEFT JOIN orders ON customer_id = customers.id"), BY_STATUS.format(PLAIN), False),
        (BY_STATUS.format(ITEMS), f"{BY_STATUS.format(ITEMS)}, is_vip", True),
        (BY_STATUS.format(ITEMS), BY_STATUS.format(PLAIN), False),
        ("SELECT count(*) FROM order_items", BY_STATUS.format(ITEMS), True),
        ("SELECT sum(quantity) FROM order_items", BY_STATUS.format(ITEMS).replace("count(*)", "sum(quantity)"), True),
        (BY_STATUS.format(ITEMS.replace(" JOIN customers ON customers.id = orders.customer_id", "")),
         f"{BY_STATUS.format(ITEMS)}, segment", True),
        (f"{IN_SPRING} GROUP BY extract(week FROM ordered_at)", DAYS, True),
        (BUSINESS.format("::text LIKE '%s%'"), BY_SEGMENT, True),
        (BUSINESS.format("::text LIKE '%s%' AND id > 3"), BY_SEGMENT, False),
        ("SELECT count(*) FROM customers WHERE city LIKE 'B%'", BY_CITY, False),  # rows may have other cities
        ("SELECT count(*) FROM customers WHERE coalesce(city, '') <> 'Lyon'", BY_CITY, False),
        (BY_CITY.replace("GROUP", "WHERE city <> 'Lyon' GROUP"), BY_CITY, True),
        (BY_CITY.replace("GROUP", "WHERE city LIKE 'B%' OR city IS NULL GROUP"), BY_CITY, True),
        ("SELECT count(*) FROM customers WHERE city = 'Lyon' AND is_vip OR city = 'Graz' AND segment = 'business'",
         f"{BY_CITY}, is_vip, segment", True),
        ("SELECT count(*) FROM customers WHERE city = 'Lyon' OR is_vip", f"{BY_CITY}, is_vip", False),
        (BY_SEGMENT.replace("segment", "segment = 'business'"), BY_SEGMENT, True),
        (BY_SEGMENT.replace("segment", "upper(segment::text)"), f"{BY_SEGMENT}, is_vip", True),
        (BY_SEGMENT.replace("segment", "CASE WHEN is_vip THEN 'vip' ELSE segment::text END"), BY_SEGMENT, False),
        (f"{IN_SPRING} AND (ordered_at < '2024-04-01' OR status = 'paid')", f"{MONTHS}, status", True),
        (f"{IN_SPRING} AND (ordered_at < '2024-04-02' OR status = 'paid')", f"{MONTHS}, status", False),
        (f"{IN_SPRING} AND (ordered_at < '2024-04-02' OR status = 'paid')", f"{DAYS}, status", True),
        (f"{IN_SPRING} AND (ordered_at < '2024-04-01 12:00' OR status = 'paid')", f"{DAYS}, status", False),
        (f"{IN_SPRING} AND to_char(ordered_at, 'YYYY-MM') = '2024-04'", MONTHS, True),
        (f"{IN_SPRING} AND extract(day FROM ordered_at) = 1", MONTHS, False),
        (f"{BORN} AND extract(month FROM birth_date) = 3", f"{BORN} GROUP BY date_trunc('month', birth_date)", True),
        ("SELECT count(*) FROM customers", "SELECT count(*) FROM customers WHERE id > 3 GROUP BY is_vip", False),
    ],
)  # fmt: skip
def test_what_serves_what(planner: Planner, asked: str, known: str, is_served: bool) -> None:
    assert Asking(planner, "Europe/Berlin").check(asked, known) == is_served


def test_a_statement_with_many_conditions_is_planned(planner: Planner) -> None:
    """The twin evaluates a few of them."""
    many = " AND ".join(f"(status <> 'open' OR extract(isodow FROM ordered_at) <> {day % 7 + 1} OR status = 'paid' AND"
                        f" extract(month FROM ordered_at) = {day})" for day in range(1, 13))  # fmt: skip
    assert not Asking(planner, "UTC").check(f"{IN_SPRING} AND {many}", f"{DAYS}, status")


@pytest.mark.parametrize(
    ("asked", "known", "is_related"),
    [
        ("SELECT count(*) FROM customers GROUP BY segment", "SELECT count(*) FROM customers", True),
        ("SELECT count(*) FROM customers GROUP BY city", "SELECT count(*) FROM customers", False),  # city is declared
        ("SELECT count(*) FROM customers GROUP BY city", "SELECT count(*) FROM customers GROUP BY city, is_vip", True),
        ("SELECT count(*) FROM customers GROUP BY segment", "SELECT count(*) FROM customers GROUP BY is_vip", True),
        ("SELECT count(*) FROM customers", "SELECT count(*) FROM customers WHERE is_vip GROUP BY segment", False),
        ("SELECT count(*) FROM customers WHERE is_vip GROUP BY segment",
         "SELECT count(*) FROM customers GROUP BY is_vip", True),
        (DAYS, DAYS.replace("ordered_at::date", "date_trunc('month', ordered_at)"), True),
        (DAYS, IN_SPRING, True),
        (DAYS, DAYS.replace("ordered_at::date", "date_trunc('week', ordered_at)"), True),
        (f"{IN_SPRING} GROUP BY extract(isodow FROM ordered_at)", DAYS, True),
        (DAYS, DAYS.replace("2024-05-01", "2024-05-21"), True),  # the days of it that are asked for
        (DAYS, f"{IN_SPRING} AND status = 'paid'", False),
    ],
)  # fmt: skip
def test_what_is_made_to_agree_with_what(planner: Planner, asked: str, known: str, is_related: bool) -> None:
    assert Asking(planner, "Europe/Berlin").check_atoms(asked, known) == is_related


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        ("SELECT CASE WHEN segment = 'business' THEN 'one' ELSE 'two' END, count(*) FROM customers GROUP BY 1",
         f"{BY_SEGMENT}, is_vip"),
        (f"{IN_SPRING} AND (ordered_at < '2024-04-01' OR status = 'paid')", f"{MONTHS}, status"),
        (BY_STATUS.format(PLAIN), f"{BY_STATUS.format(JOINED)}, segment"),
    ],
)  # fmt: skip
def test_bars_hold_the_truth_of_what_is_served(planner: Planner, asked: str, known: str) -> None:
    asking, draws = Asking(planner, "UTC"), 300
    one, other = asking.block(asked), asking.block(known)
    assert one is not None and other is not None
    (places,), (measure,) = list(sums(one, other))[:1], other.measures
    assert isinstance(measure, Measure) and isinstance(one.groups, PublicGroups)
    assert isinstance(other.groups, PublicGroups)
    truth, cells = asking.numbers(one), asking.numbers(other)
    exact = [cells.get(group, (0,))[0] for group in other.groups.rows]
    within, noise = [0] * len(places), noise_of(measure, group_size=1)
    for _ in range(draws):
        parts = map(add, exact, OpenDPNoise().draw(noise, len(exact)))
        noised = tuple(round(Fraction(part, noise.factor)) for part in parts)
        release = Release("", "", Mechanism.pure(measure.epsilon), other.groups.rows, noised)
        kept = KeptRelease(1, datetime(2026, 11, 20, tzinfo=UTC), release, paid=True, shared=True)
        summed = CellReading(Bounded(kept, measure), places, is_alike=True).reading(1).cells
        for place, (number, count) in enumerate(zip(summed.numbers, summed.counts, strict=True)):
            margin = summed.noise.law.repeated(count).margin(Decimal("0.95"))
            within[place] += abs((number or 0) - Fraction(truth[one.groups.rows[place]][0], noise.factor)) <= margin
    assert all(0.85 * draws <= count for count in within), within  # a chance of 1e-8 that it is less


def test_windows_that_overlap_by_most_are_cut_alike_and_parts_of_one_are_not() -> None:
    def window(asked: int, known: int, first: int) -> bool:
        places = tuple((day + first,) if 0 <= day + first < known else () for day in range(asked))
        return are_alike(places, known, is_in_one=False)

    assert window(30, 30, 3)
    assert not window(30, 30, 12)
    assert not window(7, 30, 5)
    assert not window(30, 7, 0)
    assert are_alike(((1,), ()), 30, is_in_one=True)
