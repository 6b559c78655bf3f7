#!/usr/bin/env python3
"""Pictures for the documents as SVG, drawn from what a real run printed.

Usage: pictures.py cast TRANSCRIPT SVG        a terminal: lines that begin with '$ ' are commands, the others their
                                              output
       pictures.py search DIAGNOSIS.json SVG  the progress of a search, from `rose diagnose --json`
       pictures.py story EXPLANATION.json SVG the story of an explanation, from `rose explain --json`

The pictures load no other files and use the reader's fonts. Those in examples/pictures show a run of the tutorial, and
are made from: the transcript of its commands, without lines of progress; `rose diagnose ... --json`; `rose explain
schedule.toml --json`.
"""
import json
import pathlib
import sys
import textwrap
from html import escape

STYLE = """<style>
text{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:13px;white-space:pre}
.sans{font-family:sans-serif}.small{font-size:12px}.head{font-weight:bold}
%s
</style>"""


def svg(width, height, title, style, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="{escape(title)}">\n'
            f"<title>{escape(title)}</title>\n{STYLE % style}\n{body}\n</svg>\n")


def cast(transcript):
    """Draws a terminal whose lines appear one after the other, or at once for readers who prefer no motion."""
    lines = []
    for line in transcript.read_text().splitlines():
        for part in textwrap.wrap(line, 108, subsequent_indent="    ", drop_whitespace=False,
                                  replace_whitespace=False) or [""]:
            lines.append((part, line.startswith("$ ")))
    height = 40 + 18 * len(lines)
    out, seconds = [f'<rect width="960" height="{height}" rx="8" fill="#0d1117"/>'], 0.0
    for number, (line, command) in enumerate(lines):
        seconds += 0.8 if command else 0.15
        colour = "#7ee787" if command else "#e6edf3"
        out.append(f'<text class="line" style="animation-delay:{seconds:.2f}s" x="20" y="{34 + 18 * number}" '
                   f'fill="{colour}">{escape(line)}</text>')
    style = "@media (prefers-reduced-motion:no-preference){.line{opacity:0;animation:show .1s forwards}}@keyframes show{to{opacity:1}}"
    return svg(960, height, "A terminal session", style, "\n".join(out))


def search(diagnosis):
    """Draws a row for each trial in the order of the search, with its runs as marks."""
    result = json.loads(diagnosis.read_text())
    tried = result["tried"][:24]
    row, left = 26, 560
    most = max([entry["runs"] for entry in tried] + [1])
    step = min(22, (940 - left) / most)
    out = ['<rect width="960" height="100%" fill="#fff"/>',
           '<text class="sans head" x="20" y="28">Schedules in the order in which they were tried; each mark is a '
           'run</text>']
    for number, entry in enumerate(tried):
        y = 60 + row * number
        words = " + ".join(entry["words"].splitlines()) or "no fault"
        name = "without faults" if entry["level"] == 0 else f"level {entry['level']}: {words}"
        out.append(f'<text class="sans small" x="20" '
                   f'y="{y}">{escape(textwrap.shorten(name, 86, placeholder=" …"))}</text>')
        marks = ["hit"] * entry["reproduced"] + ["miss"] * entry["not_reproduced"] + ["open"] * entry["inconclusive"]
        for at, mark in enumerate(marks):
            out.append(f'<circle class="{mark}" cx="{left + step * at + 6:.1f}" cy="{y - 4}" '
                       f'r="{min(6, step / 2 - 1):.1f}"/>')
    y = 60 + row * len(tried) + 8
    for at, (mark, name) in enumerate((("hit", "reproduced"), ("miss", "not reproduced"), ("open", "inconclusive"))):
        out.append(f'<circle class="{mark}" cx="{26 + 150 * at}" cy="{y}" r="6"/><text class="sans small" '
                   f'x="{38 + 150 * at}" y="{y + 4}">{name}</text>')
    rate, (low, high) = result["rate"], result["interval"]
    out.append(f'<text class="sans small" x="{left}" y="{y + 4}">rate of the result: {rate:.0%} (95 %: {low:.0%} to '
               f'{high:.0%})</text>')
    return svg(960, y + 24, "Progress of a search",
               ".hit{fill:#cf222e}.miss{fill:#fff;stroke:#57606a}.open{fill:#d0d7de}", "\n".join(out))


def story(explanation):
    """Draws the story from the fault to the symptom, a row for each step, with the suspects beside it."""
    result = json.loads(explanation.read_text())
    steps = result["story"][:14]
    out = ['<rect width="960" height="100%" fill="#fff"/>',
           f'<text class="sans head" x="20" '
           f'y="28">{escape(textwrap.shorten(result["fault"] or "", 110, placeholder=" …"))}</text>']
    y = 58
    for step in steps:
        lines = textwrap.wrap(step["text"], 84)[:3]
        mark = "wrong" if step.get("first_wrong") else "step"
        out.append(f'<circle class="{mark}" cx="138" cy="{y - 4}" r="5"/><text class="sans small" x="20" '
                   f'y="{y}">{step.get("elapsed", 0):.3f} s</text>'
                   f'<text class="sans small head" x="156" y="{y}">{escape(step["node"])}</text>')
        for line in lines:
            out.append(f'<text class="sans small" x="250" y="{y}">{escape(line)}</text>')
            y += 17
        y += 9
    out.insert(2, f'<path d="M138 54V{y - 26}" stroke="#d0d7de" stroke-width="2"/>')
    out.append(f'<text class="sans head" x="20" y="{y + 8}">Suspects</text>')
    y += 32
    for suspect in result["suspects"][:5]:
        out.append(f'<rect x="20" y="{y - 11}" width="{max(2, 90 * min(1, suspect["score"])):.0f}" height="12" '
                   f'class="bar"/>'
                   f'<text class="sans small" x="120" y="{y}">{suspect["rank"]}. '
                   f'{escape(textwrap.shorten(suspect["function"], 90, placeholder=" …"))}</text>')
        y += 22
    return svg(960, y + 6, "Story of an explanation", ".step{fill:#57606a}.wrong{fill:#cf222e}.bar{fill:#0969da}",
               "\n".join(out))


if len(sys.argv) != 4 or sys.argv[1] not in ("cast", "search", "story"):
    sys.exit(__doc__)
pathlib.Path(sys.argv[3]).write_text({"cast": cast, "search": search,
                                      "story": story}[sys.argv[1]](pathlib.Path(sys.argv[2])))
