# SPDX-License-Identifier: Apache-2.0
"""The copy engine on the CPU."""
import collections.abc
import ctypes
from ctypes import byref, c_uint64
from typing import Any, Mapping, Sequence, Tuple

from . import _structs as c
from ._errors import check
from ._library import lib
from ._numbers import integer, integers
from ._spec import TensorSpec, as_map, bytes_of, struct_of

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def tile_sizes(spec: TensorSpec) -> Tuple[int, int]:
    """Bytes that a load of `spec` brings, and shared memory that its tile takes."""
    size, footprint = c_uint64(), c_uint64()
    check(lib.tmap_tile_sizes(byref(struct_of(spec)), byref(size), byref(footprint)))
    return size.value, footprint.value


def _bytes_at(buffer, writes: bool, name: str):
    """The address and size of a buffer, and what keeps it."""
    view = bytes_of(buffer, name)
    if not writes or view.readonly:
        if writes:
            raise ValueError(f"{name} would be written, and is read-only")
        kept = (ctypes.c_char * view.nbytes).from_buffer_copy(view)
    else:
        kept = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(kept), view.nbytes, kept


def _run(function, first, data, memory, coordinates, tile, writes_memory, shared_address, last=()):
    coordinates = integers(coordinates, "coordinates", 32, signed=True)
    if not isinstance(memory, collections.abc.Mapping):
        raise TypeError(f"memory is a {type(memory).__name__}: it must be a dictionary of buffers by address")
    if not 1 <= len(coordinates) <= c.MAX_RANK:
        raise ValueError(f"a tile has 1 to {c.MAX_RANK} coordinates, not {len(coordinates)}")
    windows, kept = (c.MemoryWindow * len(memory))(), []
    for window, (base, buffer) in zip(windows, memory.items()):
        address, size, owner = _bytes_at(buffer, writes_memory, "memory")
        window.base, window.data, window.bytes = integer(base, "an address of memory", 64), address, size
        kept.append(owner)
    address, size, owner = _bytes_at(tile, not writes_memory, "tile")
    given = c.Tile(rank=len(coordinates), shared_address=integer(shared_address, "shared_address", 32), data=address,
                   bytes=size)
    given.coordinates[:len(coordinates)] = coordinates
    check(function(*first, as_map(data), windows, len(windows), byref(given), *last))


def simulate_load(data, memory: Mapping[int, Any], coordinates: Sequence[int], tile, *, shared_address: int = 0) -> int:
    """A load as the copy engine makes it, without a GPU: from `memory`, buffers by the device address that each stands
    for, to `tile`, a writable buffer that stands for shared memory (`tile_sizes`). `data` has the 128 bytes of the map,
    `coordinates` are innermost first. Answers with the bytes that a barrier receives. Raises `Error` for what would end
    a CUDA context."""
    received = c_uint64()
    _run(lib.tmap_simulate_load, (), data, memory, coordinates, tile, False, shared_address, (byref(received),))
    return received.value


def simulate_store(data, memory: Mapping[int, Any], coordinates: Sequence[int], tile, *, shared_address: int = 0) -> None:
    """A store, from `tile` to `memory`, whose buffers are writable."""
    _run(lib.tmap_simulate_store, (), data, memory, coordinates, tile, True, shared_address)


def simulate_reduce(operation: str, data, memory: Mapping[int, Any], coordinates: Sequence[int], tile, *,
                    shared_address: int = 0) -> None:
    """A reduction: "add", "min", "max", "inc", "dec", "and", "or", "xor"."""
    if operation not in REDUCTIONS:
        raise ValueError(f"operation is one of {', '.join(REDUCTIONS)}, not {operation!r}")
    _run(lib.tmap_simulate_reduce, (REDUCTIONS.index(operation),), data, memory, coordinates, tile, True, shared_address)
