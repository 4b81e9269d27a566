"""Frames out of bytes."""

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import codec
from proxy.wire.buffer import Frame, FrameBuffer
from proxy.wire.codec import ProtocolViolation
from tests.wire.strategies import cut

frames = st.lists(
    st.builds(
        lambda kind, body: Frame(kind, codec.frame(kind, body)),
        st.sampled_from([b"D", b"d", b"C", b"Z"]),
        st.binary(max_size=30),
    ),
    max_size=10,
)
ROWS = frozenset({b"D", b"d"})


@given(sent=frames, data=st.data())
def test_runs_and_single_frames_together_give_every_byte_once_and_in_order(
    sent: list[Frame], data: st.DataObject
) -> None:
    buffer = FrameBuffer(100)
    taken = b""

    for piece in data.draw(cut(b"".join(frame.raw for frame in sent))):
        buffer.feed(piece)
        while True:
            run = buffer.next_run(ROWS)
            if not run:
                frame = buffer.next_frame()
                if frame is None:
                    break
                assert frame.kind not in ROWS
                run = frame.raw
            taken += run

    assert taken == b"".join(frame.raw for frame in sent)
    assert buffer.pending == 0


@given(data=st.data())
def test_a_large_frame_of_a_run_is_given_as_it_comes(data: st.DataObject) -> None:
    """Its memory is that of a chunk, whatever its size; and nothing comes between its pieces."""
    sent = [codec.frame(b"D", bytes(size)) for size in (10, 200_000, 70_000, 65_000, 3)] + [codec.frame(b"Z", b"I")]
    buffer = FrameBuffer(100_000, most_run_bytes=1 << 31)
    taken, most = b"", 0

    for piece in data.draw(cut(b"".join(sent))):
        buffer.feed(piece)
        while run := buffer.next_run(ROWS):
            taken += run
            most = max(most, buffer.pending)
        if buffer.is_inside:
            assert buffer.next_frame() is None
            assert buffer.pending == 0

    assert taken == b"".join(sent[:-1])
    assert buffer.next_frame() == Frame(b"Z", sent[-1])


def test_a_large_frame_of_another_kind_is_a_violation() -> None:
    buffer = FrameBuffer(100_000, most_run_bytes=1 << 31)
    buffer.feed(codec.frame(b"E", bytes(200_000))[:100])
    assert buffer.next_run(ROWS) == b""
    with pytest.raises(ProtocolViolation):
        buffer.next_frame()


@given(garbage=st.binary(max_size=200), data=st.data())
def test_garbage_ends_in_frames_in_waiting_or_in_a_violation(garbage: bytes, data: st.DataObject) -> None:
    buffer = FrameBuffer(64)
    taken = 0
    try:
        for piece in data.draw(cut(garbage)):
            buffer.feed(piece)
            taken += sum(len(frame.raw) for frame in buffer.frames())
    except ProtocolViolation:
        return
    assert taken + buffer.pending == len(garbage)
    assert buffer.pending <= 64


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 3, 64, 2**31 - 1])
def test_a_length_that_cannot_be_is_refused_from_the_header_alone(length: int) -> None:
    for take in (FrameBuffer.next_frame, lambda buffer: buffer.next_run(frozenset({b"Q"}))):
        buffer = FrameBuffer(64)
        buffer.feed(codec.HEADER.pack(b"Q", length))

        with pytest.raises(ProtocolViolation):
            take(buffer)


@pytest.mark.parametrize("length", [-1, 0, 7, 10_001, 2**31 - 1, 0x47455420, 0x16030100])
def test_a_startup_packet_of_a_length_that_cannot_be_is_refused_from_its_first_four_bytes(length: int) -> None:
    buffer = FrameBuffer(64)
    buffer.feed(codec.int32(length))

    with pytest.raises(ProtocolViolation):
        buffer.next_startup(10_000)


def test_the_largest_frame_passes() -> None:
    buffer = FrameBuffer(64)
    raw = codec.frame(b"Q", bytes(59))
    buffer.feed(raw)

    assert buffer.next_frame() == (b"Q", raw)


@pytest.mark.extended
def test_a_trickle_of_single_bytes_costs_time_and_memory_in_proportion() -> None:
    raw = codec.frame(b"Q", bytes(1_000_000))
    buffer = FrameBuffer(2_000_000)
    tracemalloc.start()
    start = time.process_time()

    taken = []
    for number in range(0, len(raw), 7):
        buffer.feed(raw[number : number + 7])
        taken += list(buffer.frames())

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [frame.raw for frame in taken] == [raw]
    assert peak < 5 * len(raw)
    assert time.process_time() - start < 5


def test_a_buffer_that_was_emptied_holds_no_memory_of_what_went_through() -> None:
    buffer = FrameBuffer(2_000_000)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()

    buffer.feed(codec.frame(b"Q", bytes(1_000_000)))
    buffer.next_frame()

    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 10_000
