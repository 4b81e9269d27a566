"""Messages between the proxy and the synthesizer: a job as plain data, rows as bytes behind a report on them."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from proxy.plain_data import Codec, Form, Malformed
from rules.synthesis.model import Job, Marginal, PairReport

_HEAD: Final = struct.Struct("!Q")  # bytes of the report


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a fit, and how many bytes each table's rows are."""

    pairs: tuple[PairReport, ...]
    seconds: float
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Real:
    """A double, every bit of it."""

    text: str


@dataclass(frozen=True, slots=True)
class _Counts:
    """A marginal with its array as what it holds, in the order of its shape."""

    columns: tuple[int, ...]
    shape: tuple[int, ...]
    values: tuple[float, ...]
    variance: float
    is_whole: bool


def _apart(marginal: Marginal) -> _Counts:
    counts = marginal.counts
    return _Counts(marginal.columns, counts.shape, tuple(counts.ravel().tolist()), marginal.variance, marginal.is_whole)


def _together(sent: _Counts) -> Marginal:
    counts = np.array(sent.values, dtype=np.float64).reshape(sent.shape)
    return Marginal(sent.columns, counts, sent.variance, sent.is_whole)


_FORMS: Final = (
    Form(float, _Real, lambda real: _Real(float(real).hex()), lambda encoded: float.fromhex(encoded.text)),
    Form(Marginal, _Counts, _apart, _together),
)
JOB: Final = Codec[Job](Job, _FORMS)
_REPORT: Final = Codec[Report](Report, _FORMS)


def encode_rows(pairs: Sequence[PairReport], seconds: float, texts: Sequence[bytes]) -> Iterator[bytes]:
    """The report, and then each table's rows."""
    report = _REPORT.encode(Report(tuple(pairs), seconds, tuple(map(len, texts))))
    yield _HEAD.pack(len(report))
    yield report
    yield from texts


def decode_rows(data: bytes) -> tuple[Report, tuple[bytes, ...]]:
    """Raises Malformed where that is not what was sent."""
    if len(data) < _HEAD.size:
        raise Malformed("no report")
    end = _HEAD.size + _HEAD.unpack_from(data)[0]
    report, texts = _REPORT.decode(data[_HEAD.size : end]), []
    for size in report.sizes:
        texts.append(data[end : end + size])
        end += size
    if end != len(data) or any(size < 0 for size in report.sizes):
        raise Malformed("rows of another size")
    return report, tuple(texts)
