# SPDX-License-Identifier: Apache-2.0
"""What a tensor map says, its rules and its bits."""
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
from ._numbers import integer, integers

ELEMENT_TYPES = ("u8", "u16", "u32", "i32", "u64", "i64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz",
                 "u4_align8", "u4_align16", "u6_align16")
INTERLEAVES = ("none", "16B", "32B")
SWIZZLES = ("none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
L2_PROMOTIONS = ("none", "64B", "128B", "256B")
OOB_FILLS = ("zero", "nan")
# Maps know no signed or 8-bit float elements: those of the same width stand for them, as in
# `element_type`.
_SAME_WIDTH = {"i8": "u8", "bool": "u8", "f8_e4m3": "u8", "f8_e5m2": "u8", "i16": "u16"}


def _number(name, names, what):
    if name not in names:
        raise ValueError(f"{what} is one of {', '.join(names)}, not {name!r}")
    return names.index(name)


def _name(number, names):
    return names[number] if number < len(names) else "invalid"


@dataclass
class TensorSpec:
    """What a tiled tensor map says: where a tensor lies, how it is laid out, and the box that one copy moves.

    Dims are innermost first: `dims[0]` is the contiguous one (the other way round than shapes in Python; `of` turns
    them). `strides` are in bytes and have one value less than `dims`: `strides[i]` is the step of dim i + 1; left out,
    the tensor is packed. Any values are legal here; `explain` and `validate` tell which rules they break.

    >>> spec = tmap.TensorSpec("f32", dims=(64, 100), box=(32, 8), swizzle="128B", address=4096)
    >>> print(tmap.explain(spec))
    no rule broken
    """
    element_type: str
    dims: Tuple[int, ...]
    box: Tuple[int, ...]
    address: int = 0
    strides: Optional[Tuple[int, ...]] = None
    element_strides: Optional[Tuple[int, ...]] = None
    interleave: str = "none"
    swizzle: str = "none"
    l2_promotion: str = "none"
    oob_fill: str = "zero"
    keeps: Any = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, array, box: Sequence[int], **modes) -> "TensorSpec":
        """The spec of an array of any library. `box` is in the array's own order, outermost first, like its shape. The
        spec keeps the array. `modes` are the members from `element_strides` on, innermost first."""
        view, box = Site(None, array).read(array, "array"), integers(box, "box", 32)
        if len(box) != len(view.shape):
            raise ValueError(f"box has {len(box)} dims, the array {len(view.shape)}")
        if view.shape and view.shape[-1] > 1 and view.strides[-1] != view.item_bytes:
            raise ValueError("the array's last dim has gaps, which no tensor map can describe")
        return cls(element_type_of(view.dtype), innermost_first(view.shape), innermost_first(box), view.address,
                   innermost_first(view.strides[:-1]), keeps=(view.array, view.capsule), **modes)

    def to_c(self) -> c.Spec:
        """The struct `tmap_tensor_spec`. Fails with TypeError or ValueError where a member cannot be written into it."""
        wide, narrow = integers(self.dims, "dims", 64), integers(self.box, "box", 32)
        rank = len(wide)
        if not 1 <= rank <= c.MAX_RANK or len(narrow) != rank:
            raise ValueError(f"dims and box have the same length, 1 to {c.MAX_RANK}: not {rank} and {len(narrow)}")
        made = c.Spec()
        kind = _number(self.element_type, ELEMENT_TYPES, "element_type")
        address = integer(self.address, "address", 64)
        check(lib.tmap_packed_spec(kind, address, rank, (ctypes.c_uint64 * rank)(*wide),
                                   (c_uint32 * rank)(*narrow), byref(made)))
        if self.strides is not None:
            _set(made.global_stride_bytes, integers(self.strides, "strides", 64), rank - 1, "strides")
        if self.element_strides is not None:
            _set(made.element_stride, integers(self.element_strides, "element_strides", 32), rank, "element_strides")
        made.interleave = _number(self.interleave, INTERLEAVES, "interleave")
        made.swizzle = _number(self.swizzle, SWIZZLES, "swizzle")
        made.l2_promotion = _number(self.l2_promotion, L2_PROMOTIONS, "l2_promotion")
        made.oob_fill = _number(self.oob_fill, OOB_FILLS, "oob_fill")
        return made

    @classmethod
    def from_c(cls, spec: c.Spec) -> "TensorSpec":
        """Of the struct."""
        rank = spec.rank
        return cls(_name(spec.element_type, ELEMENT_TYPES), tuple(spec.global_dim[:rank]), tuple(spec.box_dim[:rank]),
                   spec.global_address, tuple(spec.global_stride_bytes[:rank - 1]), tuple(spec.element_stride[:rank]),
                   _name(spec.interleave, INTERLEAVES), _name(spec.swizzle, SWIZZLES),
                   _name(spec.l2_promotion, L2_PROMOTIONS), _name(spec.oob_fill, OOB_FILLS))


def element_type_of(dtype: str) -> str:
    """The element type of tensor maps for elements of an array."""
    name = _SAME_WIDTH.get(dtype, dtype)
    if name not in ELEMENT_TYPES:
        raise TypeError(f"no tensor map has elements of {dtype}")
    return name


def _set(array, values, count, what):
    if len(values) != count:
        raise ValueError(f"{what} has {len(values)} values, not {count}")
    array[:count] = values


def struct_of(spec) -> c.Spec:
    """The struct of a caller's spec."""
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"spec is {spec!r}: it must be a TensorSpec")
    return spec.to_c()


@dataclass(frozen=True)
class Violation:
    """One broken rule: which, at which dim (innermost is 0; None: none), the value found and the value allowed."""
    rule: Rule
    axis: Optional[int]
    found: int
    allowed: int


def validate(spec: TensorSpec) -> List[Violation]:
    """The rules that `spec` breaks on a Hopper GPU, warnings too. Needs no GPU."""
    given, count = struct_of(spec), c_uint32()
    room = lib.tmap_rule_count() * c.MAX_RANK
    found = (c.Violation * room)()
    code = lib.tmap_validate(byref(given), None, found, room, byref(count))
    if code != Status.RULE_BROKEN:
        check(code)
    return [Violation(rule(one.rule), one.axis if one.axis >= 0 else None, one.found, one.allowed)
            for one in found[:count.value]]


def explain(spec: TensorSpec) -> str:
    """The rules that `spec` breaks, a line for each, in words; "no rule broken" where there is none. Needs no GPU."""
    return text_of(lib.tmap_explain, byref(struct_of(spec)), None)


def encode(spec: TensorSpec) -> bytes:
    """The 128 bytes of a tensor map, made by CUDA's driver. Raises `Error`: `rule_broken` with the first rule, its axis,
    what was found and what is allowed; `no_driver`."""
    return _made_by(lib.tmap_encode, spec)


def encode_bits(spec: TensorSpec) -> bytes:
    """The same bytes without a driver or GPU, as it would write them for a Hopper GPU: to look at and to simulate."""
    return _made_by(lib.tmap_encode_bits, spec)


def _made_by(function, spec):
    made = c.TensorMap()
    check(function(byref(struct_of(spec)), made))
    return bytes(made)


@dataclass(frozen=True)
class DecodedMap:
    """All that the 128 bytes of a map say. Corners, channels and pixels are of im2col maps only."""
    kind: str  # "tiled" or "im2col"
    spec: TensorSpec
    lower_corner: Tuple[int, ...]
    upper_corner: Tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int
    noted_box_bytes: int


def bytes_of(buffer, name: str) -> memoryview:
    """What a buffer holds."""
    try:
        return memoryview(buffer).cast("B")
    except TypeError:
        raise TypeError(f"{name} is a {type(buffer).__name__}: it must be bytes, or a buffer without gaps") from None


def as_map(data) -> Any:
    """The struct of 128 bytes of any object that has them."""
    view = bytes_of(data, "data")
    if view.nbytes != 128:
        raise ValueError(f"a tensor map has 128 bytes, not {view.nbytes}")
    return c.TensorMap.from_buffer_copy(view)


def decode(data) -> DecodedMap:
    """What 128 bytes say. Raises `Error` (`not_a_tensor_map`) for bytes that no encoder writes."""
    read = c.DecodedMap()
    check(lib.tmap_decode(as_map(data), byref(read)))
    return DecodedMap("im2col" if read.kind else "tiled", TensorSpec.from_c(read.tensor), tuple(read.lower_corner),
                      tuple(read.upper_corner), read.channels_per_pixel, read.pixels_per_column, read.noted_box_bytes)


def describe(data) -> str:
    """Every field of a map on a line of its own, for a person; also of bytes that `decode` refuses."""
    return text_of(lib.tmap_describe, as_map(data))


def describe_json(data) -> dict:
    """The same as a dictionary."""
    return json.loads(text_of(lib.tmap_describe_json, as_map(data)))
