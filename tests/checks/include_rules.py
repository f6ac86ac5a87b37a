# SPDX-License-Identifier: Apache-2.0
"""Checks rules of the sources.

Each room includes only what the table in docs/design.md allows, and headers of device code include
only headers that NVRTC has. Every file has the licence line. Inline PTX stands in one place. Every
declaration of a function that returns a `result` is marked `[[nodiscard]]`.
"""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
SOURCES = (".hpp", ".cpp", ".cuh", ".cu", ".h")
LICENSED = SOURCES + (".py", ".sh", ".cmake")

# Every room of kernels may use these in addition to kernels/batch.
LAUNCHING = ["tmap/", "kernels/launch.hpp", "kernels/launch_behind.hpp", "kernels/load_kernel.hpp"]

# Maps each folder to what its files may include, as prefixes of project paths. A room may always
# include itself.
LAYERS = {
    "include/tmap/device": ["tmap/"],
    "include/tmap": ["tmap/"],
    "lib/support": ["tmap/"],
    "lib/spec": ["tmap/", "lib/support/"],
    "lib/codec": ["tmap/", "lib/spec/", "lib/support/"],
    "lib/batch": ["tmap/", "lib/support/"],
    "lib/driver": ["tmap/", "lib/batch/", "lib/codec/", "lib/spec/", "lib/support/"],
    "lib/environment": ["tmap/", "lib/driver/", "lib/encode/", "lib/support/", "kernels/launch.hpp"],
    "lib/encode": ["tmap/", "lib/batch/", "lib/driver/", "lib/codec/", "lib/spec/", "lib/support/", "kernels/has_kernels.hpp",
                   "kernels/launch.hpp"],
    "lib/ragged": ["tmap/", "lib/batch/", "lib/encode/", "lib/driver/", "lib/spec/", "lib/support/", "lib/simulator/",
                   "kernels/launch.hpp", "kernels/ragged_launch.hpp", "kernels/ragged/planned_tensor.hpp", "kernels/ragged/transpose_tiles.hpp"],
    "lib/gemm": ["tmap/", "lib/batch/", "lib/encode/", "lib/driver/", "lib/spec/", "lib/support/", "kernels/gemm_launch.hpp",
                 "kernels/gemm/gemm_group.hpp", "kernels/gemm/tile_math.hpp"],
    "lib/moe": ["tmap/", "lib/batch/", "lib/encode/", "lib/driver/", "lib/gemm/", "lib/ragged/", "lib/support/",
                "kernels/gemm_launch.hpp", "kernels/moe_launch.hpp", "kernels/ragged_launch.hpp"],
    "lib/peer": ["tmap/", "lib/batch/", "lib/pool/", "lib/encode/", "lib/driver/", "lib/spec/", "lib/support/", "kernels/launch.hpp",
                 "kernels/moe_launch.hpp", "kernels/peer_launch.hpp"],
    "lib/pool": ["tmap/", "lib/driver/", "lib/support/"],
    "lib/service": ["tmap/", "lib/batch/", "lib/pool/", "lib/encode/", "lib/driver/", "lib/spec/", "lib/support/", "kernels/launch.hpp"],
    "lib/interop": ["tmap/", "lib/spec/", "lib/support/"],
    "lib/torch": ["tmap/"],
    "lib/simulator": ["tmap/", "lib/codec/", "lib/spec/", "lib/support/"],
    "kernels": ["tmap/"],
    "kernels/batch": LAUNCHING,
    "kernels/encode": LAUNCHING + ["kernels/batch/"],
    "kernels/gemm": LAUNCHING + ["kernels/batch/", "kernels/gemm_launch.hpp"],
    "kernels/hazards": LAUNCHING,
    "kernels/moe": LAUNCHING + ["kernels/batch/", "kernels/values/", "kernels/moe_launch.hpp"],
    "kernels/peer": LAUNCHING + ["kernels/batch/", "kernels/moe/", "kernels/moe_launch.hpp", "kernels/peer_launch.hpp"],
    "kernels/ragged": LAUNCHING + ["kernels/batch/", "kernels/values/", "kernels/ragged_launch.hpp"],
    "kernels/values": ["tmap/"],
    "apps": ["tmap/"],
}
# Headers of device code may include these and tmap's own headers, because NVRTC has no others. One
# header, STANDARD, includes the standard library's.
DEVICE_ROOM = "include/tmap/device/"
DEVICE_MAY_INCLUDE = ("tmap/", "cuda/std/", "cuda/atomic", "cuda/ptx", "cuda_bf16.h", "cuda_fp16.h")
STANDARD = "include/tmap/detail/standard.hpp"
PROJECT = ("tmap/", "lib/", "kernels/", "apps/", "tests/")
PTX_ROOM = re.compile(r"include/tmap/device/ptx\w*\.cuh")
HEADER_FOLDERS = ("include/", "lib/", "kernels/", "apps/")
# Matches a declaration that begins with its type or with specifiers. [[nodiscard]] would come
# first.
RETURNS_RESULT = re.compile(r"^ *(?:(?:TMAP_API|static|inline|constexpr|friend|virtual|const) )*(?:tmap::)?result<[^;(){}=]*>[ &*]+([\w:]+)\(",
                            re.MULTILINE)
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


def headers_of_device_code(texts):
    """Returns tmap's headers that device code includes, each with the file that needs it."""
    needed_by = {path: path for path in texts if path.startswith(DEVICE_ROOM)}
    open_ends = list(needed_by)
    while open_ends:
        path = open_ends.pop()
        for target in ("include/" + name for name in INCLUDE.findall(texts[path])):
            if target in texts and target not in needed_by:
                needed_by[target] = path
                open_ends.append(target)
    return needed_by


def broken_device_includes(texts):
    for path, needed_by in headers_of_device_code(texts).items():
        for target in INCLUDE.findall(texts[path]) if path != STANDARD else ():
            if not target.startswith(DEVICE_MAY_INCLUDE):
                yield f"{path}: device code includes it ({needed_by}), so it may not include {target}: see {STANDARD}"


def dropped_results(path, text):
    """Finds functions whose result a caller could drop, and with it an error."""
    if not path.startswith(HEADER_FOLDERS) or not path.endswith((".hpp", ".cuh")):
        return
    for name in RETURNS_RESULT.findall(text):
        yield f"{path}: {name} returns a result and is not marked [[nodiscard]]"


def drifted_table(page):
    """Finds rows of the table in docs/design.md that differ from LAYERS.

    Text after a semicolon is a remark.
    """
    table = dict()
    for line in page.partition("Who may include whom")[2].splitlines():
        rooms, allowed = (line.split("|") + ["", ""])[1:3]
        for room in re.findall(r"`([^`]+)`", rooms):
            table[room] = set(re.findall(r"`([^`]+)`", allowed.partition(";")[0]))
    for room, targets in LAYERS.items():
        allowed = {target.rstrip("/") for target in targets} - {"tmap"}
        if room + "/" != DEVICE_ROOM and table.get(room) != allowed:
            yield f"docs/design.md: the table of {room} must have {', '.join(sorted(allowed)) or 'nothing'}"


def broken_rules(path, text):
    yield from broken_includes(path, text)
    yield from dropped_results(path, text)
    if path.endswith(LICENSED) and "SPDX-License-Identifier: Apache-2.0" not in text[:200]:
        yield f"{path}: the SPDX line is missing"
    if re.search(r"\basm\s+volatile|\basm\s*\(", text) and path.endswith(SOURCES) and not PTX_ROOM.fullmatch(path):
        yield f"{path}: inline PTX belongs in include/tmap/device/ptx*.cuh"


def main():
    folders = ("include", "lib", "kernels", "apps", "tests", "cmake", "docs", "python")
    files = [p for folder in folders for p in sorted((ROOT / folder).rglob("*")) if p.suffix in LICENSED]
    texts = {p.relative_to(ROOT).as_posix(): p.read_text() for p in files}
    broken = [line for path, text in texts.items() for line in broken_rules(path, text)]
    broken += broken_device_includes(texts)
    design = ROOT / "docs/design.md"
    broken += drifted_table(design.read_text()) if design.exists() else []
    for line in broken:
        print(line)
    print(f"include rules: {len(files)} files, {len(broken)} broken")
    return 1 if broken or not files else 0


sys.exit(main())
