"""What a worker writes is the answer that was asked for, or nothing: then the worker is killed."""

import asyncio
import pickle
import sys
from pathlib import Path

import psycopg
import pytest

from proxy.execute.pipe import FORMS, LENGTH, LOADED, PLANNED, QUESTIONS, READ, Load, Read, fits
from proxy.execute.worker_pool import PlannerPool
from proxy.execute.worker_process import Worker, WorkerDied
from proxy.plain_data import Codec, Malformed
from proxy.twin.embedded import Cluster
from rules.bind.inner_answers import InnerQuery
from rules.mechanisms.cells import Cells, Span, View
from rules.mechanisms.cells import Test as CellTest
from rules.mechanisms.release_plan import GroupLists, GroupProduct
from rules.planner.plan import NeedsInner
from rules.refusal import BudgetSpent, Mismatch
from rules.sql.read import read
from rules.sql.statement import Kind, Reading, RelationName, Statement
from rules.values.types import TEXT as TEXT_TYPE
from tests.conftest import RealDatabase
from tests.execute.crossing import Rules, answer, answers, check_crosses, check_read_or_malformed, request
from tests.planner import tpch
from tests.support import shop as shop_data
from tests.support.catalogs import catalog_of
from tests.support.waiting import until


@pytest.fixture(scope="module")
def small(shop: RealDatabase) -> Rules:
    return shop_data.policy(), catalog_of(shop.dsn)


@pytest.fixture(scope="module")
def customers(real_cluster: Cluster) -> Rules:
    with psycopg.connect(real_cluster.dsn(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE piped")
    with psycopg.connect(real_cluster.dsn("piped"), autocommit=True) as connection:
        connection.execute(tpch.SCHEMA)
    return tpch.policy(), catalog_of(real_cluster.dsn("piped"))


@pytest.mark.parametrize("question", (*tpch.TPCH, *tpch.EVERYDAY), ids=lambda question: question.name)
def test_the_plans_of_tpch_cross_as_they_are(customers: Rules, question: tpch.Question) -> None:
    for asked, made in answers(question.sql, customers):
        assert QUESTIONS.decode(QUESTIONS.encode(asked)) == asked
        check_crosses(made)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT city, avg(age), percentile_cont(0.5) WITHIN GROUP (ORDER BY age) FROM customers GROUP BY city",
        "SELECT count(*) FROM customers WHERE age > (SELECT avg(age) FROM customers)",
        "SELECT * FROM customers",
    ],
)
def test_every_byte_that_is_changed_or_cut_off_is_seen_or_harmless(small: Rules, text: str) -> None:
    written = check_crosses(answer(request(text), small))
    for place in range(len(written)):
        check_read_or_malformed(written[:place])
        for byte in (written[place] ^ 1, written[place] ^ 16, *b'0"[],\\'):
            check_read_or_malformed(written[:place] + bytes((byte,)) + written[place + 1 :])


@pytest.mark.parametrize("name", ["small", "customers"])
def test_rules_cross_as_they_are(name: str, request: pytest.FixtureRequest) -> None:
    policy, catalog = request.getfixturevalue(name)

    found = QUESTIONS.decode(QUESTIONS.encode(Load(policy, catalog)))

    assert found == Load(policy, catalog)
    assert isinstance(found, Load)
    assert found.policy.model_dump_json() == policy.model_dump_json()
    assert found.catalog.find_table(catalog.tables[0].name) == catalog.tables[0]


def test_a_refusal_is_of_a_kind_that_the_rules_have() -> None:
    assert isinstance(PLANNED.decode(PLANNED.encode(BudgetSpent("a"))), BudgetSpent)

    class Elsewhere(BudgetSpent):
        pass

    assert type(PLANNED.decode(PLANNED.encode(Elsewhere("a")))) is BudgetSpent
    for name in (b"Elsewhere", b"Exception", b"Iterator", b"SystemExit", b""):
        with pytest.raises(Malformed):
            PLANNED.decode(b'["Refusal",["' + name + b'","a","","",null]]')


def test_lists_of_groups_cross_as_lists() -> None:
    cities, months = (("Berlin",), ("Lyon",), (None,)), (("1", "2025"), ("2", "2025"))
    lists = Codec[GroupProduct](GroupProduct, FORMS)
    made = GroupLists((cities, months)).combined()

    assert made.rows == tuple((*city, *month) for city in cities for month in months)
    assert made.ordinals == tuple((city, month) for city in range(3) for month in range(2))
    assert lists.decode(lists.encode(made)) == made
    assert GroupLists(()).combined().rows == ((),)

    long, many = '["x"],' * 400, '[["x"],["y"]],' * 2_000
    for text in (f"[{long[:-1]}],[{long[:-1]}]", many[:-1]):
        with pytest.raises(Malformed):
            lists.decode(f"[[{text}]]".encode())


@pytest.mark.parametrize("place", [-1, 1])
def test_cells_leave_out_no_condition_that_is_none(place: int) -> None:
    codec = Codec[Cells](Cells)
    tests = ((CellTest("city", TEXT_TYPE, Span(("Berlin",))),),)
    made = Cells("f", (), tests, (View("f", ()), View("g", (0,))), (True,), (False,), False, "UTC", (None,))
    written = codec.encode(made)

    assert codec.decode(written) == made
    with pytest.raises(Malformed):
        codec.decode(written.replace(b'["g",[0]]', b'["g",[%d]]' % place))


def test_one_kind_of_answer_is_not_taken_for_another() -> None:
    for codec, data in (
        (READ, PLANNED.encode(NeedsInner(InnerQuery(), "SELECT 1"))),
        (PLANNED, READ.encode(Reading())),
        (LOADED, READ.encode(Reading())),
    ):
        with pytest.raises(Malformed):
            codec.decode(data)
    with pytest.raises(Malformed):
        QUESTIONS.decode(b'["Policy",[]]')


TEXT = "SELECT 1; SET noisegate.epsilon = 0.1; SELECT count(*) FROM orders -- é"
PIECE = Statement(Kind.QUERY, "SELECT 1", 0)


@pytest.mark.parametrize(
    "reading",
    [
        Reading((Statement(Kind.QUERY, "SELECT count(*) FROM orders", 0, (RelationName(None, "orders", 22),)),)),
        Reading((Statement(Kind.SET, "SET noisegate.epsilon = 10", 10), PIECE)),
        Reading((PIECE, PIECE)),
        Reading((Statement(Kind.QUERY, "SELECT 1; S", 0), Statement(Kind.QUERY, "SET", 10))),
        Reading((Statement(Kind.QUERY, "é", -1),)),
        Reading((Statement(Kind.OTHER, "", 0),) * 1000),
    ],
)
def test_a_reading_of_another_text_is_none(reading: Reading) -> None:
    """Or a worker that one analyst's text has taken over has others run, and pay, what they have not sent."""
    assert not fits(Read(TEXT), reading)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "",
        " ;; -- nothing",
        "SELECT (",
        "do'';" * 5000,
        "end;" * 5000,
        "TABLE a;" * 5000,
        "SELECT FROM " + "a," * 9_000 + "a",
        'SELECT FROM "\x01\x01\x01"' + ', "\x01"' * 1_000,
        "PREPARE p AS SELECT count(*) FROM a WHERE a.b IN (" + "1," * 3000 + "1); EXPLAIN EXECUTE p(1,2,'é')",
        "/* é */ SELECT set_config('noisegate.epsilon', '1', false), margin(count(*)) FROM \"é\" ; \tABORT",
    ],
)
def test_every_reading_is_of_its_text(text: str) -> None:
    assert fits(Read(text), read(text))


# A worker that a text has taken over writes what it likes: here it says the same to every question.
TAKEN_OVER = """
import struct, sys
said = {said!r}
while head := sys.stdin.buffer.read(4):
    sys.stdin.buffer.read(*struct.unpack("!I", head))
    sys.stdout.buffer.write(said)
    sys.stdout.buffer.flush()
"""


def with_length(data: bytes) -> bytes:
    return LENGTH.pack(len(data)) + data


@pytest.mark.slow
async def test_a_worker_that_nobody_has_asked_has_nothing_to_say() -> None:
    worker = await Worker.start(sys.executable, "-c", "print(1, flush=True); import time; time.sleep(60)")

    await asyncio.wait_for(worker.gone(), 30)

    assert not worker.is_alive


# One that leaves a child with its pipe behind, which goes on writing until nobody reads.
FORKED = """
import os, pathlib, sys, time
if os.fork() == 0:
    os.setsid()
    try:
        while True:
            os.write(1, b"x")
            time.sleep(0.01)
    except BrokenPipeError:
        pathlib.Path(sys.argv[1]).touch()
        os._exit(0)
time.sleep(60)
"""


@pytest.mark.slow
async def test_nothing_more_is_read_of_a_worker_that_was_killed(tmp_path: Path) -> None:
    worker = await Worker.start(sys.executable, "-c", FORKED, str(tmp_path / "nobody reads"))

    await asyncio.wait_for(worker.gone(), 30)

    await until((tmp_path / "nobody reads").exists)
    assert not worker._held


@pytest.mark.slow
async def test_a_worker_that_is_being_killed_is_asked_no_more() -> None:
    worker = await Worker.start(sys.executable, "-c", "import time; time.sleep(60)")

    worker.pipe_data_received(1, b"unasked")
    assert not worker.is_alive
    with pytest.raises(WorkerDied):
        await worker.ask(b"", LOADED.decode, 60)

    worker.kill()  # once more: of no effect
    await asyncio.wait_for(worker.gone(), 30)


@pytest.mark.parametrize("ends", ["it answers", "it dies"])
@pytest.mark.slow
async def test_an_answer_that_nobody_waits_for_is_no_fault(ends: str) -> None:
    problems: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    said = with_length(LOADED.encode(None)) if ends == "it answers" else b""
    worker = await Worker.start(sys.executable, "-c", TAKEN_OVER.format(said=said))

    answered = worker.ask(b"", LOADED.decode, 60)
    answered.cancel()
    if ends == "it dies":
        worker.kill()
    await until(lambda: worker._asked is None)

    worker.kill()
    await asyncio.wait_for(worker.gone(), 30)
    assert not problems


class Marked:
    """What unpickling would run."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("unpickled"),)


@pytest.mark.parametrize(
    "said",
    [
        with_length(pickle.dumps(Marked())),
        *(
            pytest.param(said, marks=pytest.mark.extended)
            for said in (
                with_length(PLANNED.encode(Mismatch("a plan where a reading was asked for"))[:-1]),
                with_length(PLANNED.encode(NeedsInner(InnerQuery(), "SELECT 1"))),
                LENGTH.pack(2**32 - 1),
                2 * with_length(READ.encode(read("SELECT 1"))),
            )
        ),
    ],
    ids=["a pickle", "half an answer", "another type", "a length without end", "two answers"],
)
@pytest.mark.slow
async def test_a_worker_that_writes_something_else_is_killed_and_nothing_is_made_of_it(
    said: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    pool = await PlannerPool.start(size=1, seconds=30)
    (place,) = pool._places
    assert place.worker is not None
    place.worker.kill()
    await place.worker.gone()
    place.worker = taken_over = await Worker.start(sys.executable, "-c", TAKEN_OVER.format(said=said))

    with pytest.raises(Mismatch, match="cannot be planned"):
        await pool.read("SELECT 1", "ada")

    await taken_over.gone()
    assert not any(tmp_path.iterdir())
    monkeypatch.undo()
    assert len((await pool.read("SELECT 2; SELECT 3", "ada")).statements) == 2
    await pool.close()
