# SPDX-License-Identifier: Apache-2.0
"""What the operators compute, by plain operators of PyTorch that have gradients of their own. Sizes
are on the host."""
import torch


def _cut(tensor, sizes, dim):
    return list(tensor.split([*sizes, tensor.shape[dim] - sum(sizes)], dim))[:len(sizes)]


def grouped_mm(a, b, sizes):
    """By one product for each group."""
    if a.dim() == 2 and b.dim() == 3:
        return torch.cat([part @ b[i] for i, part in enumerate(_cut(a, sizes, 0))])
    if a.dim() == 3:
        return torch.cat([a[i] @ part for i, part in enumerate(_cut(b, sizes, 1))], dim=1)
    return torch.stack([left @ right for left, right in zip(_cut(a, sizes, 1), _cut(b, sizes, 0))])


def pad(values, sizes, longest, fill):
    """[tensors, longest, ...]."""
    rows = []
    for part in _cut(values, sizes, 0):
        kept = part[:longest]
        rest = kept.new_full((longest - kept.shape[0], *kept.shape[1:]), fill)
        rows.append(torch.cat((kept, rest)))
    return torch.stack(rows)


def unpad(dense, sizes, total):
    """[total, ...]; what is not in the dense is zero."""
    values, begin = dense.new_zeros((total, *dense.shape[2:])), 0
    for i, size in enumerate(sizes):
        kept = min(size, dense.shape[1])
        values[begin:begin + kept] = dense[i, :kept]
        begin += size
    return values
