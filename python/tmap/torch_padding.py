# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch that pad ragged rows and undo it, which `tmap.torch_ops` describes."""
import math
from ctypes import byref

import torch

from . import _structs as c
from ._batch import OFFSET_FORMATS, call_on
from ._errors import check
from ._libraries import ADAPTORS
from ._library import lib
from ._numbers import choice, element_bytes, integer
from .torch_library import define, register
from .torch_tensors import NAMES, OFFSET_BYTES

define("pad_ragged(Tensor values, Tensor offsets, SymInt max_length, *, float fill=0.0, "
       'str format="ends") -> Tensor',
       "unpad_ragged(Tensor dense, Tensor offsets, SymInt total, *, "
       'str format="ends") -> Tensor')

_torch = ADAPTORS[torch.Tensor]


def _count(offsets, format):
    choice(format, OFFSET_FORMATS, "format")
    if offsets.dtype not in OFFSET_BYTES or offsets.dim() != 1:
        raise TypeError(f"offsets are int32 or int64 in one dim, not {offsets.dtype} "
                        f"{tuple(offsets.shape)}")
    if format == "prefix" and offsets.shape[0] == 0:
        raise ValueError("offsets of format prefix have one value at least")
    return offsets.shape[0] - int(format == "prefix")


def _call(function, values, dense, offsets, format, *fill):
    """Calls the library on rows without gaps."""
    if values.device != offsets.device:
        raise ValueError(f"rows and offsets are on one device, not on {values.device} and "
                         f"{offsets.device}")
    if format == "sizes":
        offsets, format = offsets.cumsum(0), "ends"
    offsets = offsets.contiguous()
    rows = c.PaddedRows(
        element_bytes=values.element_size(), values=values.data_ptr(), rows=values.shape[0],
        dense=dense.data_ptr(), count=dense.shape[0], longest=dense.shape[1],
        row_bytes=math.prod(values.shape[1:]) * values.element_size())
    rows.offsets.values = offsets.data_ptr()
    rows.offsets.format = OFFSET_FORMATS.index(format)
    rows.offsets.bytes = offsets.element_size()
    if not values.is_cuda:
        check(function(byref(rows), *fill, call_on(None)))
        return
    device = values.get_device()
    with _torch.use(device):
        check(function(byref(rows), *fill, call_on(_torch.current_stream(device))))


def _pad(values, offsets, max_length, *, fill=0.0, format="ends"):
    integer(max_length, "max_length", 63)
    dense = _pad_fake(values, offsets, max_length, fill=fill, format=format)
    if dense.numel():
        element = element_bytes(fill, NAMES[values.dtype], values.element_size(), "fill")
        _call(lib.tmap_ragged_pad_rows, values.contiguous(), dense, offsets, format, element)
    return dense


def _pad_fake(values, offsets, max_length, *, fill=0.0, format="ends"):
    count = _count(offsets, format)
    if values.dim() == 0:
        raise ValueError("values have rows: one dim at least")
    return values.new_empty((count, max_length, *values.shape[1:]))


def _keep_offsets(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(inputs[1])
    ctx.size = inputs[0].shape[0] if output.dim() > inputs[0].dim() else inputs[0].shape[1]
    ctx.format = keyword_only_inputs["format"]


def _pad_backward(ctx, gradient):
    offsets, = ctx.saved_tensors
    return torch.ops.tmap.unpad_ragged(gradient, offsets, ctx.size, format=ctx.format), None, None


def _unpad(dense, offsets, total, *, format="ends"):
    integer(total, "total", 63)
    values = _unpad_fake(dense, offsets, total, format=format)
    if values.numel():
        _call(lib.tmap_ragged_unpad_rows, values, dense.contiguous(), offsets, format)
    return values


def _unpad_fake(dense, offsets, total, *, format="ends"):
    count = _count(offsets, format)
    if dense.dim() < 2 or dense.shape[0] != count:
        raise ValueError(f"dense is [{count}, longest, ...], not {tuple(dense.shape)}")
    return dense.new_empty((total, *dense.shape[2:]))


def _unpad_backward(ctx, gradient):
    offsets, = ctx.saved_tensors
    return torch.ops.tmap.pad_ragged(gradient, offsets, ctx.size, format=ctx.format), None, None


register("pad_ragged", {"CUDA": _pad, "CPU": _pad}, _pad_fake, _pad_backward, _keep_offsets)
register("unpad_ragged", {"CUDA": _unpad, "CPU": _unpad}, _unpad_fake, _unpad_backward,
         _keep_offsets)
