# SPDX-License-Identifier: Apache-2.0
"""`backend.gmm`, which `tmap.compat.grouped_gemm` describes."""
import torch

from ... import torch_ops  # noqa: F401: it registers the operators
from ..._gemm import grouped_mm


def turned(a, b, batch_sizes, trans_a=False, trans_b=False):
    """Returns operands as products of PyTorch take them."""
    if trans_a and trans_b:
        raise ValueError("trans_a and trans_b cannot both be set")
    dims = {"a": (a, 2), "b": (b, 2 if trans_a else 3), "batch_sizes": (batch_sizes, 1)}
    for name, (tensor, wanted) in dims.items():
        if tensor.dim() != wanted:
            raise ValueError(f"{name} has {tensor.dim()} dims: it must have {wanted}")
    if batch_sizes.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"batch_sizes is of {batch_sizes.dtype}: it must be int32 or int64")
    return a.t() if trans_a else a, b.transpose(-2, -1) if trans_b else b


def ends_of(batch_sizes, device):
    """Returns where each group ends, on the operands' device. Sizes on the CPU are copied there."""
    return batch_sizes.cumsum(0).to(device, non_blocking=True)


def gmm(a, b, batch_sizes, trans_a=False, trans_b=False, c=None):
    left, right = turned(a, b, batch_sizes, trans_a, trans_b)
    ends = ends_of(batch_sizes, a.device)
    if c is not None:
        return _write(left.detach(), right.detach(), ends, c)
    with torch.no_grad():
        return torch.ops.tmap.grouped_mm(left, right, ends)


def _write(left, right, ends, c):
    shape = ((ends.shape[0], left.shape[0], right.shape[1]) if right.dim() == 2
             else (left.shape[0], right.shape[2]))
    if c.shape != shape or c.dtype != left.dtype:
        raise ValueError(f"c is {tuple(c.shape)} of {c.dtype}: it must be {shape} of {left.dtype}")
    return grouped_mm(left, right, ends, out=c)
