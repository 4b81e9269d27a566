"""Turn bins into values, and rows of values into the format of COPY.

Each bin becomes its label, or one of the numbers, dates or moments of the bin, all alike likely.
"""

import uuid
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from rules.synthesis.model import Between, Bin, Fitted, FittedTable, Job, KeyPart, Label, Lost, Table, Whole
from rules.values.value import decimal_text

Text = str | None
_SECOND = 1_000_000


def shown_columns(table: Table) -> tuple[str, ...]:
    """The columns of the synthetic table: its key, what refers to the parent, and those that are listed."""
    linked = () if table.parent is None else (table.parent.column,)
    return tuple(
        dict.fromkeys([*(part.column for part in table.keys), *linked, *(name for _, name in binned_columns(table))])
    )


def binned_columns(table: Table) -> tuple[tuple[int, str], ...]:
    """The columns of the synthetic table that are drawn within bins, with their places in the fit."""
    return tuple((place, column.shown_as) for place, column in enumerate(table.columns) if column.shown_as is not None)


def rows_of(
    table: Table, fitted: FittedTable, parent_keys: Sequence[str] | None, random: np.random.Generator
) -> list[list[Text]]:  # fmt: skip
    """All values, column by column, in the order of `shown_columns`."""
    columns: dict[str, Sequence[Text]] = {**keys_of(table, fitted, parent_keys, random)}
    for place, column in enumerate(table.columns):
        if column.shown_as is not None:
            columns[column.shown_as] = values_of(column.bins, fitted.bins[:, place], random)
    return [list(columns[name]) for name in shown_columns(table)]


def values_of(bins: Sequence[Bin], numbers: Whole, random: np.random.Generator) -> list[Text]:
    """The values of one column, as PostgreSQL reads them."""
    texts_of: list[Text] = [None] * len(numbers)
    for number, bin_ in enumerate(bins):
        rows = np.nonzero(numbers == number)[0]
        texts = [bin_.text] * rows.size if isinstance(bin_, Label) else _drawn(bin_, rows.size, random)
        for row, text in zip(rows.tolist(), texts, strict=True):
            texts_of[row] = text
    return texts_of


def lost_rows(table: Table, rows: Whole) -> Whole:
    """Return which rows have a shown column with no value that could stand for their bin."""
    lost = np.zeros(len(rows), dtype=bool)
    for place, column in enumerate(table.columns):
        numbers = [number for number, bin_ in enumerate(column.bins) if isinstance(bin_, Lost)]
        if column.shown_as is not None and numbers:
            lost |= np.isin(rows[:, place], numbers)
    return np.nonzero(lost)[0]


def keys_of(
    table: Table, fitted: FittedTable, parent_keys: Sequence[str] | None, random: np.random.Generator
) -> dict[str, list[str]]:  # fmt: skip
    """The columns of a made-up primary key, and the one that refers to the parent."""
    count = len(fitted.bins)
    keys: dict[str, list[str]] = {}
    if table.parent is not None and parent_keys is not None and fitted.parents is not None:
        keys[table.parent.column] = [parent_keys[place] for place in fitted.parents.tolist()]
    for part in table.keys:
        if part.kind != "parent":
            keys[part.column] = _key(part, table.name, count, fitted.parents, random)
    return keys


def _key(
    part: KeyPart, name: str, count: int, parents: Whole | None, random: np.random.Generator
) -> list[str]:  # fmt: skip
    match part.kind:
        case "text":
            return [f"{name}-{number:06}" for number in range(1, count + 1)]
        case "uuid":
            return [str(uuid.UUID(bytes=random.bytes(16), version=4)) for _ in range(count)]
        case "place" if parents is not None:
            return [str(number) for number in _places(parents)]
    return [str(number) for number in range(1, count + 1)]


def _places(parents: Whole) -> list[int]:
    """For each row, the how-manyth of its parent it is."""
    order = np.argsort(parents, kind="stable")
    ordered = parents[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    places = np.empty(len(parents), dtype=np.int64)
    places[order] = np.arange(len(parents)) - starts + 1
    listed_places: list[int] = places.tolist()
    return listed_places


def _drawn(bin_: Bin, count: int, random: np.random.Generator) -> list[Text]:
    if not isinstance(bin_, Between) or not count:
        return [None] * count
    low, high = -(-bin_.low // bin_.every), bin_.high // bin_.every
    every = bin_.every if low <= high else 1
    low, high = (low, high) if low <= high else (bin_.low, bin_.high)
    whole = random.integers(low, high, size=count, endpoint=True) * every
    match bin_.type.kind:
        case "date":
            return [str(day) for day in whole.astype("datetime64[D]")]
        case "timestamp" | "timestamptz":
            zone = "+00" if bin_.type.kind == "timestamptz" else ""
            moments = whole.astype("datetime64[us]")
            moments = moments.astype("datetime64[s]") if every == bin_.every and not every % _SECOND else moments
            return [f"{str(moment).replace('T', ' ')}{zone}" for moment in moments]
        case "float":
            return [repr(float(number * bin_.step)) for number in whole.tolist()]
    known: dict[int, Text] = {}
    return [known.setdefault(number, "") or _decimal(number, bin_, known) for number in whole.tolist()]


def _decimal(number: int, bin_: Between, known: dict[int, Text]) -> Text:
    value = number * Fraction(bin_.step)
    known[number] = text = decimal_text(value, bin_.type.scale) or decimal_text(value)
    return text


_CHUNK = 100_000  # rows
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_texts(job: Job, fitted: Fitted) -> tuple[bytes, ...]:
    """The rows of each table, each after its number, and its bins as an array."""
    keys: list[Sequence[str] | None] = []
    texts = []
    for number, (table, rows) in enumerate(zip(job.tables, fitted.tables, strict=True)):
        random = np.random.default_rng([job.seed, number])
        above = None if table.parent is None else keys[table.parent.table]
        columns = rows_of(table, rows, above, random)
        names = shown_columns(table)
        single = len(table.keys) == 1 and table.keys[0].kind != "parent"
        keys.append([str(key) for key in columns[names.index(table.keys[0].column)]] if single else None)
        texts.append(_numbered(rows.bins, columns))
    return tuple(texts)


def _numbered(bins: Whole, columns: Sequence[Sequence[Text]]) -> bytes:
    """Each row after its number and its bins. Some at a time: as texts of their own the parts of all are gigabytes."""
    chunks = []
    for start in range(0, len(bins), _CHUNK):
        rows = slice(start, start + _CHUNK)
        arrays = [f"{{{','.join(map(str, row))}}}" for row in bins[rows].tolist()]
        places = [str(place) for place in range(start, start + len(arrays))]
        chunks.append(lines([places, arrays, *(column[rows] for column in columns)]))
    return b"".join(chunks)


def lines(columns: Sequence[Sequence[Text]]) -> bytes:
    """Columns as the lines of COPY.

    Example:
        >>> lines([["1", "2"], ["a\\tb", None]])
        b'1\\ta\\\\tb\\n2\\t\\\\N\\n'
    """
    rows = zip(*([_escaped(value) for value in column] for column in columns), strict=True)
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def _escaped(value: Text) -> str:
    return "\\N" if value is None else value.translate(_ESCAPES)
