# SPDX-License-Identifier: Apache-2.0
"""Operations on batches of tensors of different sizes."""
import ctypes
import struct
from ctypes import byref, c_uint64
from functools import lru_cache
from typing import Any, Optional, Sequence, Union

from . import _structs as c
from ._arrays import Site, View
from ._errors import check
from ._library import lib
from ._service import offset_view, window_list

VALUE_TYPES = ("u8", "f16", "bf16", "f32", "f8_e4m3", "f8_e5m2")
POLICIES = ("default", "enable", "disable", "force")
REDUCTIONS = ("sum", "max")


class Rows:
    """Tensors that follow each other in one array: rows of `values`, its first dim, cut as `offsets` say ("ends": n
    values; "prefix": n + 1, the first 0; "sizes": n). Offsets are int32 or int64, where the values are."""

    def __init__(self, values, offsets, format: str = "ends"):
        self.values, self.offsets, self.format = values, offsets, format

    @property
    def arrays(self):
        return self.values, self.offsets

    def side(self, site: Site, name: str, write: bool) -> "_Side":
        view = (site.write if write else site.read)(self.values, name)
        cut, count, number = offset_view(site, self.offsets, self.format)
        _check_rank(view, name)
        made = _batch_of(view, count)
        made.tensors.kind = c.SOURCE_ROWS
        rows = made.tensors.of.rows
        rows.base_address, rows.row_pitch_bytes = view.address, view.strides[0]
        rows.offsets, rows.format, rows.offset_bytes = cut.address, number, cut.item_bytes
        inner = tuple(reversed(view.shape[1:]))
        made.inner_dim[:len(inner)] = inner
        steps = tuple(reversed(view.strides[1:-1]))
        made.inner_stride_bytes[:len(steps)] = steps
        return _Side(made, view.dtype, (view, cut))


class Tensors:
    """Arrays of their own, all of one type and number of dims. Their shapes are copied on the call's stream, from memory
    of the host, so that a call with them cannot be captured in a graph."""

    def __init__(self, arrays: Sequence[Any]):
        self.arrays = tuple(arrays)
        if not self.arrays:
            raise ValueError("a batch has one tensor at least")

    def side(self, site: Site, name: str, write: bool) -> "_Side":
        views = [(site.write if write else site.read)(array, name) for array in self.arrays]
        first = views[0]
        patches = (c.MapPatch * len(views))()
        for view, patch in zip(views, patches):
            _check_rank(view, name)
            if view.dtype != first.dtype or len(view.shape) != len(first.shape):
                raise ValueError(f"{name}: all tensors have one type and number of dims")
            patch.global_address = view.address
            patch.global_dim[:len(view.shape)] = tuple(reversed(view.shape))
            patch.global_stride_bytes[:len(view.shape) - 1] = tuple(reversed(view.strides[:-1]))
        made = _batch_of(first, len(views))
        made.arrays_on_host = 1
        made.tensors.kind = c.SOURCE_PATCHES
        made.tensors.of.patches = ctypes.addressof(patches)
        return _Side(made, first.dtype, (views, patches))


class Columns:
    """Tensors whose addresses and shapes exist only in memory of the device: `addresses`, and an array for each dim
    (innermost first, in elements) and for each stride (in bytes), uint64 or int64 [n]. Strides left out: packed."""

    def __init__(self, addresses, dims: Sequence[Any], strides: Optional[Sequence[Any]] = None, *, dtype: str):
        self.addresses, self.dims, self.strides, self.dtype = addresses, tuple(dims), tuple(strides or ()), dtype
        if dtype not in _ITEM_BYTES:
            raise ValueError(f"dtype is one of {', '.join(_ITEM_BYTES)}, not {dtype!r}")
        if not 1 <= len(self.dims) <= c.MAX_RANK or len(self.strides) not in (0, len(self.dims) - 1):
            raise ValueError(f"1 to {c.MAX_RANK} dims, and one stride less or none")

    @property
    def arrays(self):
        return self.addresses, *self.dims, *self.strides

    def side(self, site: Site, name: str, write: bool) -> "_Side":
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
        return _Side(made, self.dtype, addresses)


Batch = Union[Rows, Tensors, Columns]
_ITEM_BYTES = {"u8": 1, "i8": 1, "bool": 1, "f8_e4m3": 1, "f8_e5m2": 1, "u16": 2, "i16": 2, "f16": 2, "bf16": 2,
               "u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8, "f64": 8}


class _Side:
    """A side of an operation as a struct, and what must live as long."""

    def __init__(self, struct, dtype: str, keeps):
        self.struct, self.dtype, self.keeps = struct, dtype, keeps


def _check_rank(view: View, name: str) -> None:
    if not 1 <= len(view.shape) <= c.MAX_RANK:
        raise ValueError(f"{name}: tensors have 1 to {c.MAX_RANK} dims, not {len(view.shape)}")
    if view.shape[-1] > 1 and 0 not in view.shape and view.strides[-1] != view.item_bytes:
        raise ValueError(f"{name}: the last dim has gaps")


def _batch_of(view: View, count: int) -> c.TensorBatch:
    made = c.TensorBatch(element_bytes=view.item_bytes, rank=len(view.shape), count=count)
    made.tensors.struct_size = ctypes.sizeof(c.PatchSource)
    return made


@lru_cache(maxsize=1024)
def _workspace_bytes(count: int, rank: int) -> int:
    needed = c_uint64()
    check(lib.tmap_ragged_workspace_bytes(count, rank, byref(needed)))
    return needed.value


class _Call:
    """One operation: where it runs, its options, and its way into the library."""

    def __init__(self, arrays, stream, statuses, header, policy, windows):
        self.site = Site(stream, *arrays)
        self.wanted = statuses, header
        if policy not in POLICIES:
            raise ValueError(f"policy is one of {', '.join(POLICIES)}, not {policy!r}")
        self.options = c.RaggedOptions(policy=POLICIES.index(policy))
        self.options.windows, self.options.window_count = window_list(self.site, windows)

    def source(self, batch, name="source", dtypes=None) -> _Side:
        return self._side(batch, name, False, dtypes)

    def destination(self, batch, name="destination", dtypes=None) -> _Side:
        return self._side(batch, name, True, dtypes)

    def _side(self, batch, name, write, dtypes):
        if not isinstance(batch, (Rows, Tensors, Columns)):
            raise TypeError(f"{name} is {type(batch).__name__}, not Rows, Tensors or Columns")
        side = batch.side(self.site, name, write)
        if dtypes is not None and side.dtype not in dtypes:
            raise TypeError(f"{name} has elements of {side.dtype}, not of {' or '.join(dtypes)}")
        return side

    def run(self, operation: str, arguments, count: int, rank: Optional[int]) -> None:
        """`rank` None: the operation needs no memory to work in."""
        statuses, header = self.wanted
        self.options.statuses = self.site.optional(statuses, "statuses", ("u32", "i32"), count, write=True)
        self.options.header = self.site.optional(header, "header", ("u32", "i32"), 4, write=True)
        if self.site.on_host:
            check(getattr(lib, f"tmap_ragged_on_host_{operation}")(*arguments, byref(self.options)))
            return
        with self.site.use():
            scratch = ()
            if rank is not None:
                size = _workspace_bytes(count, rank)
                memory, _ = self.site.memory(size)
                scratch = memory, size
            function = getattr(lib, f"tmap_ragged_{operation}")
            check(function(*arguments, *scratch, byref(self.options), self.site.stream))


def _arrays_of(*sides):
    for side in sides:
        if isinstance(side, (Rows, Tensors, Columns)):
            yield from side.arrays
        elif side is not None:
            yield side


def _between(operation, source, destination, options, before=(), after=(), from_types=None, to_types=None) -> None:
    call = _Call(_arrays_of(source, destination), **options)
    left, right = call.source(source, dtypes=from_types), call.destination(destination, dtypes=to_types)
    call.run(operation, (*before, byref(left.struct), byref(right.struct), *after), left.struct.count, left.struct.rank)


def fill_bytes(value, dtype: str) -> bytes:
    """One element of this value, lowest byte first."""
    if isinstance(value, bytes):
        return value
    if dtype == "bf16":
        bits, = struct.unpack("<I", struct.pack("<f", value))
        if value != value:
            return b"\xc0\x7f"
        return struct.pack("<I", bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFFFFFF)[2:]
    letters = {"f16": "e", "f32": "f", "f64": "d", "u8": "B", "bool": "?", "u16": "H", "u32": "I", "u64": "Q", "i8": "b",
               "i16": "h", "i32": "i", "i64": "q"}
    if dtype not in letters:
        raise TypeError(f"give the bytes to fill elements of {dtype} with")
    return struct.pack("<" + letters[dtype], value if dtype[0] == "f" else int(value))
