# SPDX-License-Identifier: Apache-2.0
"""Calls cublasGemmGroupedBatchedEx for bf16 matrices with ctypes. PyTorch has no wrapper for it."""
import ctypes
import re
from ctypes import POINTER, c_char_p, c_float, c_int, c_void_p
from functools import lru_cache
from typing import Any, NamedTuple, Tuple

_OP_N, _OP_T = 0, 1
_CUDA_R_16BF, _COMPUTE_32F = 14, 68


class Product(NamedTuple):
    """C = A * B^T (or A^T * B), row-major: addresses, and pitches that count elements."""
    m: int
    n: int
    k: int
    a: int
    b: int
    c: int
    a_pitch: int
    b_pitch: int
    c_pitch: int


class Arguments(NamedTuple):
    """The arguments of one call: host arrays, and the addresses for the device arrays."""
    first_operations: Any
    second_operations: Any
    m: Any
    n: Any
    k: Any
    alpha: Any
    first_pitches: Any
    second_pitches: Any
    beta: Any
    c_pitches: Any
    sizes: Any
    first: Tuple[int, ...]
    second: Tuple[int, ...]
    c: Tuple[int, ...]


def arguments_of(products, sums_rows=False):
    """Returns the arguments of these products.

    cuBLAS is column-major: it computes the row-major C = A * B^T as C^T = B * A^T, with the
    operands exchanged. It refuses products without rows. Sums over zero rows are left out, too,
    which does not slow it down."""
    kept = [product for product in products if product.m and product.k]

    def numbers(values, kind=c_int):
        return (kind * len(kept))(*values)

    def same(value, kind=c_int):
        return numbers([value] * len(kept), kind)

    m, n, k, a, b, c, a_pitches, b_pitches, c_pitches = zip(*kept) if kept else [()] * len(Product._fields)
    return Arguments(same(_OP_N if sums_rows else _OP_T), same(_OP_T if sums_rows else _OP_N), numbers(n), numbers(m),
                     numbers(k), same(1, c_float), numbers(b_pitches), numbers(a_pitches), same(0, c_float),
                     numbers(c_pitches), same(1), b, a, c)


@lru_cache(maxsize=None)
def _library():
    """Returns the library that this process has loaded: PyTorch's handles belong to it."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found = re.search(r"\s(/.*/libcublas\.so[.\d]*)$", maps.read(), re.MULTILINE)
    if found is None:
        raise NotImplementedError("no libcublas is loaded")
    library = ctypes.CDLL(found[1])
    library.cublasGetStatusString.argtypes, library.cublasGetStatusString.restype = (c_int,), c_char_p
    numbers, factors = POINTER(c_int), POINTER(c_float)
    library.cublasGemmGroupedBatchedEx.argtypes = (
        c_void_p, numbers, numbers, numbers, numbers, numbers, factors, c_void_p, c_int, numbers, c_void_p, c_int, numbers,
        factors, c_void_p, c_int, numbers, c_int, numbers, c_int)
    library.cublasGemmGroupedBatchedEx.restype = c_int
    return library


def enqueue(handle, arguments, first, second, c):
    """Enqueues the call on the handle's stream. The last three are device arrays of addresses."""
    of, library = arguments, _library()
    status = library.cublasGemmGroupedBatchedEx(
        handle, of.first_operations, of.second_operations, of.m, of.n, of.k, of.alpha, first, _CUDA_R_16BF, of.first_pitches,
        second, _CUDA_R_16BF, of.second_pitches, of.beta, c, _CUDA_R_16BF, of.c_pitches, len(of.sizes), of.sizes,
        _COMPUTE_32F)
    if status != 0:
        raise RuntimeError(library.cublasGetStatusString(status).decode())
