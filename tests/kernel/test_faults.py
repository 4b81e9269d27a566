"""Faults are planted into the kernel, and the oracles find each of them: whatever the kernel enforces is tested."""

from functools import partial

import psycopg
import pytest

from tests.kernel.faults import OF_ADDED, OF_INTERVALS, OF_ROW_UNITS, OF_ROWS, OF_STATEMENTS, assert_found
from tests.kernel.hostile import STATEMENTS, check_hostile
from tests.kernel.locality import check_asked, check_shapes
from tests.kernel.picked import check_picked
from tests.kernel.row_units import check_row_units
from tests.kernel.shapes import SHAPES
from tests.kernel.world import World
from tests.properties.added import Worst, check_added

NEWER = "columns that are computed when they are read"  # which PostgreSQL has from 18 on


def test_without_a_fault_the_oracles_find_none(connection: psycopg.Connection, world: World) -> None:
    has_virtual = world.catalog.version >= 180000

    check_picked(connection)
    check_row_units(connection)
    check_asked(world)
    assert check_shapes(world) == {
        name for name, shape in SHAPES.items() if shape.is_refused and (has_virtual or not shape.is_new)
    }


@pytest.mark.extended
@pytest.mark.parametrize("name", OF_STATEMENTS)
def test_a_fault_in_statements_is_found(connection: psycopg.Connection, world: World, name: str) -> None:
    assert_found(OF_STATEMENTS[name], lambda: check_picked(connection), lambda: check_shapes(world))


@pytest.mark.extended
@pytest.mark.parametrize("name", OF_ROWS)
def test_a_fault_in_rows_is_found(world: World, name: str) -> None:
    if name == NEWER and world.catalog.version < 180000:
        pytest.skip("the server has no such columns")
    hostile = (partial(check_hostile, world, statement) for statement in STATEMENTS.values())
    assert_found(OF_ROWS[name], lambda: check_shapes(world), lambda: check_asked(world), *hostile)


@pytest.mark.extended
@pytest.mark.parametrize("name", OF_ROW_UNITS)
def test_a_fault_in_rows_as_units_is_found(connection: psycopg.Connection, name: str) -> None:
    assert_found(OF_ROW_UNITS[name], lambda: check_row_units(connection))


@pytest.mark.extended
@pytest.mark.parametrize("name", OF_ADDED)
def test_a_fault_in_what_the_kernel_adds_is_found(every_type: Worst, name: str) -> None:
    if name == OF_INTERVALS and every_type.connection.info.server_version >= 150000:
        pytest.skip("the server has a text of every interval")
    assert_found(OF_ADDED[name], lambda: check_added(every_type))
