# SPDX-License-Identifier: Apache-2.0
"""Operators of PyTorch: importing this module registers `torch.ops.tmap.*`.

grouped_mm(a, b, offs, bias=None, out_dtype=None, *, zero_rest=False)
    Computes `torch._grouped_mm` in the first three cases of the table of `tmap.grouped_mm`. Two
    operands of three dims, which have no `offs`, are `torch.bmm`. Where rows are ragged, `bias`
    [groups, n] is added. `out_dtype` is the operands' type or float32, and that also where rows are
    summed over. Rows of no group, and groups whose offsets decrease or lead out, are undefined, or
    zero with `zero_rest`. In gradients they are zero. Products of nothing are zero.
grouped_scaled_mm(a, b, a_scales, b_scales, offs, bias=None, out_dtype=None, *,
                  fast_accumulation=False, zero_rest=False)
    Multiplies 8-bit rows `a` [rows, k] of float8_e4m3fn or float8_e5m2 and `b` [groups, k, n] of
    float8_e4m3fn, both with lines along k. Scales are float32, with any strides: `a_scales` [rows,
    k / 128] and `b_scales` [groups, k / 128, n / 128], rounded up, of blocks, or [rows] and
    [groups, n] of rows of a and columns of b. With the latter, and a of float8_e4m3fn,
    `fast_accumulation` may be set. `bias` is bfloat16 and alone has a gradient. `out_dtype` is
    bfloat16 or float32.
quantize(values, *, block="1x128", dtype=None, powers_of_two=False)
    Rounds values [rows, k] or [groups, n, k] to 8 bits as `tmap.ragged.quantize` does: rows with
    block "1x128", weights with "128x128", or both with "row". With "128x1" it makes the transpose,
    [k, rows]. `dtype` None is float8_e4m3fn. Returns the 8-bit values and their scales, for "row"
    one for each row. Has no gradient, and refuses values that want one.
grouped_quantized_mm(x, b, b_scales, offs, bias=None, weights=None, out_dtype=None, *,
                     gradient_dtype=None, powers_of_two=False, quantized_weight_gradient=False)
    Quantizes rows `x` of bfloat16 to float8_e4m3fn, and multiplies as grouped_scaled_mm does. The
    gradient of x is grouped_scaled_mm of the gradient, quantized by rows to `gradient_dtype` (None
    is float8_e4m3fn, or float8_e5m2), and b with its dims exchanged, for which b is copied. So
    rounding x counts as no change. `weights`, bfloat16 [groups, k, n], are what b was quantized
    from. The product does not read them. They get a gradient, the product of x and the gradient in
    bfloat16, or, with `quantized_weight_gradient`, that of the operator of this name. b and
    b_scales have none.
quantized_weight_gradient(d_out, x, offs, *, dtype=None, out_dtype=None, powers_of_two=False)
    Returns the gradient of weights in `out_dtype`, bfloat16 (None) or float32: for each group the
    product of its rows of `d_out` [rows, n], transposed, and of `x` [rows, k], [groups, n, k]. Both
    are of bfloat16, float16 or float32. They are quantized with a scale for each 128 rows of a
    column, d_out to `dtype` (None is float8_e4m3fn, or float8_e5m2) and x to float8_e4m3fn. Groups
    may begin at any row. Those without a product are zero. Has no gradient.
add_quantized_weight_gradient(sums, d_out, x, offs, *, dtype=None, powers_of_two=False)
    Adds the same to `sums` [groups, n, k] of bfloat16 or float32, in place.
group_sums(values, offs)
    Sums the rows of each group of `values`, as the gradient of a bias needs. Groups are those of
    `grouped_mm`; one that has no product has the sum 0.
pad_ragged(values, offsets, max_length, *, fill=0.0, format="ends")
    Pads rows of `values`, cut by `offsets`, to [tensors, max_length, ...]. Longer tensors lose
    their end.
unpad_ragged(dense, offsets, total, *, format="ends")
    Undoes it, to [total, ...]. Rows that are not in the dense, or of no tensor, are zero.

All have gradients, unless it is stated above, work under torch.compile, never read a size on the
host, and may be captured in a graph. On the CPU they do the same, slowly. Operands in a form that
the library does not take raise `ValueError` with advice.
"""
from . import torch_padding, torch_products, torch_scaled  # noqa: F401: they register the operators
from . import torch_weights  # noqa: F401
