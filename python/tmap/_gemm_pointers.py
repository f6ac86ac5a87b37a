# SPDX-License-Identifier: Apache-2.0
"""Grouped products of matrices at any addresses. Addresses, pitches and sizes are arrays in device
memory."""
from ctypes import byref

from . import _errors
from . import _structs as c
from ._arrays import Site
from ._batch import call_on, reports_of
from ._epilogue import result_type
from ._gemm_problem import OPERANDS, workspace_bytes
from ._library import lib
from ._numbers import choice, integer, sequence, type_name

A_LAYOUTS, B_LAYOUTS = ("m_by_k", "k_by_m"), ("n_by_k", "k_by_n")
_ADDRESSES, _NUMBERS = ("u64", "i64"), ("i64",)


def grouped_mm_by_pointers(a, b, out, sizes, pitches, *, dtype: str, a_layout: str = "m_by_k",
                           b_layout: str = "n_by_k", out_dtype=None, accumulate: bool = False,
                           statuses=None, header=None, plan: int = None, check=None,
                           stream=None) -> None:
    """out[i] = a[i] @ b[i].T in one call. Each product has a size of its own, which may be known
    only to the device.

    `a`, `b` and `out`, uint64 or int64 [groups], are addresses of matrices of `dtype`, "bf16" or
    "f16": [m, k], [n, k] and [m, n]. With `a_layout` "k_by_m", a[i] is stored as [k, m]; with
    `b_layout` "k_by_n", b[i] is stored as [k, n].
    `sizes` are three arrays (m, n, k), `pitches` three (a, b, out) of the bytes from one row to the
    next, each int64 [groups]. All are in device memory. Addresses and pitches are multiples of 16
    bytes, and so are n elements, and k. `out_dtype` "f32" makes results of f32. `accumulate` adds
    to the content of out.

    The device checks sizes, pitches and addresses. A bad product is skipped and its output
    untouched; `statuses`, uint32 [groups], and `header`, uint32 [4], report it
    (docs/grouped_gemm.md). Nothing can check that memory of the caller lies at an address. The
    stream does not wait for work that writes the matrices, since only their addresses are known.

    Does not wait for the device unless it is checked (`check`, as in `tmap.ragged`); a graph may
    capture it. The workspace comes from PyTorch or CuPy, by the arrays. Raises `TypeError`,
    `ValueError`, `Error`.
    """
    sizes, pitches = sequence(sizes, "sizes"), sequence(pitches, "pitches")
    site = Site(stream, a, b, out, *sizes, *pitches)
    if site.on_host:
        raise ValueError("grouped products are of arrays in device memory")
    problem = problem_of(site, a, b, out, sizes, pitches, dtype, (a_layout, b_layout), out_dtype,
                         accumulate)
    reports = reports_of(site, problem.groups, statuses, header, check=check, plan=plan)
    if problem.groups == 0:
        return
    needed = workspace_bytes(problem.groups)
    with site.use():
        workspace, _lent = site.memory(needed)
        _errors.check(lib.tmap_gemm_pointers(byref(problem),
                                             call_on(site.stream, workspace, needed, reports)))
        site.done()


def problem_of(site, a, b, out, sizes, pitches, dtype, layouts, out_dtype,
               accumulate) -> c.PointerProblem:
    operand = choice(type_name(dtype), OPERANDS[:2], "dtype")
    a_layout = choice(layouts[0], A_LAYOUTS, "a_layout")
    b_layout = choice(layouts[1], B_LAYOUTS, "b_layout")
    results = OPERANDS[operand] if out_dtype is None else type_name(out_dtype)
    choice(results, (OPERANDS[operand], "f32"), "out_dtype")
    if len(sizes) != 3 or len(pitches) != 3:
        raise ValueError(f"sizes are (m, n, k), pitches (a, b, out): not {len(sizes)} and "
                         f"{len(pitches)} arrays")
    groups = integer(site.read(a, "a", _ADDRESSES, rank=1).shape[0], "the number of groups", 32)
    matrices = {name: _address(site, array, label, _ADDRESSES, groups)
                for name, label, array in zip("abc", ("a", "b", "out"), (a, b, out))}
    numbers = {name: _address(site, array, name, _NUMBERS, groups)
               for name, array in zip(("m", "n", "k", "a_pitch_bytes", "b_pitch_bytes",
                                       "c_pitch_bytes"),
                                      (*sizes, *pitches))}
    return c.PointerProblem(operand=operand, groups=groups, a_layout=a_layout, b_layout=b_layout,
                            c_type=result_type(results), accumulate=int(accumulate), **matrices,
                            **numbers)


def _address(site, array, name, dtypes, groups):
    view = site.read(array, name, dtypes, rank=1)
    if not view.is_packed or view.shape[0] != groups:
        raise ValueError(f"{name} has {view.shape[0]} elements: it must have {groups}, as a has, "
                         "without gaps")
    return view.address
