# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch: importing this module registers `torch.ops.tmap.*`.

grouped_mm(a, b, offs, bias=None, out_dtype=None, *, zero_rest=False)
    Computes `torch._grouped_mm` in the first three cases of the table of `tmap.grouped_mm`. Two
    operands of three dims, which have no `offs`, are `torch.bmm`. Where rows are ragged, `bias`
    [groups, n] is added. `out_dtype` is the operands' type or float32, and that also where rows are
    summed over. Rows of no group, and groups whose offsets decrease or lead out, are undefined, or
    zero with `zero_rest`. In gradients they are zero. Products of nothing are zero.
group_sums(values, offs)
    Sums the rows of each group of `values`, as the gradient of a bias needs. Groups are those of
    `grouped_mm`; one that has no product has the sum 0.
pad_ragged(values, offsets, max_length, *, fill=0.0, format="ends")
    Pads rows of `values`, cut by `offsets`, to [tensors, max_length, ...]. Longer tensors lose
    their end.
unpad_ragged(dense, offsets, total, *, format="ends")
    Undoes it, to [total, ...]. Rows that are not in the dense, or of no tensor, are zero.

All have gradients, work under torch.compile, never read a size on the host, and may be captured in
a graph. On the CPU they do the same, slowly. Operands in a form that the library does not take
raise `ValueError` with advice.
"""
import math

import torch

from . import _gemm, _ragged, ragged
from ._libraries import ADAPTORS, torch_names
from ._batch import OFFSET_FORMATS
from ._numbers import choice


class _Library(torch.library.Library):
    """Sends an operator to its device's kernel at once if no gradient is wanted and nothing
    watches: a mode, a transform, a subclass. The kernel that `register_autograd` makes dispatches a
    second time, in Python, which takes a third of the call."""
    kernels: dict = {}

    def impl(self, op_name, fn, dispatch_key="", **options):
        if dispatch_key == "Autograd":
            fn = _shortened(fn, self.kernels[op_name])
        super().impl(op_name, fn, dispatch_key, **options)


def _shortened(differentiable, kernels):
    # Sets of dispatch keys as numbers. A second dispatch would look only at the keys below
    # Autograd.
    try:
        below = torch._C._after_autograd_keyset.raw_repr()
        alone = {torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)).raw_repr(): kernel
                 for name, kernel in kernels.items()}
    except AttributeError:  # this version of PyTorch has no such numbers
        return differentiable

    def kernel(keyset, *arguments, **keywords):
        direct = alone.get(keyset.raw_repr() & below)
        wants = any(getattr(argument, "requires_grad", False)
                    for argument in (*arguments, *keywords.values()))
        if direct is None or (wants and torch.is_grad_enabled()):
            return differentiable(keyset, *arguments, **keywords)
        return direct(*arguments, **keywords)

    return kernel


_library = _Library("tmap", "DEF")
# Results depend on strides of operands, so no compiler may choose others.
_exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
for _schema in ("grouped_mm(Tensor a, Tensor b, Tensor? offs=None, Tensor? bias=None, ScalarType? "
                "out_dtype=None, *, "
                "bool zero_rest=False) -> Tensor",
                "group_sums(Tensor values, Tensor offs) -> Tensor",
                "pad_ragged(Tensor values, Tensor offsets, SymInt max_length, *, float fill=0.0, "
                'str format="ends") -> Tensor',
                "unpad_ragged(Tensor dense, Tensor offsets, SymInt total, *, "
                'str format="ends") -> Tensor'):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag, _exact))

_OPERANDS = {torch.bfloat16: "bf16", torch.float16: "f16"}
_NAMES = torch_names(torch)
_OFFSET_BYTES = {torch.int32: 4, torch.int64: 8}
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
    if a.dtype != b.dtype or a.dtype not in _OPERANDS:
        raise TypeError(f"a and b are both bfloat16 or both float16, not {a.dtype} and {b.dtype}")
    _check_output(a, b, offs, out_dtype)
    if bias is not None:
        _check_bias(a, b, bias)
    if offs is None:
        return
    if offs.dtype not in _OFFSET_BYTES or offs.dim() != 1 or not offs.is_contiguous():
        raise TypeError(f"offs is int32 or int64 [groups] without gaps, not {offs.dtype} "
                        f"{tuple(offs.shape)}")
    if not a.device == b.device == offs.device:
        raise ValueError(f"a, b and offs are on one device, not on {a.device}, {b.device} and "
                         f"{offs.device}")


def _check_output(a, b, offs, out_dtype):
    if out_dtype is None or out_dtype == a.dtype:
        return
    may_be_wide = offs is not None and a.dim() == 2
    if out_dtype != torch.float32 or not may_be_wide:
        raise TypeError(f"the product has the operands' type {a.dtype}"
                        + (" or float32" if may_be_wide else "") + f", not {out_dtype}")


def _check_bias(a, b, bias):
    if (a.dim(), b.dim()) != (2, 3):
        raise ValueError("grouped_mm takes a bias where rows are ragged, a [rows, k] and b "
                         "[groups, k, n]")
    if bias.dtype != a.dtype or bias.shape != (b.shape[0], b.shape[2]) or bias.device != a.device:
        raise ValueError(f"bias is {tuple(bias.shape)} of {bias.dtype} on {bias.device}: it must be "
                         f"{(b.shape[0], b.shape[2])} of {a.dtype} on {a.device}")


def _prepared(key, a, b, offs, bias, out_dtype):
    _check_operands(a, b, offs, bias, out_dtype)
    is_wide = out_dtype == torch.float32
    made = _gemm.prepare(a.shape, a.stride(), b.shape, b.stride(), _OPERANDS[a.dtype],
                         offs.shape[0], _OFFSET_BYTES[offs.dtype], 0, 4 if is_wide else 2)
    if is_wide:
        made = _gemm.with_wide_results(made)
    if len(_products) >= _MOST_PRODUCTS:
        _products.clear()
    _products[key] = made
    return made


def _grouped_mm_cuda(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    if offs is None:
        _check_operands(a, b, offs, bias, out_dtype)
        return torch.bmm(a, b)
    device = a.get_device()
    # The key has all that checks and plans look at, so similar operands share them.
    key = (device, a.dtype, a.shape, a.stride(), b.get_device(), b.dtype, b.shape, b.stride(),
           offs.get_device(), offs.dtype, offs.shape, offs.stride(), out_dtype,
           bias if bias is None else (bias.dtype, bias.shape, bias.device))
    ready = _products.get(key) or _prepared(key, a, b, offs, bias, out_dtype)
    if _torch.current_device() != device:
        with torch.cuda.device(device):
            return _grouped_mm_cuda(a, b, offs, bias, out_dtype, zero_rest=zero_rest)
    out = _empty_cuda(ready.out_shape, ready.out_strides, out_dtype or a.dtype)
    if zero_rest or ready.workspace_bytes == 0:
        out.zero_()
    if ready.workspace_bytes:
        if bias is not None:
            bias = bias.contiguous()
        pieces = None if bias is None else _gemm.pieces_with_bias(ready, bias.data_ptr())
        stream = _torch.current_stream(device)
        workspace = _torch.take(ready.workspace_bytes, stream)
        try:
            _gemm.enqueue(ready, a.data_ptr(), b.data_ptr(), out.data_ptr(), offs.data_ptr(),
                          workspace, stream, pieces=pieces)
        finally:  # it goes to others in the stream's order
            _torch.give_back(workspace)
    return out


def _grouped_mm_cpu(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    _check_operands(a, b, offs, bias, out_dtype)
    if offs is None:
        return torch.bmm(a, b)
    wide = out_dtype or a.dtype
    ready = _gemm.prepare(a.shape, a.stride(), b.shape, b.stride(), _OPERANDS[a.dtype],
                          offs.shape[0], 4, 0, 4 if wide == torch.float32 else 2)
    # NaN stands for what is undefined, so that no program comes to rely on it.
    product = a.new_empty_strided(ready.out_shape, ready.out_strides,
                                  dtype=wide).fill_(0.0 if zero_rest else torch.nan)
    ragged = {2: a.shape[0], 3: b.shape[1]}[a.dim()] if a.dim() != b.dim() else b.shape[0]
    begin, latest = 0, 0
    for group, end in enumerate(offs.tolist()):
        if latest <= begin <= end <= ragged and (begin % 8 == 0 or not ready.runs_along):
            _multiply_on_cpu(a, b, product, group, slice(begin, end), bias)
        begin, latest = end, max(latest, end)
    return product


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


def _grouped_mm_fake(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
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


_multiply = torch.ops.tmap.grouped_mm


def _keep_operands(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(*inputs[:3])


def _row_major(gradient):
    """Copies a gradient if it must: it may have any strides, also 0, and any address."""
    fits = gradient.stride(-1) == 1 and gradient.stride(-2) >= gradient.shape[-1]
    units = (*gradient.stride()[:-1], gradient.storage_offset())  # of 8 elements: 16 bytes
    return gradient if fits and all(unit % 8 == 0 for unit in units) else gradient.contiguous()


def _gradients_of_rows(a, b, offs, gradient, needs_a, needs_b):
    """Returns the gradients of [rows, k] times [groups, k, n]. That of b has b's own order."""
    gradient, of_a, of_b = _row_major(gradient), None, None
    if needs_a:
        of_a = _multiply(gradient, b.transpose(-2, -1), offs=offs, zero_rest=True)
    if needs_b and b.stride(-1) != 1 and b.stride(-2) == 1:
        of_b = _multiply(gradient.t(), a, offs=offs, zero_rest=True).transpose(-2, -1)
    elif needs_b:
        of_b = _multiply(a.t(), gradient, offs=offs, zero_rest=True)
    return of_a, of_b


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
        of_a, of_b = _gradients_of_rows(a, b, offs, gradient, needs_a, needs_b)
    elif a.dim() == 3 and b.stride(-1) == 1:
        gradient = _row_major(gradient)
        if needs_a:
            of_a = _multiply(gradient, b.t(), offs=offs, zero_rest=True)
        if needs_b:
            of_b = _multiply(a.transpose(-2, -1), gradient, offs=offs, zero_rest=True)
    elif a.dim() == 3:
        # Groups may begin anywhere if they are groups of rows.
        of_b, of_a = _gradients_of_rows(b.t(), a.transpose(-2, -1), offs, gradient.t(), needs_b,
                                        needs_a)
        of_a = None if of_a is None else of_a.transpose(-2, -1)
        of_b = None if of_b is None else of_b.t()
    else:
        gradient = _row_major(gradient)
        of_a = _multiply(b, gradient.transpose(-2, -1), offs=offs,
                         zero_rest=True).t() if needs_a else None
        of_b = _multiply(a.t(), gradient, offs=offs, zero_rest=True) if needs_b else None
    return of_a, of_b, None, of_bias, None


def _parts_of(offs, rows):
    """Returns where each group begins and how many rows it has: none, if it has no product."""
    ends = offs.long()
    begins = torch.cat((ends.new_zeros(1), ends[:-1]))
    latest = torch.cat((ends.new_zeros(1), ends)).cummax(0)[0][:-1]
    has_product = (begins >= latest) & (begins <= ends) & (ends <= rows)
    return begins, torch.where(has_product, ends - begins, 0)


def _group_sums(values, offs):
    begins, counts = _parts_of(offs, values.shape[0])
    sums = values.new_empty((offs.shape[0], values.shape[1]))
    if sums.numel() == 0 or values.shape[0] == 0:
        return sums.zero_()
    values = _row_major(values)
    pitch = values.stride(0) * values.element_size()
    parts = _ragged.Columns(begins * pitch + values.data_ptr(),
                            [torch.full_like(counts, values.shape[1]), counts],
                            [torch.full_like(counts, pitch)], dtype=_NAMES[values.dtype])
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
    begins, counts = _parts_of(offs, ctx.rows)
    row = torch.arange(ctx.rows, device=offs.device)
    is_member = (row[:, None] >= begins) & (row[:, None] < begins + counts)
    return is_member.to(gradient.dtype) @ gradient, None


def _count(offsets, format):
    choice(format, OFFSET_FORMATS, "format")
    if offsets.dtype not in _OFFSET_BYTES or offsets.dim() != 1:
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
    return _ragged.Columns(addresses, [sizes], dtype=_NAMES[values.dtype])


def _with_rows(tensor):
    """Copies the tensor if its last dim has gaps."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def _pad(values, offsets, max_length, *, fill=0.0, format="ends"):
    count, values = _count(offsets, format), _with_rows(values)
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
        ragged.unpad(_with_rows(dense.reshape(count, -1)),
                     _cut_rows(values, offsets, dense.shape[1], format))
    return values


def _unpad_fake(dense, offsets, total, *, format="ends"):
    _count(offsets, format)
    return dense.new_empty((total, *dense.shape[2:]))


def _unpad_backward(ctx, gradient):
    offsets, = ctx.saved_tensors
    return torch.ops.tmap.pad_ragged(gradient, offsets, ctx.size, format=ctx.format), None, None


def _register(name, kernels, fake, backward=None, setup=None):
    """Registers an operator. Without `backward` it has no gradients."""
    _library.kernels[name] = kernels
    for key, kernel in kernels.items():
        _library.impl(name, kernel, key)
    torch.library.register_fake(f"tmap::{name}", fake, lib=_library)
    if backward is not None:
        torch.library.register_autograd(f"tmap::{name}", backward, setup_context=setup,
                                        lib=_library)


_register("grouped_mm", {"CUDA": _grouped_mm_cuda, "CPU": _grouped_mm_cpu}, _grouped_mm_fake,
          _grouped_mm_backward, _keep_operands)
_register("group_sums", {"CUDA": _group_sums, "CPU": _group_sums}, _group_sums_fake,
          _group_sums_backward, _keep_group_offsets)
_register("pad_ragged", {"CUDA": _pad, "CPU": _pad}, _pad_fake, _pad_backward, _keep_offsets)
_register("unpad_ragged", {"CUDA": _unpad, "CPU": _unpad}, _unpad_fake, _unpad_backward,
          _keep_offsets)
