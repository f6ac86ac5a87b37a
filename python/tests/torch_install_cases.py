# SPDX-License-Identifier: Apache-2.0
"""Calls of PyTorch's grouped products, for tests of tmap in front of them on every device."""
import itertools

import support
import torch

SIZES = (16, 0, 40, 8)  # multiples of 8, which lines along a ragged dim need


def matrix(shape, is_turned, gap, device, dtype):
    """A matrix, or one for each group, whose lines run along the dim before the last if it is
    turned, with `gap` elements after each line."""
    *groups, rows, columns = shape
    if is_turned:
        return matrix((*groups, columns, rows), False, gap, device, dtype).transpose(-2, -1)
    values = torch.randn(*groups, rows, columns + gap, device=device) * 0.3
    return values.to(dtype)[..., :columns]


def products(device, dtype=torch.bfloat16, sizes=SIZES, m=24, n=32, k=64):
    """Names, and operands that have all orders and ranks that PyTorch takes with `offs`."""
    total, groups = sum(sizes), len(sizes)
    shapes = {"rows": ((total, k), (groups, k, n)), "columns": ((groups, m, k), (k, total)),
              "sums": ((m, total), (total, n))}
    for name, turned_a, turned_b, gap in itertools.product(shapes, (False, True), (False, True), (0, 8)):
        a, b = (matrix(shape, turned, gap, device, dtype) for shape, turned in zip(shapes[name], (turned_a, turned_b)))
        yield f"{name} {turned_a} {turned_b} {gap}", a, b


def offsets(device, sizes=SIZES):
    return torch.tensor(support.ends_of(sizes), device=device, dtype=torch.int32)


def scaled(device, rows=sum(SIZES), groups=len(SIZES), n=48, k=64):
    """Operands of 8 bits with scales of rows and columns."""
    a, b = (torch.randn(*shape, device=device).to(torch.float8_e4m3fn) for shape in ((rows, k), (groups, n, k)))
    a_scales, b_scales = (torch.rand(*shape, device=device) + 0.5 for shape in ((rows,), (groups, n)))
    return a, b.transpose(-2, -1), a_scales, b_scales, offsets(device)
