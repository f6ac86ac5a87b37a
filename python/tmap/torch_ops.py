# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch: importing this module registers `torch.ops.tmap.*`.

grouped_mm(a, b, offs, bias=None, out_dtype=None, *, zero_rest=False)
    As `torch._grouped_mm`, in the cases of the table of `tmap.grouped_mm`; two operands of three dims, which have no
    `offs`, are `torch.bmm`. Rows of no group are left as they are, which
    is undefined, or zero with `zero_rest`; those of gradients are zero. Products of nothing are zero.
pad_ragged(values, offsets, max_length, *, fill=0.0, format="ends")
    Rows of `values`, cut as `offsets` say, to [tensors, max_length, ...]. What is longer loses its end.
unpad_ragged(dense, offsets, total, *, format="ends")
    The inverse, to [total, ...]. Rows that are not in the dense, or of no tensor, are zero.

All have gradients, work under torch.compile, never read a size on the host, and may be captured in a graph. On the CPU
they do the same, slowly. Operands in a form that the library does not take raise `ValueError` and say what to do.
"""
import torch

from . import _gemm, _ragged, ragged
from ._arrays import torch_names
from ._service import OFFSET_FORMATS

_library = torch.library.Library("tmap", "DEF")
# Results depend on strides of operands, so no compiler may choose others.
_exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)
for _schema in ("grouped_mm(Tensor a, Tensor b, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None, *, "
                "bool zero_rest=False) -> Tensor",
                'pad_ragged(Tensor values, Tensor offsets, SymInt max_length, *, float fill=0.0, str format="ends") '
                "-> Tensor",
                'unpad_ragged(Tensor dense, Tensor offsets, SymInt total, *, str format="ends") -> Tensor'):
    _library.define(_schema, tags=(torch.Tag.pt2_compliant_tag, _exact))

_OPERANDS = {torch.bfloat16: "bf16", torch.float16: "f16"}
_NAMES = torch_names(torch)
_OFFSET_BYTES = {torch.int32: 4, torch.int64: 8}


def _check_operands(a, b, offs, bias, out_dtype):
    if (offs is None) != (a.dim() == b.dim() == 3):
        raise ValueError(f"operands of {a.dim()} and {b.dim()} dims: two of 3 have no ragged dim and no offs, others have")
    if bias is not None:
        raise ValueError("grouped_mm takes no bias here: tmap.grouped_mm does")
    if a.dtype != b.dtype or a.dtype not in _OPERANDS:
        raise TypeError(f"a and b are both bfloat16 or both float16, not {a.dtype} and {b.dtype}")
    if out_dtype is not None and out_dtype != a.dtype:
        raise TypeError(f"the product has the operands' type {a.dtype}, not {out_dtype}")
    if offs is None:
        return
    if offs.dtype not in _OFFSET_BYTES or offs.dim() != 1 or not offs.is_contiguous():
        raise TypeError(f"offs is int32 or int64 [groups] without gaps, not {offs.dtype} {tuple(offs.shape)}")
    if not a.device == b.device == offs.device:
        raise ValueError(f"a, b and offs are on one device, not on {a.device}, {b.device} and {offs.device}")


def _grouped_mm_cuda(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    _check_operands(a, b, offs, bias, out_dtype)
    if offs is None:
        return torch.bmm(a, b)
    groups, device = offs.shape[0], a.device
    if torch.cuda.current_device() != device.index:
        with torch.cuda.device(device):
            return _grouped_mm_cuda(a, b, offs, bias, out_dtype, zero_rest=zero_rest)
    ready = _gemm.prepared(a.shape, a.stride(), b.shape, b.stride(), _OPERANDS[a.dtype], groups,
                           _OFFSET_BYTES[offs.dtype], 0)
    has_work = ready.has_sums and groups != 0
    new = torch.zeros if zero_rest or not has_work else torch.empty
    out = new(ready.out_shape, dtype=a.dtype, device=device)
    if has_work:
        workspace = torch.empty(_gemm.workspace_bytes(groups), dtype=torch.uint8, device=device)
        _gemm.enqueue(ready, ready.problem.from_buffer_copy(ready.members), a.data_ptr(), b.data_ptr(), out.data_ptr(),
                      offs.data_ptr(), workspace.data_ptr(), torch.cuda.current_stream(device).cuda_stream)
    return out.t() if ready.is_turned else out


def _grouped_mm_cpu(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    _check_operands(a, b, offs, bias, out_dtype)
    if offs is None:
        return torch.bmm(a, b)
    ready = _gemm.prepare(a.shape, a.stride(), b.shape, b.stride(), _OPERANDS[a.dtype], offs.shape[0], 4, 0)
    if ready.is_turned:
        a, b = b.t(), a.transpose(-2, -1)
    # NaN stands for what is undefined, so that no program comes to rely on it.
    out = torch.full(ready.out_shape, 0.0 if zero_rest else torch.nan, dtype=a.dtype, device=a.device)
    rows, begin, latest = b.shape[0] if a.dim() == b.dim() else a.shape[0], 0, 0
    for group, end in enumerate(offs.tolist()):
        if latest <= begin <= end <= rows:
            if a.dim() == b.dim():
                torch.mm(a[:, begin:end], b[begin:end], out=out[group])
            else:
                torch.mm(a[begin:end], b[group], out=out[begin:end])
        begin, latest = end, max(latest, end)
    return out.t() if ready.is_turned else out


def _grouped_mm_fake(a, b, offs=None, bias=None, out_dtype=None, *, zero_rest=False):
    _check_operands(a, b, offs, bias, out_dtype)
    ranks = a.dim(), b.dim()
    if ranks == (2, 3):
        return a.new_empty((a.shape[0], b.shape[2]))
    if ranks == (3, 2):
        return a.new_empty((b.shape[1], a.shape[1])).t()
    if ranks == (2, 2):
        return a.new_empty((offs.shape[0], a.shape[0], b.shape[1]))
    if ranks == (3, 3):
        return a.new_empty((a.shape[0], a.shape[1], b.shape[2]))
    raise ValueError(f"grouped_mm of {ranks[0]} and {ranks[1]} dims: operands have 2 or 3")


_multiply = torch.ops.tmap.grouped_mm


def _keep_operands(ctx, inputs, keyword_only_inputs, output):
    ctx.save_for_backward(*inputs[:3])


def _row_major(gradient):
    """Gradients come with any strides, also with 0, and at any address."""
    fits = gradient.stride(-1) == 1 and gradient.stride(-2) >= gradient.shape[-1]
    units = (*gradient.stride()[:-1], gradient.storage_offset())  # of 8 elements: 16 bytes
    return gradient if fits and all(unit % 8 == 0 for unit in units) else gradient.contiguous()


def _gradients_of_rows(a, b, offs, gradient, needs_a, needs_b):
    """Of [rows, k] times [groups, k, n]. That of b comes in b's own order."""
    gradient, of_a, of_b = _row_major(gradient), None, None
    if needs_a:
        of_a = _multiply(gradient, b.transpose(-2, -1), offs=offs, zero_rest=True)
    if needs_b and b.stride(-1) != 1 and b.stride(-2) == 1:
        of_b = _multiply(gradient.t(), a, offs=offs).transpose(-2, -1)
    elif needs_b:
        of_b = _multiply(a.t(), gradient, offs=offs)
    return of_a, of_b


def _grouped_mm_backward(ctx, gradient):
    a, b, offs = ctx.saved_tensors
    needs_a, needs_b = ctx.needs_input_grad[:2]
    if offs is None:
        of_a = torch.bmm(gradient, b.transpose(-2, -1)) if needs_a else None
        of_b = torch.bmm(a.transpose(-2, -1), gradient) if needs_b else None
    elif a.dim() == 2 and b.dim() == 3:
        of_a, of_b = _gradients_of_rows(a, b, offs, gradient, needs_a, needs_b)
    elif a.dim() == 3:
        of_b, of_a = _gradients_of_rows(b.t(), a.transpose(-2, -1), offs, gradient.t(), needs_b, needs_a)
        of_a = None if of_a is None else of_a.transpose(-2, -1)
        of_b = None if of_b is None else of_b.t()
    else:
        gradient = _row_major(gradient)
        of_a = _multiply(b, gradient.transpose(-2, -1), offs=offs, zero_rest=True).t() if needs_a else None
        of_b = _multiply(a.t(), gradient, offs=offs, zero_rest=True) if needs_b else None
    return of_a, of_b, None, None, None


def _count(offsets, format):
    if format not in OFFSET_FORMATS:
        raise ValueError(f"format is one of {', '.join(OFFSET_FORMATS)}, not {format!r}")
    if offsets.dtype not in _OFFSET_BYTES or offsets.dim() != 1:
        raise TypeError(f"offsets are int32 or int64 in one dim, not {offsets.dtype} {tuple(offsets.shape)}")
    return offsets.shape[0] - int(format == "prefix")


def _bounds(offsets, total, format):
    """Where each tensor begins and ends, within the rows that exist: so no offset leads out of them."""
    if format == "prefix":
        within = offsets.clamp(0, total)
        return within[:-1], within[1:]
    ends = (offsets.cumsum(0) if format == "sizes" else offsets).clamp(0, total)
    return torch.cat((ends.new_zeros(1), ends[:-1])), ends


def _rows(values, offsets, format):
    """The batch, by offsets within the rows that exist."""
    total = values.shape[0]
    if format == "sizes":
        return _ragged.Rows(values, offsets.cumsum(0).clamp(0, total), "ends")
    return _ragged.Rows(values, offsets.clamp(0, total), format)


def _cut_rows(values, offsets, longest, format):
    """The same, of no tensor more rows than `longest`."""
    begins, ends = (bound.long() for bound in _bounds(offsets, values.shape[0], format))
    addresses = begins * (values.stride(0) * values.element_size()) + values.data_ptr()
    inner = [torch.full_like(begins, extent) for extent in reversed(values.shape[1:])]
    return _ragged.Columns(addresses, [*inner, (ends - begins).clamp(max=longest)], dtype=_NAMES[values.dtype])


def _with_rows(tensor):
    """Its last dim without gaps, and nothing that asks for a gradient."""
    tensor = tensor.detach()
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
    count, dense = _count(offsets, format), _with_rows(dense)
    if dense.dim() < 2 or dense.shape[0] != count:
        raise ValueError(f"dense is [{count}, longest, ...], not {tuple(dense.shape)}")
    values = dense.new_zeros((total, *dense.shape[2:]))
    if values.numel() and dense.numel():
        ragged.unpad(dense, _cut_rows(values, offsets, dense.shape[1], format))
    return values


def _unpad_fake(dense, offsets, total, *, format="ends"):
    _count(offsets, format)
    return dense.new_empty((total, *dense.shape[2:]))


def _unpad_backward(ctx, gradient):
    offsets, = ctx.saved_tensors
    return torch.ops.tmap.pad_ragged(gradient, offsets, ctx.size, format=ctx.format), None, None


def _register(name, kernels, fake, backward, setup):
    for key, kernel in kernels.items():
        _library.impl(name, kernel, key)
    torch.library.register_fake(f"tmap::{name}", fake, lib=_library)
    torch.library.register_autograd(f"tmap::{name}", backward, setup_context=setup, lib=_library)


_register("grouped_mm", {"CUDA": _grouped_mm_cuda, "CPU": _grouped_mm_cpu}, _grouped_mm_fake, _grouped_mm_backward,
          _keep_operands)
_register("pad_ragged", {"CUDA": _pad, "CPU": _pad}, _pad_fake, _pad_backward, _keep_offsets)
_register("unpad_ragged", {"CUDA": _unpad, "CPU": _unpad}, _unpad_fake, _unpad_backward, _keep_offsets)
