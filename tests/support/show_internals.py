# SPDX-License-Identifier: Apache-2.0
"""Copies a static library and exposes its hidden symbols: show_internals.py <library> <copy>.

Tests call functions that libtmap.so must not export. The compiler has marked them as hidden in the
object files, which no linker undoes. In the copy tmap's own symbols have the default visibility,
except inline ones, of which each program has its own. Only a byte of each symbol changes."""
import struct
import sys
from pathlib import Path

ARCHIVE, MEMBER_HEADER = b"!<arch>\n", 60
SYMBOL_TABLE, SYMBOL_BYTES = 2, 24
GLOBAL, HIDDEN = 1, 2
OURS = b"4tmap"  # the namespace in mangled C++ names


def members(data):
    """Yields the beginning of each file of the archive."""
    place = len(ARCHIVE)
    while place < len(data):
        size = int(data[place + 48:place + 58])
        yield place + MEMBER_HEADER
        place += MEMBER_HEADER + size + size % 2


def sections(data, file):
    """Returns the kind, place, bytes and link of each section of a 64-bit ELF file."""
    table, = struct.unpack_from("<Q", data, file + 0x28)
    size, count = struct.unpack_from("<HH", data, file + 0x3A)
    if count == 0:  # too many for two bytes: the first section holds the count
        count, = struct.unpack_from("<Q", data, file + table + 0x20)
    for i in range(count):
        kind, = struct.unpack_from("<I", data, file + table + i * size + 4)
        place, length, link = struct.unpack_from("<QQI", data, file + table + i * size + 0x18)
        yield kind, file + place, length, link


def show(data, file):
    found = list(sections(data, file))
    for kind, place, length, names in found:
        if kind != SYMBOL_TABLE:
            continue
        for symbol in range(place, place + length, SYMBOL_BYTES):
            name = found[names][1] + struct.unpack_from("<I", data, symbol)[0]
            is_hidden = data[symbol + 4] >> 4 == GLOBAL and data[symbol + 5] == HIDDEN
            if is_hidden and OURS in data[name:data.index(0, name)]:
                data[symbol + 5] = 0


library, copy = map(Path, sys.argv[1:3])
data = bytearray(library.read_bytes())
if not data.startswith(ARCHIVE):
    sys.exit(f"{library} is no static library")
for file in members(data):
    if data[file:file + 5] == b"\x7fELF\x02":
        show(data, file)
copy.write_bytes(data)
