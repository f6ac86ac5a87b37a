# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch for gradients of weights in 8 bits, which `tmap.torch_ops` describes."""
import torch

from . import _gemm, _ragged, ragged
from ._epilogue import SCALED_ELEMENTS as _BLOCK
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


def _multiply(sums, d_out, x, offs, dtype, powers_of_two, accumulate):
    groups, rows = offs.shape[0], x.shape[0]
    if sums.numel() == 0 or rows == 0:
        return sums if accumulate else sums.zero_()
    begins, counts = parts_of(offs, rows)
    # Groups begin at multiples of a block, so blocks begin where groups begin.
    blocks = (counts + (_BLOCK - 1)) // _BLOCK
    before = blocks.cumsum(0) - blocks
    length = (rows + (_BLOCK - 1) * groups) // _BLOCK * _BLOCK
    sides = [_Side(row_major(values), to, length)
             for values, to in ((d_out, dtype or E4M3), (x, E4M3))]
    places, *columns = _scaled([(before, _BLOCK, 0)] + [
        column for side in sides for column in side.columns(begins, before, counts)])
    for side, of_side in zip(sides, (columns[:6], columns[6:])):
        side.quantize(of_side, counts, blocks, powers_of_two)
    multiply = _multiply_on_gpu if x.is_cuda else _multiply_on_cpu
    (a, a_scales), (b, b_scales) = ((side.lines, side.scales) for side in sides)
    multiply(a, b.t(), a_scales.t(), b_scales, (places, counts), sums, accumulate)
    return sums


def _scaled(columns):
    """Returns number * factor + shift for each of many (numbers, factor, shift), in two kernels."""
    numbers, factors, shifts = zip(*columns)
    return torch._foreach_add(torch._foreach_mul(numbers, factors), shifts)


class _Side:
    """An operand in 8 bits: lines [columns, length], and scales [blocks, columns]. What belongs to
    no group is undefined."""

    def __init__(self, values, dtype, length):
        self.values = values
        self.lines = values.new_empty((values.shape[1], length), dtype=dtype)
        self.scales = values.new_empty((length // _BLOCK, values.shape[1]), dtype=torch.float32)

    def columns(self, begins, before, counts):
        """Returns what `_scaled` makes addresses and extents of."""
        columns, pitch = self.values.shape[1], self.values.stride(0) * self.values.element_size()
        return ((begins, pitch, self.values.data_ptr()), (before, _BLOCK, self.lines.data_ptr()),
                (before, columns * self.scales.element_size(), self.scales.data_ptr()),
                (counts, 0, columns), (counts, 0, pitch), (counts, 0, self.lines.shape[1]))

    def quantize(self, columns, counts, blocks, powers_of_two):
        source, lines, scales, width, pitch, length = columns
        ragged.quantize(
            _ragged.Columns(source, [width, counts], [pitch], dtype=NAMES[self.values.dtype]),
            _ragged.Columns(lines, [counts, width], [length], dtype=NAMES[self.lines.dtype]),
            _ragged.Columns(scales, [width, blocks], dtype="f32"), block="128x1",
            powers_of_two=powers_of_two)


def _multiply_on_gpu(a, b, a_scales, b_scales, parts, sums, accumulate):
    _gemm.grouped_mm(a, b, parts, out=sums, format="begins_and_counts", accumulate=accumulate,
                     a_scales=a_scales, b_scales=b_scales)


def _multiply_on_cpu(a, b, a_scales, b_scales, parts, sums, accumulate):
    of_a = a.float() * a_scales.repeat_interleave(_BLOCK, 1)
    of_b = b.float() * b_scales.repeat_interleave(_BLOCK, 0)
    for group, (first, count) in enumerate(zip(*(part.tolist() for part in parts))):
        product = of_a[:, first:first + count] @ of_b[first:first + count]
        sums[group] = product + sums[group].float() if accumulate else product


def _refuse(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("d_out", "x"), "it is a gradient itself, in 8 bits. Detach it")


register("quantized_weight_gradient", {"CUDA": _gradient, "CPU": _gradient}, _fake, no_backward,
         _refuse)
register("add_quantized_weight_gradient", {"CUDA": _add, "CPU": _add}, _add_fake)
