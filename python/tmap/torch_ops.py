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
from . import torch_padding, torch_products, torch_scaled  # noqa: F401: they register the operators
