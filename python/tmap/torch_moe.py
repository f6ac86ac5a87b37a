# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch for layers of experts: importing this module registers these, and those of
`tmap.torch_ops`.

moe_route(logits, k, bias=None, *, scoring="softmax_then_top_k", expert_groups=1, chosen_groups=1,
          group_score="largest", renormalise=False, scale=1.0)
    Chooses k experts for each token, as `tmap.moe.route` does. Returns ids [tokens, k], weights
    [tokens, k], counts [experts], ends [experts], row_of_choice [tokens, k], token_of_row
    [tokens * k] and weight_of_row [tokens * k]. Weights have a gradient with respect to the logits.
moe_sort(ids, experts, weights=None)
    Sorts choices that exist already, int32 or int64 ids [tokens, k]. Returns the last five results.
    -1 is no expert.
moe_combine(values, row_of_choice, weights=None, base=None)
    Adds up the weighted rows of each token, as `tmap.moe.combine` does. All of float type have
    gradients, by moe_combine_backward. No two choices name the same row.
moe_gather(x, token_of_row, row_of_choice)
    Copies the tokens x into the order by expert, by results of moe_route or moe_sort. A row without
    a choice gets some token. The gradient adds up the rows of each token, in a fixed order.
grouped_gated_mm(a, b, offs, bias=None, *, function="silu", columns="halves", alpha=1.0, limit=None,
                 value_shift=0.0)
    Multiplies as `grouped_mm` with rows that are ragged, then applies a `tmap.Gate`. Returns the
    results [rows, n / 2], and the sums [rows, n] as they were before the gate. n is a multiple of
    32. `bias` [groups, n] is added to the sums.
grouped_scaled_gated_mm(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *, ...,
                        powers_of_two=False)
    Multiplies as `grouped_scaled_mm` and applies a gate to the sums. Returns the results
    [rows, n / 2] in float8_e4m3fn and their scales, float32 [rows, n / 256] rounded up, which the
    next grouped_scaled_mm takes. With `out_dtype` bfloat16 or float32 there are no scales. With
    block scales and columns in halves, n / 2 is a multiple of 128. Has no gradients.
grouped_mlp(a, b, c, offs, bias=None, c_bias=None, *, ...)
    grouped_mm(grouped_gated_mm(a, b, offs, bias, ...)[0], c, offs, c_bias). Its gradients take the
    gate's in the epilogue of a product. Returns the results, and two tensors that the gradients
    need.
moe_layer(x, gate_up, down, ids, weights, gate_up_bias=None, down_bias=None, *, ...)
    Runs a whole layer whose choices exist already, as `tmap.moe.layer` does: moe_sort, moe_gather,
    grouped_mlp and moe_combine in one call. `gate_up` and `down` are the b and c of grouped_mlp,
    with lines along either dim. `weights` are float32. Has no gradients.

Rows of no group are undefined in products, and zero in gradients. All work under torch.compile,
never read a size on the host, and may be captured in a graph. On the CPU they do the same, slowly.
"""
import torch

from . import _gemm, moe
from . import torch_gates
from . import torch_ops  # noqa: F401: registers the others
from .torch_library import define, differentiable_once, register
from .torch_products import grouped_mm_cpu, grouped_mm_cuda, lines_run_along_k
from .torch_routing import sort_cpu, sort_cuda
from .torch_scaled import no_backward, refuse_gradients
from .torch_tensors import row_major

define("moe_combine(Tensor values, Tensor row_of_choice, Tensor? weights=None, "
       "Tensor? base=None) -> Tensor",
       "moe_combine_backward(Tensor d_out, Tensor row_of_choice, Tensor? weights, "
       "Tensor? values, SymInt rows, bool wants_values) -> "
       "(Tensor d_values, Tensor d_weights)",
       "moe_gather(Tensor x, Tensor token_of_row, Tensor row_of_choice) -> Tensor",
       "moe_layer(Tensor x, Tensor gate_up, Tensor down, Tensor ids, Tensor weights, "
       f"Tensor? gate_up_bias=None, Tensor? down_bias=None, {torch_gates.OPTIONS}) -> Tensor")
# A product reads up to so many rows of an expert by index, and more from a copy (docs/experts.md).
_ROWS_BY_INDEX = 128


def _combine_fake(values, row_of_choice, weights=None, base=None):
    return values.new_empty((row_of_choice.shape[0], values.shape[1]))


def _combine_cuda(values, row_of_choice, weights=None, base=None):
    out = _combine_fake(values, row_of_choice)
    moe.combine(values, row_of_choice.contiguous(), out=out, base=base,
                weights=None if weights is None else weights.contiguous())
    return out


def _rows_of_choices(values, row_of_choice):
    """Returns values [tokens, k, columns] in f32, with zeros for choices without a row."""
    rows = row_of_choice.long()
    has_row = (rows >= 0) & (rows < values.shape[0])
    if values.shape[0] == 0:
        return values.new_zeros((*rows.shape, values.shape[1]), dtype=torch.float32)
    return torch.where(has_row[:, :, None], values[torch.where(has_row, rows, 0)].float(), 0.0)


def _combine_cpu(values, row_of_choice, weights=None, base=None):
    rows = _rows_of_choices(values, row_of_choice)
    if weights is not None:
        rows = rows * weights[:, :, None]
    sums = rows.sum(1) if base is None else base.float() + rows.sum(1)
    return sums.to(values.dtype)


def _keep_combined(ctx, inputs, output):
    values, row_of_choice, weights, _ = inputs
    of_weights = weights is not None and weights.requires_grad
    ctx.save_for_backward(row_of_choice, weights, values if of_weights else None)
    ctx.rows = values.shape[0]


@differentiable_once("moe_combine")
def _combine_backward(ctx, gradient):
    row_of_choice, weights, values = ctx.saved_tensors
    # Operands that were left out are missing.
    wants_values, _, wants_weights, wants_base = (*ctx.needs_input_grad, False, False)[:4]
    of_values = of_weights = None
    if wants_values or wants_weights:
        of_values, of_weights = torch.ops.tmap.moe_combine_backward(
            gradient, row_of_choice, weights, values if wants_weights else None, ctx.rows,
            wants_values)
    return (of_values if wants_values else None, None, of_weights if wants_weights else None,
            gradient if wants_base else None)


def _gradients_fake(d_out, row_of_choice, weights, values, rows, wants_values):
    """Returns empty tensors for gradients that are not wanted."""
    of_values = d_out.new_empty((rows, d_out.shape[1]) if wants_values else (0, 0))
    shape = (0, 0) if values is None else row_of_choice.shape
    return of_values, d_out.new_empty(shape, dtype=torch.float32)


def _gradients_cuda(d_out, row_of_choice, weights, values, rows, wants_values):
    of_values, of_weights = _gradients_fake(d_out, row_of_choice, weights, values, rows,
                                            wants_values)
    moe.combine_backward(row_major(d_out), row_of_choice.contiguous(), values=values,
                         weights=None if weights is None else weights.contiguous(),
                         d_values=of_values.zero_() if wants_values else None,
                         d_weights=None if values is None else of_weights)
    return of_values, of_weights


def _gradients_cpu(d_out, row_of_choice, weights, values, rows, wants_values):
    of_values, of_weights = _gradients_fake(d_out, row_of_choice, weights, values, rows,
                                            wants_values)
    if values is not None:
        of_weights = (_rows_of_choices(values, row_of_choice) * d_out.float()[:, None]).sum(2)
    if wants_values:
        of_choices = d_out.float()[:, None].expand(*row_of_choice.shape, -1)
        if weights is not None:
            of_choices = of_choices * weights[:, :, None]
        has_row = (row_of_choice >= 0) & (row_of_choice < rows)
        of_values.zero_()[row_of_choice[has_row].long()] = of_choices[has_row].to(d_out.dtype)
    return of_values, of_weights


def _keep_no_gradients(ctx, inputs, output):
    refuse_gradients(ctx, ("d_out", None, "weights", "values"),
                     "it makes a gradient itself. Detach it")


def _gather(x, token_of_row, row_of_choice):
    return x.index_select(0, token_of_row.clamp(min=0))


def _gather_fake(x, token_of_row, row_of_choice):
    return x.new_empty((token_of_row.shape[0], x.shape[1]))


def _keep_gathered(ctx, inputs, output):
    ctx.save_for_backward(inputs[2])


def _gather_backward(ctx, gradient):
    row_of_choice, = ctx.saved_tensors
    return torch.ops.tmap.moe_combine(row_major(gradient), row_of_choice), None, None


def _layer_fake(x, gate_up, down, ids, weights, gate_up_bias=None, down_bias=None, **options):
    torch_gates.check_columns(gate_up)
    return x.new_empty((x.shape[0], down.shape[2]))


def _layer_cuda(x, gate_up, down, ids, weights, gate_up_bias=None, down_bias=None, **options):
    out, gate = _layer_fake(x, gate_up, down, ids, weights), torch_gates.gate_of_options(**options)
    x, ids, weights = row_major(x), ids.contiguous(), weights.contiguous()
    gate_up_bias, down_bias = (None if bias is None else bias.contiguous()
                               for bias in (gate_up_bias, down_bias))
    if lines_run_along_k(gate_up) and lines_run_along_k(down):
        moe.layer(x, gate_up.transpose(-2, -1), down.transpose(-2, -1), out=out, ids=ids,
                  weights=weights, gate=gate, gate_up_bias=gate_up_bias, down_bias=down_bias)
        return out
    _, ends, row_of_choice, token_of_row, _ = sort_cuda(ids, gate_up.shape[0])
    rows = {"a_rows": token_of_row}
    if ids.numel() > _ROWS_BY_INDEX * gate_up.shape[0]:
        x, rows = _gather(x, token_of_row, row_of_choice), {}
    hidden = x.new_empty((ids.numel(), down.shape[1]))
    _gemm.grouped_mm(x, gate_up, ends, out=hidden, gate=gate, bias=gate_up_bias, **rows)
    moe.combine(grouped_mm_cuda(hidden, down, ends, down_bias), row_of_choice, out=out,
                weights=weights)
    return out


def _layer_cpu(x, gate_up, down, ids, weights, gate_up_bias=None, down_bias=None, **options):
    _, ends, row_of_choice, token_of_row, _ = sort_cpu(ids, gate_up.shape[0])
    rows = _gather(x, token_of_row, row_of_choice)
    hidden = torch_gates.gated_cpu(rows, gate_up, ends, gate_up_bias, **options)[0]
    return _combine_cpu(grouped_mm_cpu(hidden, down, ends, down_bias), row_of_choice, weights)


def _keep_no_layer(ctx, inputs, keyword_only_inputs, output):
    refuse_gradients(ctx, ("x", "gate_up", "down", None, "weights", "gate_up_bias", "down_bias"),
                     "moe_layer has none. Use moe_sort, moe_gather, grouped_mlp and moe_combine, "
                     "or no_grad")


register("moe_combine", {"CUDA": _combine_cuda, "CPU": _combine_cpu}, _combine_fake,
          _combine_backward, _keep_combined)
register("moe_combine_backward", {"CUDA": _gradients_cuda, "CPU": _gradients_cpu}, _gradients_fake,
         no_backward, _keep_no_gradients)
register("moe_gather", {"CUDA": _gather, "CPU": _gather}, _gather_fake, _gather_backward,
         _keep_gathered)
register("moe_layer", {"CUDA": _layer_cuda, "CPU": _layer_cpu}, _layer_fake, no_backward,
         _keep_no_layer)
