# SPDX-License-Identifier: Apache-2.0
"""Slots that are lent, encoded into and taken back in stream order."""
import ctypes
import json
from ctypes import byref
from typing import Any, Dict, Optional, Sequence

from . import _dlpack
from . import _structs as c
from ._arrays import Site, View, stream_handle
from ._errors import check, text_of
from ._library import lib
from ._spec import TensorSpec, element_type_of

OFFSET_FORMATS = ("ends", "prefix", "sizes")
_PATCH_ADDRESS = 1
_MOST_TEMPLATES = 64


def patch_dim(axis: int) -> int:
    """The bit of a dim (innermost is 0) in a template's fields."""
    return 1 << (1 + axis)


class DeviceArray:
    """Memory of a batch, read-only, for `torch.from_dlpack`, `cupy.from_dlpack` and the like. It is good while the batch
    is not released; a library's array made from it keeps the batch no longer."""

    def __init__(self, batch: "MapBatch", address: int, shape: tuple, dtype: str):
        self._batch = batch
        self._address = address
        self.shape = shape
        self.dtype = dtype

    def __dlpack_device__(self):
        return _dlpack.CUDA, self._batch.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("the memory of a batch is lent where it is, and not copied")
        self._batch.check_lent()
        if stream != -1:
            self._batch.use_on(1 if stream is None else stream)
        return _dlpack.write(self._address, self.shape, self.dtype, self.__dlpack_device__(), True, max_version)


class MapBatch:
    """Tensor maps of one encode, in slots that stay unchanged until `release`, the end of a `with` or of this object.
    Kernels on the batch's streams may use them: the stream of the encode and each that `use_on` named."""

    def __init__(self, handle: c.Handle, device: int, keeps: Any):
        self._handle = handle
        self._keeps = keeps
        self._info = c.BatchInfo()
        self.device = device
        self.check_lent()

    def __len__(self) -> int:
        return self._info.ref.count

    def check_lent(self) -> None:
        """Raises `Error` (`invalid_handle`) once the batch is released."""
        check(lib.tmap_batch_query(self._handle, byref(self._info)))

    def _living(self) -> c.BatchInfo:
        self.check_lent()
        return self._info

    @property
    def ref(self) -> bytes:
        """The bytes of `tmap::map_batch_ref`, a kernel parameter."""
        return bytes(self._living().ref)

    @property
    def maps(self) -> DeviceArray:
        """The maps, uint8 [count, 128], in device memory."""
        return DeviceArray(self, self._living().ref.slots, (len(self), 128), "u8")

    @property
    def statuses(self) -> DeviceArray:
        """What became of each map, uint64 [count]: 0 good, bit 63 empty, else a bit for each broken rule (`rules_of`)."""
        return DeviceArray(self, self._living().ref.statuses, (len(self),), "u64")

    @property
    def header(self) -> Optional[DeviceArray]:
        """uint32 [4]: bad maps, the first of them (0xffffffff: none), empty maps, 0. None unless it was asked for."""
        address = self._living().header
        return DeviceArray(self, address, (4,), "u32") if address else None

    def use_on(self, stream) -> None:
        """Makes `stream` wait, on the device, for the encode, and adds it to the batch's streams."""
        check(lib.tmap_batch_use_on(self._handle, stream_handle(stream)))

    def release(self) -> None:
        """Ends the lease: after what is enqueued so far on the batch's streams, its slots go to others."""
        check(lib.tmap_batch_release(self._handle))
        self._handle = c.Handle()
        self._keeps = None

    def __enter__(self) -> "MapBatch":
        return self

    def __exit__(self, *exception) -> None:
        if self._handle.value:
            self.release()

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._handle.value:
            lib.tmap_batch_release(self._handle)


class Template:
    """What the maps of a batch share, and the fields that each may change. For any number of threads."""

    def __init__(self, spec: TensorSpec, fields: int):
        self._handle = c.Handle()
        check(lib.tmap_template_create(byref(spec.to_c()), fields, byref(self._handle)))

    @property
    def handle(self) -> c.Handle:
        return self._handle

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._handle.value:
            lib.tmap_template_destroy(self._handle)


class MapService:
    """The front door: lends slots of device memory and encodes tensor maps into them, on the device.

    For the CUDA context that is current in this thread: make an array on the GPU before. `capacity` slots at the
    beginning (0: the library's default), growing to `max_capacity` (0: never). Thread-safe. `close`, or the end of a
    `with`, ends it; batches that are still lent stay good.

    >>> with tmap.MapService() as service:
    ...     batch = service.encode_ragged(values, ends, box=(64, 64), swizzle="128B")
    ...     launch(kernel, batch.ref, ...)
    ...     batch.release()
    """

    def __init__(self, capacity: int = 0, max_capacity: int = 0, self_test: bool = True):
        self._handle = c.Handle()
        self._templates: Dict[tuple, Template] = {}
        options = c.ServiceOptions(skip_self_test=0 if self_test else 1, capacity=capacity, max_capacity=max_capacity)
        check(lib.tmap_service_create(byref(options), byref(self._handle)))

    def encode_ragged(self, base, offsets, box: Sequence[int], *, format: str = "ends", swizzle: str = "none",
                      l2_promotion: str = "none", oob_fill: str = "zero", windows=None, header: bool = False,
                      stream=None) -> MapBatch:
        """One map for each tensor of a ragged batch: rows of `base` (its first dim), cut as `offsets` say.

        `base` is device memory of 2 to 5 dims whose last has no gaps; `offsets` is int32 or int64 in device memory, in
        rows: "ends" (n values), "prefix" (n + 1, the first 0) or "sizes" (n). `box` is in the array's order, outermost
        first. The offsets are read and judged on the device, by this call's kernel; both arrays stay unchanged until it
        has run. A tensor of no rows, and one that breaks a rule, gets a harmless map; `MapBatch.statuses` tells.
        `windows`, uint64 or int64 [w, 2] in device memory, are the addresses that maps may reach: begin, end.

        Never waits for the device. Raises `TypeError`, `ValueError`, `Error`.
        """
        site = Site(stream, base, offsets)
        if site.on_host:
            raise ValueError("maps are made of arrays in device memory")
        view = site.read(base, "base")
        source, count, kept = _rows_source(site, view, offsets, format)
        template = self._template(view, tuple(box), swizzle, l2_promotion, oob_fill)
        request = c.EncodeRequest(header=int(header))
        request.windows, request.window_count = window_list(site, windows)
        handle = c.Handle()
        with site.use():
            check(lib.tmap_service_encode(self._handle, template.handle, byref(source), count, byref(request),
                                          byref(handle), site.stream))
        return MapBatch(handle, site.device, (base, offsets, windows, kept))

    def _template(self, view: View, box, swizzle, l2_promotion, oob_fill) -> Template:
        rank = len(view.shape)
        if not 2 <= rank <= c.MAX_RANK or len(box) != rank:
            raise ValueError(f"base has 2 to {c.MAX_RANK} dims and box as many: not {rank} and {len(box)}")
        if view.strides[-1] != view.item_bytes and view.shape[-1] > 1:
            raise ValueError("the last dim of base has gaps, which no tensor map can describe")
        key = (view.dtype, view.shape[1:], view.strides, box, swizzle, l2_promotion, oob_fill)
        made = self._templates.get(key)
        if made is None:
            # The template's address and rows are of no account: each map brings its own.
            spec = TensorSpec(element_type_of(view.dtype), (*reversed(view.shape[1:]), 1), tuple(reversed(box)),
                              strides=tuple(reversed(view.strides[:-1])), swizzle=swizzle, l2_promotion=l2_promotion,
                              oob_fill=oob_fill)
            made = Template(spec, _PATCH_ADDRESS | patch_dim(rank - 1))
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            self._templates[key] = made
        return made

    def statistics(self) -> dict:
        """What the service did so far (`tmap::service_statistics`), without waiting for the device."""
        return json.loads(text_of(lib.tmap_service_statistics, self._handle))

    def close(self) -> None:
        """Ends the service; a second time does nothing."""
        handle, self._handle = self._handle, c.Handle()
        self._templates.clear()
        if handle.value:
            check(lib.tmap_service_destroy(handle))

    def __enter__(self) -> "MapService":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._handle.value:
            lib.tmap_service_destroy(self._handle)


def offset_view(site: Site, offsets, format: str):
    """Offsets, how many tensors they cut, and their format's number."""
    if format not in OFFSET_FORMATS:
        raise ValueError(f"format is one of {', '.join(OFFSET_FORMATS)}, not {format!r}")
    view = site.read(offsets, "offsets", ("i32", "i64"), rank=1)
    if not view.is_packed:
        raise ValueError("offsets have gaps")
    count = view.shape[0] - (format == "prefix")
    if count < 0:
        raise ValueError("offsets of format prefix have one value at least")
    return view, count, OFFSET_FORMATS.index(format)


def _rows_source(site: Site, view: View, offsets, format: str):
    cut, count, number = offset_view(site, offsets, format)
    source = c.PatchSource(kind=c.SOURCE_ROWS)
    rows = source.of.rows
    rows.base_address, rows.row_pitch_bytes = view.address, view.strides[0] if view.strides else 0
    rows.offsets, rows.format, rows.offset_bytes = cut.address, number, cut.item_bytes
    kept = None
    if format == "sizes" and count:
        needed = ctypes.c_uint64()
        check(lib.tmap_rows_workspace_bytes(count, cut.item_bytes, byref(needed)))
        rows.workspace, kept = site.memory(needed.value)
        rows.workspace_bytes = needed.value
    return source, count, kept


def window_list(site: Site, windows):
    """The address and number of windows."""
    if windows is None:
        return None, 0
    view = site.read(windows, "windows", ("u64", "i64"), rank=2)
    if not view.is_packed or view.shape[1] != 2:
        raise ValueError("windows are pairs of begin and end, [w, 2] without gaps")
    return view.address, view.shape[0]
