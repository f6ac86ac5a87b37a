# SPDX-License-Identifier: Apache-2.0
"""Groups of GPUs (docs/peers.md). A `Group` is one *rank* of a group, and makes *windows*: memory
of equal size on every rank that all ranks reach. `Window.exchange_rows` sends rows to all ranks,
when only the GPUs know how many. `dispatch` sends tokens to experts on all ranks, and `combine`
brings their results home.

Each rank needs a `Group` of its own. There are four ways to make one:

`Group.from_pointers`   from addresses, such as `buffer_ptrs` of PyTorch's symmetric memory
`Group.from_torch`      from a process group of PyTorch with NCCL
`Group.create`          with a communicator of its own, whose id goes by a file or by other means
`Group.of_process`      for all GPUs of this process

Calls that fail raise `Error`, `TypeError` or `ValueError`. After `Status.PEER_TIMEOUT`,
`PEER_LOST` and `GROUP_BROKEN` the group is broken: make a new one.
"""
import ctypes
import os
import sys
from ctypes import byref, c_uint32
from typing import Any, List, Optional, Sequence

from . import _structs as c
from ._driver import Home
from ._errors import check
from ._experts import ExpertShape, combine, dispatch
from ._library import lib
from ._numbers import integer, integers, milliseconds
from ._torch_groups import communicator_of
from ._window import Window, WindowArray

__all__ = ["ExpertShape", "Group", "Window", "WindowArray", "combine", "dispatch", "new_id"]

_ID_BYTES = ctypes.sizeof(c.PeerId)


def __dir__():
    return __all__


def new_id() -> bytes:
    """Makes the 128 bytes that all ranks of `Group.create` need. Call it on one rank and send them
    to the others."""
    made = c.PeerId()
    check(lib.tmap_peer_new_id(byref(made)))
    return bytes(made)


class Group:
    """One rank of a group of GPUs. The functions below make it, and windows may outlive it. One
    thread may use a group at a time. A group ends by `close`, by the end of a `with`, or with the
    object.

    Examples:
        >>> group = tmap.peer.Group.from_pointers(handle.buffer_ptrs, handle.rank, buffer.nbytes,
        ...                                       keep=buffer)
        >>> window = group.allocate(buffer.nbytes - tmap.peer.Window.HEADER_BYTES)
        >>> window.exchange_rows(rows, splits, out, out_splits)
    """

    _handle = c.Handle()

    def __init__(self, handle: c.Handle, home: Home, keeps: Any = None):
        self._handle, self._home, self._keeps = handle, home, keeps
        rank, ranks = c_uint32(), c_uint32()
        check(lib.tmap_peer_group_query(handle, byref(rank), byref(ranks)))
        self.rank, self.ranks = rank.value, ranks.value

    @classmethod
    def from_pointers(cls, buffer_ptrs: Sequence[int], rank: int, nbytes: int, *,
                      device: Optional[int] = None, keep: Any = None) -> "Group":
        """Makes a group of memory that exists: `buffer_ptrs[r]` is the address of the memory of
        rank r as the GPU of this rank sees it, a multiple of 256, and has `nbytes` bytes.

        The memory must be zero on all ranks before any rank uses a window. Windows are taken from
        its beginning. All ranks must allocate the same sizes in the same order. `device` is the GPU
        of this rank, by default the current one. `keep` is an object that owns the memory. The
        group and its windows keep it.
        """
        addresses = integers(buffer_ptrs, "buffer_ptrs", 64)
        handle = c.Handle()
        check(lib.tmap_peer_group_from_addresses(
            integer(rank, "rank", 32), (ctypes.c_uint64 * len(addresses))(*addresses),
            len(addresses), integer(nbytes, "nbytes", 64), byref(handle)))
        return cls(handle, Home() if device is None else Home.on(device), keep)

    @classmethod
    def of_process(cls, devices: Sequence[int]) -> List["Group"]:
        """Makes the groups of all ranks for GPUs of this process: rank i is GPU `devices[i]`. The
        first rank that allocates a window makes it for all. No call waits for another rank."""
        numbers = integers(devices, "devices", 32, signed=True)
        handles = (c.Handle * len(numbers))()
        check(lib.tmap_peer_group_of_process((ctypes.c_int32 * len(numbers))(*numbers),
                                             len(numbers), handles))
        return [cls(c.Handle(handle.value), Home.on(device))
                for handle, device in zip(handles, numbers)]

    @classmethod
    def from_torch(cls, process_group: Any = None, *,
                   patience: Optional[float] = None) -> "Group":
        """Makes a group of the ranks of a process group of PyTorch, by its NCCL communicator.
        `process_group` None is the default group. Needs PyTorch 2.8 and a process group with NCCL.

        All ranks must call it. PyTorch makes a communicator for the first collective call, so this
        function makes one if there was none. The process group must live longer than the group and
        its windows, and make no call meanwhile in another thread. `patience` is how long calls wait
        for the other ranks, in seconds.
        """
        torch = sys.modules.get("torch")
        if torch is None:
            raise ValueError("process_group is none of PyTorch, which is not imported")
        return cls.from_nccl(communicator_of(process_group, torch), patience=patience,
                             keep=process_group)

    @classmethod
    def from_nccl(cls, communicator: int, *, patience: Optional[float] = None,
                  keep: Any = None) -> "Group":
        """Makes a group of the ranks of an `ncclComm_t`, given as a number. It must outlive the
        group and its windows. `keep` is an object that owns it."""
        handle = c.Handle()
        check(lib.tmap_peer_group_from_nccl(integer(communicator, "communicator", 64),
                                            milliseconds(patience, "patience"), byref(handle)))
        return cls(handle, Home(), keep)

    @classmethod
    def create(cls, rank: int, ranks: int, *, id: Optional[bytes] = None, id_file=None,
               run: int = 0, patience: Optional[float] = None, self_test: bool = True) -> "Group":
        """Makes a group with an NCCL communicator of its own, on the current device, and waits for
        the other ranks. With `self_test` it then tests the way to all ranks and back.

        `id` is what `new_id` returned on one of them. In its place, `id_file` is a path in a folder
        that all ranks see, by which rank 0 gives the id to the others. `run` is then a number that
        no earlier start with this path had, such as a job's.
        """
        if (id is None) == (id_file is None):
            raise ValueError("give either id, of `new_id`, or id_file")
        start = c.PeerStart(rank=integer(rank, "rank", 32), ranks=integer(ranks, "ranks", 32),
                            run=integer(run, "run", 64), skip_self_test=0 if self_test else 1,
                            patience_ms=milliseconds(patience, "patience"))
        path = None if id_file is None else ctypes.create_string_buffer(os.fsencode(id_file))
        if path is not None:
            start.id_file = ctypes.addressof(path)
        elif isinstance(id, (bytes, bytearray)) and len(id) == _ID_BYTES:
            start.id = c.PeerId.from_buffer_copy(id)
        else:
            raise ValueError(f"id must be the {_ID_BYTES} bytes of `new_id`")
        handle = c.Handle()
        check(lib.tmap_peer_group_create(byref(start), byref(handle)))
        return cls(handle, Home())

    def allocate(self, nbytes: int) -> Window:
        """Makes a window of `nbytes` bytes on each rank. All ranks call it with the same size, in
        the same order. The bytes are not set, except for those of `from_pointers`."""
        handle = c.Handle()
        check(self._home.inside(lib.tmap_peer_group_allocate, self._handle,
                                integer(nbytes, "nbytes", 64), byref(handle)))
        return Window(handle, self._home, self._keeps)

    def allocate_local(self, nbytes: int, pair_nbytes: int) -> Window:
        """Makes a window for ranks that do not reach each other's memory, where `allocate` raises
        `Status.NO_PEER_ACCESS`. Needs a group over NCCL. `Window.exchange_rows`, `await_pulls`,
        `barrier` and `last_outcome` take it, and move rows through NCCL. They count as calls of the
        group, and NCCL waits for other ranks without a deadline.

        `pair_nbytes` bounds the rows that one rank sends another in a call. So many bytes cross for
        each pair in every call. All ranks call this with the same sizes.
        """
        handle = c.Handle()
        check(self._home.inside(lib.tmap_peer_group_allocate_local, self._handle,
                                integer(nbytes, "nbytes", 64),
                                integer(pair_nbytes, "pair_nbytes", 64), byref(handle)))
        return Window(handle, self._home, self._keeps)

    def check(self) -> None:
        """Raises `Error` if NCCL reports that a peer was lost. Waits for nothing."""
        check(lib.tmap_peer_group_check(self._handle))

    def close(self) -> None:
        """Ends this rank of the group. Its windows stay. A second time does nothing."""
        handle, self._handle = self._handle, c.Handle()
        if handle.value:
            check(self._home.inside(lib.tmap_peer_group_destroy, handle))

    def __enter__(self) -> "Group":
        return self

    def __exit__(self, *exception) -> None:
        self.close()

    def __del__(self):
        if self._handle.value:
            self._home.inside(lib.tmap_peer_group_destroy, self._handle)

    def __repr__(self) -> str:
        return f"<Group: rank {self.rank} of {self.ranks}{'' if self._handle.value else ', closed'}>"
