# SPDX-License-Identifier: Apache-2.0
"""Writes stand-ins of the system's libraries that have old symbols only, for the linker:
old_libraries.py <folder> <nm> <compiler>

A library that is linked with them runs on every system that the tag manylinux_2_28 names. It has
glibc 2.28 and the C++ library of g++ 8. The script reads the symbols of this system's libraries,
because glibc keeps the older versions of every symbol. A stand-in has no code.
"""
import re
import subprocess
import sys
from pathlib import Path

NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
LIBRARIES = {"gcc_s": "libgcc_s.so.1", "m": "libm.so.6", "stdc++": "libstdc++.so.6"}
# glibc 2.34 moved these symbols into libc. Their old versions are no longer the default ones.
MOVED = {"dl": ("libdl.so.2", r"dl"), "pthread": ("libpthread.so.0", r"_*pthread_|sem_"),
         "rt": ("librt.so.1", r"aio_|lio_|mq_|shm_|timer_")}
SYMBOL = re.compile(r"(?P<kind>[TtiWBDRV]) (?P<name>[^@\s]+)@(?P<default>@?)(?P<family>[A-Z]+)_(?P<version>[\d.]+)$",
                    re.MULTILINE)
FUNCTIONS = "TtiW"


def old_symbols(library, nm):
    """Returns the symbols of a library that are old enough: name -> (version, kind, is default)."""
    listed = subprocess.run([nm, "--dynamic", "--with-symbol-versions", library], check=True, capture_output=True, text=True)
    newest = {}
    for found in SYMBOL.finditer(listed.stdout):
        version = tuple(map(int, found["version"].split(".")))
        known = newest.get(found["name"], ((),))
        if known[0] < version <= NEWEST.get(found["family"], ()):
            newest[found["name"]] = version, f"{found['family']}_{found['version']}", found["kind"], bool(found["default"])
    return {name: entry[1:] for name, entry in newest.items()}


def write(folder, compiler, name, soname, symbols):
    """Writes lib<name>.so."""
    by_version = {}
    for symbol, (version, _, _) in symbols.items():
        by_version.setdefault(version, []).append(f'"{symbol}";')
    source, versions = folder / f"{name}.s", folder / f"{name}.map"
    kinds = {symbol: "%function" if kind in FUNCTIONS else "%object" for symbol, (_, kind, _) in symbols.items()}
    source.write_text('.section .note.GNU-stack,"",%progbits\n.text\n' + "".join(
        f'.globl "{symbol}"\n.type "{symbol}", {kind}\n"{symbol}":\n' for symbol, kind in kinds.items()))
    versions.write_text("".join(f"{version} {{ {' '.join(names)} }};\n" for version, names in by_version.items()))
    subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script,{versions}",
                    "-o", folder / f"lib{name}.so", source], check=True)


def main():
    folder, nm, compiler = Path(sys.argv[1]), *sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)

    def path_of(library):
        printed = subprocess.run([compiler, f"-print-file-name={library}"], check=True, capture_output=True, text=True)
        return Path(printed.stdout.strip()).resolve()

    for name, soname in LIBRARIES.items():
        write(folder, compiler, name, soname, old_symbols(path_of(soname), nm))
    libc = path_of("libc.so.6")
    loader, = libc.parent.glob("ld-linux-*.so.*")
    write(folder, compiler, "ld", loader.name, old_symbols(loader, nm))
    symbols = old_symbols(libc, nm)
    for name, (soname, pattern) in MOVED.items():
        moved = {symbol: entry for symbol, entry in symbols.items() if not entry[2] and re.match(pattern, symbol)}
        symbols = {symbol: entry for symbol, entry in symbols.items() if symbol not in moved}
        write(folder, compiler, name, soname, moved)
    write(folder, compiler, "c", "libc.so.6", symbols)


main()
