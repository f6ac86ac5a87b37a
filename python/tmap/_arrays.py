# SPDX-License-Identifier: Apache-2.0
"""Finds the device, the stream and the memory for work on arrays."""
from typing import Any, Optional, Tuple

from . import _driver
from ._libraries import ADAPTORS, HERE, View
from ._lifetime import Uses
from ._numbers import integer

WORDS = ("u32", "i32")  # either type of 32 bits serves


def stream_handle(stream) -> int:
    """Returns a cudaStream_t as a number, given a number or the stream of any library."""
    if hasattr(stream, "__index__"):
        return integer(stream, "stream", 64)
    asked = getattr(stream, "__cuda_stream__", None)
    if asked is not None:
        return int((asked() if callable(asked) else asked)[1])
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    raise TypeError(f"{type(stream).__name__} is no CUDA stream")


class Site(Uses):
    """The device and stream of one call, or the host, and the arrays that it uses."""
    __slots__ = ("device", "on_host", "adaptor", "_leads", "_written")

    def __init__(self, stream, *arrays):
        """Takes the device of the arrays, which must be the same: `read` and `write` check it.
        `stream` None stands for the current stream of PyTorch or CuPy, by the first of their
        arrays, else for CUDA's default stream."""
        first = ADAPTORS[type(arrays[0])]
        self.device = device = first.device_of(arrays[0])
        self.on_host = device is None
        if not first.gives_memory:
            first = next((found for found in (ADAPTORS[type(array)] for array in arrays)
                          if found.gives_memory), None)
        self.adaptor, self._leads = first, None
        if stream is not None:
            if device is None:
                raise ValueError("work on the host takes no stream")
            self.stream = stream_handle(stream)
        elif device is None:
            self.stream = None
        elif first is None:
            self.stream = 1
        else:
            self.stream, self._leads = first.current_stream(device), first
        self._references, self._written = [], []

    def read(self, array, name: str, dtypes: Optional[Tuple[str, ...]] = None,
             rank: Optional[int] = None) -> View:
        """Returns an array that is read on the site's stream, after the work that its producer has
        enqueued."""
        adaptor = ADAPTORS[type(array)]
        try:
            if adaptor.device_of(array) != self.device:
                raise ValueError(f"{name} is elsewhere: arrays of one call are all on one device, "
                                 "or all on the host")
            view = adaptor.view(array, self, adaptor is self._leads)
        except TypeError as reason:
            raise TypeError(f"{name}: {reason}") from None
        if dtypes is not None or rank is not None:
            view.form.require(name, dtypes, rank)
        return view

    def write(self, array, name: str, dtypes: Optional[Tuple[str, ...]] = None,
              rank: Optional[int] = None) -> View:
        """Returns an array that is written on the site's stream."""
        view = self.read(array, name, dtypes, rank)
        if view.read_only:
            raise ValueError(f"{name} would be written, and is read-only (or a leaf that needs a "
                             "gradient)")
        adaptor = ADAPTORS[type(array)]
        if adaptor.counts_writes:
            self._written.append((adaptor, array))
        return view

    def keep(self, reference) -> None:
        """Keeps memory of the host that the site's stream reads."""
        if not self.on_host:
            self.add(reference)

    def done(self) -> None:
        """Ends a call that has succeeded; call this inside `use`. Its arrays live until the stream
        has used them, and those that it writes count as changed."""
        self.enqueued()
        for adaptor, array in self._written:
            adaptor.count_write(array)

    def optional(self, array, name: str, dtypes: Tuple[str, ...], elements: int,
                 write=False) -> Optional[int]:
        """Returns the address of a packed array of so many elements at least, or None for None."""
        if array is None:
            return None
        view = (self.write if write else self.read)(array, name, dtypes)
        if not view.is_packed or view.nbytes < elements * view.item_bytes:
            raise ValueError(f"{name} must hold {elements} elements without gaps")
        return view.address

    def use(self):
        """Makes the site's device the thread's current one, for a `with`. If no library of the
        arrays can do that, the device must be current already."""
        if self.adaptor is not None:
            return self.adaptor.use(self.device)
        current = _driver.current_device() or 0  # CUDA takes device 0 in a thread without a context
        if current != self.device:
            raise ValueError(f"the arrays are on device {self.device}, and device {current} is "
                             "current: make theirs "
                             "current before the call")
        return HERE

    def memory(self, size: int) -> Tuple[int, Any]:
        """Returns the address and owner of a workspace, from the library of the arrays. Call this
        inside `use`. The workspace may be given back at once: these libraries reuse memory in
        stream order."""
        if self.adaptor is None:
            raise ValueError("memory to work in comes from PyTorch or CuPy: give one array of "
                             "theirs")
        return self.adaptor.memory(size, self.device, self.stream)
