# SPDX-License-Identifier: Apache-2.0
"""Operations on a batch of tensors of different sizes (docs/ragged.md).

A batch is `Rows` (values and offsets), `Tensors` (arrays of their own) or `Columns` (addresses and
shapes in memory of the device). Arrays are of any library that speaks DLPack. All arrays of a call
are on the same GPU, or all in memory of the host. On the host the operation runs through the
simulated copy engine and returns when it is done.

Every operation writes into arrays of the caller, on `stream`: None is the current stream of PyTorch
or CuPy. It does not wait for the device unless it is checked. A bad tensor is skipped and its
destination untouched; only `pad` fills the whole place of a bad source. All take these keywords:

statuses   uint32 or int32 [n], gets for each tensor 0 (good), bit 31 (empty) or why it was bad:
           `faults_of` names the bits, `tmap.explain` puts them into words.
header     uint32 or int32 [4], gets how many were bad, the first of them, how many were empty,
           and 0.
policy     "default", "enable", "disable" or "force" (docs/routes.md).
check      "sync", "off" or None, which stands for TMAP_CHECK. A checked operation waits, and raises
           `Error` if a tensor was bad, after all others are done (docs/when_results_look_wrong.md).
windows    uint64 or int64 [w, 2], addresses (begin, end) that tensors may reach.

No operation reads or writes outside the arrays that it was given, for any offsets and indices: a
tensor that would is bad. `windows` take the place of these bounds. They are the only bounds of
`Columns`, whose addresses belong to the caller. Operations raise `TypeError`, `ValueError` and
`Error` and have then changed nothing, except for a checked one that found bad tensors.
"""
from ctypes import byref, c_float, c_uint32, c_void_p

from . import _structs as c
from ._batch import Columns, Rows, Tensors
from ._numbers import choice, element_bytes, integer, real
from ._ragged import (FLOATS, REDUCTIONS, SCALE_BLOCKS, VALUE_TYPES, Fault, _between, _Call,
                      dense_side, faults_of, takes)

__all__ = ["Columns", "Fault", "Rows", "Tensors", "cast", "column_sums", "copy", "faults_of",
           "gather_rows", "max_pool_1d", "pack", "pad", "quantize", "reduce_rows", "saxpy",
           "scatter_rows", "transpose", "unpack", "unpad"]


def __dir__():
    return __all__


@takes(c_void_p, c_void_p)
def copy(source, destination, **options) -> None:
    """destination[i] = source[i]; both sides have the same shapes."""
    _between("copy", source, destination, options)


@takes(c_void_p, c_void_p)
def pack(source, out, *, alignment: int = 1, begins=None, **options) -> None:
    """Moves ragged tensors together: tensor i, packed, begins in `out` at the next multiple of
    `alignment` bytes after tensor i - 1. `begins`, int64 [n + 1], gets the byte offsets, at the end
    that of the place where another tensor would begin."""
    call = _Call((source, out, begins), **options)
    left = call.source(source)
    buffer = _packed(call, call.site.write(out, "out"), alignment, begins, left.count)
    call.run("pack", (left.struct, byref(buffer)), left.count, left.rank)


@takes(c_void_p, c_void_p)
def unpack(packed, destination, *, alignment: int = 1, begins=None, **options) -> None:
    """Undoes `pack`; the shapes are those of the destination."""
    call = _Call((destination, packed, begins), **options)
    right = call.destination(destination)
    buffer = _packed(call, call.site.read(packed, "packed"), alignment, begins, right.count)
    call.run("unpack", (byref(buffer), right.struct), right.count, right.rank)


def _packed(call, view, alignment, begins, count):
    if not view.is_packed:
        raise ValueError("the packed buffer has gaps")
    at = call.site.optional(begins, "begins", ("i64",), count + 1, write=True)
    return c.PackedBuffer(memory=view.address, bytes=view.nbytes,
                          alignment=integer(alignment, "alignment", 64), begins=at)


@takes(c_void_p, c_void_p, c_void_p)
def pad(source, out, *, fill=0, **options) -> None:
    """Makes ragged tensors dense: tensor i goes to the low corner of out[i], the rest becomes
    `fill`, a number or one element's bytes. A tensor larger than out[i] is cut and has the status
    `Fault.TRUNCATED`."""
    call = _Call((source, out), **options)
    left = call.source(source)
    dense = dense_side(call.site.write(out, "out"), left, "out")
    value = element_bytes(fill, left.dtype, left.item_bytes, "fill").ljust(16, b"\0")
    call.run("pad", (left.struct, dense, value), left.count, left.rank)


@takes(c_void_p, c_void_p)
def unpad(dense, destination, **options) -> None:
    """Undoes `pad`: tensor i comes from the low corner of dense[i]."""
    call = _Call((destination, dense), **options)
    right = call.destination(destination)
    from_dense = dense_side(call.site.read(dense, "dense"), right, "dense")
    call.run("unpad", (from_dense, right.struct), right.count, right.rank)


@takes(c_void_p, c_void_p, c_void_p)
def gather_rows(source, index, out, **options) -> None:
    """out[i] = source[index[i]], rows of matrices; `index` is int32 or int64. A row that does not
    exist leaves out[i] untouched; `statuses` has one element for each index."""
    _by_index("gather_rows", source, index, out, options)


@takes(c_void_p, c_void_p, c_void_p)
def scatter_rows(source, index, out, **options) -> None:
    """out[index[i]] = source[i]. Of equal numbers any one wins."""
    _by_index("scatter_rows", source, index, out, options)


def _by_index(operation, source, index, out, options):
    call = _Call((source, index, out), **options)
    left, right = call.site.read(source, "source", rank=2), call.site.write(out, "out", rank=2)
    rows = call.site.read(index, "index", ("i32", "i64"), rank=1)
    if not rows.is_packed or left.dtype != right.dtype:
        raise ValueError("index has no gaps, and both matrices have one type")
    numbers = c.RowIndex(bytes=rows.item_bytes, rows=rows.address, count=rows.shape[0])
    arguments = byref(_matrix(left, "source")), byref(numbers), byref(_matrix(right, "out"))
    call.run(operation, arguments, rows.shape[0], None)


def _matrix(view, name):
    if view.shape[1] > 1 and view.strides[1] != view.item_bytes:
        raise ValueError(f"{name}: rows have gaps")
    return c.RowMatrix(address=view.address, rows=view.shape[0], row_bytes=view.shape[1]
                       * view.item_bytes, pitch_bytes=view.strides[0])


@takes(c_void_p, c_void_p)
def transpose(source, destination, **options) -> None:
    """destination[i] = source[i] with its last two dims exchanged; 2 to 5 dims."""
    _between("transpose", source, destination, options)


@takes(c_void_p, c_void_p, c_void_p)
def cast(source, destination, *, scale: float = 1, shift: float = 0, scales=None, shifts=None,
         **options) -> None:
    """destination = source * scale + shift, computed in f32 and rounded to the destination's type:
    u8, f16, bf16, f32, f8_e4m3, f8_e5m2. `scales` and `shifts`, f32 [n], are factors of each
    tensor."""
    call = _Call((source, destination, scales, shifts), **options)
    left, right = call.source(source,
                              dtypes=VALUE_TYPES), call.destination(destination, dtypes=VALUE_TYPES)
    count = left.count
    factors = {name: call.site.optional(array, name, ("f32",), count)
               for name, array in (("scales", scales), ("shifts", shifts))}
    values = c.CastValues(from_type=VALUE_TYPES.index(left.dtype),
                          to_type=VALUE_TYPES.index(right.dtype), scale=real(scale, "scale"),
                          shift=real(shift, "shift"), **factors)
    call.run("cast", (left.struct, right.struct, byref(values)), count, left.rank)


@takes(c_float, c_void_p, c_void_p)
def saxpy(a: float, x, y, **options) -> None:
    """y[i] = a * x[i] + y[i], in f32."""
    _between("saxpy", x, y, options, before=(real(a, "a"),), from_types=("f32",), to_types=("f32",))


@takes(c_void_p, c_void_p, c_uint32)
def max_pool_1d(source, destination, *, radius: int, **options) -> None:
    """Each element of a row becomes the largest of those up to `radius` away from it, in f32. A NaN
    stays one."""
    _between("max_pool_1d", source, destination, options, after=(integer(radius, "radius", 32),),
             from_types=("f32",), to_types=("f32",))


@takes(c_void_p, c_uint32, c_uint32, c_void_p)
def reduce_rows(source, destination, *, reduction: str = "sum", **options) -> None:
    """Reduces each row of each tensor to one f32, its "sum" or "max". The destination has the
    source's shapes, but its last dim is 1. Elements are f32, f16 or bf16."""
    number = choice(reduction, REDUCTIONS, "reduction")
    call = _Call((source, destination), **options)
    left = call.source(source, dtypes=FLOATS)
    right = call.destination(destination, dtypes=("f32",))
    arguments = (left.struct, VALUE_TYPES.index(left.dtype), number, right.struct)
    call.run("reduce_rows", arguments, left.count, left.rank)


@takes(c_void_p, c_void_p, c_void_p, c_void_p)
def quantize(source, destination, scales, *, block: str = "1x128", powers_of_two: bool = False,
             transposed_scales: bool = False, **options) -> None:
    """Rounds elements of f32, f16 or bf16 to f8_e4m3 or f8_e5m2 with a scale for each block, so
    that value = destination * scale. A block is a "row", "1x128", "128x128" or "128x1" elements of
    the last two dims. With "128x1", the last two dims of the destination are exchanged. `scales`,
    f32, has the source's shapes with blocks in place of elements; a row is one block. With
    `transposed_scales` its last two dims are exchanged. `powers_of_two` rounds scales up. A block
    with a NaN or an infinity becomes NaN, and so does its scale."""
    values = c.QuantizeValues(block=choice(block, SCALE_BLOCKS, "block"),
                              powers_of_two=bool(powers_of_two),
                              transposed_scales=bool(transposed_scales))
    call = _Call((source, destination, scales), **options)
    left = call.source(source, dtypes=FLOATS)
    right = call.destination(destination, dtypes=("f8_e4m3", "f8_e5m2"))
    factors = call.destination(scales, "scales", dtypes=("f32",))
    values.from_type = VALUE_TYPES.index(left.dtype)
    values.to_type = VALUE_TYPES.index(right.dtype)
    arguments = (left.struct, right.struct, factors.struct, byref(values))
    call.run("quantize", arguments, left.count, left.rank)


@takes(c_void_p, c_uint32, c_void_p, c_uint32)
def column_sums(source, destination, **options) -> None:
    """Sums each column of each matrix, as the gradient of a bias needs. Elements are f32, f16 or
    bf16. The destination has one row for each matrix, of f32 or the source's type. A matrix without
    rows has sums of 0."""
    call = _Call((source, destination), **options)
    left = call.source(source, dtypes=FLOATS)
    right = call.destination(destination, dtypes=("f32", left.dtype))
    arguments = (left.struct, VALUE_TYPES.index(left.dtype), right.struct,
                 VALUE_TYPES.index(right.dtype))
    call.run("column_sums", arguments, left.count, left.rank)
