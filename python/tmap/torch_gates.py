# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch for grouped products with gates, which `tmap.torch_moe` describes."""
import math

import torch

from . import _gemm
from ._epilogue import SCALED_RESULTS, Gate, gate_of
from .torch_library import define, differentiable_once, register
from .torch_products import OPERANDS, check_bias, gradients_of_rows, grouped_mm_cpu, multiply
from .torch_scaled import (E4M3, check_scaled, check_type, no_backward, quantize, refuse_gradients,
                           scaled_cpu, terms_of)
from .torch_tensors import row_major

OPTIONS = ('*, str function="silu", str columns="halves", float alpha=1.0, float? limit=None, '
            "float value_shift=0.0")
GATED_COLUMNS = 32  # the columns of a product with a gate are a multiple of this
define(f"grouped_gated_mm(Tensor a, Tensor b, Tensor offs, Tensor? bias=None, {OPTIONS}) -> "
       "(Tensor out, Tensor sums)",
       "grouped_mm_gate_backward(Tensor d_out, Tensor b, Tensor sums, Tensor offs, "
       f"{OPTIONS}) -> Tensor",
       "grouped_scaled_gated_mm(Tensor a, Tensor b, Tensor a_scales, Tensor b_scales, Tensor offs, "
       f"Tensor? bias=None, ScalarType? out_dtype=None, {OPTIONS}, bool powers_of_two=False) -> "
       "(Tensor out, Tensor scales)",
       "grouped_mlp(Tensor a, Tensor b, Tensor c, Tensor offs, Tensor? bias=None, "
       f"Tensor? c_bias=None, {OPTIONS}) -> (Tensor out, Tensor hidden, Tensor sums)")


def gate_of_options(function="silu", columns="halves", alpha=1.0, limit=None,
                    value_shift=0.0) -> Gate:
    limit = math.inf if limit is None else limit
    return gate_of(Gate(function, columns, alpha, limit, value_shift))


def _check(a, b, offs, bias=None):
    if ((a.dim(), b.dim(), offs.dim()) != (2, 3, 1) or a.dtype != b.dtype
            or a.dtype not in OPERANDS):
        raise ValueError("products with gates are of a [rows, k] and b [groups, k, n], both "
                         "bfloat16 or both float16, with offs [groups]")
    if bias is not None:
        check_bias(b, bias, a.dtype)


def check_columns(b, multiple=GATED_COLUMNS):
    if b.shape[2] % multiple:
        raise ValueError(f"b has {b.shape[2]} columns: this product with a gate takes a multiple "
                         f"of {multiple}")


def _gated_fake(a, b, offs, bias=None, **options):
    gate_of_options(**options)
    _check(a, b, offs, bias)
    check_columns(b)
    rows, n = a.shape[0], b.shape[2]
    return a.new_empty((rows, n // 2)), a.new_empty((rows, n))


def _gated_cuda(a, b, offs, bias=None, **options):
    out, sums = _gated_fake(a, b, offs, bias, **options)
    if a.shape[0]:
        _gemm.grouped_mm(a, b, offs, out=out, gate=gate_of_options(**options), kept=sums,
                         bias=None if bias is None else bias.contiguous())
    return out, sums


def gated_cpu(a, b, offs, bias=None, **options):
    _check(a, b, offs, bias)
    check_columns(b)
    sums = grouped_mm_cpu(a, b, offs, bias, torch.float32)
    return _gated(sums, gate_of_options(**options)).to(a.dtype), sums.to(a.dtype)


def _halves(sums, gate):
    """Returns the columns of gates and those of values."""
    if gate.columns == "halves":
        return sums.chunk(2, -1)
    return sums[..., 0::2], sums[..., 1::2]


def _joined(gates, values, gate):
    if gate.columns == "halves":
        return torch.cat((gates, values), -1)
    return torch.stack((gates, values), -1).flatten(-2)


def _function(x, gate):
    """Returns the function of a gate, and its derivative."""
    if gate.function == "silu":
        part = torch.sigmoid(gate.alpha * x)
        return x * part, part * (1 + gate.alpha * x * (1 - part))
    if gate.function == "gelu":
        part = 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))
        return x * part, part + x * torch.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi))
    scale = math.sqrt(2 / math.pi)
    curve = torch.tanh(scale * (x + 0.044715 * x ** 3))
    slope = 0.5 * x * (1 - curve * curve) * scale * (1 + 3 * 0.044715 * x * x)
    return 0.5 * x * (1 + curve), 0.5 * (1 + curve) + slope


def _gated(sums, gate):
    gates, values = _halves(sums, gate)
    values = values.clamp(-gate.limit, gate.limit) + gate.value_shift
    return _function(gates.clamp(max=gate.limit), gate)[0] * values


def _gate_gradients(of_results, sums, gate):
    """Returns the gradients of sums, in f32."""
    gates, values = _halves(sums.float(), gate)
    of_results = of_results.float()
    made, slope = _function(gates.clamp(max=gate.limit), gate)
    of_gates = of_results * slope * (values.clamp(-gate.limit, gate.limit) + gate.value_shift)
    of_values = of_results * made
    if gate.limit != math.inf:
        of_gates = torch.where(gates <= gate.limit, of_gates, 0.0)
        of_values = torch.where(values.abs() <= gate.limit, of_values, 0.0)
    return _joined(of_gates, of_values, gate)


def _keep_gated(ctx, inputs, keyword_only_inputs, output):
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(*inputs[:3], output[1], (*inputs, None)[3])
    ctx.options = dict(keyword_only_inputs)


def _of_bias(gradient, offs, is_wanted):
    return torch.ops.tmap.group_sums(gradient, offs) if is_wanted else None


@differentiable_once("grouped_gated_mm")
def _gated_backward(ctx, gradient, _):
    """Returns the gradients of a gated product."""
    a, b, offs, sums, _ = ctx.saved_tensors
    of_sums = _gate_gradients(gradient, sums, gate_of_options(**ctx.options)).to(a.dtype)
    return (*gradients_of_rows(a, b, offs, of_sums, *ctx.needs_input_grad[:2]), None,
            _of_bias(of_sums, offs, any(ctx.needs_input_grad[3:4])))


def _gate_backward_fake(d_out, b, sums, offs, **options):
    _check(d_out, b, offs)
    return d_out.new_empty(sums.shape)


def _gate_backward_cuda(d_out, b, sums, offs, **options):
    made = _gate_backward_fake(d_out, b, sums, offs)
    if d_out.shape[0]:
        _gemm.grouped_mm(d_out, b, offs, out=made, kept=sums,
                         gate=gate_of_options(**options)._replace(backward=True))
    return made


def _keep_no_gate(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("d_out", "b", "sums"), "it makes a gradient itself. Detach it")


def _gate_backward_cpu(d_out, b, sums, offs, **options):
    of_hidden = grouped_mm_cpu(d_out, b, offs, None, torch.float32)
    return _gate_gradients(of_hidden, sums, gate_of_options(**options)).to(d_out.dtype)


def _scaled_gated_fake(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *,
                       powers_of_two=False, **options):
    gate_of_options(**options)
    check_scaled(a, b, a_scales, b_scales, offs, bias)
    in_halves = options.get("columns", "halves") == "halves"
    check_columns(b, 2 * SCALED_RESULTS if in_halves and a_scales.dim() != 1 else GATED_COLUMNS)
    dtype, rows, columns = out_dtype or E4M3, a.shape[0], b.shape[2] // 2
    check_type("the result", dtype, (E4M3, torch.bfloat16, torch.float32))
    blocks = -(-columns // SCALED_RESULTS) if dtype == E4M3 else 0
    return (a.new_empty((rows, columns), dtype=dtype),
            a.new_empty((rows, blocks), dtype=torch.float32))


def _scaled_gated_cuda(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *,
                       powers_of_two=False, **options):
    out, scales = _scaled_gated_fake(a, b, a_scales, b_scales, offs, bias, out_dtype, **options)
    if a.numel() == 0 or b.numel() == 0:
        return out.zero_(), scales.fill_(1)
    results = {"out_scales": scales, "powers_of_two": powers_of_two} if out.dtype == E4M3 else {}
    _gemm.grouped_mm(a, b, offs, out=out, gate=gate_of_options(**options), **results,
                     **terms_of(a_scales, b_scales, bias))
    return out, scales


def _scaled_gated_cpu(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *,
                      powers_of_two=False, **options):
    _, scales = _scaled_gated_fake(a, b, a_scales, b_scales, offs, bias, out_dtype, **options)
    sums = scaled_cpu(a, b, a_scales, b_scales, offs, bias, torch.float32)
    made = _gated(sums, gate_of_options(**options))
    if out_dtype in (None, E4M3):
        return quantize(made, powers_of_two=powers_of_two)
    return made.to(out_dtype), scales


def _keep_no_scaled(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("a", "b", "a_scales", "b_scales", None, "bias"),
                     "gated products in 8 bits have none. Use grouped_quantized_mm and a gate of "
                     "PyTorch, or no_grad")


def _mlp_fake(a, b, c, offs, bias=None, c_bias=None, **options):
    hidden, sums = _gated_fake(a, b, offs, bias, **options)
    return a.new_empty((a.shape[0], c.shape[2])), hidden, sums


def _mlp(a, b, c, offs, bias=None, c_bias=None, **options):
    gated = _gated_cuda if a.is_cuda else gated_cpu
    hidden, sums = gated(a, b, offs, bias, **options)
    return multiply(hidden, c, offs=offs, bias=c_bias), hidden, sums


def _keep_mlp(ctx, inputs, keyword_only_inputs, output):
    ctx.mark_non_differentiable(*output[1:])
    ctx.save_for_backward(*inputs[:4], *output[1:], (*inputs, None)[4])
    ctx.options = dict(keyword_only_inputs)


@differentiable_once("grouped_mlp")
def _mlp_backward(ctx, gradient, _hidden, _sums):
    a, b, c, offs, hidden, sums, _ = ctx.saved_tensors
    # Biases that were left out are missing.
    needs_a, needs_b, needs_c, _, *needs_biases = ctx.needs_input_grad
    needs_bias, needs_c_bias = (*needs_biases, False, False)[:2]
    gradient = row_major(gradient.to(a.dtype))
    of_a = of_b = of_bias = None
    _, of_c = gradients_of_rows(hidden, c, offs, gradient, False, needs_c)
    if needs_a or needs_b or needs_bias:
        of_sums = torch.ops.tmap.grouped_mm_gate_backward(gradient, c.transpose(-2, -1), sums, offs,
                                                          **ctx.options)
        of_a, of_b = gradients_of_rows(a, b, offs, of_sums, needs_a, needs_b)
        of_bias = _of_bias(of_sums, offs, needs_bias)
    return of_a, of_b, of_c, None, of_bias, _of_bias(gradient, offs, needs_c_bias)


register("grouped_gated_mm", {"CUDA": _gated_cuda, "CPU": gated_cpu}, _gated_fake,
          _gated_backward, _keep_gated)
register("grouped_mm_gate_backward", {"CUDA": _gate_backward_cuda, "CPU": _gate_backward_cpu},
          _gate_backward_fake, no_backward, _keep_no_gate)
register("grouped_scaled_gated_mm", {"CUDA": _scaled_gated_cuda, "CPU": _scaled_gated_cpu},
         _scaled_gated_fake, no_backward, _keep_no_scaled)
register("grouped_mlp", {"CUDA": _mlp, "CPU": _mlp}, _mlp_fake, _mlp_backward, _keep_mlp)
