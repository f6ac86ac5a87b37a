# SPDX-License-Identifier: Apache-2.0
"""Who may include whom (docs/design.md, "The rooms"), the licence line of every file, and where inline PTX may stand."""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
SOURCES = (".hpp", ".cpp", ".cuh", ".cu", ".h")
LICENSED = SOURCES + (".py", ".sh", ".cmake")

# Folder -> what its files may include, as prefixes of project paths. A room may always include itself.
LAYERS = {
    "include/tmap/device": ["tmap/"],
    "include/tmap": ["tmap/"],
    "lib/support": ["tmap/"],
    "lib/spec": ["tmap/", "lib/support/"],
    "lib/codec": ["tmap/", "lib/spec/", "lib/support/"],
    "lib/driver": ["tmap/", "lib/codec/", "lib/spec/", "lib/support/"],
    "lib/encode": ["tmap/", "lib/driver/", "lib/codec/", "lib/spec/", "lib/support/", "kernels/launch.hpp"],
    "lib/ragged": ["tmap/", "lib/encode/", "lib/driver/", "lib/spec/", "lib/support/", "kernels/launch.hpp", "kernels/ragged_launch.hpp",
                   "kernels/ragged/planned_tensor.hpp", "kernels/ragged/transpose_tiles.hpp"],
    "lib/gemm": ["tmap/", "lib/encode/", "lib/driver/", "lib/spec/", "lib/support/", "kernels/gemm_launch.hpp"],
    "lib/pool": ["tmap/", "lib/driver/", "lib/support/"],
    "lib/service": ["tmap/", "lib/pool/", "lib/encode/", "lib/driver/", "lib/spec/", "lib/support/", "kernels/launch.hpp"],
    "lib/interop": ["tmap/", "lib/spec/", "lib/support/"],
    "lib/simulator": ["tmap/", "lib/codec/", "lib/spec/", "lib/support/"],
    "kernels": ["tmap/"],
    "apps": ["tmap/"],
}
PROJECT = ("tmap/", "lib/", "kernels/", "apps/", "tests/")
PTX_ROOM = re.compile(r"include/tmap/device/ptx\w*\.cuh")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)


def room_of(path):
    rooms = [room for room in LAYERS if path.startswith(room + "/")]
    return max(rooms, key=len) if rooms else None


def broken_includes(path, text):
    room = room_of(path)
    if room is None:
        return
    allowed = LAYERS[room] + [room + "/"]
    for target in INCLUDE.findall(text):
        if target.startswith(PROJECT) and not target.startswith(tuple(allowed)):
            yield f"{path}: {room} may not include {target}"
        if path.endswith((".hpp", ".cpp", ".h")) and target.endswith(".cuh"):
            yield f"{path}: only files compiled by nvcc may include {target}"


def broken_rules(path, text):
    yield from broken_includes(path, text)
    if path.endswith(LICENSED) and "SPDX-License-Identifier: Apache-2.0" not in text[:200]:
        yield f"{path}: the SPDX line is missing"
    if re.search(r"\basm\s+volatile|\basm\s*\(", text) and path.endswith(SOURCES) and not PTX_ROOM.fullmatch(path):
        yield f"{path}: inline PTX belongs in include/tmap/device/ptx*.cuh"


def main():
    folders = ("include", "lib", "kernels", "apps", "tests", "cmake", "docs", "python")
    files = [p for folder in folders for p in sorted((ROOT / folder).rglob("*")) if p.suffix in LICENSED]
    broken = [line for p in files for line in broken_rules(p.relative_to(ROOT).as_posix(), p.read_text())]
    for line in broken:
        print(line)
    print(f"include rules: {len(files)} files, {len(broken)} broken")
    return 1 if broken or not files else 0


sys.exit(main())
