# SPDX-License-Identifier: GPL-2.0-or-later
"""Line plots as SVG: panels side by side, a line a series, whiskers from the least to the greatest run.

Knows nothing of benches. Points stand at equal distances with their numbers
below, because they start at 0 and then grow tenfold.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 420, 270
# Around the plot inside of a panel.
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 34, 40
TITLE = 46
COLOURS = {"culvert": "#1b6ca8", "peer": "#c8553d", "no proxy": "#777777"}
SPARE = ("#4c9f70", "#8e6c8a")
TICKS = 5


@dataclass
class Series:
    name: str
    side: str                                   # gives the colour
    points: dict = field(default_factory=dict)  # x -> values of the runs
    dashed: bool = False


@dataclass
class Panel:
    title: str
    xs: list
    x_title: str
    series: list


def step_for(top):
    """A round distance between ticks: 1, 2 or 5 of some power of ten."""
    rough = top / TICKS
    power = 10 ** math.floor(math.log10(rough))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= rough * 0.999)


def middle(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def text(x, y, words, anchor="middle", size=11, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>{escape(words)}</text>'


def line(x1, y1, x2, y2, colour, width=1.0):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def colour_of(side):
    return COLOURS.get(side, SPARE[len(side) % len(SPARE)])


def axes(panel, top, x_of, y_of):
    out = [text(WIDTH / 2, 18, panel.title, size=13, extra=' font-weight="bold"')]
    step = step_for(top)
    for i in range(int(top / step + 0.001) + 1):
        y = y_of(i * step)
        out += [line(LEFT, y, WIDTH - RIGHT, y, "#dddddd"), text(LEFT - 6, y + 4, f"{i * step:,.10g}", "end")]
    out += [text(x_of(x), HEIGHT - BOTTOM + 16, f"{x:,}") for x in panel.xs]
    out += [line(LEFT, y_of(0), WIDTH - RIGHT, y_of(0), "#333333"), text(WIDTH / 2, HEIGHT - 8, panel.x_title)]
    return out


def curve(series, x_of, y_of):
    colour, out = colour_of(series.side), []
    placed = [(x_of(x), values) for x, values in series.points.items() if values]
    path = " ".join(f"{x:.1f},{y_of(middle(values)):.1f}" for x, values in placed)
    dashes = ' stroke-dasharray="5 4"' if series.dashed else ""
    out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
    for x, values in placed:
        out.append(line(x, y_of(min(values)), x, y_of(max(values)), colour, 1.5))
        out.append(f'<circle cx="{x:.1f}" cy="{y_of(middle(values)):.1f}" r="3" fill="{colour}"/>')
    return out


def draw_panel(panel):
    greatest = max((v for s in panel.series for values in s.points.values() for v in values), default=0)
    top = (greatest or 1) * 1.08
    slots = max(len(panel.xs) - 1, 1)

    def x_of(x):
        return LEFT + 16 + panel.xs.index(x) * (WIDTH - LEFT - RIGHT - 32) / slots

    def y_of(value):
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    out = axes(panel, top, x_of, y_of)
    for series in panel.series:
        if any(series.points.values()):
            out += curve(series, x_of, y_of)
    return out


def legend(panels):
    seen = {(s.name, s.side, s.dashed): s for p in panels for s in p.series if any(s.points.values())}
    out, x = [], LEFT
    for s in seen.values():
        dashes = ' stroke-dasharray="5 4"' if s.dashed else ""
        out.append(f'<path d="M{x} 34h24" stroke="{colour_of(s.side)}" stroke-width="2"{dashes}/>')
        out.append(text(x + 30, 38, s.name, "start"))
        x += 50 + 7 * len(s.name)
    return out


def svg(title, panels, columns=2):
    """A picture of all panels, as text."""
    rows = -(-len(panels) // columns)
    width, height = WIDTH * min(columns, len(panels)), TITLE + HEIGHT * rows
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
           'font-family="sans-serif" fill="#222222">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
           text(width / 2, 20, title, size=15, extra=' font-weight="bold"'), *legend(panels)]
    for i, panel in enumerate(panels):
        out.append(f'<g transform="translate({i % columns * WIDTH} {TITLE + i // columns * HEIGHT})">')
        out += [*draw_panel(panel), "</g>"]
    return "\n".join([*out, "</svg>", ""])
