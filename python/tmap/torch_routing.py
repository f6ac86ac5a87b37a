# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch that choose experts and sort the choices, which `tmap.torch_moe`
describes."""
import torch

from . import moe
from ._routing import SCORINGS
from .torch_library import define, register
from .torch_tensors import with_rows

_SORTED_NAMES = ("counts", "ends", "row_of_choice", "token_of_row", "weight_of_row")
_SORTED = ("(Tensor counts, Tensor ends, Tensor row_of_choice, Tensor token_of_row, "
           "Tensor weight_of_row)")
define('moe_route(Tensor logits, int k, Tensor? bias=None, *, '
       'str scoring="softmax_then_top_k", int expert_groups=1, int chosen_groups=1, '
       'str group_score="largest", bool renormalise=False, float scale=1.0) -> '
       "(Tensor ids, Tensor weights, " + _SORTED[1:],
       "moe_sort(Tensor ids, int experts, Tensor? weights=None) -> " + _SORTED)


def _empty_sorted(like, tokens, experts, k):
    """Returns the results of a sort, without contents."""
    def int32(*shape):
        return like.new_empty(shape, dtype=torch.int32)

    return (int32(experts), int32(experts), int32(tokens, k), int32(tokens * k),
            like.new_empty(tokens * k, dtype=torch.float32))


def _route_fake(logits, k, bias=None, *, scoring="softmax_then_top_k", expert_groups=1,
                chosen_groups=1, group_score="largest", renormalise=False, scale=1.0):
    tokens, experts = logits.shape
    return (logits.new_empty((tokens, k), dtype=torch.int32),
            logits.new_empty((tokens, k), dtype=torch.float32),
            *_empty_sorted(logits, tokens, experts, k))


def _route_cuda(logits, k, bias=None, *, scoring="softmax_then_top_k", expert_groups=1,
                chosen_groups=1, group_score="largest", renormalise=False, scale=1.0):
    made = _route_fake(logits, k)
    groups = None if expert_groups == 1 else moe.Groups(expert_groups, chosen_groups, group_score)
    moe.route(with_rows(logits), ids=made[0], weights=made[1], k=k, scoring=scoring, bias=bias,
              groups=groups, renormalise=renormalise, scale=scale,
              **dict(zip(_SORTED_NAMES, made[2:])))
    return made


def _route_cpu(logits, k, bias=None, *, scoring="softmax_then_top_k", expert_groups=1,
               chosen_groups=1, group_score="largest", renormalise=False, scale=1.0):
    if scoring not in SCORINGS:
        raise ValueError(f"scoring is one of {SCORINGS}, not {scoring!r}")
    scores = _without_nan(logits)
    if scoring == "sigmoid":
        scores = scores.sigmoid() + (0 if bias is None else bias)
    if expert_groups > 1:
        scores = _of_best_groups(scores, expert_groups, chosen_groups, group_score)
    ids = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :k].int().contiguous()
    weights = _weights(logits, ids, scoring, renormalise)[0] * scale
    return ids, weights, *sort_cpu(ids, logits.shape[1], weights)


def _without_nan(logits):
    return torch.where(logits.isnan(), -torch.inf, logits.float())


def _of_best_groups(scores, count, chosen, score):
    parts = scores.view(scores.shape[0], count, -1)
    best = parts.topk(2 if score == "sum_of_two_largest" else 1, dim=2).values.sum(2)
    order = torch.sort(best, dim=1, descending=True, stable=True).indices[:, :chosen]
    is_chosen = torch.zeros_like(best, dtype=torch.bool).scatter_(1, order, True)
    return torch.where(is_chosen[:, :, None], parts, -torch.inf).view_as(scores)


def _weights(logits, ids, scoring, renormalise):
    """Returns the weights without their scale, those before they were divided by their sum, and the
    sum (1 if they are not divided)."""
    logits, ids = _without_nan(logits), ids.long()
    if scoring == "softmax_then_top_k":
        parts = torch.softmax(logits, 1).gather(1, ids)
    elif scoring == "top_k_then_softmax":
        parts = torch.softmax(logits.gather(1, ids), 1)
    else:
        parts = logits.gather(1, ids).sigmoid()
    if not renormalise:
        return parts, parts, 1.0
    total = parts.sum(1, keepdim=True)
    total = torch.where(total == 0, 1.0, total)
    return parts / total, parts, total


def _keep_route(ctx, inputs, keyword_only_inputs, output):
    ctx.mark_non_differentiable(output[0], *output[2:6])
    ctx.save_for_backward(inputs[0], output[0], output[4])
    ctx.options = {name: keyword_only_inputs[name] for name in ("scoring", "renormalise", "scale")}


def _of_rows(gradient, row_of_choice):
    """Returns the gradient of each choice from that of its row."""
    rows = row_of_choice.long()
    if gradient.shape[0] == 0:
        return torch.zeros_like(rows, dtype=gradient.dtype)
    return torch.where(rows >= 0, gradient[rows.clamp(min=0)], 0.0)


def _route_backward(ctx, _ids, of_weights, _counts, _ends, _rows, _tokens, of_rows):
    logits, ids, row_of_choice = ctx.saved_tensors
    scoring, renormalise = ctx.options["scoring"], ctx.options["renormalise"]
    weights, parts, total = _weights(logits, ids, scoring, renormalise)
    gradient = (of_weights + _of_rows(of_rows, row_of_choice)) * ctx.options["scale"]
    if renormalise:
        gradient = (gradient - (gradient * weights).sum(1, keepdim=True)) / total
    along = gradient * parts
    if scoring == "sigmoid":
        made = torch.zeros_like(logits, dtype=torch.float32)
        made = made.scatter(1, ids.long(), along * (1 - parts))
    else:
        sums = along.sum(1, keepdim=True)
        if scoring == "softmax_then_top_k":
            made = -sums * torch.softmax(_without_nan(logits), 1)
            made = made.scatter_add(1, ids.long(), along)
        else:
            made = torch.zeros_like(logits, dtype=torch.float32)
            made = made.scatter(1, ids.long(), along - parts * sums)
    return made.to(logits.dtype), None, None


def _sort_fake(ids, experts, weights=None):
    return _empty_sorted(ids, ids.shape[0], experts, ids.shape[1])


def sort_cuda(ids, experts, weights=None):
    made = _sort_fake(ids, experts)
    moe.route(ids=ids.contiguous(), experts=experts,
              weights=None if weights is None else weights.contiguous(),
              **dict(zip(_SORTED_NAMES, made)))
    return made


def sort_cpu(ids, experts, weights=None):
    flat, k = ids.flatten().long(), ids.shape[1]
    has_row = (flat >= 0) & (flat < experts)
    keys = torch.where(has_row, flat, experts)
    order = torch.sort(keys, stable=True).indices
    counts = torch.bincount(keys, minlength=experts + 1)[:experts]
    rows = torch.empty_like(flat).scatter_(0, order, torch.arange(flat.shape[0]))
    values = torch.ones(flat.shape) if weights is None else weights.flatten()
    is_used = has_row[order]
    return (counts.int(), counts.cumsum(0).int(),
            torch.where(has_row, rows, -1).int().view_as(ids),
            torch.where(is_used, order // k, -1).int(), torch.where(is_used, values[order], 0.0))


def _keep_sorted(ctx, inputs, output):
    ctx.mark_non_differentiable(*output[:4])
    ctx.save_for_backward(output[2])


def _sort_backward(ctx, _counts, _ends, _rows, _tokens, of_rows):
    row_of_choice, = ctx.saved_tensors
    return None, None, _of_rows(of_rows, row_of_choice) if any(ctx.needs_input_grad[2:]) else None


register("moe_route", {"CUDA": _route_cuda, "CPU": _route_cpu}, _route_fake, _route_backward,
          _keep_route)
register("moe_sort", {"CUDA": sort_cuda, "CPU": sort_cpu}, _sort_fake, _sort_backward,
          _keep_sorted)
