"""Pictures as inline SVG: lines and error bars, with their numbers as text, coloured by the stylesheet alone."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from proxy.execute.notices import short_number

_WIDTH: Final = 360
_HEIGHT: Final = 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 14, 34
_ROW: Final = 30  # of a chart of error bars
_MOST_LABEL: Final = 24


@dataclass(frozen=True, slots=True)
class Point:
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Axis:
    """The places of numbers, and the texts next to them."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False

    def place(self, value: float, start: float, end: float) -> float:
        low, high, at = (math.log(x) if self.is_log else x for x in (self.low, self.high, value))
        share = 0.5 if high == low else (at - low) / (high - low)
        return start + min(1.0, max(0.0, share)) * (end - start)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a picture; `kind` is a class of the stylesheet."""

    points: Sequence[Point]
    kind: str = "line"


def lines(title: str, drawn: Sequence[Line], x: Axis, y: Axis, marked: Point | None = None, unit: str = "") -> Markup:
    """Lines over two axes, and a dot where we are."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def at(point: Point) -> tuple[float, float]:
        return x.place(point.x, _LEFT, right), y.place(point.y, bottom, _TOP)

    parts = [*_grid(x, y, right, bottom)]
    for line in drawn:
        if line.points:
            path = " ".join(f"{across:.1f},{down:.1f}" for across, down in map(at, line.points))
            parts.append(Markup('<polyline class="{}" points="{}"/>').format(line.kind, path))
    if marked is not None:
        across, down = at(marked)
        parts.append(Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="4.5"/>').format(across, down))
    if unit:
        parts.append(_text(right, _HEIGHT - 4, unit, "end"))
    return _picture(title, _HEIGHT, parts)


def error_bars(title: str, rows: Sequence[tuple[str, float, float]]) -> Markup:
    """A row for each number: its label, a dot at the value, and a bar as far as noise may have moved it."""
    low = min([0.0, *(value - margin for _, value, margin in rows)])
    high = max([0.0, *(value + margin for _, value, margin in rows)])
    axis = Axis(low, high if high > low else low + 1, ())
    left, right = 12, _WIDTH - 12
    zero = axis.place(0, left, right)
    height = 8 + _ROW * len(rows)
    parts = [Markup('<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="0" y2="{1}"/>').format(zero, height)]
    for number, (label, value, margin) in enumerate(rows):
        down = 8 + _ROW * number + 20
        ends = [axis.place(y, left, right) for y in (value - margin, value, value + margin)]
        words = f"{_shortened(label)}: " if label else ""
        parts.append(_text(left, down - 8, f"{words}{_exact(value)} ± {short_number(margin)}", "start"))
        parts.append(_bar(zero, ends, down))
    return _picture(title, height, parts)


def _bar(zero: float, ends: Sequence[float], down: float) -> Markup:
    low, middle, high = ends
    return Markup(
        '<path class="stem" d="M{6:.1f} {3:.1f}H{1:.1f}"/>'
        '<path class="bar" d="M{0:.1f} {3:.1f}H{2:.1f}M{0:.1f} {4:.1f}V{5:.1f}M{2:.1f} {4:.1f}V{5:.1f}"/>'
        '<circle class="dot" cx="{1:.1f}" cy="{3:.1f}" r="3.5"/>'
    ).format(low, middle, high, down, down - 4, down + 4, zero)


def log_axis(values: Sequence[float]) -> Axis:
    """From the power of ten below to that above, with a tick for each or for some of them."""
    known = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    high = max(high, low + 1)
    step = max(1, math.ceil((high - low) / 4))
    powers = range(low, high + 1, step)
    return Axis(10.0**low, 10.0**high, tuple((10.0**power, _power(power)) for power in powers), is_log=True)


def linear_axis(low: float, high: float) -> Axis:
    """Between two numbers, with a tick at the ends and in the middle."""
    ticks = (low, (low + high) / 2, high)
    return Axis(low, high, tuple((tick, f"{tick:.3g}" if abs(tick) < 1000 else f"{tick:,.0f}") for tick in ticks))


def _power(exponent: int) -> str:
    if -4 <= exponent < 4:
        return f"{10.0**exponent:,.4f}".rstrip("0").rstrip(".")
    names = {4: "10k", 5: "100k", 6: "1M", 7: "10M", 8: "100M", 9: "1G"}
    return names.get(exponent, f"1e{exponent}")


def _exact(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.6g}"


def _shortened(label: str) -> str:
    return label if len(label) <= _MOST_LABEL else f"{label[: _MOST_LABEL - 1]}…"


def _grid(x: Axis, y: Axis, right: float, bottom: float) -> Iterator[Markup]:
    for value, text in y.ticks:
        down = y.place(value, bottom, _TOP)
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(_LEFT, right, down, down)
        yield _text(_LEFT - 6, down + 4, text, "end")
    for place, (value, text) in enumerate(x.ticks):
        across = x.place(value, _LEFT, right)
        anchor = "start" if place == 0 else "end" if place == len(x.ticks) - 1 else "middle"
        yield _text(across, bottom + 16, text, anchor)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _picture(title: str, height: float, parts: Sequence[Markup]) -> Markup:
    inner = Markup("").join(parts)
    return Markup(
        '<svg class="picture" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    ).format(_WIDTH, height, title, escape(title), inner)
