"""What is tried with bytes that nobody chose: each target takes any bytes, and raises where the code is wrong."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from random import Random

import psycopg

from proxy.wire.buffer import FrameBuffer
from proxy.wire.codec import ProtocolViolation
from proxy.wire.startup import LoginRefused, decode_startup
from rules.catalog import Catalog
from rules.kernel.ground import Ground
from rules.planner.plan import NeedsInner, Request
from rules.planner.planner import plan
from rules.policy.load import load_policy
from rules.refusal import Refusal
from rules.replay import DraftingKernel, Kernel
from rules.sql.read import read
from rules.sql.statement import Kind
from tests.cases.case_file import read_cases
from tests.support.shop import RULES
from tests.wire.messages import decode_backend, decode_frontend

Target = Callable[[bytes], None]
CORPUS = Path(__file__).parent / "corpus"
MOST_BYTES = 4096  # of an input: what is wrong is wrong in short ones
DEEPEST = 20_000  # calls within calls, as many as a worker has
_PIECE = 7  # bytes that arrive at once, so that frames span them
_CASES = Path(__file__).parents[1] / "cases"


def wire(data: bytes) -> None:
    """The first byte says who speaks; a frame is a message that is written as it was read, or a violation."""
    role, sent = data[:1], data[1:]
    try:
        if role == b"s":
            packet = decode_startup(sent)
            assert decode_startup(packet.encode()) == packet
            return
        buffer = FrameBuffer(MOST_BYTES)
        decode = decode_backend if role == b"b" else decode_frontend
        for place in range(0, len(sent), _PIECE):
            buffer.feed(sent[place : place + _PIECE])
            for frame in buffer.frames():
                assert decode(frame.raw).encode() == frame.raw
    except (ProtocolViolation, LoginRefused):
        return


def statements(shop: psycopg.Connection, catalog: Catalog) -> Target:
    """A query that PostgreSQL takes is refused, or planned, and then the kernel makes the same SQL of it each time.
    The plan of a planner's process, whose kernel writes no text, is the same."""
    policy = load_policy(RULES, "rules.yaml", {"NOISEGATE_DATABASE": "dbname=shop"})
    ground = Ground(policy, catalog)
    kernel, again, drafting = Kernel(ground), Kernel(ground), DraftingKernel(ground)
    request = Request(
        text="",
        search_path=("pg_catalog", "public"),
        epsilon=Decimal(1),
        delta=Decimal("1e-9"),
        now="2025-06-15 12:00:00+00:00",
    )

    def check(data: bytes) -> None:
        try:
            for text in _queries(shop, data.decode(errors="replace")):
                made = plan(replace(request, text=text), policy, catalog, kernel)
                assert made == plan(replace(request, text=text), policy, catalog, drafting)
                if not isinstance(made, NeedsInner):
                    for block in made.blocks:
                        assert kernel.bounded(block.statement).sql == again.bounded(block.statement).sql
        except (Refusal, RecursionError):  # of which a worker makes a refusal too
            return

    return check


def _queries(shop: psycopg.Connection, text: str) -> Iterator[str]:
    """Those that would come as far as the planner: the twin has seen them first."""
    for statement in read(text).statements:
        if statement.kind in (Kind.QUERY, Kind.EXPLAIN):
            try:
                with shop.transaction(force_rollback=True):
                    shop.execute(f"PREPARE tried AS {statement.query or statement.text}", prepare=False)
            except psycopg.Error:
                continue
            yield statement.text


def seeds() -> Iterator[bytes]:
    """What real tools send, to begin with."""
    for path in sorted(_CASES.glob("*.sql")):
        for case in read_cases(path):
            for step in case.steps:
                yield step.sql.encode()[:MOST_BYTES]


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """A text with a piece of another in one place: most of what byte by byte makes of SQL cannot be parsed."""
    tokens, pieces = _tokens(data), _tokens(random.choice(others))
    for _ in range(random.randint(1, 3)):
        at, source = random.randrange(len(tokens) + 1), random.randrange(len(pieces) + 1)
        replaced = random.choice((0, 1, 1, 1)) * _length(tokens, at)
        tokens[at : at + replaced] = pieces[source : source + random.choice((0, 1, 1, 1)) * _length(pieces, source)]
    return b" ".join(tokens)[:MOST_BYTES]


def _tokens(text: bytes) -> list[bytes]:
    return re.findall(rb"\w?'[^']*'|\"[^\"]*\"|\d+\.\d+|\$?\w+|[<>=!|:]+|[^\w\s]", text)


def _length(tokens: Sequence[bytes], at: int) -> int:
    """How many tokens belong together from here on: those of a parenthesis, or of a call, do."""
    depth = 0
    for number, token in enumerate(tokens[at:], 1):
        depth += (token == b"(") - (token == b")")
        if depth <= 0 and tokens[at + number : at + number + 1] != [b"("]:
            return number
    return len(tokens) - at
