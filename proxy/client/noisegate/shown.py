"""An answer as HTML: numbers with their margins, bars with error bars, what was said. No script, no request."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

import pandas

from noisegate.answer import Told

_MOST_BARS: Final = 40
_MOST_ROWS: Final = 200
_WIDTH, _LINE, _LABELS = 640, 22, 180  # in pixels


def table(frame: "pandas.DataFrame", told: Told) -> str:
    """The rows; a number that has a margin is followed by it."""
    margins = [told.margins.get(str(name)) for name in frame.columns]
    head = "".join(_head(str(name), told.noise.get(str(name))) for name in frame.columns)
    shown = frame.head(_MOST_ROWS).itertuples(index=False, name=None)
    body = "".join(f"<tr>{''.join(map(_cell, row, margins))}</tr>" for row in shown)
    more = f"<p>{len(frame) - _MOST_ROWS:,} more rows</p>" if len(frame) > _MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _head(name: str, noise: str | None) -> str:
    word = f'<br><span style="color: gray">noise: {escape(noise)}</span>' if noise else ""
    return f"<th>{escape(name)}{word}</th>"


def summary(told: Told) -> str:
    """Return what the proxy said, line by line, and what makes noise matter less."""
    lines = "".join(f"<div>{escape(line)}</div>" for line in (*told.notices, *filter(None, [told.advice])))
    return f'<div class="noisegate-notices" style="color: gray">{lines}</div>' if lines else ""


def progress(words: str) -> str:
    """Say what still runs."""
    return f'<div class="noisegate-progress" style="color: gray">{escape(words)}</div>'


def refusal(message: str, detail: str, hint: str) -> str:
    """Explain why there is no answer, and what to ask instead."""
    parts = [f"<b>{escape(message)}</b>", *(escape(words) for words in (detail, hint) if words)]
    return (
        f'<div class="noisegate-refusal" style="border-left: 4px solid #c33; padding: 4px">{"<br>".join(parts)}</div>'
    )


def bars(frame: "pandas.DataFrame", told: Told) -> str:
    """A bar for each row by the first column that has a margin; the columns without margins are its label."""
    name = next((name for name in frame.columns if str(name) in told.margins), None)
    if name is None or not 1 < len(frame) <= _MOST_BARS:
        return ""
    keys = [column for column in frame.columns if str(column) not in {*told.margins, *told.in_rank}]
    rows = [(_label(row[keys]), _float(row[name])) for _, row in frame.iterrows()]
    margin = told.margins[str(name)]
    ends = [end for _, value in rows if value is not None for end in (value - margin, value + margin, 0.0)]
    if not ends:
        return ""
    low, high = min(ends), max(ends)
    scale = (_WIDTH - _LABELS) / ((high - low) or 1)
    drawn = "".join(_bar(line, *row, margin, low, scale) for line, row in enumerate(rows))
    title = f"{escape(str(name))} ± {margin:.3g} ({told.confidence:.0%})"
    size = f'width="{_WIDTH}" height="{_LINE * (len(rows) + 1)}" role="img" aria-label="{title}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{_text(0, -1, title)}{drawn}</svg>'


def _bar(line: int, label: str, value: float | None, margin: float, low: float, scale: float) -> str:
    """A label, a bar from zero, and a whisker as long as the margin on both sides."""
    shown = _text(0, line, label)
    if value is None:
        return shown
    zero, end = (_LABELS + (x - low) * scale for x in (0.0, value))
    top, middle = (line + 1) * _LINE + 4, (line + 1) * _LINE + _LINE / 2
    left, right = (_LABELS + (x - low) * scale for x in (value - margin, value + margin))
    box = (
        f'<rect x="{min(zero, end):.1f}" y="{top}" width="{abs(end - zero):.1f}" height="{_LINE - 8}" fill="#6b93c4"/>'
    )
    whisker = f"M{left:.1f} {middle}H{right:.1f}M{left:.1f} {middle - 4}v8M{right:.1f} {middle - 4}v8"
    return f'{shown}{box}<path d="{whisker}" stroke="currentColor" fill="none"/>'


def _text(x: int, line: int, text: str) -> str:
    y = (line + 1) * _LINE + _LINE - 7
    return f'<text x="{x}" y="{y}" font-size="12" fill="currentColor">{escape(text)}</text>'


def _label(values: "pandas.Series") -> str:
    text = ", ".join(_keys(list(values)))
    return text if len(text) <= 24 else f"{text[:23]}…"


def _keys(values: Sequence[object]) -> Iterator[str]:
    return ("NULL" if pandas.isna(value) else str(value) for value in values)


def _cell(value: object, margin: float | None) -> str:
    if pandas.isna(value):
        return "<td></td>"
    around = f' <span style="color: gray">± {margin:.3g}</span>' if margin is not None else ""
    return f"<td>{escape(str(value))}{around}</td>"


def _float(value: object) -> float | None:
    number = math.nan if pandas.isna(value) else float(str(value))
    return number if math.isfinite(number) else None
