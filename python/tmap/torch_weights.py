# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch for gradients of weights in 8 bits, which `tmap.torch_ops` describes."""
from typing import NamedTuple

import torch

from . import _gemm, _ragged, ragged
from ._epilogue import SCALED_ELEMENTS
from .torch_library import define, register
from .torch_products import check_offsets, parts_of
from .torch_scaled import E4M3, EIGHT_BITS, check_type, no_backward, refuse_gradients
from .torch_tensors import NAMES, row_major

define("quantized_weight_gradient(Tensor d_out, Tensor x, Tensor offs, *, ScalarType? dtype=None, "
       "ScalarType? out_dtype=None, bool powers_of_two=False) -> Tensor",
       "add_quantized_weight_gradient(Tensor(a!) sums, Tensor d_out, Tensor x, Tensor offs, *, "
       "ScalarType? dtype=None, bool powers_of_two=False) -> ()")

_OPERANDS = (torch.bfloat16, torch.float16, torch.float32)
_RESULTS = (torch.bfloat16, torch.float32)


def _check(d_out, x, offs, dtype, out_dtype):
    check_type("d_out", d_out.dtype, _OPERANDS)
    check_type("x", x.dtype, _OPERANDS)
    check_type("the 8-bit d_out", dtype or E4M3, EIGHT_BITS)
    check_type("the product", out_dtype or torch.bfloat16, _RESULTS)
    if (d_out.dim(), x.dim()) != (2, 2) or d_out.shape[0] != x.shape[0]:
        raise ValueError(f"d_out is [rows, n] and x [rows, k], not {tuple(d_out.shape)} and "
                         f"{tuple(x.shape)}")
    if x.shape[1] * (out_dtype or torch.bfloat16).itemsize % 16:
        raise ValueError(f"x has {x.shape[1]} columns: a row of the product takes a multiple of 16 "
                         "bytes")
    check_offsets(d_out, x, offs)


def _fake(d_out, x, offs, *, dtype=None, out_dtype=None, powers_of_two=False):
    _check(d_out, x, offs, dtype, out_dtype)
    return d_out.new_empty((offs.shape[0], d_out.shape[1], x.shape[1]),
                           dtype=out_dtype or torch.bfloat16)


def _gradient(d_out, x, offs, *, dtype=None, out_dtype=None, powers_of_two=False):
    sums = _fake(d_out, x, offs, dtype=dtype, out_dtype=out_dtype)
    _multiply(sums, d_out, x, offs, dtype, powers_of_two, False)
    return sums


def _add_fake(sums, d_out, x, offs, *, dtype=None, powers_of_two=False):
    _check(d_out, x, offs, dtype, sums.dtype)
    shape = offs.shape[0], d_out.shape[1], x.shape[1]
    if sums.shape != shape or sums.device != x.device:
        raise ValueError(f"sums is {tuple(sums.shape)} on {sums.device}: it must be {shape} on "
                         f"{x.device}")


def _add(sums, d_out, x, offs, *, dtype=None, powers_of_two=False):
    _add_fake(sums, d_out, x, offs, dtype=dtype)
    _multiply(sums, d_out, x, offs, dtype, powers_of_two, True)


class _Places(NamedTuple):
    """The rows of each group, and where they begin in lines of `length` elements. A group without a
    product has no rows."""
    begins: torch.Tensor
    counts: torch.Tensor
    placed: torch.Tensor
    length: int


def _place(offs, rows):
    """Places groups at multiples of a block, so that blocks begin where groups begin."""
    begins, counts = parts_of(offs, rows)
    whole = (counts + SCALED_ELEMENTS - 1) // SCALED_ELEMENTS * SCALED_ELEMENTS
    most = (rows + (SCALED_ELEMENTS - 1) * offs.shape[0]) // SCALED_ELEMENTS * SCALED_ELEMENTS
    return _Places(begins, counts, whole.cumsum(0) - whole, most)


def _multiply(sums, d_out, x, offs, dtype, powers_of_two, accumulate):
    if sums.numel() == 0 or x.shape[0] == 0:
        return sums if accumulate else sums.zero_()
    places = _place(offs, x.shape[0])
    a, a_scales = _lines(d_out, places, dtype or E4M3, powers_of_two)
    b, b_scales = _lines(x, places, E4M3, powers_of_two)
    multiply = _multiply_on_gpu if x.is_cuda else _multiply_on_cpu
    multiply(a, b.t(), a_scales.t(), b_scales, places, sums, accumulate)
    return sums


def _lines(values, places, dtype, powers_of_two):
    """Returns the columns of all groups in 8 bits, [columns, length], and their scales, [blocks,
    columns]. What belongs to no group is undefined."""
    values = row_major(values)
    columns, pitch = values.shape[1], values.stride(0) * values.element_size()
    lines = values.new_empty((columns, places.length), dtype=dtype)
    scales = values.new_empty((places.length // SCALED_ELEMENTS, columns), dtype=torch.float32)
    width = torch.full_like(places.counts, columns)
    blocks = (places.counts + SCALED_ELEMENTS - 1) // SCALED_ELEMENTS
    first = places.placed // SCALED_ELEMENTS * (columns * scales.element_size())
    ragged.quantize(
        _ragged.Columns(places.begins * pitch + values.data_ptr(), [width, places.counts],
                        [torch.full_like(width, pitch)], dtype=NAMES[values.dtype]),
        _ragged.Columns(places.placed + lines.data_ptr(), [places.counts, width],
                        [torch.full_like(width, places.length)], dtype=NAMES[dtype]),
        _ragged.Columns(first + scales.data_ptr(), [width, blocks], dtype="f32"),
        block="128x1", powers_of_two=powers_of_two)
    return lines, scales


def _multiply_on_gpu(a, b, a_scales, b_scales, places, sums, accumulate):
    _gemm.grouped_mm(a, b, (places.placed, places.counts), out=sums, format="begins_and_counts",
                     accumulate=accumulate, a_scales=a_scales, b_scales=b_scales)


def _multiply_on_cpu(a, b, a_scales, b_scales, places, sums, accumulate):
    of_a = a.float() * a_scales.repeat_interleave(SCALED_ELEMENTS, 1)
    of_b = b.float() * b_scales.repeat_interleave(SCALED_ELEMENTS, 0)
    for group, (first, count) in enumerate(zip(places.placed.tolist(), places.counts.tolist())):
        product = of_a[:, first:first + count] @ of_b[first:first + count]
        sums[group] = product + sums[group].float() if accumulate else product


def _refuse(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("d_out", "x"), "it is a gradient itself, in 8 bits. Detach it")


register("quantized_weight_gradient", {"CUDA": _gradient, "CPU": _gradient}, _fake, no_backward,
         _refuse)
register("add_quantized_weight_gradient", {"CUDA": _add, "CPU": _add}, _add_fake)
