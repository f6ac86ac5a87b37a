# SPDX-License-Identifier: Apache-2.0
"""Decides which calls of PyTorch's grouped products tmap takes, by what the host knows of them.

tmap takes a call that PyTorch takes and the library can run. All others are PyTorch's, which then
multiplies or raises its own error. The functions here return None for a call that tmap takes, else
the reason why it does not. They read no memory, and any device's tensors have forms.
"""
from functools import lru_cache
from typing import NamedTuple, Optional, Tuple

import torch

HOPPER = (9, 0)

CAPABILITY = "the GPU has not compute capability 9.0"
TYPES = "tmap multiplies two operands of bfloat16 or of float16"
BIAS = "PyTorch refuses a bias and scales of the result"
RESULT = "the result has another type than PyTorch makes"
BATCHED = "no dim is ragged"
OFFSETS = "offs is not int32 in one dim, without gaps, with an end for each group"
GROUPS = "PyTorch takes 1 to 1023 groups"
DEVICES = "the operands are not on one device"
SHAPES = "the operands are empty, or their dims do not fit"
UNITS = "k or n does not take a multiple of 16 bytes"
LINES = "an operand's lines have gaps, overlap, or do not begin at multiples of 16 bytes"
EIGHT_BITS = "tmap multiplies float8_e4m3fn, [rows, k] by [groups, k, n], both with lines along k"
SCALES = "scales are not float32, one for each row of a and each column of b"
RECIPES = "the scales are not of rows and columns"
ADDRESS = "an operand does not begin at a multiple of 16 bytes"
CARVEOUT = "PyTorch is set to leave multiprocessors free"

_MOST_GROUPS = 1023
_LINE_BYTES = 16
_ROW_WISE, _NO_SWIZZLE = 1, 0  # PyTorch's numbers of recipes


class Form(NamedTuple):
    """All properties of a tensor that the host knows, but its address."""
    dtype: torch.dtype
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]
    device: int


def form_of(tensor: torch.Tensor) -> Form:
    return Form(tensor.dtype, tensor.shape, tensor.stride(), tensor.get_device())


def form_of_any(tensor: Optional[torch.Tensor]) -> Optional[Form]:
    return None if tensor is None else form_of(tensor)


@lru_cache(maxsize=4096)
def refuse_product(a: Form, b: Form, offs: Optional[Form], has_bias: bool,
                   out_dtype: Optional[torch.dtype],
                   capability: Optional[Tuple[int, int]]) -> Optional[str]:
    """Judges a call of `aten::_grouped_mm`. `capability` is None if `a` is on no GPU."""
    ranks = len(a.shape), len(b.shape)
    if capability != HOPPER:
        return DEVICES if capability is None else CAPABILITY
    if a.dtype != b.dtype or a.dtype not in (torch.bfloat16, torch.float16):
        return TYPES
    if has_bias:
        return BIAS
    if out_dtype not in (None, a.dtype):
        return RESULT
    if ranks not in ((2, 3), (3, 2), (2, 2)):
        return BATCHED
    return _refuse_offsets(a, b, offs) or _refuse_extents(a, b) or _refuse_lines(a, b)


@lru_cache(maxsize=4096)
def refuse_scaled(a: Form, b: Form, a_scales: Form, b_scales: Form, offs: Optional[Form],
                  has_terms: bool, out_dtype: Optional[torch.dtype],
                  capability: Optional[Tuple[int, int]]) -> Optional[str]:
    """Judges a call of `aten::_scaled_grouped_mm` in the same way. `has_terms` is true if it has a
    bias or a scale of the result."""
    if capability != HOPPER:
        return DEVICES if capability is None else CAPABILITY
    if has_terms:
        return BIAS
    if out_dtype not in (None, torch.bfloat16):
        return RESULT
    if (a.dtype, b.dtype) != (torch.float8_e4m3fn,) * 2 or (len(a.shape), len(b.shape)) != (2, 3):
        return EIGHT_BITS
    return (_refuse_offsets(a, b, offs) or _refuse_extents(a, b) or _refuse_lines(a, b)
            or _refuse_orders(a, b) or _refuse_scales(a, b, a_scales, b_scales))


def refuse_recipes(scale_counts, recipes, swizzles, contraction) -> Optional[str]:
    """Judges the kinds of scales of a call of `aten::_scaled_grouped_mm_v2`, for both operands."""
    is_simple = (tuple(scale_counts) == (1, 1)
                 and all(tuple(each) == (_ROW_WISE,) for each in recipes)
                 and all(number == _NO_SWIZZLE for each in swizzles for number in each)
                 and not contraction)
    return None if is_simple else RECIPES


def _refuse_offsets(a, b, offs):
    if offs is None or offs.dtype != torch.int32 or len(offs.shape) != 1:
        return OFFSETS
    groups, = offs.shape
    grouped = next((each for each in (a, b) if len(each.shape) == 3), None)
    if groups > 1 and offs.strides != (1,) or grouped is not None and grouped.shape[0] != groups:
        return OFFSETS
    if not 0 < groups <= _MOST_GROUPS:
        return GROUPS
    return None if a.device == b.device == offs.device else DEVICES


def _refuse_extents(a, b):
    if 0 in (*a.shape, *b.shape) or a.shape[-1] != b.shape[-2]:
        return SHAPES
    item, ranks = a.dtype.itemsize, (len(a.shape), len(b.shape))
    k_fits = ranks == (2, 2) or a.shape[-1] * item % _LINE_BYTES == 0
    n_fits = ranks == (3, 2) or b.shape[-1] * item % _LINE_BYTES == 0
    return None if k_fits and n_fits else UNITS


def _refuse_lines(a, b):
    return None if _has_whole_lines(a) and _has_whole_lines(b) else LINES


def _has_whole_lines(form):
    pitch, item = _pitch(form), form.dtype.itemsize
    if pitch is None or pitch * item % _LINE_BYTES != 0:
        return False
    if len(form.shape) == 2 or form.shape[0] == 1:
        return True
    lines = form.shape[-1 if _is_turned(form) else -2]
    return form.strides[0] * item % _LINE_BYTES == 0 and form.strides[0] >= lines * pitch


def _is_turned(form):
    """Returns whether lines run along the dim before the last: PyTorch looks there first."""
    return form.strides[-2] == 1 and form.strides[-1] >= form.shape[-2]


def _pitch(form):
    """Returns the elements from one line to the next, or None if PyTorch finds no lines."""
    if _is_turned(form):
        return form.strides[-1]
    has_rows = form.strides[-1] == 1 and form.strides[-2] >= form.shape[-1]
    return form.strides[-2] if has_rows else None


def _refuse_orders(a, b):
    return None if not _is_turned(a) and _is_turned(b) else EIGHT_BITS


def _refuse_scales(a, b, a_scales, b_scales):
    (rows, _), (groups, _, n) = a.shape, b.shape
    if a_scales.device != a.device or b_scales.device != a.device:
        return DEVICES
    fits = (a_scales.dtype == b_scales.dtype == torch.float32 and a_scales.shape == (rows,)
            and b_scales.shape == (groups, n) and b_scales.strides[1] == 1
            and (rows == 1 or a_scales.strides == (1,)))
    return None if fits else SCALES
