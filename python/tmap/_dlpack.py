# SPDX-License-Identifier: Apache-2.0
"""DLPack's structs and capsules, in and out. https://dmlc.github.io/dlpack/latest/c_api.html"""
import ctypes
from ctypes import (POINTER, Structure, c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_uint16,
                    c_uint32, c_uint64, c_void_p)

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
READ_ONLY = 1
_VERSION = (1, 0)
_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"


class _Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32),
                ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
                ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class _Managed(Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("context", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("tensor", _Tensor)]


_get = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object,
                         c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_is_valid = ctypes.PYFUNCTYPE(c_int32, ctypes.py_object,
                              c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p,
                         c_void_p)(("PyCapsule_New", ctypes.pythonapi))
_process = ctypes.CDLL(None)
_process.malloc.restype = c_void_p
_process.malloc.argtypes = (c_size_t,)
_free = ctypes.cast(_process.free, c_void_p).value

# DLPack's (code, bits) by name.
_NUMBERS = {"i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64), "u8": (1, 8),
            "u16": (1, 16), "u32": (1, 32), "u64": (1, 64), "f16": (2, 16), "f32": (2, 32),
            "f64": (2, 64), "bf16": (4, 16), "c64": (5, 64), "c128": (5, 128), "bool": (6, 8),
            "f8_e4m3": (10, 8), "f8_e5m2": (12, 8)}
_NAMES = {number: name for name, number in _NUMBERS.items()}


def item_bytes(name):
    """Returns the bytes of an element of a type."""
    if name not in _NUMBERS:
        raise TypeError(f"dtype is {name!r}: it must be one of {', '.join(_NUMBERS)}")
    return _NUMBERS[name][1] // 8


def _ask(array, stream):
    """Returns a capsule. Producers older than DLPack 1.0 do not know the last two keywords."""
    try:
        return array.__dlpack__(stream=stream, max_version=_VERSION, copy=False)
    except TypeError:
        return array.__dlpack__(stream=stream)


def _opened(capsule):
    """Returns the tensor in a capsule, and its flags."""
    if _is_valid(capsule, _VERSIONED):
        managed = _ManagedVersioned.from_address(_get(capsule, _VERSIONED))
        if managed.major != _VERSION[0]:
            raise BufferError(f"DLPack {managed.major} is another major version than {_VERSION[0]}")
        return managed.tensor, managed.flags
    if _is_valid(capsule, _PLAIN):
        return _Managed.from_address(_get(capsule, _PLAIN)).tensor, 0
    raise TypeError("__dlpack__ gave no capsule that is still unused")


def packed_strides(shape, step=1):
    """Returns the strides of an array without gaps, in units of `step`. They are legal also for an
    array without elements."""
    strides = []
    for extent in reversed(shape):
        strides.insert(0, step)
        step *= max(extent, 1)
    return tuple(strides)


def read(array, stream):
    """Returns (address, shape, strides in elements, type, bytes of an element, read-only, capsule)
    of a producer. The memory is valid while the capsule lives. Nobody uses the capsule, so its end
    informs the producer."""
    capsule = _ask(array, stream)
    tensor, flags = _opened(capsule)
    name = _NAMES.get((tensor.code, tensor.bits))
    if name is None or tensor.lanes != 1:
        raise TypeError(f"elements of DLPack's code {tensor.code}, {tensor.bits} bits, "
                        f"{tensor.lanes} lanes")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else packed_strides(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    return address, shape, strides, name, tensor.bits // 8, bool(flags & READ_ONLY), capsule


def _fill(tensor, numbers, address, shape, name, device):
    tensor.data, tensor.byte_offset = address, 0
    tensor.device_type, tensor.device_id = device
    tensor.code, tensor.bits = _NUMBERS[name]
    tensor.lanes, tensor.ndim = 1, len(shape)
    extents = (c_int64 * (2 * len(shape)))(*shape, *packed_strides(shape))
    ctypes.memmove(numbers, extents, ctypes.sizeof(extents))
    tensor.shape = ctypes.cast(numbers, POINTER(c_int64))
    tensor.strides = ctypes.cast(numbers + 8 * len(shape), POINTER(c_int64))


def write(address, shape, name, device, read_only, max_version):
    """Makes a capsule of packed memory that somebody else keeps alive.

    It is one block of `malloc` whose deleter is `free`. A consumer may call the deleter while an
    exception is on its way, when no code in Python may run. A capsule that nobody takes leaks the
    block, some 200 bytes.
    """
    versioned = max_version is not None and max_version[0] >= _VERSION[0]
    if read_only and not versioned:
        raise BufferError("this memory is read-only, which DLPack can express from version 1.0 on: "
                          "ask with max_version")
    kind = _ManagedVersioned if versioned else _Managed
    block = _process.malloc(ctypes.sizeof(kind) + 16 * len(shape))
    if not block:
        raise MemoryError
    managed = kind.from_address(block)
    managed.context, managed.deleter = None, _free
    if versioned:
        (managed.major, managed.minor), managed.flags = _VERSION, READ_ONLY if read_only else 0
    _fill(managed.tensor, block + ctypes.sizeof(kind), address, shape, name, device)
    return _new(block, _VERSIONED if versioned else _PLAIN, None)
