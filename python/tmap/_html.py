# SPDX-License-Identifier: Apache-2.0
"""Specs, maps and batches as HTML for notebooks: self-contained, for light and dark pages."""
import html
from typing import Any, Dict, List, Optional

from . import _explain
from ._batch import innermost_first
from ._errors import Error
from ._faults import describe_status
from ._spec import TensorSpec, decode, describe_json, validate

_LONGEST, _SHORTEST = 320.0, 8.0  # sides of a drawing in pixels
_MOST_LINES = 64
_BAD = "hsl(0 75% 55%)"
_PLAIN = "border-collapse:collapse;color:inherit;font-size:inherit"
_NOT_FIELDS = ("valid", "refused", "unknown_bits")


def _tag(name: str, content: str, **attributes) -> str:
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
                    for key, value in attributes.items())
    return f"<{name}{given}>{content}</{name}>"


def _text(value: Any) -> str:
    return html.escape(str(value))


def _table(rows) -> str:
    """Makes a table of pairs of texts."""
    style = ("padding:1px 10px 1px 0;text-align:left;vertical-align:top;font-family:monospace;"
             "background:transparent")
    cells = (_tag("td", _text(name), style=f"{style};white-space:nowrap")
             + _tag("td", _text(value), style=style) for name, value in rows)
    return _tag("table", "".join(_tag("tr", row, style="background:transparent") for row in cells),
                style=f"{_PLAIN};margin:4px 0")


def _block(title: str, *parts: str) -> str:
    heading = _tag("div", _text(title), style="font-weight:bold;margin-bottom:4px")
    return _tag("div", heading + "".join(parts), class_="tmap",
                style="color:inherit;font-size:13px;line-height:1.4")


def _beside(*parts: str) -> str:
    return _tag("div", "".join(parts),
                style="display:flex;flex-wrap:wrap;gap:20px;align-items:flex-start")


def _rules(spec: TensorSpec) -> str:
    """Lists each broken rule in words."""
    try:
        # A remedy follows its rule on a line that begins with spaces.
        text = _explain.broken_rules(spec).replace("\n  ", ": ")
        lines = text.split("\n") if validate(spec) else []
    except ValueError as reason:  # lengths differ, or too many dims
        lines = [str(reason)]
    if not lines:
        return _tag("div", "No rule broken.", style="color:hsl(140 60% 40%)")
    items = "".join(_tag("li", _text(line)) for line in lines)
    return _tag("ul", items, style=f"color:{_BAD};margin:4px 0;padding-left:20px")


def _fields(spec: TensorSpec) -> str:
    names = ("element_type", "dims", "box", "strides", "element_strides", "interleave", "swizzle",
             "l2_promotion", "oob_fill")
    address = "none: 0x100000 is assumed" if spec.address is None else f"{spec.address:#x}"
    given = [(name, getattr(spec, name)) for name in names]
    return _table([("address", address)]
                  + [(name, value) for name, value in given if value is not None])


def _rectangle(x, y, width, height, fill="none", dashes="") -> str:
    return _tag("rect", "", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}",
                height=f"{height:.1f}", fill=fill, stroke="currentColor", stroke_dasharray=dashes
                or "none")


def _grid(counts, steps, extents) -> str:
    """Draws the lines between boxes."""
    lines = []
    for axis in (0, 1):
        for i in range(1, counts[axis] if counts[axis] <= _MOST_LINES else 0):
            at, end = f"{i * steps[axis]:.1f}", f"{extents[1 - axis]:.1f}"
            path = f"M{at} 0V{end}" if axis == 0 else f"M0 {at}H{end}"
            lines.append(_tag("path", "", d=path, stroke="currentColor", stroke_opacity="0.35"))
    return "".join(lines)


def _drawing(spec: TensorSpec) -> str:
    """Draws the two innermost dims of the tensor and the box at its corner, to scale."""
    dims, box = (*spec.dims[:2], 1)[:2], (*spec.box[:2], 1)[:2]
    if not spec.dims or len(spec.box) != len(spec.dims) or not all(dims) or not all(box):
        return ""
    counts = [-(-extent // step) for extent, step in zip(dims, box)]
    covered = [count * step for count, step in zip(counts, box)]
    scale = _LONGEST / max(covered)
    sides = [max(extent * scale, _SHORTEST) for extent in covered]
    pixels = [side / extent for side, extent in zip(sides, covered)]
    extents = [extent * pixel for extent, pixel in zip(dims, pixels)]
    steps = [step * pixel for step, pixel in zip(box, pixels)]
    shapes = (_rectangle(0, 0, *sides, dashes="4 3")
              + _rectangle(0, 0, *extents, fill="hsl(210 60% 50% / 0.15)")
              + _grid(counts, steps, sides)
              + _rectangle(0, 0, *steps, fill="hsl(30 90% 50% / 0.55)"))
    picture = _tag("svg", shapes, xmlns="http://www.w3.org/2000/svg", width=f"{sides[0] + 2:.0f}",
                   height=f"{sides[1] + 2:.0f}",
                   viewBox=f"-1 -1 {sides[0] + 2:.1f} {sides[1] + 2:.1f}", role="img",
                   style="max-width:100%;height:auto")
    return _tag("figure", picture
                + _tag("figcaption", _text(_caption(spec, dims, box, counts, pixels))),
                style=f"margin:0;max-width:{_LONGEST + 20:.0f}px")


def _caption(spec, dims, box, counts, pixels) -> str:
    words = (f"Tensor of {dims[1]} rows of {dims[0]} elements; the box at its corner has {box[1]} "
             f"by {box[0]}. "
             f"{counts[1]} by {counts[0]} boxes cover the tensor.")
    over = [count * step - extent for count, step, extent in zip(counts, box, dims)]
    if any(over):
        words += (f" The last ones reach {over[1]} rows and {over[0]} columns past it (dashed): "
                  "loads fill them.")
    if len(spec.dims) > 2:
        words += f" Drawn is one plane of dims {innermost_first(spec.dims[2:])}."
    return words + (" Not to scale." if abs(pixels[0] / pixels[1] - 1) > 0.01 else "")


def _title(spec: TensorSpec) -> str:
    return f"{spec.element_type} {innermost_first(spec.dims)}, box {innermost_first(spec.box)}"


def of_spec(spec: TensorSpec) -> str:
    """Shows the fields of a spec, the rules it breaks, and its tensor with the box."""
    return _block(f"TensorSpec: {_title(spec)}", _beside(_drawing(spec), _fields(spec)),
                  _rules(spec))


def _values(data: bytes) -> Dict[str, Any]:
    """Returns the fields of a map by name, each element of an array by a name of its own."""
    found = {}
    for name, value in describe_json(data).items():
        if name in _NOT_FIELDS:
            continue
        for i, element in enumerate(value) if isinstance(value, list) else ((None, value),):
            found[name if i is None else f"{name}[{i}]"] = element
    return found


def fields_of_bits(data: bytes) -> List[Optional[str]]:
    """Names the field that each of the 1,024 bits belongs to, or None. The library has the table of
    bits, so this changes each bit and looks which field has another value then."""
    values, whole, found = _values(data), int.from_bytes(data, "little"), []
    for bit in range(8 * len(data)):
        changed = _values((whole ^ 1 << bit).to_bytes(len(data), "little"))
        found.append(next((name for name in values if changed.get(name) != values[name]), None))
    return found


def _colour(number: int) -> str:
    """Neighbours in the list of fields have colours that differ much."""
    return f"hsl({number * 137 % 360} 70% 50% / 0.45)"


def _byte(value: int, fields: List[Optional[str]], colours: Dict[str, str]) -> str:
    """Draws a byte in the colours of its bits, the highest bit on the left."""
    stops = ", ".join(f"{colours.get(field, 'transparent')} {12.5 * i:g}% {12.5 * (i + 1):g}%"
                      for i, field in enumerate(reversed(fields)))
    names = ", ".join(dict.fromkeys(field for field in fields if field)) or "no field"
    return _tag("td", f"{value:02x}", title=names,
                style=f"padding:1px 4px;font-family:monospace;background:linear-gradient(to right, "
                      f"{stops})")


def _bytes_table(data: bytes, fields: List[Optional[str]], colours: Dict[str, str]) -> str:
    rows = []
    for begin in range(0, len(data), 16):
        cells = "".join(_byte(data[i], fields[8 * i:8 * i + 8], colours)
                        for i in range(begin, begin + 16))
        rows.append(_tag("tr", _tag("td", f"{begin:3d}", style="opacity:0.6;padding-right:8px")
                         + cells, style="background:transparent"))
    return _tag("table", "".join(rows), style=_PLAIN)


def _legend(values: Dict[str, Any], colours: Dict[str, str]) -> str:
    entries = (_tag("span", "&nbsp;&nbsp;&nbsp;", style=f"background:{colours[name]}")
               + f" {_text(name)} " + _tag("b", _text(value)) for name, value in values.items())
    return _tag("div", "".join(_tag("div", entry) for entry in entries),
                style="columns:2;column-gap:24px;font-family:monospace")


def of_map(data: bytes) -> str:
    """Shows the 128 bytes of a map in the colours of their fields, and the fields with values."""
    values, fields = _values(data), fields_of_bits(data)
    colours = {name: _colour(i) for i, name in enumerate(values)}
    try:
        decoded = decode(data)
    except Error as reason:
        title, rest = f"Not a tensor map: {reason}", ""
    else:
        spec, title = decoded.spec, f"Tensor map: {decoded.kind} {_title(decoded.spec)}"
        rest = _drawing(spec) + _rules(spec) if decoded.kind == "tiled" else ""
    return _block(title, _beside(_bytes_table(data, fields, colours), _legend(values, colours)),
                  rest)


def of_batch(batch) -> str:
    """Shows how many maps of a batch are good, bad and empty, and why the first bad ones are
    bad."""
    statuses, why_not = batch.read_statuses()
    title = f"MapBatch of {len(batch)} maps on device {batch.device}"
    if statuses is None:
        return _block(title, _tag("div", _text(why_not)))
    good, empty, bad = _explain.judged(statuses)
    counts = _table([("good", good), ("empty", empty), ("bad", len(bad))])
    rows = [(f"map {i}", describe_status("map", bits)) for i, bits in bad[:_explain.MOST_LISTED]]
    more = len(bad) - len(rows)
    return _block(title, counts, _tag("div", _table(rows), style=f"color:{_BAD}") if rows else "",
                  _tag("div", f"and {more} more") if more else "")
