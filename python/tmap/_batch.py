# SPDX-License-Identifier: Apache-2.0
"""Batches of tensors: where their tensors come from, where a call on them runs, what it reports."""
import ctypes
from ctypes import byref
from functools import lru_cache
from typing import Any, NamedTuple, Optional, Sequence, Tuple

from . import _structs as c
from ._arrays import WORDS, Site
from ._faults import check_number
from ._libraries import Form
from ._numbers import choice, integer, sequence, type_name

OFFSET_FORMATS = ("ends", "prefix", "sizes")
ROW_FORMATS = (*OFFSET_FORMATS, "begins_and_counts")
POLICIES = ("default", "enable", "disable", "force")
PUBLISHES = ("stores", "copy_fence")
NO_WINDOWS = None, 0


def innermost_first(extents: Sequence[int]) -> Tuple[int, ...]:
    """Turns a shape, strides or a box between Python's order, outermost dim first, and the
    library's. Nothing else turns them."""
    return tuple(reversed(extents))


# All of a `tmap_call` but its stream and workspace, which each call has of its own.
_OF_A_CALL = [c.place((c.Call, name)) for name in ("stream", "workspace", "workspace_bytes")]
_pack, (_ON_STREAM, *_, PLAIN) = c.in_pieces(c.Call(), *_OF_A_CALL)
_ON_HOST = bytes(c.Call(engine=1))[:len(_ON_STREAM)]
_rest = c.packer(c.Call, "statuses")


def call_on(stream: Optional[int], workspace: int = 0, size: int = 0,
            reports: bytes = PLAIN) -> bytes:
    """Returns a `tmap_call` on a stream, or on the host for None. The functions below make
    `reports`."""
    if stream is None:
        return _pack(_ON_HOST, 0, b"", 0, b"", 0, reports)
    return _pack(_ON_STREAM, stream, b"", workspace, b"", size, reports)


def reports_to(statuses=None, header=None, windows=None, window_count: int = 0, check: int = 0,
               policy: int = 0, publish: int = 0, plan: int = 0, owners=None,
               owner_window: int = 0, blocks: int = 0) -> bytes:
    """Returns the rest of a `tmap_call`: its members from `statuses` on."""
    return _rest.pack(statuses or 0, header or 0, windows or 0, window_count, check, policy, 0, 0,
                      publish, plan, blocks, owners or 0, owner_window)


def reports_of(site: Site, items: int, statuses=None, header=None, windows=NO_WINDOWS, check=None,
               policy: int = 0, plan: Optional[int] = None, blocks: Optional[int] = None) -> bytes:
    """Returns the same for arrays of the caller, in a call on so many tensors, rows or groups."""
    if statuses is header is check is plan is blocks is windows[0] is None and policy == 0:
        return PLAIN
    address, count = windows
    return reports_to(statuses=site.optional(statuses, "statuses", WORDS, items, write=True),
                      header=site.optional(header, "header", WORDS, 4, write=True),
                      windows=address, window_count=count, check=check_number(check), policy=policy,
                      plan=0 if plan is None else integer(plan, "plan", 31) + 1,
                      blocks=0 if blocks is None else integer(blocks, "blocks", 32))


def window_list(site: Site, windows):
    """Returns the address and number of windows."""
    if windows is None:
        return NO_WINDOWS
    view = site.read(windows, "windows", ("u64", "i64"), rank=2)
    if not view.is_packed or view.shape[1] != 2:
        raise ValueError("windows are pairs of begin and end, [w, 2] without gaps")
    return view.address, view.shape[0]


def offset_count(offsets: Form, format: str, formats: Tuple[str, ...] = OFFSET_FORMATS):
    """Returns how many tensors offsets cut, and their format's number."""
    number = choice(format, formats, "format")
    offsets.require("offsets", ("i32", "i64"), rank=1)
    if not offsets.is_packed:
        raise ValueError("offsets have gaps")
    count = offsets.shape[0] - (format == "prefix")
    if count < 0:
        raise ValueError("offsets of format prefix have one value at least")
    return count, number


def split_offsets(offsets, format: str, name: str):
    """Returns the counts, or None, and the array that has the first say."""
    if format != "begins_and_counts":
        return None, offsets
    parts = sequence(offsets, name)
    if len(parts) != 2:
        raise ValueError(f"{name} is a pair (begins, counts), not {len(parts)} arrays")
    return parts[1], parts[0]


def counts_address(site: Site, counts, begins: int, begin_bytes: int, name: str) -> int:
    """Returns the address of the counts that belong to so many begins."""
    view = site.read(counts, "counts", ("i32", "i64"), rank=1)
    if not view.is_packed or view.shape[0] != begins:
        raise ValueError(f"{name} has {begins} begins, and {view.shape[0]} counts without gaps: "
                         "they must be equally many")
    if view.item_bytes != begin_bytes:
        raise TypeError("begins and counts have the same type")
    return view.address


def rows_of(values: Form, offsets: Form, format: str, is_bounded: bool,
            formats: Tuple[str, ...] = OFFSET_FORMATS) -> Tuple[int, c.RaggedRows]:
    """Returns how many tensors there are, and all of them but their addresses."""
    count, number = offset_count(offsets, format, formats)
    rows = c.RaggedRows(row_pitch_bytes=values.strides[0] if values.strides else 0)
    rows.offsets.format, rows.offsets.bytes = number, offsets.item_bytes
    if is_bounded:
        rows.is_bounded, rows.rows = 1, values.shape[0]
    return count, rows


# Holds the places of the addresses of rows in a source.
ROW_ADDRESSES = [c.place((c.PatchSource, "of"), (c.SourceMember, "rows"), *members) for members in
                 (((c.RaggedRows, "base_address"),),
                  ((c.RaggedRows, "offsets"), (c.RowOffsets, "values")))]


class Side(NamedTuple):
    """A side of an operation."""
    struct: Any  # as the library takes it: its bytes, or by reference
    count: int
    rank: int
    dtype: str
    item_bytes: int
    keeps: Any  # lives as long as the struct


def _words_of(array) -> str:
    """Describes an array in a `repr`."""
    dtype, shape = getattr(array, "dtype", type(array).__name__), getattr(array, "shape", None)
    return f"{dtype} {list(shape)}" if shape is not None else str(dtype)


class Rows:
    """Tensors that follow each other in one array. `offsets` cut the rows of `values`, its first
    dim, by their `format`: "ends" has n values, "prefix" n + 1, the first 0, and "sizes" n. Offsets
    are int32 or int64, on the device of the values. A tensor with rows that `values` does not have
    is bad (`Fault.ADDRESS`), unless the call names `windows`."""

    def __init__(self, values, offsets, format: str = "ends"):
        self.values, self.offsets, self.format = values, offsets, format

    def __repr__(self) -> str:
        return f"<Rows of {_words_of(self.values)}, cut by {_words_of(self.offsets)} {self.format}>"

    @property
    def arrays(self):
        return self.values, self.offsets

    def side(self, site: Site, name: str, write: bool, is_bounded: bool) -> "Side":
        values = (site.write if write else site.read)(self.values, name)
        cut = site.read(self.offsets, "offsets")
        count, pack, (first, second, last) = _rows_batch(values.form, cut.form, self.format, name,
                                                         is_bounded)
        batch = pack(first, values.address, second, cut.address, last)
        form = values.form
        return Side(batch, count, len(form.shape), form.dtype, form.item_bytes, (values, cut))


class Tensors:
    """Arrays of their own, all of one type and number of dims. A call copies their addresses and
    shapes on its stream, from memory of the host, so a graph cannot capture a call with them: it
    raises `Error`."""

    def __init__(self, arrays: Sequence[Any]):
        self.arrays = sequence(arrays, "arrays")
        if not self.arrays:
            raise ValueError("a batch has one tensor at least")

    def __repr__(self) -> str:
        return f"<Tensors: {len(self.arrays)}, the first {_words_of(self.arrays[0])}>"

    def side(self, site: Site, name: str, write: bool, is_bounded: bool) -> "Side":
        views = [(site.write if write else site.read)(array, name) for array in self.arrays]
        first = views[0]
        patches = (c.MapPatch * len(views))()
        for view, patch in zip(views, patches):
            check_rank(view.form, name)
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
        return Side(byref(made), len(views), len(first.shape), first.dtype, first.item_bytes,
                    (views, patches))


class Columns:
    """Tensors whose addresses and shapes exist only in memory of the device: `addresses`, and an
    array for each dim (innermost first, in elements) and for each stride (in bytes), uint64 or
    int64 [n]. Without strides the tensors are packed. Only the caller knows the memory at these
    addresses, and keeps it; `windows` name the addresses that are allowed. `dtype` is a name,
    "f32", or the type object of a library."""

    def __init__(self, addresses, dims: Sequence[Any], strides: Optional[Sequence[Any]] = None, *,
                 dtype: str):
        self.addresses, self.dims, self.dtype = addresses, sequence(dims, "dims"), type_name(dtype)
        self.strides = () if strides is None else sequence(strides, "strides")
        choice(self.dtype, tuple(_ITEM_BYTES), "dtype")
        rank = len(self.dims)
        if not 1 <= rank <= c.MAX_RANK or len(self.strides) not in (0, rank - 1):
            raise ValueError(f"1 to {c.MAX_RANK} dims, and one stride less or none")

    def __repr__(self) -> str:
        addresses = _words_of(self.addresses)
        return f"<Columns of {self.dtype}, {len(self.dims)} dims, addresses {addresses}>"

    @property
    def arrays(self):
        return self.addresses, *self.dims, *self.strides

    def side(self, site: Site, name: str, write: bool, is_bounded: bool) -> "Side":
        addresses = site.read(self.addresses, name, ("u64", "i64"), rank=1)
        count = addresses.shape[0]
        made = c.TensorBatch(element_bytes=_ITEM_BYTES[self.dtype], rank=len(self.dims),
                             count=count)
        made.tensors.struct_size, made.tensors.kind = ctypes.sizeof(c.PatchSource), c.SOURCE_COLUMNS
        columns = made.tensors.of.columns
        columns.global_address = site.optional(self.addresses, name, ("u64", "i64"), count)
        for axis, array in enumerate(self.dims):
            columns.global_dim[axis] = site.optional(array, name, ("u64", "i64"), count)
        for axis, array in enumerate(self.strides):
            columns.global_stride_bytes[axis] = site.optional(array, name, ("u64", "i64"), count)
        return Side(byref(made), count, len(self.dims), self.dtype, made.element_bytes, addresses)


_ITEM_BYTES = {"u8": 1, "i8": 1, "bool": 1, "f8_e4m3": 1, "f8_e5m2": 1, "u16": 2, "i16": 2,
               "f16": 2, "bf16": 2, "u32": 4, "i32": 4, "f32": 4, "u64": 8, "i64": 8, "f64": 8}


def check_rank(form: Form, name: str) -> None:
    if not 1 <= len(form.shape) <= c.MAX_RANK:
        raise ValueError(f"{name}: tensors have 1 to {c.MAX_RANK} dims, not {len(form.shape)}")
    check_last_dim(form, name)


def check_last_dim(form: Form, name: str) -> None:
    if form.shape[-1] > 1 and form.strides[-1] != form.item_bytes:
        raise ValueError(f"{name}: the last dim has gaps")


def _batch_of(form: Form, count: int) -> c.TensorBatch:
    made = c.TensorBatch(element_bytes=form.item_bytes, rank=len(form.shape), count=count)
    made.tensors.struct_size = ctypes.sizeof(c.PatchSource)
    return made


@lru_cache(maxsize=1024)
def _rows_batch(values: Form, offsets: Form, format: str, name: str, is_bounded: bool) -> tuple:
    """Returns all of `Rows` but its addresses: how many tensors, and a TensorBatch in pieces."""
    count, rows = rows_of(values, offsets, format, is_bounded)
    check_rank(values, name)
    made = _batch_of(values, count)
    made.tensors.kind, made.tensors.of.rows = c.SOURCE_ROWS, rows
    inner, steps = innermost_first(values.shape[1:]), innermost_first(values.strides[1:-1])
    made.inner_dim[:len(inner)] = inner
    made.inner_stride_bytes[:len(steps)] = steps
    return count, *c.in_pieces(made,
                               *(c.place((c.TensorBatch, "tensors")) + at for at in ROW_ADDRESSES))
