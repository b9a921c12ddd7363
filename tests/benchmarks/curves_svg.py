"""Curves of the best so far as a picture. In: panels of lines. Out: SVG, which a results page shows anywhere.

The report's plots need a browser and its script; a page of results is read where neither is.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

WIDTH, HEIGHT, LEFT, TOP, GAP = 360, 260, 76, 36, 34  # of a panel, in pixels
LEGEND = 270
COLOURS = ("#3257a8", "#c4572e", "#2f8f5b", "#8a4fa3", "#b08a1e", "#4a9bb5")
RANDOM = "#888888"
TICKS = 3  # so many above the lowest one, or up to 7


class Line(NamedTuple):
    """One strategy in one panel."""

    name: str
    values: np.ndarray
    """Best so far over the optimum; infinite before anything passed."""
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    dashed: bool = False


class Panel(NamedTuple):
    """One space."""

    title: str
    lines: Sequence[Line]
    top: float
    """Where the vertical axis ends; it begins at 1."""
    end: float | None = None
    """Where the horizontal axis ends, which begins at 0; None: at the number of values."""


def picture(panels: Sequence[Panel], colours: dict[str, str], below: str) -> str:
    """Panels side by side, and a legend."""
    wide = LEFT + len(panels) * (WIDTH + GAP) + LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {TOP + HEIGHT + 48}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{TOP + HEIGHT + 48}" fill="white"/>',
        f'<text transform="translate(14 {TOP + HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
        "slower than the optimum</text>",
    ]
    for place, panel in enumerate(panels):
        parts += _panel(panel, LEFT + place * (WIDTH + GAP), colours, below)
    parts += _legend(panels[0], wide - LEGEND, colours)
    return "\n".join([*parts, "</svg>"]) + "\n"


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name; random search is grey."""
    others = [name for name in names if name != "random search"]
    return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(others)} | {
        "random search": RANDOM
    }


def ticks(top: float) -> list[tuple[float, str]]:
    """Places on an axis from 1 to `top`, each with its per cent above 1: round ones, no two alike."""
    span = 100 * (top - 1)
    power = 10.0 ** math.floor(math.log10(span / TICKS))
    step = max(power * each for each in (1, 2, 5) if power * each <= span / TICKS)
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    count = math.floor(span / step + 1e-9)
    return [(1 + number * step / 100, f"{number * step:.{digits}f} %") for number in range(count + 1)]


def _panel(panel: Panel, left: float, colours: dict[str, str], below: str) -> list[str]:
    parts = [
        f'<text x="{left}" y="{TOP - 12}" font-weight="bold">{escape(panel.title)}</text>',
        f'<rect x="{left}" y="{TOP}" width="{WIDTH - 40}" height="{HEIGHT}" fill="none" stroke="#999"/>',
        f'<text x="{left + (WIDTH - 40) / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">'
        f"{escape(below)}</text>",
    ]
    for value, label in ticks(panel.top):
        height = TOP + HEIGHT * (1 - (value - 1) / (panel.top - 1))
        parts.append(f'<text x="{left - 4}" y="{height + 4:.1f}" text-anchor="end">{label}</text>')
        parts.append(f'<path d="M{left} {height:.1f}h{WIDTH - 40}" stroke="#eee" stroke-width="0.7"/>')
    end = len(panel.lines[0].values) if panel.end is None else panel.end
    for share in (0.0, 0.5, 1.0):
        across = left + (WIDTH - 40) * share
        parts.append(
            f'<text x="{across}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{end * share:,.0f}</text>'
        )
    for line in panel.lines:
        parts += _line(line, left, panel.top, colours[line.name])
    return parts


def _line(line: Line, left: float, top: float, colour: str) -> list[str]:
    parts = []
    if line.low is not None and line.high is not None:
        there, back = _points(line.low, left, top), _points(line.high, left, top)
        parts.append(f'<polygon points="{" ".join([*there, *back[::-1]])}" fill="{colour}" opacity="0.15"/>')
    dashes = ' stroke-dasharray="5 3"' if line.dashed else ""
    path = " ".join(_points(line.values, left, top))
    parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dashes}/>')
    return parts


def _points(values: np.ndarray, left: float, top: float) -> list[str]:
    """What lies above the panel is drawn on its edge."""
    shares = (np.clip(values, 1, top) - 1) / (top - 1)
    across = left + (WIDTH - 40) * np.arange(1, len(values) + 1) / len(values)
    return [f"{x:.1f},{TOP + HEIGHT * (1 - y):.1f}" for x, y in zip(across, shares, strict=True)]


def _legend(panel: Panel, left: float, colours: dict[str, str]) -> list[str]:
    parts = []
    for place, line in enumerate(panel.lines):
        height = TOP + 12 + 20 * place
        dashes = ' stroke-dasharray="5 3"' if line.dashed else ""
        parts.append(
            f'<path d="M{left} {height}h26" stroke="{colours[line.name]}" stroke-width="2"{dashes}/>'
            f'<text x="{left + 32}" y="{height + 4}">{escape(line.name)}</text>'
        )
    return parts
