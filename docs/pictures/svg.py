# SPDX-License-Identifier: Apache-2.0
"""Writes shapes of SVG.

Text and lines take the colour of the page, so that a drawing is readable on light and on dark.
"""

from html import escape

# These have a middle brightness, so they stand out on white and on black.
TEAL, AMBER, BLUE, ROSE, GREY, GREEN = "#0d9488", "#d97706", "#3b82f6", "#e11d66", "#8b8f98", "#65a30d"
FONT = 'font-family="system-ui, Segoe UI, Noto Sans, DejaVu Sans, sans-serif"'


def number(value):
    return f"{value:.1f}".rstrip("0").rstrip(".")


def attributes(given):
    return "".join(
        f' {name.replace("_", "-")}="{number(value) if isinstance(value, float) else value}"'
        for name, value in given.items()
    )


def rect(x, y, width, height, fill="none", **more):
    size = f'width="{number(width)}" height="{number(height)}"'
    return f'<rect x="{number(x)}" y="{number(y)}" {size} fill="{fill}"{attributes(more)}/>'


def line(x0, y0, x1, y1, stroke="currentColor", **more):
    ends = f'x1="{number(x0)}" y1="{number(y0)}" x2="{number(x1)}" y2="{number(y1)}"'
    return f'<line {ends} stroke="{stroke}"{attributes(more)}/>'


def path(shape, stroke="currentColor", **more):
    return f'<path d="{shape}" fill="none" stroke="{stroke}"{attributes(more)}/>'


def text(x, y, words, size=12, anchor="start", **more):
    more.setdefault("fill", "currentColor")
    return (
        f'<text x="{number(x)}" y="{number(y)}" font-size="{size}" text-anchor="{anchor}"{attributes(more)}>'
        f"{escape(str(words))}</text>"
    )


def arrow(x0, y0, x1, y1, **more):
    return line(x0, y0, x1, y1, marker_end="url(#tip)", stroke_width=1.5, **more)


def drawing(name, width, height, title, parts):
    """Returns the text of the file `name`: its parts, one a line.

    Names of markers and patterns begin with the file's, because a page may have several drawings.
    """
    stem = name.removesuffix(".svg")
    kind = "drawing wide" if width > 600 else "drawing"
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'color="#24292f" role="img" {FONT}>',
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"<title>{escape(title)}</title>",
        "<style>@media (prefers-color-scheme: dark) { .drawing { color: #d0d7de } }</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="currentColor"/></marker>'
        '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0v6" stroke="currentColor" stroke-width="1.2" opacity=".45"/></pattern></defs>',
    ]
    whole = "\n".join([*head, *parts, "</svg>\n"])
    return whole.replace('id="', f'id="{stem}_').replace("url(#", f"url(#{stem}_")
