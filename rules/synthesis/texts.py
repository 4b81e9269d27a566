"""Synthetic rows in the format of COPY, all tables of a fit."""

from collections.abc import Sequence

import numpy as np

from rules.synthesis.model import Fitted, Job
from rules.synthesis.values import Text, rows_of, shown_columns

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def copy_texts(job: Job, fitted: Fitted) -> tuple[bytes, ...]:
    """The rows of each table, each with its number first."""
    keys: list[Sequence[str] | None] = []
    texts = []
    for number, (table, rows) in enumerate(zip(job.tables, fitted.tables, strict=True)):
        random = np.random.default_rng([job.seed, number])
        above = None if table.parent is None else keys[table.parent.table]
        columns = rows_of(table, rows, above, random)
        names = shown_columns(table)
        single = len(table.keys) == 1 and table.keys[0].kind != "parent"
        keys.append([str(key) for key in columns[names.index(table.keys[0].column)]] if single else None)
        texts.append(lines([[str(place) for place in range(len(rows.bins))], *columns]))
    return tuple(texts)


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
