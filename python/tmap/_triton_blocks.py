# SPDX-License-Identifier: Apache-2.0
"""The box and swizzle that Triton expects of the map for a block. Needs no Triton."""
from math import prod
from typing import Tuple

from ._batch import innermost_first
from ._numbers import integers, type_name
from ._spec import TensorSpec, element_type_of

# Holds the names that Triton knows of element types, by those of maps and of arrays.
DTYPES = {"u8": "uint8", "i8": "int8", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "u16": "uint16",
          "i16": "int16", "f16": "float16", "bf16": "bfloat16", "u32": "uint32", "i32": "int32", "f32": "float32",
          "u64": "uint64", "i64": "int64", "f64": "float64"}
_BITS = {name: 8 if name.startswith("f8") else 16 if name == "bf16" else int(name[1:]) for name in DTYPES}
_MOST = 256  # the copy engine's limit for a dim of a box
_LEAST_BYTES = 16
_LEAST_ROWS = 8  # a swizzle's pattern repeats after so many rows


def known_dtype(dtype) -> str:
    """Returns the package's name of an element type. Raises `TypeError` for one that Triton's
    tensors of maps cannot have."""
    name = type_name(dtype)
    if name not in DTYPES:
        raise TypeError(f"dtype is {dtype!r}: Triton loads {', '.join(DTYPES)} through maps")
    return name


def box_of(dtype, block) -> Tuple[Tuple[int, ...], str]:
    """Returns the box and the swizzle of maps through which Triton moves blocks, outermost first.
    Raises `ValueError` for a block that Triton cannot move through maps."""
    name, block = known_dtype(dtype), integers(block, "block", 32)
    if not 1 <= len(block) <= 5:
        raise ValueError(f"block has {len(block)} dims: it must have 1 to 5")
    for axis, extent in enumerate(block):
        if extent < 1 or extent & (extent - 1):
            raise ValueError(f"block[{axis}] is {extent}: Triton's blocks have powers of two")
    size = _BITS[name] // 8
    inner = block[-1] * size
    if inner < _LEAST_BYTES:
        raise ValueError(f"block[{len(block) - 1}] is {block[-1]}, {inner} bytes of {name}: it must have "
                         f"{_LEAST_BYTES} bytes at least")
    swizzle = min(inner, 128) if inner >= 32 and prod(block[:-1]) >= _LEAST_ROWS else 0
    box = (*block[:-1], swizzle // size if swizzle else block[-1])
    for axis, extent in enumerate(box):
        if extent > _MOST:
            raise ValueError(f"block[{axis}] is {extent}: a box has at most {_MOST} elements in a dim; use smaller blocks")
    return box, f"{swizzle}B" if swizzle else "none"


def modes(dtype, block) -> dict:
    """Returns the arguments `box` and `swizzle` that `MapService.encode_ragged` and `TensorSpec.of`
    take for maps of this block, outermost first.

    Triton swizzles by the bytes of the block's last dim: 128, 64 or 32, the largest that fits. It
    does not if the other dims have fewer than 8 rows together. A swizzled box is as wide as its
    swizzle, and Triton issues several copies for a wider block."""
    box, swizzle = box_of(dtype, block)
    return {"box": box, "swizzle": swizzle}


def spec(array, block, **others) -> TensorSpec:
    """Makes the spec of an array with the box and swizzle that Triton expects for this block.
    `others` are members of `TensorSpec`, such as `l2_promotion`."""
    return TensorSpec.of(array, **modes(array.dtype, block), **others)


def check_block(given: TensorSpec, dtype, block) -> str:
    """Returns the package's name of the elements. Raises `ValueError` or `TypeError` where maps of
    a spec do not fit the block."""
    name = known_dtype(given.element_type.removesuffix("_ftz").replace("tf32", "f32") if dtype is None else dtype)
    if element_type_of(name) != given.element_type and dtype is not None:
        raise TypeError(f"dtype is {name}: the maps have elements of {given.element_type}")
    box, swizzle = box_of(name, block)
    found = innermost_first(given.box)  # turned back: outermost first
    if found != box:
        raise ValueError(f"the maps have the box {found}: Triton expects {box} for block {tuple(block)} of {name}; "
                         "encode them with tmap.triton.modes")
    if given.swizzle != swizzle:
        raise ValueError(f"the maps have swizzle {given.swizzle}: Triton expects {swizzle} for block {tuple(block)} of "
                         f"{name}; encode them with tmap.triton.modes")
    steps = given.element_strides
    if given.interleave != "none" or (steps is not None and set(steps) != {1}):
        raise ValueError(f"the maps have interleave {given.interleave} and element_strides {steps}: Triton expects none, "
                         "and steps of 1")
    return name
