# SPDX-License-Identifier: Apache-2.0
"""What the operators of PyTorch share about tensors: names of types, and copies without gaps."""
import torch

from ._libraries import torch_names

NAMES = torch_names(torch)
OFFSET_BYTES = {torch.int32: 4, torch.int64: 8}


def with_rows(tensor):
    """Copies the tensor if its last dim has gaps."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def row_major(gradient):
    """Copies a gradient if it must: it may have any strides, also 0, and any address."""
    fits = gradient.stride(-1) == 1 and gradient.stride(-2) >= gradient.shape[-1]
    units = (*gradient.stride()[:-1], gradient.storage_offset())  # of 8 elements: 16 bytes
    return gradient if fits and all(unit % 8 == 0 for unit in units) else gradient.contiguous()
