# SPDX-License-Identifier: Apache-2.0
"""Draws the ideas of the pages: box and tile, swizzle, ring of stages, lease of slots."""

from svg import AMBER, BLUE, GREEN, GREY, ROSE, TEAL, arrow, drawing, line, path, rect, text

WIDTH = 760


def cells(left, top, columns, rows, side, fill, **style):
    """Draws a square for each column and row; `fill` returns the colour of a column."""
    return [rect(left + x * side, top + y * side, side, side, fill(x), **style) for y in rows for x in columns]


def box_and_tile(name):
    """Draws a box at the edge of a tensor, and the tile that arrives in shared memory."""
    side, columns, rows, box_columns, box_rows = 22, 14, 9, 4, 6
    left, top, at = 70, 74, (12, 2)
    faint = {"stroke": "currentColor", "stroke_opacity": 0.25}
    grid = cells(left, top, range(columns), range(rows), side, lambda x: BLUE, fill_opacity=0.18, **faint)
    inside = cells(
        left, top, range(at[0], columns), range(at[1], at[1] + box_rows), side, lambda x: TEAL, fill_opacity=0.75
    )
    box = rect(
        left + at[0] * side, top + at[1] * side, box_columns * side, box_rows * side, stroke=AMBER, stroke_width=3
    )
    outside = rect(
        left + columns * side,
        top + at[1] * side,
        (at[0] + box_columns - columns) * side,
        box_rows * side,
        "url(#hatch)",
    )
    right, low = 560, top + at[1] * side
    faint["stroke_opacity"] = 0.4

    def fill(x):
        return TEAL if at[0] + x < columns else "url(#hatch)"

    tile = cells(right, low, range(box_columns), range(box_rows), side, fill, fill_opacity=0.75, **faint)
    zeros = [
        text(right + (x + 0.5) * side, low + (y + 0.68) * side, "0", 12, "middle")
        for y in range(box_rows)
        for x in range(columns - at[0], box_columns)
    ]
    notes = [
        text(left, 24, "Tensor in global memory", 14, font_weight="bold"),
        text(right, 24, "Tile in shared memory", 14, font_weight="bold"),
        arrow(left, top - 12, left + columns * side, top - 12, opacity=0.6),
        text(left, top - 18, f"global_dim[0] = {columns}, contiguous"),
        arrow(left - 12, top, left - 12, top + rows * side, opacity=0.6),
        text(
            left - 18,
            top + rows * side / 2,
            f"global_dim[1] = {rows}",
            12,
            "middle",
            transform=f"rotate(-90 {left - 18} {top + rows * side // 2})",
        ),
        text(
            left,
            top + rows * side + 24,
            f"box_dim = {{{box_columns}, {box_rows}}} at coordinates ({at[0]}, {at[1]})",
            fill=AMBER,
            font_weight="bold",
        ),
        text(left, top + rows * side + 42, "The hatched half of the box lies outside the tensor."),
        arrow(left + (at[0] + box_columns) * side + 16, low + 66, right - 14, low + 66),
        text((left + (at[0] + box_columns) * side + right) / 2, low + 56, "one copy", 12, "middle"),
        text(right, low + box_rows * side + 20, "What lies outside arrives as the"),
        text(right, low + box_rows * side + 36, "fill (0 or NaN)."),
    ]
    return drawing(
        name,
        WIDTH,
        330,
        "A box of a tensor becomes a tile in shared memory",
        [*grid, *inside, outside, box, *tile, *zeros, *notes],
    )


CHUNKS = (TEAL, BLUE, AMBER, ROSE, GREEN, "#7c3aed", "#0ea5e9", GREY)


def swizzle(name):
    """Draws eight rows of 128 bytes in chunks of 16, without a swizzle and with one."""
    width, height, top = 40, 26, 78

    def tile(left, title, place, note):
        parts = [text(left, 24, title, 14, font_weight="bold"), text(left, 46, note)]
        for row in range(8):
            parts.append(text(left - 8, top + row * height + 17, f"row {row}", 10, "end", opacity=0.75))
            for chunk in range(8):
                x, y, is_first = left + place(row, chunk) * width, top + row * height, chunk == 0
                parts.append(
                    rect(
                        x + 1,
                        y + 1,
                        width - 2,
                        height - 2,
                        CHUNKS[chunk],
                        fill_opacity=0.85 if is_first else 0.22,
                        rx=3,
                    )
                )
                parts.append(
                    text(
                        x + width / 2,
                        y + 17,
                        chunk,
                        11,
                        "middle",
                        fill="#fff" if is_first else "currentColor",
                        font_weight="bold" if is_first else "normal",
                    )
                )
        for column in range(8):
            parts.append(
                text(
                    left + (column + 0.5) * width,
                    top + 8 * height + 15,
                    f"{4 * column}-{4 * column + 3}",
                    9,
                    "middle",
                    opacity=0.75,
                )
            )
        parts.append(text(left, top + 8 * height + 32, "banks of shared memory", 11, opacity=0.75))
        return parts

    plain = tile(44, "swizzle::none", lambda row, chunk: chunk, "Chunk 0 of every row: the same four banks.")
    spread = tile(
        430, "swizzle::bytes_128", lambda row, chunk: chunk ^ row, "Chunk c of row r lies at c XOR (r mod 8)."
    )
    return drawing(name, WIDTH, 326, "Eight rows of 128 bytes in shared memory, in chunks of 16 bytes", plain + spread)


def ring(name):
    """Draws four stages: a producer fills ahead while a consumer reads."""
    left, top, width, gap = 190, 96, 84, 14
    states = [("being read", AMBER), ("full", TEAL), ("being filled", BLUE), ("empty", "none")]
    parts = [text(0, 24, "A ring of four stages in shared memory", 14, font_weight="bold")]
    for i, (state, colour) in enumerate(states):
        x = left + i * (width + gap)
        parts += [
            rect(x, top, width, 74, colour, fill_opacity=0.3, stroke="currentColor", stroke_opacity=0.6, rx=5),
            text(x + width / 2, top + 32, f"stage {i}", 13, "middle", font_weight="bold"),
            text(x + width / 2, top + 52, state, 11, "middle"),
        ]
    end = left + 4 * (width + gap) - gap
    read, filled = left + width / 2, left + 2 * (width + gap) + width / 2
    parts += [
        path(
            f"M{end + 6} {top + 37}h24v-62h-{end - left + 60}v62h18",
            opacity=0.5,
            marker_end="url(#tip)",
            stroke_width=1.5,
        ),
        text(
            (left + end) / 2,
            top - 32,
            "after the last stage comes the first again, with the other parity",
            11,
            "middle",
            opacity=0.8,
        ),
        arrow(read, top + 78, read, 224),
        text(read + 8, 204, "reads"),
        arrow(filled, 224, filled, top + 78),
        text(filled + 8, 204, "fills"),
        rect(130, 226, 230, 90, AMBER, fill_opacity=0.15, rx=5),
        text(142, 248, "Consumer", 13, font_weight="bold"),
        text(142, 268, "wait_full() waits for a full stage"),
        text(142, 286, "reads the tile"),
        text(142, 304, "release() makes the stage empty"),
        rect(390, 226, 272, 90, BLUE, fill_opacity=0.15, rx=5),
        text(402, 248, "Producer", 13, font_weight="bold"),
        text(402, 268, "acquire_stage() waits for an empty one"),
        text(402, 286, "announce(bytes), load_tile"),
        text(402, 304, "goes on: the copy fills the stage"),
    ]
    return drawing(name, WIDTH, 326, "A producer fills stages ahead while a consumer reads", parts)


def lease(name):
    """Draws slots over time: leased, pending until the stream's work has run, then free."""
    left, top, height, spans = 90, 64, 34, (90, 330, 470, 560, 750)
    encode, release, done, again, end = spans
    parts = [
        text(0, 24, "What becomes of the slots of a batch", 14, font_weight="bold"),
        text(0, top + 22, "host", 12),
        text(0, top + 82, "stream", 12),
        text(0, top + 156, "slots", 12),
    ]
    for x, words in ((encode, "encode"), (release, "release"), (again, "encode")):
        parts += [
            rect(x, top, 70, height, GREY, fill_opacity=0.3, rx=4),
            text(x + 35, top + 22, words, 12, "middle"),
            line(x, top + height, x, top + 196, opacity=0.35, stroke_dasharray="4 4"),
        ]
    for x, width, words, colour in (
        (encode + 20, 80, "make maps", BLUE),
        (encode + 110, 270, "copies through the maps", BLUE),
        (again + 20, 80, "make maps", TEAL),
        (again + 110, 78, "copies", TEAL),
    ):
        parts += [
            rect(x, top + 60, width, height, colour, fill_opacity=0.35, rx=4),
            text(x + width / 2, top + 82, words, 12, "middle"),
        ]
    for x, until, words, colour in (
        (encode, release, "leased: nothing writes them", BLUE),
        (release, done, "pending", AMBER),
        (done, again, "free", "none"),
        (again, end, "leased to another batch", TEAL),
    ):
        parts += [
            rect(x, top + 134, until - x, height, colour, fill_opacity=0.45, stroke="currentColor", stroke_opacity=0.5),
            text((x + until) / 2, top + 156, words, 12, "middle"),
        ]
    parts += [
        line(done, top + 60, done, top + 196, opacity=0.35, stroke_dasharray="4 4"),
        arrow(left, top + 200, end, top + 200, opacity=0.6),
        text(end, top + 218, "time", 11, "end", opacity=0.8),
        text(done, top + 218, "the copies have run", 11, "middle", opacity=0.8),
    ]
    return drawing(name, WIDTH, 296, "Slots are leased, pending and free again in the order of the stream", parts)


DRAWINGS = {"box_and_tile.svg": box_and_tile, "swizzle.svg": swizzle, "ring.svg": ring, "lease.svg": lease}
