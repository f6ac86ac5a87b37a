# SPDX-License-Identifier: Apache-2.0
"""Checks that device headers compile at run time.

    nvrtc.py <tmap's headers> <libnvrtc.so> <folder of CUDA's headers> ...

CuPy, cuda.core and others compile kernels with NVRTC. It must compile for sm_90a:
- each header of tmap/device alone in C++17, and all of them together in C++20,
- nvrtc_kernel.cu and the kernels of docs/python.md in both.
It must refuse seeded faults. The check needs no GPU and returns 77 without NVRTC.
"""
import ctypes
import re
import sys
import tempfile
from pathlib import Path

HEADERS, LIBRARY, FOLDERS = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
KERNEL = Path(__file__).with_name("nvrtc_kernel.cu")
PAGE = Path(__file__).parents[2] / "docs" / "python.md"
OPTIONS = ["--gpu-architecture=sm_90a", "--device-int128", *(f"-I{folder}" for folder in (HEADERS, *FOLDERS))]
# Most of the time is spent in these headers, which are not tmap's. They are read once for each
# standard.
LIBCUDACXX = "".join(f"#include <cuda/{name}>\n" for name in ("atomic", "ptx", "std/span", "std/type_traits", "std/utility"))
# Lists a header, text that it must not contain, and the error that NVRTC must report for it.
FAULTS = [("tmap/map_batch_ref.hpp", "#include <string>\n", 'cannot open source file "string"'),
          ("tmap/tensor_map.hpp", "inline int seeded() { return 1; }\n", "host functions are not allowed"),
          ("tmap/rule.hpp", "#include <cstdint>\n", 'cannot open source file "cstdint"')]


def load():
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as reason:
        print(f"nvrtc: skipped, this machine has no NVRTC: {reason}")
        sys.exit(77)


nvrtc = load()


def must(code):
    assert code == 0, f"NVRTC fails with {code}"


def texts(values):
    return (ctypes.c_char_p * len(values))(*(value.encode() for value in values))


def compiled(source, *options, replaced=None):
    """Returns whether the source compiled, and NVRTC's log.

    `replaced` maps the included name of a header to other text for it.
    """
    program, size, headers = ctypes.c_void_p(), ctypes.c_size_t(), replaced or {}
    must(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", len(headers),
                                  texts(headers.values()), texts(headers.keys())))
    code = nvrtc.nvrtcCompileProgram(program, len(OPTIONS) + len(options), texts([*OPTIONS, *options]))
    must(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(size.value)
    must(nvrtc.nvrtcGetProgramLog(program, log))
    must(nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return code == 0, log.value.decode()


def check(standard, folder):
    """Yields one line for each fault."""
    read = f"{folder}/libcudacxx_{standard}.pch"
    made, log = compiled(LIBCUDACXX, f"-std=c++{standard}", f"--create-pch={read}")
    assert made, log

    def try_one(source, **more):
        return compiled(LIBCUDACXX + source, f"-std=c++{standard}", f"--use-pch={read}", **more)

    for name, source in (alone() if standard == 17 else together()).items():
        good, log = try_one(source)
        if not good or "warning" in log.lower():
            yield f"{name} as C++{standard}: {log}"
    for header, text, expected in FAULTS:
        good, log = try_one("#include <tmap/device/acquire.cuh>\n",
                            replaced={header: (HEADERS / header).read_text() + text})
        if good or expected not in log or header not in log:
            yield f"{header} with {text.strip()}: NVRTC should report {expected}, but its log is: {log}"


def device_headers():
    return sorted(path.relative_to(HEADERS).as_posix() for path in (HEADERS / "tmap/device").glob("*.cuh"))


def alone():
    return {header: f"#include <{header}>\n" for header in device_headers()} | kernels()


def together():
    return {"all headers": "".join(f"#include <{header}>\n" for header in device_headers())} | kernels()


def kernels():
    kernel, sample = KERNEL.read_text(), re.compile(r'r"""\n(#include.*?)"""', re.DOTALL)
    return {KERNEL.name: kernel, f"{KERNEL.name} with TMAP_CHECK_HAZARDS": "#define TMAP_CHECK_HAZARDS\n" + kernel,
            **{f"{PAGE.name}: {found[1]}": found[1] for found in sample.finditer(PAGE.read_text())}}


def main():
    with tempfile.TemporaryDirectory() as folder:
        faults = [line for standard in (17, 20) for line in check(standard, folder)]
    for line in faults:
        print(line)
    print(f"nvrtc: {len(device_headers())} headers, {len(kernels())} kernels, {len(FAULTS)} seeded faults, "
          f"{len(faults)} not as they should be")
    return 1 if faults or len(device_headers()) < 20 or len(kernels()) < 4 else 0


sys.exit(main())
