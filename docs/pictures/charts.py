# SPDX-License-Identifier: Apache-2.0
"""Draws charts of the notebook's tables.

A chart has no figure of its own: it reads each from a table of the page on which it stands.
"""

import math
import re
from pathlib import Path

from svg import AMBER, BLUE, GREEN, GREY, ROSE, TEAL, drawing, line, number, path, rect, text

PAGES = Path(__file__).resolve().parent.parent / "measurements"
COLOURS = (TEAL, GREY, BLUE, AMBER, ROSE, GREEN)
WIDTH = 540


def cells(row):
    return [re.sub(r"\*\*|`", "", cell).strip() for cell in row.strip().strip("|").split("|")]


def tables(page):
    """The tables of a page: (head, rows), rows as dictionaries."""
    lines = (PAGES / page).read_text().split("\n")
    for i, each in enumerate(lines):
        if re.match(r"^\|[ -|]*---", each) and i > 0:
            head, rows = cells(lines[i - 1]), []
            for row in lines[i + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(dict(zip(head, cells(row))))
            yield head, rows


def table(page, *columns):
    """The rows of the one table with all these columns, which is the first that has them."""
    for head, rows in tables(page):
        if all(column in head for column in columns):
            return rows
    raise SystemExit(f"docs/pictures/charts.py: {page} has no table with the columns {columns}")


def figure(cell):
    """The figure of a cell: of several the median; None where there is none."""
    found = sorted(
        float(each.replace(",", ""))
        for each in re.findall(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)?", without_remarks(cell))
    )
    return found[len(found) // 2] if found else None


def without_remarks(cell):
    return re.sub(r"\(.*?\)", "", cell)


def shown(value):
    return f"{value:,.0f}" if value >= 100 else number(value)


def nice_steps(top):
    step = 10 ** math.floor(math.log10(top))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1, 2) if top / (step * part) <= 6)
    return [step * i for i in range(int(top / step) + 1)]


def heading(title, series):
    """The title and what each colour stands for, and how far down they reach."""
    parts, x, y = [text(0, 15, title, 15, font_weight="bold")], 0, 38
    for i, name in enumerate(series):
        width = 32 + 7 * len(name)
        if x + width > WIDTH:
            x, y = 0, y + 18
        parts += [rect(x, y - 9, 10, 10, COLOURS[i], rx=2), text(x + 15, y, name)]
        x += width
    return parts, y + 10


def bars(name, title, unit, rows, series):
    """Groups of bars: rows are (label, [a figure or None for each series])."""
    thick, gap, label_height = 12, 8, 17
    high = max(value for _, values in rows for value in values if value is not None)
    scale = (WIDTH - 50) / high
    parts, top = heading(title, series)
    bottom = top + sum(gap + label_height + thick * sum(value is not None for value in values) for _, values in rows)
    for step in nice_steps(high):
        x, anchor = step * scale, "middle" if step else "start"
        parts += [line(x, top, x, bottom, opacity=0.2), text(x, bottom + 15, shown(step), 11, anchor, opacity=0.75)]
    parts.append(text(WIDTH, bottom + 30, unit, 11, "end", opacity=0.75))
    y = top
    for label, values in rows:
        there = [(colour, value) for colour, value in zip(COLOURS, values) if value is not None]
        parts.append(text(0, y + 13, label))
        y += label_height
        for colour, value in there:
            parts += [
                rect(0, y, value * scale, thick - 1, colour),
                text(value * scale + 4, y + thick - 2, shown(value), 11, opacity=0.8),
            ]
            y += thick
        y += gap
    return drawing(name, WIDTH, int(bottom + 36), title, parts)


def lines(name, title, unit, axis, rows, series):
    """Curves on axes that count powers of ten: rows are (x, [a figure or None for each series])."""
    parts, under = heading(title, series)
    left, top, bottom, right = 52, under + 18, under + 270, WIDTH - 34
    values = [value for _, each in rows for value in each if value is not None]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    first, last = math.log10(rows[0][0]), math.log10(rows[-1][0])

    def x_of(value):
        return left + (math.log10(value) - first) / (last - first) * (right - left)

    def y_of(value):
        return bottom - (math.log10(value) - low) / (high - low) * (bottom - top)

    for power in range(low, high + 1):
        y = y_of(10.0**power)
        parts += [
            line(left, y, right, y, opacity=0.2),
            text(left - 8, y + 4, f"{10.0 ** power:,g}", 11, "end", opacity=0.75),
        ]
    for x, _ in rows:
        parts += [
            line(x_of(x), top, x_of(x), bottom, opacity=0.1),
            text(x_of(x), bottom + 16, f"{x:,.0f}", 11, "middle", opacity=0.75),
        ]
    parts += [text(right, bottom + 34, axis, 11, "end", opacity=0.75), text(left, top - 8, unit, 11, opacity=0.75)]
    for j in range(len(series)):
        points = [(x_of(x), y_of(each[j])) for x, each in rows if each[j] is not None]
        parts.append(path("M" + "L".join(f"{number(x)} {number(y)}" for x, y in points), COLOURS[j], stroke_width=2.5))
        parts += [f'<circle cx="{number(x)}" cy="{number(y)}" r="3.2" fill="{COLOURS[j]}"/>' for x, y in points]
    return drawing(name, WIDTH, bottom + 42, title, parts)


def picked(rows, label, columns, keep=lambda row: True):
    return [
        (label(row) if callable(label) else row[label], [figure(row[column]) for column in columns])
        for row in rows
        if keep(row)
    ]


def encode_from_host(name):
    columns = ("tmap", "driver loop and copy, shapes on the host", "the same, shapes on the device")
    rows = picked(
        table("encode_batch.md", *columns),
        lambda row: figure(row["maps"]),
        columns,
        lambda row: row["patches"] == "few",
    )
    return lines(
        name,
        "Time until the maps are in their slots",
        "µs",
        "maps",
        rows,
        ("tmap", "driver loop, shapes on the host", "driver loop, shapes on the device"),
    )


def encode_on_device(name):
    columns = ("tmap", "one warp, one map (guide)", "replace in global memory")
    rows = picked(
        table("encode_batch.md", *columns),
        lambda row: figure(row["maps"]),
        columns,
        lambda row: row["patches"] == "all",
    )
    return lines(name, "Ways to make maps on the device, 23 fields each, in a graph", "µs", "maps", rows, columns)


def ragged_copies(name):
    columns = ("graph", "cub::DeviceMemcpy::Batched")
    rows, group = [], ""
    for row in table("ragged.md", *columns, "goal"):
        is_first = row["case"].startswith("copy, ")
        group = without_remarks(row["case"]).removeprefix("copy, ").strip() if is_first else group
        if row[columns[1]]:
            label = group if is_first else without_remarks(row["case"]).replace("the same, ", "").strip()
            rows.append((label, [figure(row[column]) for column in columns]))
    return bars(name, "Copies of ragged batches", "GB/s read + written", rows, ("tmap", "cub::DeviceMemcpy::Batched"))


def ragged_others(name):
    rows, group = [], ""
    for row in table("ragged.md", "graph", "cub::DeviceMemcpy::Batched", "goal"):
        is_more = row["case"].startswith("the same, ")
        group = group if is_more else row["case"].split(",")[0]
        if not row["cub::DeviceMemcpy::Batched"]:
            rows.append(
                (
                    f"{group}, {row['case'].removeprefix('the same, ')}" if is_more else row["case"],
                    [figure(row["graph"])],
                )
            )
    return bars(name, "Other operations on ragged batches", "GB/s read + written", rows, ("tmap, in a graph",))


def grouped_products(name):
    columns = ("tmap", "torch", "Triton", "cuBLAS grouped", "cuBLAS loop")
    return bars(
        name,
        "Grouped products: groups, rows, N, K",
        "TFLOP/s",
        picked(table("grouped_gemm.md", *columns), "groups, rows, N, K", columns),
        columns,
    )


def pad_tool(name):
    columns = ("GB/s", "through maps, like inputs, GB/s")
    return bars(
        name,
        "The copy of tmap pad",
        "GB/s read + written",
        picked(table("pad.md", *columns), "inputs", columns),
        ("ragged::pad", "through maps, before"),
    )


def python_host(name):
    columns = ("at 1b0e55f", "at e1e6423")
    return bars(
        name,
        "What a call costs the thread that makes it",
        "µs",
        picked(table("python_calls.md", *columns), "call", columns),
        columns,
    )


def python_gpu(name):
    columns = ("tmap, us", "PyTorch, us")
    rows = picked(
        table("python_calls.md", "case", *columns),
        "case",
        columns,
        lambda row: "products" in row["case"] or "groups" in row["case"],
    )
    return bars(name, "The GPU's part of grouped products", "µs", rows, ("tmap", "PyTorch"))


def exchanges(name):
    columns = ("tmap", "NCCL, send and receive", "NCCL, ncclAlltoAll")
    rows = picked(
        table("peers.md", "bytes each way", *columns),
        lambda row: f"{row['bytes each way']} bytes",
        columns,
        lambda row: "us" in row["tmap"],
    )
    return bars(name, "Exchanges between two GPUs", "µs", rows, columns)


def expert_calls(name):
    head = "tokens of each rank", "width", "experts", "choices"
    rows, call = [], ""
    for row in table("peers.md", *head, "64 blocks", "PyTorch"):
        call = row[head[0]] if row[head[0]].isalpha() else call
        if row["PyTorch"]:
            sizes = f"{row[head[0]]} tokens of {row[head[1]]} values, {row[head[3]]} of {row[head[2]]} experts"
            rows.append((f"{call}, {sizes}", [figure(row[column]) for column in ("64 blocks", "PyTorch")]))
    return bars(name, "Experts on two GPUs", "µs", rows, ("tmap, 64 blocks", "PyTorch"))


CHARTS = {
    "exchanges.svg": exchanges,
    "expert_calls.svg": expert_calls,
    "encode_from_host.svg": encode_from_host,
    "encode_on_device.svg": encode_on_device,
    "ragged_copies.svg": ragged_copies,
    "ragged_others.svg": ragged_others,
    "grouped_products.svg": grouped_products,
    "pad_tool.svg": pad_tool,
    "python_host.svg": python_host,
    "python_gpu.svg": python_gpu,
}
