# SPDX-License-Identifier: Apache-2.0
"""Checks the caller's numbers before the library sees them: ctypes cuts one that does not fit."""
import math
import operator
import struct
from typing import Any, Optional, Tuple


def whole(value, name: str) -> int:
    """Takes any integer, also one of NumPy."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}: it must be an integer") from None


def integer(value, name: str, bits: int, signed: bool = False) -> int:
    """Takes an integer that a member of so many bits can hold."""
    number = whole(value, name)
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}: it must be from {least} to {most}")
    return number


def integers(values, name: str, bits: int, signed: bool = False) -> Tuple[int, ...]:
    """Takes a sequence of such integers."""
    return tuple(integer(value, f"{name}[{i}]", bits, signed)
                 for i, value in enumerate(sequence(values, name)))


def status_bits(status, bits: int = 32, name: str = "status") -> int:
    """Returns a status of so many bits without a sign. A negative number stands for the unsigned
    one of the same bits."""
    number = whole(status, name)
    return integer(number, name, bits, signed=number < 0) % (1 << bits)


def sequence(values, name: str) -> Tuple[Any, ...]:
    """Makes a tuple of anything that can be iterated over."""
    try:
        return tuple(values)
    except TypeError:
        raise TypeError(f"{name} is {values!r}: it must be a sequence") from None


def real(value, name: str) -> float:
    """Takes any number that a float can stand for."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}: it must be a number") from None


def milliseconds(seconds, name: str) -> int:
    """Returns a time in milliseconds, one at least. None is 0, the library's default."""
    if seconds is None:
        return 0
    if not real(seconds, name) > 0:
        raise ValueError(f"{name} is {seconds!r}: it must be more than 0 seconds")
    return integer(math.ceil(min(real(seconds, name), 1e9) * 1000), name, 64)


def choice(value, names: Tuple[Any, ...], name: str) -> int:
    """Returns the number of one of these names."""
    if value not in names:
        raise ValueError(f"{name} is {value!r}: it must be one of {', '.join(map(str, names))}")
    return names.index(value)


# The package's names of element types, by those that libraries of arrays use.
TYPE_NAMES = {"uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "int8": "i8",
              "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16", "float32": "f32",
              "float64": "f64", "bfloat16": "bf16", "bool": "bool", "float8_e4m3fn": "f8_e4m3",
              "float8_e5m2": "f8_e5m2", "complex64": "c64", "complex128": "c128"}


def type_name(dtype) -> str:
    """Returns the package's name of a type: of "f32", "float32", `numpy.float32`,
    `torch.float32`."""
    if not isinstance(dtype, str):
        dtype = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = dtype.removeprefix("torch.")
    return TYPE_NAMES.get(name, name)


_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_INTEGERS = {"bool": (1, False), "u8": (8, False), "u16": (16, False), "u32": (32, False),
             "u64": (64, False), "i8": (8, True), "i16": (16, True), "i32": (32, True),
             "i64": (64, True)}


def element_bytes(value, dtype: str, item_bytes: int, name: str) -> bytes:
    """Returns one element of this value, lowest byte first. It takes bytes as they are."""
    if isinstance(value, bytes):
        if len(value) != item_bytes:
            raise ValueError(f"{name} has {len(value)} bytes: an element of {dtype} has "
                             f"{item_bytes}")
        return value
    made = _packed(value, dtype, name)
    if made is None:
        raise TypeError(f"{name} must be the {item_bytes} bytes of an element of {dtype}")
    return made


def _packed(value, dtype: str, name: str) -> Optional[bytes]:
    if dtype in _INTEGERS:
        bits, signed = _INTEGERS[dtype]
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        whole_number = integer(number, name, bits, signed)
        return whole_number.to_bytes(max(bits // 8, 1), "little", signed=signed)
    if dtype not in _FLOATS and dtype != "bf16":
        return None
    number = real(value, name)
    try:
        if dtype == "bf16":
            return _bf16(number)
        return struct.pack(_FLOATS[dtype], number)
    except OverflowError:
        raise ValueError(f"{name} is {number}: no element of {dtype} holds it") from None


def _bf16(number: float) -> bytes:
    if number != number:
        return b"\xc0\x7f"
    bits, = struct.unpack("<I", struct.pack("<f", number))
    return struct.pack("<I", bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFFFFFF)[2:]
