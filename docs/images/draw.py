"""Draws the README's picture: what `make demo` really prints, as an SVG of a terminal.

    python docs/images/draw.py            (after `make setup`)

The picture is what the command printed at the time; run it again when the output changes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[2]
PICTURE = Path(__file__).with_name("demo.svg")
WIDTH = 108
LOST = "Lines of history that did not survive"
"""Where the picture goes on after the command: the list of record types is left out."""

THEME = TerminalTheme(
    (24, 26, 32),
    (214, 218, 226),
    [
        (24, 26, 32),
        (240, 113, 120),
        (136, 192, 112),
        (235, 188, 90),
        (97, 160, 235),
        (190, 140, 230),
        (80, 190, 190),
        (214, 218, 226),
    ],
)

# rich's own frame loads a font from the web; a picture in a repository must not.
FRAME = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
<rect fill="#181a20" x="0" y="0" width="{width}" height="{height}" rx="8"/>
<g transform="translate(16, 16)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    """Run the demo and draw what it printed."""
    lines = subprocess.run(
        ["make", "--no-print-directory", "demo"],
        cwd=ROOT,
        env={**os.environ, "GROUPSCOPE_NO_PROGRESS": "1", "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    decode = next(n for n, line in enumerate(lines) if "$ groupscope decode" in line)
    lost = next(n for n, line in enumerate(lines) if n > decode and line.startswith(LOST))
    # What follows has a picture of its own: draw_report.py.
    audit = next(n for n, line in enumerate(lines) if "$ groupscope audit" in line)
    shown = [lines[decode], "\N{VERTICAL ELLIPSIS}", *lines[lost:audit]]
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(Text.from_ansi("\n".join(shown).rstrip()))
        svg = console.export_svg(title="", theme=THEME, code_format=FRAME, unique_id="demo")
    PICTURE.write_text(svg, encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {len(shown)} lines\n")


if __name__ == "__main__":
    main()
