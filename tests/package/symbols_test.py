# SPDX-License-Identifier: Apache-2.0
"""Seeds one fault of each kind into a small library and expects symbols.py to name it.

Usage: symbols_test.py <compiler>."""
import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = Path(__file__).with_name("symbols.py")
LIST = Path(__file__).parents[2] / "cmake/exported_symbols.map"
C_HEADER = 'extern "C" TMAP_API int tmap_encode(void);\n'
HEADER = "namespace tmap { TMAP_API int encode(); class TMAP_API batch { void end(); }; }\n"
SOURCE = "namespace tmap { int encode() { return 1; } class batch { void end(); }; void batch::end() {} }\n" \
    'extern "C" int tmap_encode() { return 1; }\n'
CLEAN = ["-Wl,-soname,libtmap.so.0"]
FAULTS = {
    "a template of std": ("#include <vector>\ntemplate class std::vector<int>;\n", CLEAN, "not on the list: std::vector<int"),
    "fmt": ("namespace fmt { void print() {} }\n", CLEAN, "not on the list: fmt::print()"),
    "spdlog": ("namespace spdlog { int level; }\n", CLEAN, "not on the list: spdlog::level"),
    "C": ('extern "C" void map_encode() {}\n', CLEAN, "not on the list: map_encode"),
    "undeclared C": ('extern "C" void tmap_decode() {}\n', CLEAN, "no header declares it TMAP_API: tmap_decode"),
    "private": ("namespace tmap::pool { void take() {} }\n", CLEAN, "no header declares it TMAP_API: tmap::pool::take()"),
    "asked for": ("namespace fmt { void f(); }\nvoid g() { fmt::f(); }\n", CLEAN, "asked of another library: fmt::f()"),
    "needs": ("", [*CLEAN, "-Wl,--no-as-needed", "-lgomp"], "needs libgomp.so"),
    "name": ("", ["-Wl,-soname,libtmap.so"], "is not called libtmap.so.0"),
}


def run(source, flags):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tmap.hpp").write_text(HEADER)
        (Path(folder) / "tmap.h").write_text(C_HEADER)
        (Path(folder) / "tmap.cpp").write_text(source)
        library = f"{folder}/libtmap.so"
        subprocess.run([sys.argv[1], "-shared", "-fPIC", f"{folder}/tmap.cpp", "-o", library, *flags], check=True)
        done = subprocess.run([sys.executable, CHECK, library, LIST, folder, "libtmap.so.0"], capture_output=True, text=True)
    return done.returncode, done.stdout


code, output = run(SOURCE, CLEAN)
assert code == 0, f"a clean library was refused: {output}"
for name in ("int encode()", "int tmap_encode()"):
    code, output = run(SOURCE.replace(name, "int other()"), CLEAN)
    expected = f"not exported: {name.split()[1][:-2]}\n"
    assert code == 1 and expected in output, f"a missing function: not caught: {output}"
for name, (more, flags, expected) in FAULTS.items():
    code, output = run(SOURCE + more, flags)
    assert code == 1 and expected in output, f"{name}: not caught: {output}"
print(f"{len(FAULTS) + 2} seeded faults caught")
