# SPDX-License-Identifier: Apache-2.0
"""Tensor maps that are lent, and their memory as arrays."""
import warnings
from ctypes import byref
from typing import Any, List, Optional, Tuple

from . import _dlpack, _driver
from . import _structs as c
from ._arrays import stream_handle
from ._driver import Home
from ._errors import Status, check
from ._libraries import ADAPTORS, View
from ._library import lib
from ._lifetime import Uses

_NO_HANDLE = c.Handle()
_STILL_LENT = frozenset((int(Status.WRONG_CONTEXT),
                         int(Status.BATCH_BUSY)))  # after a release that failed like this
# Holds batches that nobody uses any more and that could not be released at that time.
_left: List["MapBatch"] = []


def release_left() -> None:
    """Tries again to release these."""
    for _ in range(len(_left)):
        try:
            batch = _left.pop(0)
        except IndexError:  # another thread tries the rest
            return
        batch.end()
        if batch.is_lent():
            _left.append(batch)


class DeviceArray:
    """Memory of a batch, read-only, for `torch.from_dlpack`, `cupy.from_dlpack` and the like. It is
    valid until the batch is released. A library's array made from it does not keep the batch."""

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
        return _dlpack.write(self._address, self.shape, self.dtype, self.__dlpack_device__(), True,
                             max_version)


class MapBatch:
    """Tensor maps of one encode, in slots that stay unchanged until `release`, the end of a `with`
    or of this object. Kernels on the batch's streams may use them: the stream of the encode and
    each that `use_on` named. Until then the batch keeps the array that its maps describe. Its
    methods work on any current device. `explain` counts its bad maps and describes the first.
    `spec` is the `TensorSpec` that the maps have in common. Its address and its outermost dim are
    those of no map."""

    # The members of `ref`, for `numpy.frombuffer(batch.ref, batch.REF_DTYPE)`: addresses, and two
    # numbers of 32 bits.
    REF_DTYPE = [("slots", "u8"), ("statuses", "u8"), ("indices", "u8"), ("count", "u4"),
                 ("generation", "u4"), ("records", "u8")]

    _handle = _NO_HANDLE

    def __init__(self, handle: c.Handle, count: int, home: Home, device: int,
                 described: Optional[View], stream: int, header: Optional[Tuple[int, Any]] = None,
                 spec=None):
        """`described` is the array with its owner, `stream` the stream of the encode, `header` its
        address and owner, `spec` what all maps have in common."""
        self._handle = handle
        self._count = count
        self._home = home
        self._described = described
        self._stream, self._streams = stream, {stream}
        self._header = header
        self.spec = spec
        self.device = device

    def __len__(self) -> int:
        return self._count

    def check_lent(self) -> None:
        """Raises `Error` (`invalid_handle`) once the batch is released."""
        self._living()

    def _living(self) -> c.BatchInfo:
        info = c.BatchInfo()
        check(self._home.call(lib.tmap_batch_query, self._handle, byref(info)))
        return info

    @property
    def ref(self) -> bytes:
        """The 40 bytes of `tmap::map_batch_ref`, a kernel parameter. They are valid until the
        release."""
        return bytes(self._living().ref)

    @property
    def maps(self) -> DeviceArray:
        """The maps, uint8 [count, 128], in device memory."""
        return DeviceArray(self, self._living().ref.slots, (len(self), 128), "u8")

    @property
    def statuses(self) -> DeviceArray:
        """The fate of each map, uint64 [count]: 0 good, bit 63 empty, else a bit for each broken
        rule (`rules_of`)."""
        return DeviceArray(self, self._living().ref.statuses, (len(self),), "u64")

    @property
    def header(self) -> Optional[DeviceArray]:
        """uint32 [4]: bad maps, the first of them (0xffffffff: none), empty maps, 0. It is None
        unless the encode had a header."""
        self.check_lent()
        return None if self._header is None else DeviceArray(self, self._header[0], (4,), "u32")

    def read_statuses(self) -> Tuple[Optional[memoryview], str]:
        """Waits for the encode and reads the statuses into memory of the host. Returns None and the
        reason where they cannot be read."""
        if not self.is_lent():
            return None, "released"
        read = self._home.inside(_driver.read_memory, self._living().ref.statuses, 8 * len(self),
                                 self._stream)
        if read is None:
            return None, "their statuses cannot be read now"
        return memoryview(read).cast("B").cast("Q"), ""

    def __repr__(self) -> str:
        return f"<MapBatch of {len(self)} maps{'' if self.is_lent() else ', released'}>"

    def _repr_html_(self) -> str:
        from . import _html
        return _html.of_batch(self)

    def use_on(self, stream) -> None:
        """Makes `stream` wait, on the device, for the encode, and adds it to the batch's
        streams."""
        handle = stream_handle(stream)
        check(self._home.call(lib.tmap_batch_use_on, self._handle, handle))
        self._streams.add(handle)
        if self._described is not None and ADAPTORS[type(self._described.array)].is_told:
            ADAPTORS[type(self._described.array)].lend(self._described, self.device, Uses(handle))

    def release(self) -> None:
        """Ends the lease. Its slots go to others after the work that is enqueued so far on the
        batch's streams. The same holds for the memory of the array that its maps describe."""
        check(self.end())

    def end(self) -> int:
        """Releases the batch and returns the code. In another context, or while another thread is
        in a call with the batch, it stays lent."""
        code = self._home.call(lib.tmap_batch_release, self._handle)
        if code not in _STILL_LENT:
            self._handle = _NO_HANDLE
            described, self._described = self._described, None
            header, self._header = self._header, None
            if described is not None and ADAPTORS[type(described.array)].is_told:
                described = None
            if described is not None or header is not None:
                self._home.inside(self._let_go, described, header)
        return code

    def _let_go(self, described, header) -> None:
        for stream in self._streams:
            uses = Uses(stream)
            if described is not None:
                ADAPTORS[type(described.array)].lend(described, self.device, uses)
            if header is not None:
                uses.add(header)
            uses.enqueued()

    def is_lent(self) -> bool:
        return bool(self._handle.value)

    def __enter__(self) -> "MapBatch":
        return self

    def __exit__(self, *exception) -> None:
        if self.is_lent():
            self.release()

    def __del__(self):
        if not self._handle.value:
            return
        code = self.end()
        if self.is_lent():
            _left.append(self)
            warnings.warn(f"tmap: a batch was dropped and could not be released "
                          f"({Status(code).name.lower()}); the next "
                          "encode tries again", ResourceWarning, stacklevel=2)
