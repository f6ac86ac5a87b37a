# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch for grouped products, which `tmap.torch_ops` describes."""
import torch

from . import _ragged, ragged
from ._gemm_problem import enqueue, pieces_with_bias, prepare, with_wide_results, with_zeroed_rest
from ._libraries import ADAPTORS
from .torch_library import define, register
from .torch_tensors import NAMES, OFFSET_BYTES, row_major

define("grouped_mm(Tensor a, Tensor b, Tensor? offs=None, Tensor? bias=None, ScalarType? "
       "out_dtype=None, *, bool zero_rest=False) -> Tensor",
       "group_sums(Tensor values, Tensor offs) -> Tensor")

OPERANDS = {torch.bfloat16: "bf16", torch.float16: "f16"}
_torch = ADAPTORS[torch.Tensor]
# Compiled programs of PyTorch call this. It takes half the time of the public function, which the
# dispatcher calls.
_empty_cuda = getattr(torch._C._dynamo.guards, "_empty_strided_cuda", None) or (
    lambda *form: torch.empty_strided(*form[:2], dtype=form[2], device="cuda"))
_MOST_PRODUCTS = 1024
_products: dict = {}


def _check_operands(a, b, offs, bias, out_dtype):
    if (offs is None) != (a.dim() == b.dim() == 3):
        raise ValueError(f"operands of {a.dim()} and {b.dim()} dims: two of 3 have no ragged dim "
                         "and no offs, others have")
    if a.dtype != b.dtype or a.dtype not in OPERANDS:
        raise TypeError(f"a and b are both bfloat16 or both float16, not {a.dtype} and {b.dtype}")
    _check_output(a, offs, out_dtype)
    if bias is not None:
        if (a.dim(), b.dim()) != (2, 3):
            raise ValueError("grouped_mm takes a bias where rows are ragged, a [rows, k] and b "
                             "[groups, k, n]")
        check_bias(b, bias, a.dtype)
    if offs is not None:
        check_offsets(a, b, offs)


def check_offsets(a, b, offs):
    if offs.dtype not in OFFSET_BYTES or offs.dim() != 1 or not offs.is_contiguous():
        raise TypeError(f"offs is int32 or int64 [groups] without gaps, not {offs.dtype} "
                        f"{tuple(offs.shape)}")
    if not a.device == b.device == offs.device:
        raise ValueError(f"a, b and offs are on one device, not on {a.device}, {b.device} and "
                         f"{offs.device}")


def _check_output(a, offs, out_dtype):
    if out_dtype is None or out_dtype == a.dtype:
        return
    may_be_wide = offs is not None and a.dim() == 2
    if out_dtype != torch.float32 or not may_be_wide:
        raise TypeError(f"the product has the operands' type {a.dtype}"
                        + (" or float32" if may_be_wide else "") + f", not {out_dtype}")


def check_bias(b, bias, dtype):
    """Checks a bias of the columns of b, [groups, k, n]."""
    shape = b.shape[0], b.shape[2]
    if bias.dtype != dtype or bias.shape != shape or bias.device != b.device:
        raise ValueError(f"bias is {tuple(bias.shape)} of {bias.dtype} on {bias.device}: it must be "
                         f"{shape} of {dtype} on {b.device}")


def _clears_rest(a):
    """Returns whether the library clears what no group writes: not if groups are of columns."""
    return a.dim() == 2


def _prepared(key, a, b, offs, bias, out_dtype, zero_rest):
    _check_operands(a, b, offs, bias, out_dtype)
    is_wide = out_dtype == torch.float32
    made = prepare(a.shape, a.stride(), b.shape, b.stride(), OPERANDS[a.dtype], offs.shape[0],
                   OFFSET_BYTES[offs.dtype], 0, 4 if is_wide else 2)
    if is_wide:
        made = with_wide_results(made)
    if zero_rest and _clears_rest(a):
        made = with_zeroed_rest(made)
    if len(_products) >= _MOST_PRODUCTS:
        _products.clear()
    _products[key] = made
    return made


def grouped_mm_cuda(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    if offs is None:
        _check_operands(a, b, offs, bias, out_dtype)
        return torch.bmm(a, b)
    device = a.get_device()
    # The key has all that checks and plans look at, so similar operands share them.
    key = (device, a.dtype, a.shape, a.stride(), b.get_device(), b.dtype, b.shape, b.stride(),
           offs.get_device(), offs.dtype, offs.shape, offs.stride(), out_dtype,
           bias if bias is None else (bias.dtype, bias.shape, bias.device), zero_rest)
    ready = _products.get(key) or _prepared(key, a, b, offs, bias, out_dtype, zero_rest)
    if _torch.current_device() != device:
        with torch.cuda.device(device):
            return grouped_mm_cuda(a, b, offs, bias, out_dtype, zero_rest=zero_rest)
    out = _empty_cuda(ready.out_shape, ready.out_strides, out_dtype or a.dtype)
    if ready.workspace_bytes == 0 or (zero_rest and not _clears_rest(a)):
        out.zero_()
    if ready.workspace_bytes:
        if bias is not None:
            bias = bias.contiguous()
        pieces = None if bias is None else pieces_with_bias(ready, bias.data_ptr())
        stream = _torch.current_stream(device)
        workspace = _torch.take(ready.workspace_bytes, stream)
        try:
            enqueue(ready, a.data_ptr(), b.data_ptr(), out.data_ptr(), offs.data_ptr(), workspace,
                    stream, pieces=pieces)
        finally:  # it goes to others in the stream's order
            _torch.give_back(workspace)
    return out


def grouped_mm_cpu(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    _check_operands(a, b, offs, bias, out_dtype)
    if offs is None:
        return torch.bmm(a, b)
    wide = out_dtype or a.dtype
    ready = prepare(a.shape, a.stride(), b.shape, b.stride(), OPERANDS[a.dtype], offs.shape[0], 4, 0,
                    wide.itemsize)
    # NaN stands for what is undefined, so that no program comes to rely on it.
    product = a.new_empty_strided(ready.out_shape, ready.out_strides,
                                  dtype=wide).fill_(0.0 if zero_rest else torch.nan)
    multiply_groups_on_cpu(a, b, product, offs, bias, ready.runs_along)
    return product


def multiply_groups_on_cpu(a, b, product, offs, bias, runs_along=False):
    """Computes the product of each good group."""
    ragged = {2: a.shape[0], 3: b.shape[1]}[a.dim()] if a.dim() != b.dim() else b.shape[0]
    begin, latest = 0, 0
    for group, end in enumerate(offs.tolist()):
        if latest <= begin <= end <= ragged and (begin % 8 == 0 or not runs_along):
            _multiply_on_cpu(a, b, product, group, slice(begin, end), bias)
        begin, latest = end, max(latest, end)


def _multiply_on_cpu(a, b, product, group, part, bias):
    """Computes one group's part of a product."""
    if a.dim() == b.dim():
        product[group] = torch.mm(a[:, part].to(product.dtype), b[part].to(product.dtype))
    elif a.dim() == 3:
        product[:, part] = torch.mm(a[group], b[:, part])
    elif bias is None:
        product[part] = torch.mm(a[part].to(product.dtype), b[group].to(product.dtype))
    else:
        sums = torch.mm(a[part].float(), b[group].float())
        product[part] = (sums + bias[group].float()).to(product.dtype)


def grouped_mm_fake(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    _check_operands(a, b, offs, bias, out_dtype)
    ranks, dtype = (a.dim(), b.dim()), out_dtype or a.dtype
    if ranks == (2, 3):
        return a.new_empty((a.shape[0], b.shape[2]), dtype=dtype)
    if ranks == (3, 2):
        columns = b.shape[1]
        return a.new_empty((a.shape[1], (columns + 7) // 8 * 8))[:, :columns]
    if ranks == (2, 2):
        return a.new_empty((offs.shape[0], a.shape[0], b.shape[1]), dtype=dtype)
    if ranks == (3, 3):
        return a.new_empty((a.shape[0], a.shape[1], b.shape[2]))
    raise ValueError(f"grouped_mm of {ranks[0]} and {ranks[1]} dims: operands have 2 or 3")


multiply = torch.ops.tmap.grouped_mm


def _keep_operands(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(*inputs[:3])


def gradients_of_rows(a, b, offs, gradient, needs_a, needs_b):
    """Returns the gradients of [rows, k] times [groups, k, n]."""
    gradient, of_a, of_b = row_major(gradient), None, None
    if needs_a:
        of_a = multiply(gradient, b.transpose(-2, -1), offs=offs, zero_rest=True)
    if needs_b:
        of_b = gradient_of_weights(a, offs, gradient, lines_run_along_k(b))
    return of_a, of_b


def lines_run_along_k(b):
    return b.stride(-1) != 1 and b.stride(-2) == 1


def gradient_of_weights(a, offs, gradient, along_k):
    """Returns the gradient [groups, k, n] of weights, with lines along k or along n."""
    if along_k:
        return multiply(gradient.t(), a, offs=offs, zero_rest=True).transpose(-2, -1)
    return multiply(a.t(), gradient, offs=offs, zero_rest=True)


def _grouped_mm_backward(ctx, gradient):
    a, b, offs = ctx.saved_tensors
    needs_a, needs_b = ctx.needs_input_grad[:2]
    of_a, of_b, of_bias = None, None, None
    if any(ctx.needs_input_grad[3:4]):
        of_bias = torch.ops.tmap.group_sums(gradient, offs).to(a.dtype)
    gradient = gradient.to(a.dtype)
    if offs is None:
        of_a = torch.bmm(gradient, b.transpose(-2, -1)) if needs_a else None
        of_b = torch.bmm(a.transpose(-2, -1), gradient) if needs_b else None
    elif a.dim() == 2 and b.dim() == 3:
        of_a, of_b = gradients_of_rows(a, b, offs, gradient, needs_a, needs_b)
    elif a.dim() == 3 and b.stride(-1) == 1:
        gradient = row_major(gradient)
        if needs_a:
            of_a = multiply(gradient, b.t(), offs=offs, zero_rest=True)
        if needs_b:
            of_b = multiply(a.transpose(-2, -1), gradient, offs=offs, zero_rest=True)
    elif a.dim() == 3:
        # Groups may begin anywhere if they are groups of rows.
        of_b, of_a = gradients_of_rows(b.t(), a.transpose(-2, -1), offs, gradient.t(), needs_b,
                                        needs_a)
        of_a = None if of_a is None else of_a.transpose(-2, -1)
        of_b = None if of_b is None else of_b.t()
    else:
        gradient = row_major(gradient)
        of_a = multiply(b, gradient.transpose(-2, -1), offs=offs,
                         zero_rest=True).t() if needs_a else None
        of_b = multiply(a.t(), gradient, offs=offs, zero_rest=True) if needs_b else None
    return of_a, of_b, None, of_bias, None


def parts_of(offs, rows):
    """Returns where each group begins and how many rows it has: none, if it has no product."""
    cuts = torch.nn.functional.pad(offs.long(), (1, 0))
    begins, ends = cuts[:-1], cuts[1:]
    has_product = (begins >= cuts.cummax(0)[0][:-1]) & (begins <= ends) & (ends <= rows)
    return begins, torch.where(has_product, ends - begins, 0)


def _group_sums(values, offs):
    begins, counts = parts_of(offs, values.shape[0])
    sums = values.new_empty((offs.shape[0], values.shape[1]))
    if sums.numel() == 0 or values.shape[0] == 0:
        return sums.zero_()
    values = row_major(values)
    pitch = values.stride(0) * values.element_size()
    parts = _ragged.Columns(begins * pitch + values.data_ptr(),
                            [torch.full_like(counts, values.shape[1]), counts],
                            [torch.full_like(counts, pitch)], dtype=NAMES[values.dtype])
    one_each = torch.arange(1, offs.shape[0] + 1, device=offs.device)
    ragged.column_sums(parts, _ragged.Rows(sums, one_each))
    return sums


def _group_sums_fake(values, offs):
    return values.new_empty((offs.shape[0], values.shape[1]))


def _keep_group_offsets(ctx, inputs, output):
    ctx.save_for_backward(inputs[1])
    ctx.rows = inputs[0].shape[0]


def _group_sums_backward(ctx, gradient):
    offs, = ctx.saved_tensors
    begins, counts = parts_of(offs, ctx.rows)
    row = torch.arange(ctx.rows, device=offs.device)
    is_member = (row[:, None] >= begins) & (row[:, None] < begins + counts)
    return is_member.to(gradient.dtype) @ gradient, None


register("grouped_mm", {"CUDA": grouped_mm_cuda, "CPU": grouped_mm_cpu}, grouped_mm_fake,
         _grouped_mm_backward, _keep_operands)
register("group_sums", {"CUDA": _group_sums, "CPU": _group_sums}, _group_sums_fake,
         _group_sums_backward, _keep_group_offsets)
