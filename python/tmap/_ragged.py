# SPDX-License-Identifier: Apache-2.0
"""Operations on batches of tensors of different sizes."""
import ctypes
import enum
from ctypes import byref, c_uint64, c_void_p
from functools import lru_cache
from typing import Any, NamedTuple, Optional, Sequence, Union

from . import _structs as c
from ._arrays import Site
from ._dims import innermost_first
from ._errors import check
from ._faults import check_number
from ._libraries import Form, View
from ._library import declare, lib
from ._numbers import sequence, status_bits
from ._service import offset_count, window_list

VALUE_TYPES = ("u8", "f16", "bf16", "f32", "f8_e4m3", "f8_e5m2")
POLICIES = ("default", "enable", "disable", "force")
REDUCTIONS = ("sum", "max")


class Fault(enum.IntFlag):
    """Why a tensor (of gather and scatter: a row) was bad, as the bits of its status; `EMPTY` is no fault.
    `tmap.describe_status` says what each means."""
    DIM = 1 << 0
    STRIDE = 1 << 1
    ADDRESS = 1 << 2
    WINDOW = 1 << 3
    MISMATCH = 1 << 4
    OVERLAP = 1 << 5
    TRUNCATED = 1 << 6
    INDEX = 1 << 7
    EMPTY = 1 << 31


def faults_of(status) -> Fault:
    """The names in an element of `statuses`, of uint32 or int32: `Fault(0)` for a good tensor."""
    return Fault(status_bits(status))


class Rows:
    """Tensors that follow each other in one array: rows of `values`, its first dim, cut as `offsets` say ("ends": n
    values; "prefix": n + 1, the first 0; "sizes": n). Offsets are int32 or int64, where the values are. A tensor with rows
    that `values` does not have is bad (`Fault.ADDRESS`), unless the call names `windows`."""

    def __init__(self, values, offsets, format: str = "ends"):
        self.values, self.offsets, self.format = values, offsets, format

    @property
    def arrays(self):
        return self.values, self.offsets

    def side(self, site: Site, name: str, write: bool, is_bounded: bool) -> "_Side":
        values, cut = (site.write if write else site.read)(self.values, name), site.read(self.offsets, "offsets")
        count, pack, (first, second, last) = _rows_batch(values.form, cut.form, self.format, name, is_bounded)
        batch = pack(first, values.address, second, cut.address, last)
        form = values.form
        return _Side(batch, count, len(form.shape), form.dtype, form.item_bytes, (values, cut))


class Tensors:
    """Arrays of their own, all of one type and number of dims. Their addresses and shapes are copied on the call's stream,
    from memory of the host, so a call with them cannot be captured in a graph: `Error` says so."""

    def __init__(self, arrays: Sequence[Any]):
        self.arrays = sequence(arrays, "arrays")
        if not self.arrays:
            raise ValueError("a batch has one tensor at least")

    def side(self, site: Site, name: str, write: bool, is_bounded: bool) -> "_Side":
        views = [(site.write if write else site.read)(array, name) for array in self.arrays]
        first = views[0]
        patches = (c.MapPatch * len(views))()
        for view, patch in zip(views, patches):
            _check_rank(view.form, name)
            if view.dtype != first.dtype or len(view.shape) != len(first.shape):
                raise ValueError(f"{name}: all tensors have one type and number of dims")
            patch.global_address = view.address
            patch.global_dim[:len(view.shape)] = innermost_first(view.shape)
            patch.global_stride_bytes[:len(view.shape) - 1] = innermost_first(view.strides[:-1])
        site.keep(patches)
        made = _batch_of(first.form, len(views))
        made.arrays_on_host = 1
        made.tensors.kind = c.SOURCE_PATCHES
        made.tensors.of.patches = ctypes.addressof(patches)
        return _Side(byref(made), len(views), len(first.shape), first.dtype, first.item_bytes, (views, patches))


class Columns:
    """Tensors whose addresses and shapes exist only in memory of the device: `addresses`, and an array for each dim
    (innermost first, in elements) and for each stride (in bytes), uint64 or int64 [n]. Strides left out: packed. What
    lies at these addresses only the caller knows, who also keeps it; name `windows` where they may lie."""

    def __init__(self, addresses, dims: Sequence[Any], strides: Optional[Sequence[Any]] = None, *, dtype: str):
        self.addresses, self.dims, self.dtype = addresses, sequence(dims, "dims"), dtype
        self.strides = () if strides is None else sequence(strides, "strides")
        if dtype not in _ITEM_BYTES:
            raise ValueError(f"dtype is one of {', '.join(_ITEM_BYTES)}, not {dtype!r}")
        if not 1 <= len(self.dims) <= c.MAX_RANK or len(self.strides) not in (0, len(self.dims) - 1):
            raise ValueError(f"1 to {c.MAX_RANK} dims, and one stride less or none")

    @property
    def arrays(self):
        return self.addresses, *self.dims, *self.strides

    def side(self, site: Site, name: str, write: bool, is_bounded: bool) -> "_Side":
        addresses = site.read(self.addresses, name, ("u64", "i64"), rank=1)
        count = addresses.shape[0]
        made = c.TensorBatch(element_bytes=_ITEM_BYTES[self.dtype], rank=len(self.dims), count=count)
        made.tensors.struct_size, made.tensors.kind = ctypes.sizeof(c.PatchSource), c.SOURCE_COLUMNS
        columns = made.tensors.of.columns
        columns.global_address = site.optional(self.addresses, name, ("u64", "i64"), count)
        for axis, array in enumerate(self.dims):
            columns.global_dim[axis] = site.optional(array, name, ("u64", "i64"), count)
        for axis, array in enumerate(self.strides):
            columns.global_stride_bytes[axis] = site.optional(array, name, ("u64", "i64"), count)
        return _Side(byref(made), count, len(self.dims), self.dtype, made.element_bytes, addresses)


Batch = Union[Rows, Tensors, Columns]
_ITEM_BYTES = {"u8": 1, "i8": 1, "bool": 1, "f8_e4m3": 1, "f8_e5m2": 1, "u16": 2, "i16": 2, "f16": 2, "bf16": 2,
               "u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8, "f64": 8}


_ROWS = (c.TensorBatch, "tensors"), (c.PatchSource, "of"), (c.SourceMember, "rows")
_ADDRESSES = [c.place(*_ROWS, (c.RaggedRows, name)) for name in ("base_address", "offsets")]
_DENSE_ADDRESS = c.place((c.DenseBatch, "address"))


class _Side(NamedTuple):
    """A side of an operation."""
    struct: Any  # as the library takes it: its bytes, or by reference
    count: int
    rank: int
    dtype: str
    item_bytes: int
    keeps: Any  # what must live as long


def _check_rank(form: Form, name: str) -> None:
    if not 1 <= len(form.shape) <= c.MAX_RANK:
        raise ValueError(f"{name}: tensors have 1 to {c.MAX_RANK} dims, not {len(form.shape)}")
    _check_last_dim(form, name)


def _check_last_dim(form: Form, name: str) -> None:
    if form.shape[-1] > 1 and form.strides[-1] != form.item_bytes:
        raise ValueError(f"{name}: the last dim has gaps")


def _batch_of(form: Form, count: int) -> c.TensorBatch:
    made = c.TensorBatch(element_bytes=form.item_bytes, rank=len(form.shape), count=count)
    made.tensors.struct_size = ctypes.sizeof(c.PatchSource)
    return made


@lru_cache(maxsize=1024)
def _rows_batch(values: Form, offsets: Form, format: str, name: str, is_bounded: bool) -> tuple:
    """All of `Rows` but its addresses: how many tensors, and a TensorBatch in pieces."""
    count, number = offset_count(offsets, format)
    _check_rank(values, name)
    made = _batch_of(values, count)
    made.tensors.kind = c.SOURCE_ROWS
    rows = made.tensors.of.rows
    rows.row_pitch_bytes, rows.format, rows.offset_bytes = values.strides[0], number, offsets.item_bytes
    if is_bounded:
        rows.is_bounded, rows.rows = 1, values.shape[0]
    inner = innermost_first(values.shape[1:])
    made.inner_dim[:len(inner)] = inner
    steps = innermost_first(values.strides[1:-1])
    made.inner_stride_bytes[:len(steps)] = steps
    return count, *c.in_pieces(made, *_ADDRESSES)


@lru_cache(maxsize=1024)
def _dense_batch(form: Form, count: int, rank: int, dtype: str, name: str) -> tuple:
    """All of a dense array but its address: a DenseBatch in pieces."""
    if form.dtype != dtype or len(form.shape) != rank + 1 or form.shape[0] != count:
        raise ValueError(f"{name} is {form.dtype} {form.shape}; the batch has {count} tensors of {dtype} and {rank} dims")
    _check_last_dim(form, name)
    # The library takes strides of 0 for those of a batch without gaps.
    if any(extent > 1 and stride == 0 for extent, stride in zip(form.shape, form.strides)):
        raise ValueError(f"{name} repeats elements, by a stride of 0: copy it first")
    made = c.DenseBatch(tensor_pitch_bytes=form.strides[0])
    made.dim[:rank] = innermost_first(form.shape[1:])
    made.stride_bytes[:rank - 1] = innermost_first(form.strides[1:-1])
    return c.in_pieces(made, _DENSE_ADDRESS)


def dense_side(view: View, side: _Side, name: str) -> bytes:
    """An array that is the dense side to a batch, as a struct."""
    pack, (first, last) = _dense_batch(view.form, side.count, side.rank, side.dtype, name)
    return pack(first, view.address, last)


@lru_cache(maxsize=1024)
def _workspace_bytes(count: int, rank: int) -> int:
    needed = c_uint64()
    check(lib.tmap_ragged_workspace_bytes(count, rank, byref(needed)))
    return needed.value


class _Call:
    """One operation: where it runs, its options, and its way into the library."""

    def __init__(self, sides, stream=None, statuses=None, header=None, policy="default", windows=None, check=None):
        self.site = Site(stream, *_arrays_of(sides))
        self.wanted, self.is_bounded = (statuses, header), windows is None
        if policy not in POLICIES:
            raise ValueError(f"policy is one of {', '.join(POLICIES)}, not {policy!r}")
        self.options = None
        if not (policy == "default" and windows is statuses is header is check is None):
            self.options = c.RaggedOptions(policy=POLICIES.index(policy), check=check_number(check))
            self.options.windows, self.options.window_count = window_list(self.site, windows)

    def source(self, batch, name="source", dtypes=None) -> _Side:
        return self._side(batch, name, False, dtypes)

    def destination(self, batch, name="destination", dtypes=None) -> _Side:
        return self._side(batch, name, True, dtypes)

    def _side(self, batch, name, write, dtypes):
        if not isinstance(batch, (Rows, Tensors, Columns)):
            raise TypeError(f"{name} is {type(batch).__name__}, not Rows, Tensors or Columns")
        side = batch.side(self.site, name, write, self.is_bounded)
        if dtypes is not None and side.dtype not in dtypes:
            raise TypeError(f"{name} has elements of {side.dtype}, not of {' or '.join(dtypes)}")
        return side

    def run(self, operation: str, arguments, count: int, rank: Optional[int]) -> None:
        """`rank` None: the operation needs no memory to work in."""
        options = None
        if self.options is not None:
            statuses, header = self.wanted
            self.options.statuses = self.site.optional(statuses, "statuses", ("u32", "i32"), count, write=True)
            self.options.header = self.site.optional(header, "header", ("u32", "i32"), 4, write=True)
            options = byref(self.options)
        if self.site.on_host:
            check(getattr(lib, f"tmap_ragged_on_host_{operation}")(*arguments, options))
            self.site.done()
            return
        with self.site.use():
            scratch = ()
            if rank is not None:
                size = _workspace_bytes(count, rank)
                memory, _lent = self.site.memory(size)
                scratch = memory, size
            function = getattr(lib, f"tmap_ragged_{operation}")
            check(function(*arguments, *scratch, options, self.site.stream))
            self.site.done()


def takes(*arguments, workspace: bool = True):
    """Declares the C function of an operation, which has the name of the Python function: what it takes before its
    workspace, options and stream."""
    def declared(operation):
        name, scratch = operation.__name__, (c_void_p, c_uint64) if workspace else ()
        declare(f"tmap_ragged_{name}", *arguments, *scratch, c_void_p, c_void_p)
        declare(f"tmap_ragged_on_host_{name}", *arguments, c_void_p)
        return operation
    return declared


def _arrays_of(sides):
    arrays = []
    for side in sides:
        if isinstance(side, (Rows, Tensors, Columns)):
            arrays.extend(side.arrays)
        elif side is not None:
            arrays.append(side)
    return arrays


def _between(operation, source, destination, options, before=(), after=(), from_types=None, to_types=None) -> None:
    call = _Call((source, destination), **options)
    left, right = call.source(source, dtypes=from_types), call.destination(destination, dtypes=to_types)
    call.run(operation, (*before, left.struct, right.struct, *after), left.count, left.rank)
