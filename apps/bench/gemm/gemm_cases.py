# SPDX-License-Identifier: Apache-2.0
"""Defines the cases of gemm_torch.py: their operations, their peers, and the checks of results."""
import sys
from functools import partial
from pathlib import Path

import cublas_grouped


class Missing:
    """Stands for a missing library: every use raises the reason."""

    def __init__(self, reason):
        self.reason = reason

    def __getattr__(self, name):
        raise NotImplementedError(self.reason)


try:
    import torch
except ImportError:
    torch = None
try:
    import triton_rows
except ImportError as reason:
    triton_rows = Missing(str(reason))
sys.path.append(str(Path(__file__).resolve().parents[3] / "python"))
try:
    import tmap.torch_ops
    operators = torch.ops.tmap
except ImportError as reason:
    tmap = operators = Missing(str(reason))

DENSE = {"groups": 1, "rows": 8192, "n": 8192, "k": 8192, "sizes": [8192]}


def begins_of(sizes):
    """Returns the beginning of each group, and the end of the last one."""
    begins = [0]
    for size in sizes:
        begins.append(begins[-1] + size)
    return begins


def parts_of(sizes):
    """Returns the number and the rows of each group that has rows."""
    begins = begins_of(sizes)
    return [(group, slice(begins[group], begins[group + 1])) for group, size in enumerate(sizes) if size]


def random(*shape):
    return torch.empty(shape, device="cuda", dtype=torch.bfloat16).normal_()


def is_near(found, want, most=0.02):
    """Returns whether each element is within `most` deviations and 2 % of the expected one."""
    return torch.allclose(found.float(), want, rtol=2e-2, atol=most * want.std().item())


def cublas_peers(new_output, products_into, sums_rows=False):
    """Returns the cuBLAS peers, which get all sizes from the host: one call for all products, and
    one for each. `products_into(output)` lists the products: left, right, and destination."""
    of_loop, of_grouped = new_output(), new_output()
    looped, grouped = products_into(of_loop), products_into(of_grouped)
    by_row, by_column = (1, 0) if sums_rows else (0, 1)
    arguments = cublas_grouped.arguments_of(
        [cublas_grouped.Product(*place.shape, left.shape[1], left.data_ptr(), right.data_ptr(), place.data_ptr(),
                                left.stride(by_row), right.stride(by_column), place.stride(0))
         for left, right, place in grouped], sums_rows)
    addresses = [torch.tensor(column, device="cuda", dtype=torch.int64)
                 for column in (arguments.first, arguments.second, arguments.c)]

    def loop():
        for left, right, place in looped:
            torch.mm(left, right, out=place)
        return of_loop

    def in_one_call():
        cublas_grouped.enqueue(torch.cuda.current_blas_handle(), arguments, *(column.data_ptr() for column in addresses))
        return of_grouped

    return {"grouped": in_one_call, "loop": loop}


def row_operands(shape):
    a, b = random(shape["rows"], shape["k"]), random(shape["groups"], shape["n"], shape["k"])
    ends = torch.tensor(begins_of(shape["sizes"])[1:], device="cuda", dtype=torch.int32)
    return a, b, ends, parts_of(shape["sizes"]), 2.0 * shape["rows"] * shape["n"] * shape["k"]


def some(parts):
    return parts[::max(1, len(parts) // 4)]


def row_case(shape):
    a, b, ends, parts, operations = row_operands(shape)
    peers = {"tmap": lambda: operators.grouped_mm(a, b.transpose(-2, -1), ends),
             "torch": lambda: torch._grouped_mm(a, b.transpose(-2, -1), offs=ends),
             "triton": lambda: triton_rows.multiply(a, b, ends)}
    peers.update(cublas_peers(lambda: a.new_empty(shape["rows"], shape["n"]),
                              lambda c: [(a[rows], b[group].t(), c[rows]) for group, rows in parts]))
    return operations, peers, lambda c: all(
        is_near(c[rows], a[rows].float() @ b[group].float().t()) for group, rows in some(parts))


def eight_bit_case(shape, fast):
    """Sums in f32, or in the 13 bits that the tensor cores keep: PyTorch's fast accumulation."""
    a, b, ends, parts, operations = row_operands(shape)
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    row_scales = torch.rand(shape["rows"], device="cuda") + 0.5
    column_scales = torch.rand(shape["groups"], shape["n"], device="cuda") + 0.5
    c = torch.empty(shape["rows"], shape["n"], device="cuda", dtype=torch.bfloat16)

    def is_right(c):
        return all(is_near(c[rows], (a[rows].float() @ b[group].float().t()) * row_scales[rows, None] * column_scales[group],
                           0.2 if fast else 0.02) for group, rows in some(parts))

    peers = {"tmap": lambda: tmap.grouped_mm(a, b.transpose(-2, -1), ends, out=c, row_scales=row_scales,
                                             column_scales=column_scales, fast_accumulation=fast),
             "torch": lambda: torch._scaled_grouped_mm(a, b.transpose(-2, -1), row_scales, column_scales, offs=ends,
                                                       out_dtype=torch.bfloat16, use_fast_accum=fast)}
    return operations, peers, is_right


def weight_case(shape):
    groups, rows, m, n = (shape[key] for key in ("groups", "rows", "n", "k"))
    a, b, parts = random(rows, m), random(rows, n), parts_of(shape["sizes"])
    ends = torch.tensor(begins_of(shape["sizes"])[1:], device="cuda", dtype=torch.int32)
    peers = {"tmap": lambda: operators.grouped_mm(a.t(), b, ends), "torch": lambda: torch._grouped_mm(a.t(), b, offs=ends)}
    peers.update(cublas_peers(lambda: a.new_empty(groups, m, n),
                              lambda c: [(a[rows].t(), b[rows], c[group]) for group, rows in parts], sums_rows=True))
    return 2.0 * rows * m * n, peers, lambda c: all(
        is_near(c[group], a[rows].float().t() @ b[rows].float()) for group, rows in some(parts))


def pointer_case(sizes):
    a, b = [random(m, k) for m, n, k in sizes], [random(n, k) for m, n, k in sizes]

    def new_output():
        return [matrix.new_empty(m, n) for matrix, (m, n, _) in zip(a, sizes)]

    def column(values):
        return torch.tensor(list(values), device="cuda", dtype=torch.int64)

    c, extents = new_output(), [column(extent) for extent in zip(*sizes)]
    addresses = [column(matrix.data_ptr() for matrix in side) for side in (a, b, c)]
    pitches = [column(matrix.stride(0) * 2 for matrix in side) for side in (a, b, c)]

    def by_tmap():
        tmap.grouped_mm_by_pointers(*addresses, extents, pitches, dtype="bf16")
        return c

    def products_into(outputs):
        return [(left, right.t(), place) for left, right, place in zip(a, b, outputs)]

    return sum(2.0 * m * n * k for m, n, k in sizes), {"tmap": by_tmap, **cublas_peers(new_output, products_into)}, (
        lambda found: all(is_near(place, left.float() @ right.float()) for left, right, place in products_into(found)))


def cases_of(shapes, only):
    """Yields the name and the factory of each case that `only` matches."""
    cases = [("dense: 8192, 8192, 8192", partial(row_case, DENSE))]
    for shape in shapes["rows"]:
        name = ", ".join(str(shape[key]) for key in ("groups", "rows", "n", "k"))
        cases.append((name, partial(row_case, shape)))
        if shape["in_8_bits"]:
            cases += [(f"{name}, f8", partial(eight_bit_case, shape, False)),
                      (f"{name}, f8 fast", partial(eight_bit_case, shape, True))]
    shape = shapes["weights"]
    name = ", ".join(str(shape[key]) for key in ("groups", "rows", "n", "k"))
    cases.append((f"gradient: {name}", partial(weight_case, shape)))
    cases.append((f"{len(shapes['pointers'])} products by pointers", partial(pointer_case, shapes["pointers"])))
    return [(name, make) for name, make in cases if only.search(name)]
