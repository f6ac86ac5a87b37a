# SPDX-License-Identifier: Apache-2.0
"""The copy engine on the CPU."""
import collections.abc
import ctypes
import math
from ctypes import byref, c_uint64
from typing import Any, Mapping, Sequence, Tuple

from . import _structs as c
from ._batch import innermost_first
from ._errors import check
from ._library import lib
from ._numbers import choice, integer, integers
from ._spec import TensorSpec, as_map, bytes_of, decode, struct_of

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
# NumPy's types by element type. Elements of other types are shown by their bits.
_NUMPY_TYPES = {"i32": "i4", "i64": "i8", "f16": "f2", "f32": "f4", "f64": "f8", "f32_ftz": "f4",
                "tf32": "f4", "tf32_ftz": "f4"}
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}
_ITEM_BYTES = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u64": 8, "i64": 8, "f64": 8}  # else 4


def tile_sizes(spec: TensorSpec) -> Tuple[int, int]:
    """Returns the bytes that a load of `spec` brings, which its barrier receives, and the bytes of
    shared memory that its tile takes."""
    size, footprint = c_uint64(), c_uint64()
    check(lib.tmap_tile_sizes(byref(struct_of(spec)), byref(size), byref(footprint)))
    return size.value, footprint.value


def _bytes_at(buffer, writes: bool, name: str):
    """Returns the address and size of a buffer, and what keeps it."""
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
        raise TypeError(f"memory is a {type(memory).__name__}: it must be a dictionary of buffers "
                        "by "
                        "address")
    if not 1 <= len(coordinates) <= c.MAX_RANK:
        raise ValueError(f"a tile has 1 to {c.MAX_RANK} coordinates, not {len(coordinates)}")
    windows, kept = (c.MemoryWindow * len(memory))(), []
    for window, (base, buffer) in zip(windows, memory.items()):
        address, size, owner = _bytes_at(buffer, writes_memory, "memory")
        window.base = integer(base, "an address of memory", 64)
        window.data, window.bytes = address, size
        kept.append(owner)
    address, size, owner = _bytes_at(tile, not writes_memory, "tile")
    given = c.Tile(rank=len(coordinates),
                   shared_address=integer(shared_address, "shared_address", 32), data=address,
                   bytes=size)
    given.coordinates[:len(coordinates)] = coordinates
    check(function(*first, as_map(data), windows, len(windows), byref(given), *last))


def simulate_load(data, memory: Mapping[int, Any], coordinates: Sequence[int], tile=None, *,
                  shared_address: int = 0):
    """Loads a tile as the copy engine does, without a GPU, and returns it as an array.

    `data` has the 128 bytes of a tiled map. `memory` has buffers by the device address that each
    stands for. `coordinates` are innermost first. `tile`, a writable buffer of at least
    `tile_sizes(spec)[1]` bytes, stands for shared memory; None stands for a new one.

    The array has the box's shape, outermost dim first, and shares the tile's memory. Elements are
    where the engine puts them, so a swizzle shows as elements that change places; rows of shared
    memory that are longer than the box have the rest of the row too. With an interleave the array
    has one dim. It is an array of NumPy, or without NumPy a `memoryview` of the bits. bf16 elements
    are uint16. Raises `Error` where the GPU would end the CUDA context.
    """
    spec = _tiled(data)
    if tile is None:
        tile = bytearray(tile_sizes(spec)[1])
    _run(lib.tmap_simulate_load, (), data, memory, coordinates, tile, False, shared_address,
         (None,))
    return _as_array(spec, tile)


def _tiled(data) -> TensorSpec:
    """The address plays no part in the shape of a tile."""
    decoded = decode(data)
    if decoded.kind != "tiled":
        raise ValueError("data is an im2col map: the simulator knows tiled ones")
    return decoded.spec


def _as_array(spec: TensorSpec, tile):
    item, footprint = _ITEM_BYTES.get(spec.element_type, 4), tile_sizes(spec)[1]
    outer = [] if spec.interleave != "none" else [-(-extent // step) for extent, step in
                                                  zip(spec.box[1:], spec.element_strides[1:])]
    shape = (*innermost_first(outer), footprint // math.prod(outer) // item)
    bits = bytes_of(tile, "tile")[:footprint].cast(_UNSIGNED[item], shape)
    try:
        import numpy
    except ImportError:
        return bits
    return numpy.asarray(bits).view(_NUMPY_TYPES.get(spec.element_type, f"u{item}"))


def simulate_store(data, memory: Mapping[int, Any], coordinates: Sequence[int], tile, *,
                   shared_address: int = 0) -> None:
    """Stores `tile` to `memory`, whose buffers are writable."""
    _run(lib.tmap_simulate_store, (), data, memory, coordinates, tile, True, shared_address)


def simulate_reduce(operation: str, data, memory: Mapping[int, Any], coordinates: Sequence[int],
                    tile, *, shared_address: int = 0) -> None:
    """Combines `tile` with `memory`: "add", "min", "max", "inc", "dec", "and", "or", "xor"."""
    _run(lib.tmap_simulate_reduce, (choice(operation, REDUCTIONS, "operation"),), data, memory,
         coordinates, tile, True, shared_address)
