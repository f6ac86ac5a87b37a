# SPDX-License-Identifier: Apache-2.0
"""Windows of a group of GPUs: their memory as arrays, and calls that all ranks make together."""
import math
from ctypes import byref
from typing import Any, Optional, Sequence, Tuple

from . import _dlpack
from . import _structs as c
from ._arrays import WORDS, Site, stream_handle
from ._driver import Home
from ._errors import check
from ._libraries import View, current_stream
from ._library import lib
from ._numbers import choice, integer, integers, milliseconds, sequence, type_name
from ._spec import TensorSpec

_PLACED = ("rank_major", "group_major")


class WindowArray:
    """Memory of a window, for `torch.from_dlpack`, `cupy.from_dlpack` and the like. It is valid
    until the window is closed. A library's array made from it does not keep the window."""

    def __init__(self, window: "Window", address: int, shape: Tuple[int, ...], dtype: str):
        self._window, self._address = window, address
        self.shape, self.dtype = shape, dtype

    def __dlpack_device__(self):
        return _dlpack.CUDA, self._window.device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("the memory of a window is where it is, and not copied")
        self._window.check_open()
        return _dlpack.write(self._address, self.shape, self.dtype, self.__dlpack_device__(), False,
                             max_version)


class Window:
    """Memory of equal size on all ranks of a group, of `Group.allocate` or `allocate_local`.

    `exchange_rows`, `await_pulls`, `barrier` and `self_test` are collective: all ranks make the
    same calls with a window in the same order, each on a stream of its own GPU. They enqueue a
    kernel and return, and a graph may capture them. `stream` None is the current stream of the
    arrays' library, or of PyTorch or CuPy, if one of them is imported, else CUDA's default stream.
    `patience` is how many seconds the kernel waits for the other ranks, by default five.
    `last_outcome` reports how a call ended.

    A window ends by `close`, by the end of a `with`, or with the object. It waits for this rank's
    GPU then. End it when no kernel of any rank uses it any more.
    """

    HEADER_BYTES = 262144  # in front of each window, in the memory of `Group.from_pointers`
    # The members of `ref`, for `numpy.frombuffer(window.ref, window.REF_DTYPE)`.
    REF_DTYPE = [("windows", "u8", 32), ("bytes", "u8"), ("rank", "u4"), ("ranks", "u4")]

    _handle = c.Handle()

    def __init__(self, handle: c.Handle, home: Home, keeps: Any = None):
        self._handle, self._home, self._keeps = handle, home, keeps
        self._ref = c.PeerMemoryRef()
        check(lib.tmap_peer_memory_query(handle, byref(self._ref)))
        self.nbytes, self.rank, self.ranks = self._ref.bytes, self._ref.rank, self._ref.ranks
        self.device = home.device or 0

    def check_open(self) -> None:
        """Raises `Error` (`invalid_handle`) once the window is closed."""
        check(lib.tmap_peer_memory_query(self._handle, byref(c.PeerMemoryRef())))

    @property
    def handle(self) -> c.Handle:
        return self._handle

    @property
    def ref(self) -> bytes:
        """The 272 bytes of `tmap::peer_memory_ref`, a kernel parameter."""
        self.check_open()
        return bytes(self._ref)

    def address(self, offset: int = 0, rank: Optional[int] = None) -> int:
        """Returns the address of a byte of the window of `rank`, by default this one, as this
        rank's GPU sees it."""
        owner = self.rank if rank is None else integer(rank, "rank", 32)
        if owner >= self.ranks:
            raise ValueError(f"rank is {owner}: the group has {self.ranks}")
        if not 0 <= offset <= self.nbytes:
            raise ValueError(f"offset is {offset}: the window has {self.nbytes} bytes")
        if not self._ref.windows[owner]:
            raise ValueError(f"rank is {owner}: a window of `allocate_local` reaches no other rank")
        return self._ref.windows[owner] + self.HEADER_BYTES + offset

    def array(self, shape: Sequence[int], dtype, offset: int = 0,
              rank: Optional[int] = None) -> WindowArray:
        """Returns the memory from byte `offset` on as an array without gaps. `dtype` is a name,
        "f32", or the type object of a library. Without a `rank` it is this rank's own memory. With
        one, it is that rank's as this GPU reaches it."""
        extents = integers(shape if isinstance(shape, (tuple, list)) else sequence(shape, "shape"),
                           "shape", 63)
        name = type_name(dtype)
        size = math.prod(extents) * _dlpack.item_bytes(name)
        if not 0 <= offset <= self.nbytes or size > self.nbytes - offset:
            raise ValueError(f"an array of {size} bytes at offset {offset} does not lie in the "
                             f"window: it has {self.nbytes}")
        return WindowArray(self, self.address(offset, rank), extents, name)

    def exchange_rows(self, rows, splits, out, out_splits, *, placed: str = "rank_major",
                      blocks: int = 0, patience: Optional[float] = None, stream=None):
        """Sends rows to all ranks and gets theirs. Returns `out`.

        All arrays lie in the window. `rows` [n, ...] are in the order of the ranks they are for,
        then of their groups. `splits`, uint32 or int32 [ranks] or [ranks, groups], counts those for
        each. `out` [capacity, ...] gets the rows, and `out_splits`, as `splits`, how many came from
        each rank for each group. Rows may have any size and address. Between two rows of `rows` or
        `out` there may be a gap, whose bytes stay as they are.

        Rows come in the order of ranks, or of groups with `placed` "group_major". If a rank would
        get more rows than `out` has, no row moves on any rank, and `last_outcome` raises
        `Status.PEER_OVERFLOW` on all of them. `rows` and `splits` must stay as they are until
        `await_pulls`. `blocks` is the size of the kernel, by default 16.
        """
        site = self.site(stream, "rows", rows, splits, out, out_splits)
        sent, counts = site.read(rows, "rows"), site.read(splits, "splits", WORDS)
        got = site.write(out, "out", (sent.dtype,))
        pitches = _pitch(sent, "rows"), _pitch(got, "out")
        got_counts = site.write(out_splits, "out_splits", WORDS)
        problem = c.ExchangeProblem(
            row_bytes=integer(_row_bytes(sent, got), "row_bytes", 32), rows=sent.address,
            sent_rows=sent.shape[0], splits=counts.address, out=got.address,
            capacity=got.shape[0], out_splits=got_counts.address,
            groups=self._groups(counts, got_counts), placed=choice(placed, _PLACED, "placed"),
            blocks=integer(blocks, "blocks", 32), patience_ms=milliseconds(patience, "patience"),
            rows_pitch_bytes=pitches[0], out_pitch_bytes=pitches[1])
        self.enqueue(lib.tmap_peer_exchange_rows, site, problem)
        return out

    def site(self, stream, first: str, *arrays) -> Site:
        """Returns the device and stream of a call with these arrays, of which `first` is the first
        one's name."""
        made = Site(stream, *arrays)
        if made.on_host:
            raise ValueError(f"{first} is in memory of the host: calls with a window take arrays in "
                             "device memory")
        if made.device != self.device:
            raise ValueError(f"{first} is on device {made.device}, the window on device "
                             f"{self.device}")
        return made

    def enqueue(self, function, site: Site, problem) -> None:
        """Calls a function of the library that takes a problem, on the window's device."""
        self._home.inside(self._enqueue, function, site, problem)

    def _enqueue(self, function, site: Site, problem) -> None:
        check(function(self._handle, byref(problem), site.stream))
        site.done()

    def _groups(self, splits: View, out_splits: View) -> int:
        for view, name in ((splits, "splits"), (out_splits, "out_splits")):
            _packed(view, name)
            if len(view.shape) not in (1, 2) or view.shape[0] != self.ranks:
                raise ValueError(f"{name} is {view.shape}: it must be [{self.ranks}] or "
                                 f"[{self.ranks}, groups]")
            if view.shape != splits.shape:
                raise ValueError(f"{name} is {view.shape}, and splits {splits.shape}")
        return integer(math.prod(splits.shape[1:]), "groups", 32)

    def await_pulls(self, *, patience: Optional[float] = None, stream=None) -> None:
        """Makes the stream wait until all ranks have pulled what this rank sent. Then `rows` and
        `splits` may be overwritten."""
        self._wait(lib.tmap_peer_await_pulls, patience, stream)

    def barrier(self, *, patience: Optional[float] = None, stream=None) -> None:
        """Makes the stream wait until all ranks have come here."""
        self._wait(lib.tmap_peer_barrier, patience, stream)

    def self_test(self, *, patience: Optional[float] = None, stream=None) -> None:
        """Tests the way to every rank and back. `last_outcome` then raises
        `Status.SELF_TEST_FAILED` if bytes came wrong."""
        self._wait(lib.tmap_peer_self_test, patience, stream)

    def _wait(self, function, patience, stream) -> None:
        check(self._home.inside(function, self._handle, milliseconds(patience, "patience"),
                                self._stream(stream)))

    def _stream(self, stream) -> int:
        return current_stream(self.device) if stream is None else stream_handle(stream)

    def last_outcome(self, *, stream=None) -> None:
        """Waits for the stream, and raises `Error` if the last exchange with this window failed, or
        a later call that waited in vain. The success of an `await_pulls` hides an exchange before
        it that moved nothing. Do not call it while the stream is captured."""
        check(self._home.inside(lib.tmap_peer_last_outcome, self._handle, self._stream(stream)))

    def abort(self) -> None:
        """Breaks the group: waiting kernels of all ranks end at once, and so do later calls."""
        check(self._home.inside(lib.tmap_peer_abort, self._handle))

    def all_ranks_spec(self, local: TensorSpec) -> TensorSpec:
        """Describes the tensors at one place in the windows of all ranks as one tensor, whose last
        coordinate is the rank. `local` describes the one in this rank's window."""
        made = c.Spec()
        check(lib.tmap_all_ranks_spec(byref(local.to_c()), self._handle, byref(made)))
        return TensorSpec.from_c(made)

    def close(self) -> None:
        """Frees this rank's part of the window. A second time does nothing."""
        handle, self._handle = self._handle, c.Handle()
        if handle.value:
            check(self._home.inside(lib.tmap_peer_memory_destroy, handle))
            self._keeps = None

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __del__(self):
        if self._handle.value:
            self._home.inside(lib.tmap_peer_memory_destroy, self._handle)

    def __repr__(self) -> str:
        closed = "" if self._handle.value else ", closed"
        return f"<Window of {self.nbytes} bytes: rank {self.rank} of {self.ranks}{closed}>"


def _packed(view: View, name: str) -> View:
    if not view.shape or not view.is_packed:
        raise ValueError(f"{name} has gaps, or no dim")
    return view


def _pitch(view: View, name: str) -> int:
    """Returns the bytes from one row to the next, or 0 if there are no two rows."""
    shape, strides = view.shape, view.strides
    if not shape:
        raise ValueError(f"{name} has no dim")
    row = view.item_bytes
    for extent, stride in zip(reversed(shape[1:]), reversed(strides[1:])):
        if extent != 1 and stride != row:
            raise ValueError(f"{name} has the shape {shape} and strides {strides} in bytes: its rows "
                             "must have no gaps inside")
        row *= extent
    if shape[0] <= 1 or row == 0:
        return 0
    if strides[0] < row:
        raise ValueError(f"{name} has the strides {strides} in bytes: a row has {row} bytes, and "
                         "rows must not overlap")
    return strides[0]


def _row_bytes(rows: View, out: View) -> int:
    if rows.shape[1:] != out.shape[1:]:
        raise ValueError(f"rows is {rows.shape} and out {out.shape}: their rows must be alike")
    return math.prod(rows.shape[1:]) * rows.item_bytes
