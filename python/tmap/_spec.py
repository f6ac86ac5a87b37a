# SPDX-License-Identifier: Apache-2.0
"""Specs of tensor maps, their rules and their bits."""
import ctypes
import json
from ctypes import byref, c_uint32
from dataclasses import dataclass, field
from typing import Any, List, Optional, Sequence, Tuple

from . import _structs as c
from ._arrays import Site
from ._batch import innermost_first
from ._errors import Rule, Status, check, rule, text_of
from ._library import lib
from ._numbers import choice, integer, integers, type_name

ELEMENT_TYPES = ("u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32_ftz",
                 "tf32", "tf32_ftz", "u4_align8", "u4_align16", "u6_align16")
INTERLEAVES = ("none", "16B", "32B")
SWIZZLES = ("none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
L2_PROMOTIONS = ("none", "64B", "128B", "256B")
OOB_FILLS = ("zero", "nan")
# Maps know no signed or 8-bit float elements: those of the same width stand for them, as in
# `element_type`.
_SAME_WIDTH = {"i8": "u8", "bool": "u8", "f8_e4m3": "u8", "f8_e5m2": "u8", "i16": "u16"}
ASSUMED_ADDRESS = 0x100000


def _known(value, names, name: str) -> str:
    return names[choice(value, names, name)]


def _element_type(value, name: str) -> str:
    given = type_name(value)
    return _known(_SAME_WIDTH.get(given, given), ELEMENT_TYPES, name)


# Returns a member of a spec as the spec keeps it.
_MEMBERS = {
    "element_type": _element_type,
    "dims": lambda value, name: integers(value, name, 64),
    "box": lambda value, name: integers(value, name, 32),
    "address": lambda value, name: None if value is None else integer(value, name, 64),
    "strides": lambda value, name: None if value is None else integers(value, name, 64),
    "element_strides": lambda value, name: None if value is None else integers(value, name, 32),
    "interleave": lambda value, name: _known(value, INTERLEAVES, name),
    "swizzle": lambda value, name: _known(value, SWIZZLES, name),
    "l2_promotion": lambda value, name: _known(value, L2_PROMOTIONS, name),
    "oob_fill": lambda value, name: _known(value, OOB_FILLS, name),
}


@dataclass
class TensorSpec:
    """The contents of a tiled tensor map: where a tensor lies, how it is laid out, and the box that
    one copy moves.

    Dims are innermost first: `dims[0]` is the contiguous one. Shapes in Python have the opposite
    order, and `of` turns them. `strides` are in bytes and have one value less than `dims`:
    `strides[i]` is the step of dim i + 1. Without them the tensor is packed. A spec without an
    address stands for a tensor at 0x100000, which is good enough for everything but `encode`.
    `element_type` may also be the type object of a library of arrays.

    A member that has the wrong type, or that its place in the map cannot hold, is refused when it
    is set. All other values are legal here: `explain` and `validate` list the rules they break.

    >>> spec = tmap.TensorSpec("f32", dims=(64, 100), box=(32, 8), swizzle="128B")
    >>> print(tmap.explain(spec))
    no rule broken
    """
    element_type: str
    dims: Tuple[int, ...]
    box: Tuple[int, ...]
    address: Optional[int] = None
    strides: Optional[Tuple[int, ...]] = None
    element_strides: Optional[Tuple[int, ...]] = None
    interleave: str = "none"
    swizzle: str = "none"
    l2_promotion: str = "none"
    oob_fill: str = "zero"
    keeps: Any = field(default=None, repr=False, compare=False)

    def __setattr__(self, name, value):
        super().__setattr__(name, _MEMBERS[name](value, name) if name in _MEMBERS else value)

    @classmethod
    def of(cls, array, box: Sequence[int], **modes) -> "TensorSpec":
        """Makes the spec of an array of any library. `box` is in the array's own order, outermost
        first, like its shape. The spec keeps the array. `modes` are the members from
        `element_strides` on, innermost first."""
        view, box = Site(None, array).read(array, "array"), integers(box, "box", 32)
        if len(box) != len(view.shape):
            raise ValueError(f"box has {len(box)} dims, the array {len(view.shape)}")
        if view.shape and view.shape[-1] > 1 and view.strides[-1] != view.item_bytes:
            raise ValueError("the array's last dim has gaps, which no tensor map can describe")
        return cls(element_type_of(view.dtype), innermost_first(view.shape), innermost_first(box),
                   view.address, innermost_first(view.strides[:-1]),
                   keeps=(view.array, view.capsule), **modes)

    def to_c(self) -> c.Spec:
        """Returns the struct `tmap_tensor_spec`. Raises ValueError where lengths differ."""
        rank = len(self.dims)
        if not 1 <= rank <= c.MAX_RANK or len(self.box) != rank:
            raise ValueError(f"dims and box have the same length, 1 to {c.MAX_RANK}: not {rank} "
                             "and "
                             f"{len(self.box)}")
        made = c.Spec()
        check(lib.tmap_packed_spec(ELEMENT_TYPES.index(self.element_type),
                                   ASSUMED_ADDRESS if self.address is None else self.address, rank,
                                   (ctypes.c_uint64 * rank)(*self.dims),
                                   (c_uint32 * rank)(*self.box), byref(made)))
        if self.strides is not None:
            _set(made.global_stride_bytes, self.strides, rank - 1, "strides")
        if self.element_strides is not None:
            _set(made.element_stride, self.element_strides, rank, "element_strides")
        made.interleave = INTERLEAVES.index(self.interleave)
        made.swizzle = SWIZZLES.index(self.swizzle)
        made.l2_promotion = L2_PROMOTIONS.index(self.l2_promotion)
        made.oob_fill = OOB_FILLS.index(self.oob_fill)
        return made

    @classmethod
    def from_c(cls, spec: c.Spec) -> "TensorSpec":
        """Makes the spec of the struct."""
        rank = spec.rank
        return cls(ELEMENT_TYPES[spec.element_type], spec.global_dim[:rank], spec.box_dim[:rank],
                   spec.global_address, spec.global_stride_bytes[:rank - 1],
                   spec.element_stride[:rank], INTERLEAVES[spec.interleave], SWIZZLES[spec.swizzle],
                   L2_PROMOTIONS[spec.l2_promotion], OOB_FILLS[spec.oob_fill])

    def _repr_html_(self) -> str:
        from . import _html
        return _html.of_spec(self)


def element_type_of(dtype: str) -> str:
    """Returns the element type of tensor maps for elements of an array."""
    name = _SAME_WIDTH.get(dtype, dtype)
    if name not in ELEMENT_TYPES:
        raise TypeError(f"no tensor map has elements of {dtype}")
    return name


def _set(array, values, count, name):
    if len(values) != count:
        raise ValueError(f"{name} has {len(values)} values, not {count}")
    array[:count] = values


def struct_of(spec) -> c.Spec:
    """Returns the struct of a caller's spec."""
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"spec is {spec!r}: it must be a TensorSpec")
    return spec.to_c()


@dataclass(frozen=True)
class Violation:
    """One broken rule: its dim (innermost is 0; None: it belongs to no dim), the value found and
    the value allowed."""
    rule: Rule
    axis: Optional[int]
    found: int
    allowed: int


def validate(spec: TensorSpec) -> List[Violation]:
    """Lists the rules that `spec` breaks on a Hopper GPU, warnings too. Needs no GPU."""
    given, count = struct_of(spec), c_uint32()
    room = lib.tmap_rule_count() * c.MAX_RANK
    found = (c.Violation * room)()
    code = lib.tmap_validate(byref(given), None, found, room, byref(count))
    if code != Status.RULE_BROKEN:
        check(code)
    return [Violation(rule(one.rule), one.axis if one.axis >= 0 else None, one.found, one.allowed)
            for one in found[:count.value]]


def broken_rules(spec: TensorSpec) -> str:
    """Lists the rules that `spec` breaks and what to do, or returns "no rule broken".

    Each rule has a line. The line after it begins with two spaces and states the remedy.
    """
    return text_of(lib.tmap_explain, byref(struct_of(spec)), None)


def encode(spec: TensorSpec) -> bytes:
    """Returns the 128 bytes of a tensor map, made by CUDA's driver. The spec must have an address.
    Raises `Error`: `rule_broken` with the first rule, its axis, what was found and what is allowed;
    `no_driver`."""
    if isinstance(spec, TensorSpec) and spec.address is None:
        raise ValueError("address is None: a map that a GPU uses needs the tensor's address")
    return _made_by(lib.tmap_encode, spec)


def encode_bits(spec: TensorSpec) -> bytes:
    """Returns the same bytes without a driver or GPU, as the driver would write them for a Hopper
    GPU: to look at and to simulate."""
    return _made_by(lib.tmap_encode_bits, spec)


def _made_by(function, spec):
    made = c.TensorMap()
    check(function(byref(struct_of(spec)), made))
    return bytes(made)


@dataclass(frozen=True)
class DecodedMap:
    """The contents of a map, and its 128 bytes as `data`. Corners, channels and pixels belong to
    im2col maps only."""
    kind: str  # "tiled" or "im2col"
    spec: TensorSpec
    lower_corner: Tuple[int, ...]
    upper_corner: Tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int
    noted_box_bytes: int
    data: bytes = field(repr=False)

    def _repr_html_(self) -> str:
        from . import _html
        return _html.of_map(self.data)


def bytes_of(buffer, name: str) -> memoryview:
    """Returns the bytes that a buffer holds."""
    try:
        return memoryview(buffer).cast("B")
    except TypeError:
        raise TypeError(f"{name} is a {type(buffer).__name__}: it must be bytes, or a buffer "
                        "without gaps") from None


def as_map(data) -> Any:
    """Returns the struct of 128 bytes, which any buffer may hold."""
    view = bytes_of(data, "data")
    if view.nbytes != 128:
        raise ValueError(f"a tensor map has 128 bytes, not {view.nbytes}")
    return c.TensorMap.from_buffer_copy(view)


def decode(data) -> DecodedMap:
    """Reads the 128 bytes of a map. Raises `Error` (`not_a_tensor_map`) for bytes that no encoder
    writes."""
    words, read = as_map(data), c.DecodedMap()
    check(lib.tmap_decode(words, byref(read)))
    return DecodedMap("im2col" if read.kind else "tiled", TensorSpec.from_c(read.tensor),
                      tuple(read.lower_corner), tuple(read.upper_corner), read.channels_per_pixel,
                      read.pixels_per_column, read.noted_box_bytes, bytes(words))


def describe(data) -> str:
    """Lists every field of a map, a line each, also of bytes that `decode` refuses."""
    return text_of(lib.tmap_describe, as_map(data))


def describe_json(data) -> dict:
    """Returns the same as a dictionary."""
    return json.loads(text_of(lib.tmap_describe_json, as_map(data)))
