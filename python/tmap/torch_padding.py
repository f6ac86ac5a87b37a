# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch that pad ragged rows and undo it, which `tmap.torch_ops` describes."""
import math

import torch

from . import _ragged, ragged
from ._batch import OFFSET_FORMATS
from ._numbers import choice
from .torch_library import define, register
from .torch_tensors import NAMES, OFFSET_BYTES, with_rows

define("pad_ragged(Tensor values, Tensor offsets, SymInt max_length, *, float fill=0.0, "
       'str format="ends") -> Tensor',
       "unpad_ragged(Tensor dense, Tensor offsets, SymInt total, *, "
       'str format="ends") -> Tensor')

def _count(offsets, format):
    choice(format, OFFSET_FORMATS, "format")
    if offsets.dtype not in OFFSET_BYTES or offsets.dim() != 1:
        raise TypeError(f"offsets are int32 or int64 in one dim, not {offsets.dtype} "
                        f"{tuple(offsets.shape)}")
    if format == "prefix" and offsets.shape[0] == 0:
        raise ValueError("offsets of format prefix have one value at least")
    return offsets.shape[0] - int(format == "prefix")


def _bounds(offsets, total, format):
    """Returns where each tensor begins and the last ends, cut to the rows that exist."""
    if format == "prefix":
        return offsets.clamp(0, total).long()
    bounds = offsets.new_zeros(offsets.shape[0] + 1, dtype=torch.int64)
    if format == "sizes":
        torch.cumsum(offsets, 0, dtype=torch.int64, out=bounds[1:])
    else:
        bounds[1:].copy_(offsets)
    return bounds.clamp_(0, total)


def _rows(values, offsets, format):
    """Returns the batch, with offsets cut to the rows that exist."""
    if format == "sizes":
        offsets, format = offsets.cumsum(0), "ends"
    return _ragged.Rows(values, offsets.clamp(0, values.shape[0]), format)


def _cut_rows(values, offsets, longest, format):
    """Returns the same as tensors of one dim, of rows that follow each other, with at most
    `longest` rows of each tensor."""
    bounds, width = _bounds(offsets, values.shape[0], format), math.prod(values.shape[1:])
    begins = bounds[:-1]
    sizes = (bounds[1:] - begins).clamp_(max=longest).mul_(width)
    addresses = (begins * (width * values.element_size())).add_(values.data_ptr())
    return _ragged.Columns(addresses, [sizes], dtype=NAMES[values.dtype])


def _pad(values, offsets, max_length, *, fill=0.0, format="ends"):
    count, values = _count(offsets, format), with_rows(values)
    shape = (count, max_length, *values.shape[1:])
    if values.numel() == 0 or count == 0 or max_length == 0:
        return values.new_full(shape, fill)
    dense = values.new_empty(shape)
    ragged.pad(_rows(values, offsets, format), dense, fill=fill)
    return dense


def _pad_fake(values, offsets, max_length, *, fill=0.0, format="ends"):
    return values.new_empty((_count(offsets, format), max_length, *values.shape[1:]))


def _keep_offsets(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(inputs[1])
    ctx.size = inputs[0].shape[0] if output.dim() > inputs[0].dim() else inputs[0].shape[1]
    ctx.format = keyword_only_inputs["format"]


def _pad_backward(ctx, gradient):
    offsets, = ctx.saved_tensors
    return torch.ops.tmap.unpad_ragged(gradient, offsets, ctx.size, format=ctx.format), None, None


def _unpad(dense, offsets, total, *, format="ends"):
    count = _count(offsets, format)
    if dense.dim() < 2 or dense.shape[0] != count:
        raise ValueError(f"dense is [{count}, longest, ...], not {tuple(dense.shape)}")
    values = dense.new_zeros((total, *dense.shape[2:]))
    if values.numel() and dense.numel():
        ragged.unpad(with_rows(dense.reshape(count, -1)),
                     _cut_rows(values, offsets, dense.shape[1], format))
    return values


def _unpad_fake(dense, offsets, total, *, format="ends"):
    _count(offsets, format)
    return dense.new_empty((total, *dense.shape[2:]))


def _unpad_backward(ctx, gradient):
    offsets, = ctx.saved_tensors
    return torch.ops.tmap.pad_ragged(gradient, offsets, ctx.size, format=ctx.format), None, None


register("pad_ragged", {"CUDA": _pad, "CPU": _pad}, _pad_fake, _pad_backward, _keep_offsets)
register("unpad_ragged", {"CUDA": _unpad, "CPU": _unpad}, _unpad_fake, _unpad_backward,
         _keep_offsets)
