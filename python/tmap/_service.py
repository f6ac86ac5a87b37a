# SPDX-License-Identifier: Apache-2.0
"""Encodes maps into slots that are lent and taken back in stream order."""
import ctypes
import json
from ctypes import byref
from typing import Any, Dict, NamedTuple, Sequence, Tuple

from . import _structs as c
from ._arrays import WORDS, Site
from ._batch import (PUBLISHES, ROW_ADDRESSES, ROW_FORMATS, call_on, counts_address,
                     innermost_first, reports_to, rows_of, split_offsets, window_list)
from ._driver import Home
from ._errors import check, text_of
from ._faults import check_number
from ._lease import MapBatch, _left, release_left
from ._libraries import Form, View
from ._library import lib
from ._numbers import choice, integer, integers, sequence
from ._spec import TensorSpec, element_type_of

_PATCH_ADDRESS = 1
_MOST_TEMPLATES = 64
_MOST_PLANS = 1024
_REPORTS = {publish: reports_to(publish=i) for i, publish in enumerate(PUBLISHES)}
_HEADER_BYTES = 16


def patch_dim(axis: int) -> int:
    """Returns the bit of a dim (innermost is 0) in a template's fields."""
    return 1 << (1 + axis)


class Template:
    """The common part of the maps of a batch, and the fields that each may change. Thread-safe."""

    def __init__(self, spec: TensorSpec, fields: int):
        self.spec = spec
        self._handle = c.Handle()
        check(lib.tmap_template_create(byref(spec.to_c()), fields, byref(self._handle)))

    @property
    def handle(self) -> c.Handle:
        return self._handle

    def __del__(self):
        if getattr(self, "_handle", None) is not None and self._handle.value:
            lib.tmap_template_destroy(self._handle)


class _Plan(NamedTuple):
    """All of an encode but its addresses, which follows from forms and modes."""
    template: Template
    pack: Any  # joins the pieces and the addresses of base and offsets to a PatchSource's bytes
    pieces: Tuple[bytes, ...]
    count: int
    workspace_bytes: int


class MapService:
    """Lends slots of device memory and encodes tensor maps into them, on the device.

    A service belongs to the CUDA context that is current in this thread: make an array on the GPU
    first. It begins with `capacity` slots (0: the library's default) and grows to `max_capacity`
    (0: never). Thread-safe. `close`, or the end of a `with`, ends it; batches that are still lent
    stay valid. Methods work on any current device.

    Examples:
        >>> with tmap.MapService() as service:
        ...     batch = service.encode_ragged(values, ends, box=(64, 64), swizzle="128B")
        ...     launch(kernel, batch.ref, ...)
        ...     batch.release()
    """

    def __init__(self, capacity: int = 0, max_capacity: int = 0, self_test: bool = True):
        self._handle = c.Handle()
        self._templates: Dict[tuple, Template] = {}
        self._plans: Dict[tuple, _Plan] = {}
        options = c.ServiceOptions(skip_self_test=0 if self_test else 1,
                                   capacity=integer(capacity, "capacity", 64),
                                   max_capacity=integer(max_capacity, "max_capacity", 64))
        check(lib.tmap_service_create(byref(options), byref(self._handle)))
        self._home = Home()

    def encode_ragged(self, base, offsets, box: Sequence[int], *, format: str = "ends",
                      swizzle: str = "none", l2_promotion: str = "none", oob_fill: str = "zero",
                      windows=None, header: bool = False, check=None, publish: str = "stores",
                      owners=None, window=None, stream=None) -> MapBatch:
        """Encodes one map for each tensor of a ragged batch: rows of `base` (its first dim), cut by
        `offsets`.

        `base` is device memory of 2 to 5 dims whose last has no gaps. `offsets` is int32 or int64
        in device memory, in rows: "ends" (n values), "prefix" (n + 1, the first 0) or "sizes" (n).
        "begins_and_counts" is a pair of such arrays, for tensors in any order and with gaps. `box`
        is in the array's order, outermost first. This call's kernel reads and checks the offsets on
        the device; both arrays stay unchanged until it has run.

        A tensor of no rows, and one that breaks a rule, gets a harmless map and a status in
        `MapBatch.statuses`. The same holds for one with rows that `base` does not have (T05),
        unless `windows`, uint64 or int64 [w, 2] in device memory, name the addresses that maps may
        reach: begin, end. With `header`, `MapBatch.header` counts bad and empty maps in 16 bytes of
        PyTorch's or CuPy's memory. `publish` is "stores", or "copy_fence" for maps that
        tensormap.cp_fenceproxy publishes, which takes longer; the maps are equal.

        With `owners`, uint32 or int32 [n] in device memory, tensor i lies on rank `owners[i]` of a
        group of GPUs. `base` then lies in this rank's part of `window`, a `tmap.peer.Window`, and
        each map describes the same place in its owner's part.

        Does not wait for the device unless it is checked (`check`, as in `tmap.ragged`). Raises
        `TypeError`, `ValueError`, `Error`.
        """
        counts, offsets = split_offsets(offsets, format, "offsets")
        site = Site(stream, base, offsets)
        if site.on_host:
            raise ValueError("maps are made of arrays in device memory")
        if site.device != self._home.device and self._home.device is not None:
            raise ValueError(f"base is on device {site.device}, the service on device "
                             f"{self._home.device}")
        if _left:
            release_left()
        rows, cut = site.read(base, "base"), site.read(offsets, "offsets")
        plan = self._plan(rows.form, cut.form, format, windows is None, sequence(box, "box"),
                          swizzle, l2_promotion, oob_fill)
        choice(publish, PUBLISHES, "publish")
        wanted = None
        if windows is not None or check is not None or header or owners is not None \
                or window is not None:
            address, count = window_list(site, windows)
            wanted = {"windows": address, "window_count": count, "check": check_number(check),
                      **_owners_of(site, owners, window, plan.count)}
        first, second, last = plan.pieces
        source = plan.pack(first, rows.address, second, cut.address, last)
        if counts is not None:
            source = _with_counts(site, source, counts, plan.count)
        if site.adaptor is None:
            return self._home.inside(self._encode, site, plan, rows, source, publish, header,
                                     wanted)
        with site.use():  # the device, and with it the context
            return self._encode(site, plan, rows, source, publish, header, wanted)

    def _encode(self, site: Site, plan: _Plan, rows: View, source: bytes, publish: str,
                has_header: bool, wanted) -> MapBatch:
        reports, header = _REPORTS[publish], None
        if wanted is not None:
            header = site.memory(_HEADER_BYTES) if has_header else None
            reports = reports_to(publish=PUBLISHES.index(publish), header=header and header[0],
                                 **wanted)
        workspace, _lent = site.memory(plan.workspace_bytes) if plan.workspace_bytes else (0, None)
        handle = c.Handle()
        call = call_on(site.stream, workspace, plan.workspace_bytes, reports)
        check(lib.tmap_service_encode(self._handle, plan.template.handle, source, plan.count,
                                      byref(handle), call))
        batch = MapBatch(handle, plan.count, self._home, site.device, rows, site.stream, header,
                         plan.template.spec)
        site.done()
        return batch

    def _plan(self, base: Form, offsets: Form, format: str, is_bounded: bool, *modes) -> "_Plan":
        key = (base, offsets, format, is_bounded, *modes)
        made = self._plans.get(key)
        if made is None:
            count, rows = rows_of(base, offsets, format, is_bounded, ROW_FORMATS)
            source = c.PatchSource(kind=c.SOURCE_ROWS)
            source.of.rows = rows
            made = _Plan(self._template(base, *modes), *c.in_pieces(source, *ROW_ADDRESSES), count,
                         _workspace_bytes(count, offsets.item_bytes) if format == "sizes" and count
                         else 0)
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[key] = made
        return made

    def _template(self, base: Form, box, swizzle, l2_promotion, oob_fill) -> Template:
        rank = len(base.shape)
        if not 2 <= rank <= c.MAX_RANK or len(box) != rank:
            raise ValueError(f"base has 2 to {c.MAX_RANK} dims and box as many: not {rank} and "
                             f"{len(box)}")
        if base.strides[-1] != base.item_bytes and base.shape[-1] > 1:
            raise ValueError("the last dim of base has gaps, which no tensor map can describe")
        key = (base.dtype, base.shape[1:], base.strides, box, swizzle, l2_promotion, oob_fill)
        made = self._templates.get(key)
        if made is None:
            # Each map has an address and rows of its own, so the template's do not matter.
            spec = TensorSpec(element_type_of(base.dtype), innermost_first((1, *base.shape[1:])),
                              innermost_first(integers(box, "box", 32)),
                              strides=innermost_first(base.strides[:-1]), swizzle=swizzle,
                              l2_promotion=l2_promotion, oob_fill=oob_fill)
            made = Template(spec, _PATCH_ADDRESS | patch_dim(rank - 1))
            if len(self._templates) >= _MOST_TEMPLATES:
                self._templates.clear()
            self._templates[key] = made
        return made

    def statistics(self) -> dict:
        """Returns what the service has done so far (`tmap::service_statistics`), without waiting
        for the device."""
        return json.loads(self._home.inside(text_of, lib.tmap_service_statistics, self._handle))

    def close(self) -> None:
        """Ends the service; a second time does nothing."""
        handle, self._handle = self._handle, c.Handle()
        self._plans.clear()
        self._templates.clear()
        if handle.value:
            check(self._home.inside(lib.tmap_service_destroy, handle))

    def __enter__(self) -> "MapService":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __del__(self):
        if hasattr(self, "_home") and self._handle.value:
            self._home.inside(lib.tmap_service_destroy, self._handle)


def _with_counts(site: Site, source: bytes, counts, begins: int) -> bytes:
    made = c.PatchSource.from_buffer_copy(source)
    offsets = made.of.rows.offsets
    offsets.counts = counts_address(site, counts, begins, offsets.bytes, "offsets")
    return bytes(made)


def _owners_of(site: Site, owners, window, count: int) -> dict:
    if (owners is None) != (window is None):
        raise ValueError("owners and window belong together: give both or neither")
    if owners is None:
        return {}
    return {"owners": site.optional(owners, "owners", WORDS, count),
            "owner_window": window.handle.value}


def _workspace_bytes(count: int, offset_bytes: int) -> int:
    needed = ctypes.c_uint64()
    check(lib.tmap_rows_workspace_bytes(count, offset_bytes, byref(needed)))
    return needed.value
