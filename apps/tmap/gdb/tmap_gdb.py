# SPDX-License-Identifier: Apache-2.0
"""Shows tensor maps in gdb and cuda-gdb: tmap::tensor_map, CUtensorMap and tmap_tensor_map.

    (gdb) source /usr/share/tmap/tmap_gdb.py
    (gdb) print map
    $1 = tiled f16 [64, 100], box [64, 8], swizzle 128B at 0x7f0000001000 = {kind = tiled, ...}

The program `tmap` decodes the bytes. It is $TMAP_TOOL, or lies where it was installed with this
file, or in the PATH.
"""
import json
import os
import shutil
import subprocess

import gdb
import gdb.printing

MAP_BYTES = 128
TYPES = "^(tmap::tensor_map|tensor_map|CUtensorMap|CUtensorMap_st|tmap_tensor_map)$"
FOLDER = os.path.dirname(os.path.abspath(__file__))  # gdb has the name while it reads this file only
PASSED_OVER = ("valid", "words", "version")


def find_tool():
    """Returns the path of the program `tmap`, or None."""
    installed = os.path.join(FOLDER, "..", "..", "bin", "tmap")
    named = os.environ.get("TMAP_TOOL")
    return named or (installed if os.access(installed, os.X_OK) else shutil.which("tmap"))


def bytes_of(value):
    """Returns the 128 bytes of a value in the program, or of one that gdb has made itself."""
    if value.address is not None:
        return bytes(gdb.selected_inferior().read_memory(value.address, MAP_BYTES))
    words = value[value.type.strip_typedefs().fields()[0]]
    return b"".join(int(words[i]).to_bytes(8, "little") for i in range(MAP_BYTES // 8))


def decoded(data):
    """Returns the fields of a map, or a dictionary with the key "error"."""
    tool = find_tool()
    if tool is None:
        return {"error": "no program tmap: put it in the PATH or into TMAP_TOOL"}
    ran = subprocess.run([tool, "inspect", "--json", data.hex()], capture_output=True, text=True, check=False)
    if not ran.stdout:
        return {"error": ran.stderr.strip() or "tmap printed nothing"}
    return json.loads(ran.stdout)


class TensorMapPrinter:
    """Prints one tensor map: a summary, then its fields."""

    cache = {}

    def __init__(self, value):
        data = bytes_of(value)
        if data not in self.cache:
            self.cache[data] = decoded(data)
        self.fields = self.cache[data]

    def to_string(self):
        f = self.fields
        if "error" in f:
            return f"tensor map ({f['error']})"
        if not f["valid"]:
            return f"no tensor map ({f['refused']})"
        box = f"box {f['box_dim']}" if "box_dim" in f else f"{f['pixels_per_column']} pixels"
        return (f"{f['kind']} {f['element_type']} {f['global_dim']}, {box}, swizzle {f['swizzle']} "
                f"at {f['global_address']}")

    def children(self):
        for name, value in self.fields.items():
            if name not in PASSED_OVER:
                yield name, str(value)


def register():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("tmap")
    printers.add_printer("tensor_map", TYPES, TensorMapPrinter)
    gdb.printing.register_pretty_printer(None, printers, replace=True)


register()
