# SPDX-License-Identifier: Apache-2.0
"""`ops.gmm`, which `tmap.compat.grouped_gemm` describes."""
import torch

from . import backend


def gmm(a, b, batch_sizes, trans_b=False):
    left, right = backend.turned(a, b, batch_sizes, trans_b=trans_b)
    return torch.ops.tmap.grouped_mm(left, right, backend.ends_of(batch_sizes, a.device))
