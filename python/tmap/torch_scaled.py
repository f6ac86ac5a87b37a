# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch for grouped products in 8 bits with scales, which `tmap.torch_ops`
describes."""
import torch

from . import _gemm, _ragged, ragged
from ._epilogue import SCALED_ELEMENTS, block_scale_shapes
from ._gemm_problem import prepare
from ._numbers import choice
from .torch_library import define, differentiable_once, register
from .torch_products import (check_bias, check_offsets, gradient_of_weights, lines_run_along_k,
                             multiply_groups_on_cpu)
from .torch_tensors import NAMES, row_major, with_rows

define('quantize(Tensor values, *, str block="1x128", ScalarType? dtype=None, '
       "bool powers_of_two=False) -> (Tensor out, Tensor scales)",
       "grouped_scaled_mm(Tensor a, Tensor b, Tensor a_scales, Tensor b_scales, Tensor offs, "
       "Tensor? bias=None, ScalarType? out_dtype=None, *, bool fast_accumulation=False, "
       "bool zero_rest=False) -> Tensor",
       "grouped_quantized_mm(Tensor x, Tensor b, Tensor b_scales, Tensor offs, Tensor? bias=None, "
       "Tensor? weights=None, ScalarType? out_dtype=None, *, ScalarType? gradient_dtype=None, "
       "bool powers_of_two=False, bool quantized_weight_gradient=False) -> Tensor",
       "grouped_quantized_mm_backward(Tensor d_out, Tensor b, Tensor b_scales, Tensor offs, *, "
       "ScalarType? dtype=None, bool powers_of_two=False) -> Tensor")

E4M3, EIGHT_BITS = torch.float8_e4m3fn, (torch.float8_e4m3fn, torch.float8_e5m2)
_ops = torch.ops.tmap


def refuse_gradients(ctx, names, advice):
    """Raises if an operand without a gradient wants one. `names` are those of the operands."""
    for name, wants in zip(names, ctx.needs_input_grad):
        if wants and name is not None:
            raise ValueError(f"{name} has no gradient: {advice}")


def check_type(name, dtype, allowed):
    if dtype not in allowed:
        raise TypeError(f"{name} is of {' or '.join(map(str, allowed))}, not {dtype}")


def _quantize_fake(values, *, block="1x128", dtype=None, powers_of_two=False):
    choice(block, _ragged.SCALE_BLOCKS, "block")
    check_type("values", values.dtype, (torch.bfloat16, torch.float16, torch.float32))
    check_type("the result", dtype or E4M3, EIGHT_BITS)
    if values.dim() not in (2, 3):
        raise ValueError(f"values have 2 or 3 dims, not {values.dim()}")
    *outer, rows, columns = values.shape
    down, across = -(-rows // SCALED_ELEMENTS), -(-columns // SCALED_ELEMENTS)
    of_scales = {"row": (rows,), "1x128": (rows, across), "128x128": (down, across),
                 "128x1": (down, columns)}[block]
    of_values = (columns, rows) if block == "128x1" else (rows, columns)
    return (values.new_empty((*outer, *of_values), dtype=dtype or E4M3),
            values.new_empty((*outer, *of_scales), dtype=torch.float32))


def quantize(values, *, block="1x128", dtype=None, powers_of_two=False):
    out, scales = _quantize_fake(values, block=block, dtype=dtype)
    if out.numel() == 0:
        return out, scales.fill_(1)
    blocks = scales.unsqueeze(-1) if block == "row" else scales
    ragged.quantize(*_each_as_one(with_rows(values), out, blocks), block=block,
                    powers_of_two=powers_of_two)
    return out, scales


def _each_as_one(*tensors):
    """Returns a batch of one tensor for each. They are on the device alone, so a graph may capture
    a call on them."""
    one = torch.ones(1, dtype=torch.int32, device=tensors[0].device)
    return [_ragged.Rows(tensor.unsqueeze(0), one) for tensor in tensors]


def _keep_nothing(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("values",), "quantize values.detach(). grouped_quantized_mm quantizes "
                                        "rows, and has gradients")


def no_backward(ctx, *gradients):
    return tuple(None for _ in ctx.needs_input_grad)


def check_scaled(a, b, a_scales, b_scales, offs, bias, out_dtype=None,
                 fast_accumulation=False):
    check_type("a", a.dtype, EIGHT_BITS)
    _check_operands(a, "a", b, offs, bias, out_dtype)
    (rows, k), (groups, _, n) = a.shape, b.shape
    has_blocks = a_scales.dim() != 1
    of_a, of_b = block_scale_shapes(rows, k, n, groups) if has_blocks else ((rows,), (groups, n))
    _check_scales("a_scales", a_scales, of_a, a.device)
    _check_scales("b_scales", b_scales, of_b, a.device)
    if fast_accumulation and (has_blocks or a.dtype != E4M3):
        raise ValueError("fast_accumulation is for a of float8_e4m3fn with scales of rows")


def _check_operands(rows, name, b, offs, bias, out_dtype):
    check_type("b", b.dtype, (E4M3,))
    if (rows.dim(), b.dim()) != (2, 3) or rows.shape[1] != b.shape[1]:
        raise ValueError(f"{name} is [rows, k] and b [groups, k, n], not {tuple(rows.shape)} and "
                         f"{tuple(b.shape)}")
    check_offsets(rows, b, offs)
    if b.shape[0] != offs.shape[0]:
        raise ValueError(f"offs cuts {offs.shape[0]} groups, b has {b.shape[0]}")
    if bias is not None:
        check_bias(b, bias, torch.bfloat16)
    check_type("the product", out_dtype or torch.bfloat16, (torch.bfloat16, torch.float32))


def _check_scales(name, scales, shape, device):
    if scales.dtype != torch.float32 or scales.shape != shape or scales.device != device:
        raise ValueError(f"{name} is {tuple(scales.shape)} of {scales.dtype} on {scales.device}: "
                         f"it must be {tuple(shape)} of torch.float32 on {device}")


def _scaled_fake(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *,
                 fast_accumulation=False, zero_rest=False):
    check_scaled(a, b, a_scales, b_scales, offs, bias, out_dtype, fast_accumulation)
    return a.new_empty((a.shape[0], b.shape[2]), dtype=out_dtype or torch.bfloat16)


def scaled_cuda(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *,
                 fast_accumulation=False, zero_rest=False):
    out = _scaled_fake(a, b, a_scales, b_scales, offs, bias, out_dtype,
                       fast_accumulation=fast_accumulation)
    has_sums = a.numel() > 0 and b.numel() > 0
    if zero_rest or not has_sums:
        out.zero_()
    if has_sums:
        _gemm.grouped_mm(a, b, offs, out=out, fast_accumulation=fast_accumulation,
                         **terms_of(a_scales, b_scales, bias))
    return out


def terms_of(a_scales, b_scales, bias):
    """Returns the keywords of `tmap.grouped_mm` for scales of either kind and a bias."""
    bias = None if bias is None else bias.contiguous()
    if a_scales.dim() != 1:
        return {"a_scales": a_scales, "b_scales": b_scales, "bias": bias}
    return {"row_scales": a_scales.contiguous(), "column_scales": b_scales.contiguous(),
            "bias": bias}


def scaled_cpu(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *,
                fast_accumulation=False, zero_rest=False):
    out = _scaled_fake(a, b, a_scales, b_scales, offs, bias, out_dtype,
                       fast_accumulation=fast_accumulation)
    ready = prepare(a.shape, a.stride(), b.shape, b.stride(), NAMES[a.dtype], offs.shape[0], 4, 0,
                    out.element_size())
    has_sums = ready.has_sums and a.shape[0] > 0
    # NaN stands for what is undefined, so that no program comes to rely on it.
    sums = out.float().fill_(torch.nan if has_sums and not zero_rest else 0.0)
    if has_sums:
        of_a, of_b = _of_elements(a, b, a_scales, b_scales)
        multiply_groups_on_cpu(a.float() * of_a, b.float() * of_b, sums, offs, bias)
    return sums.to(out.dtype)


def _of_elements(a, b, a_scales, b_scales):
    """Returns the scales of all elements."""
    def along(scales, dim, extent):
        return scales.repeat_interleave(SCALED_ELEMENTS, dim).narrow(dim, 0, extent)

    if a_scales.dim() == 1:
        return a_scales[:, None], b_scales[:, None]
    return along(a_scales, 1, a.shape[1]), along(along(b_scales, 1, b.shape[1]), 2, b.shape[2])


def _keep_offsets(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("a", "b", "a_scales", "b_scales"),
                      "detach it, or give grouped_quantized_mm rows in bfloat16")
    ctx.save_for_backward(inputs[4])


def _scaled_backward(ctx, gradient):
    offs, = ctx.saved_tensors
    of_bias = _of_bias(gradient, offs) if any(ctx.needs_input_grad[5:6]) else None
    return None, None, None, None, None, of_bias, None


def _of_bias(gradient, offs):
    return _ops.group_sums(gradient, offs).to(torch.bfloat16)


def _quantized_fake(x, b, b_scales, offs, bias=None, weights=None, out_dtype=None, *,
                    gradient_dtype=None, powers_of_two=False, quantized_weight_gradient=False):
    check_type("x", x.dtype, (torch.bfloat16,))
    _check_operands(x, "x", b, offs, bias, out_dtype)
    groups, k, n = b.shape
    _check_scales("b_scales", b_scales, block_scale_shapes(0, k, n, groups)[1], b.device)
    check_type("the gradient", gradient_dtype or E4M3, EIGHT_BITS)
    if weights is not None and (weights.shape, weights.dtype, weights.device) != (b.shape, x.dtype,
                                                                                  b.device):
        raise ValueError(f"weights is {tuple(weights.shape)} of {weights.dtype} on "
                         f"{weights.device}: it must be {tuple(b.shape)} of {x.dtype} on {b.device}, "
                         "as what b was quantized from")
    return x.new_empty((x.shape[0], b.shape[2]), dtype=out_dtype or torch.bfloat16)


def _quantized(x, b, b_scales, offs, bias=None, weights=None, out_dtype=None, *,
               gradient_dtype=None, powers_of_two=False, quantized_weight_gradient=False):
    _quantized_fake(x, b, b_scales, offs, bias, weights, out_dtype, gradient_dtype=gradient_dtype)
    multiply = scaled_cuda if x.is_cuda else scaled_cpu
    a, a_scales = quantize(x, powers_of_two=powers_of_two)
    return multiply(a, b, a_scales, b_scales, offs, bias, out_dtype)


def _keep_quantized(ctx, inputs, keyword_only_inputs, output):
    x, b, b_scales, offs, _, weights, _ = (*inputs, None, None, None)[:7]
    refuse_gradients(ctx, (None, "b", "b_scales"),
                      "detach it, and give what b was quantized from as `weights`")
    wants_x, *_, wants_weights = (*ctx.needs_input_grad, False, False)[:6]
    if wants_x and b.shape[2] % 16:
        raise ValueError(f"b has {b.shape[2]} columns: a gradient of x takes a multiple of 16")
    ctx.save_for_backward(x if wants_weights else None, b if wants_x else None,
                          b_scales if wants_x else None, offs)
    ctx.along_k = wants_weights and lines_run_along_k(weights)
    ctx.has_quantized_weights = keyword_only_inputs["quantized_weight_gradient"]
    ctx.options = {"dtype": keyword_only_inputs["gradient_dtype"],
                   "powers_of_two": keyword_only_inputs["powers_of_two"]}


@differentiable_once("grouped_quantized_mm")
def _quantized_backward(ctx, gradient):
    x, b, b_scales, offs = ctx.saved_tensors
    wants_x, _, _, _, wants_bias, wants_weights = (*ctx.needs_input_grad, False, False)[:6]
    of_x = of_bias = of_weights = None
    if wants_x:
        of_x = _ops.grouped_quantized_mm_backward(gradient, b, b_scales, offs, **ctx.options)
    if wants_bias:
        of_bias = _of_bias(gradient, offs)
    if wants_weights and ctx.has_quantized_weights:
        of_weights = _quantized_gradient_of_weights(x, offs, gradient, ctx.along_k, **ctx.options)
    elif wants_weights:
        gradient = row_major(gradient.to(x.dtype))
        of_weights = gradient_of_weights(row_major(x), offs, gradient, ctx.along_k)
    return of_x, None, None, None, of_bias, of_weights, None


def _quantized_gradient_of_weights(x, offs, gradient, along_k, dtype, powers_of_two):
    """Returns the gradient [groups, k, n] of weights, with lines along k or along n. Only the first
    operand may be e5m2, so a gradient of e5m2 makes lines along k."""
    if along_k or dtype == torch.float8_e5m2:
        return _ops.quantized_weight_gradient(gradient, x, offs, dtype=dtype,
                                              powers_of_two=powers_of_two).transpose(1, 2)
    return _ops.quantized_weight_gradient(x, gradient, offs, powers_of_two=powers_of_two)


def _backward_fake(d_out, b, b_scales, offs, *, dtype=None, powers_of_two=False):
    return d_out.new_empty((d_out.shape[0], b.shape[1]), dtype=torch.bfloat16)


def _backward(d_out, b, b_scales, offs, *, dtype=None, powers_of_two=False):
    """Products in 8 bits read b along what they sum up, so b is turned. Its scales need not be."""
    multiply = scaled_cuda if d_out.is_cuda else scaled_cpu
    a, a_scales = quantize(row_major(d_out), dtype=dtype, powers_of_two=powers_of_two)
    return multiply(a, _turned(b.transpose(1, 2)), a_scales, b_scales.transpose(1, 2), offs,
                    zero_rest=True)


def _keep_no_backward(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("d_out", "b", "b_scales"), "it makes a gradient itself. Detach it")


def _turned(b):
    """Returns the same values, [groups, n, k], with lines along n instead of k."""
    lines = b.new_empty((b.shape[0], b.shape[2], b.shape[1]))
    if b.numel():
        ragged.transpose(*_each_as_one(b, lines))
    return lines.transpose(1, 2)


register("quantize", {"CUDA": quantize, "CPU": quantize}, _quantize_fake, no_backward,
         _keep_nothing)
register("grouped_scaled_mm", {"CUDA": scaled_cuda, "CPU": scaled_cpu}, _scaled_fake,
         _scaled_backward, _keep_offsets)
register("grouped_quantized_mm", {"CUDA": _quantized, "CPU": _quantized}, _quantized_fake,
         _quantized_backward, _keep_quantized)
register("grouped_quantized_mm_backward", {"CUDA": _backward, "CPU": _backward}, _backward_fake,
         no_backward, _keep_no_backward)
