# SPDX-License-Identifier: Apache-2.0
"""Checks the exports, the imports and the soname of a shared library.

Usage: symbols.py <library> <version script> <headers> <soname>. The library must export all that
the headers mark TMAP_API and nothing else, and the version script must list it. It must not import
fmt or spdlog, and must depend on the compiler's own libraries only."""
import fnmatch
import re
import subprocess
import sys
from pathlib import Path

LIBRARY, LIST, HEADERS, SONAME = sys.argv[1:5]
NEEDED = re.compile(r"lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so\.\d+|ld-linux.*")
FUNCTION = re.compile(r"TMAP_API\s+(?:[\w:<>,&*\s]*?[\s&*])?(\w+)\s*\(")
CLASS = re.compile(r"(?:class|struct)\s+TMAP_API\s+(\w+)")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(which):
    lines = output_of("nm", "-DC", "--format=posix", which, LIBRARY).splitlines()
    return [re.sub(r"\s[A-Za-z]( [0-9a-f]+){0,2}\s*$", "", line).split("@")[0].strip() for line in lines]


def declared():
    headers = [path for path in Path(HEADERS).rglob("*") if path.suffix in (".hpp", ".h")]
    text = "\n".join(re.sub(r"//.*|#define.*", "", path.read_text()) for path in headers)
    return set(FUNCTION.findall(text)), set(CLASS.findall(text))


def parts_of(symbol):
    return re.sub(r"\[abi:\w+\]", "", symbol).split("(")[0].split("::")


def broken_exports():
    listed = re.findall(r"^\s*([^\s}]+);$", Path(LIST).read_text().split("local:")[0], re.MULTILINE)
    functions, classes = declared()
    found = set()
    for symbol in symbols("--defined-only"):
        parts = parts_of(symbol)
        found.update(parts)
        if not any(fnmatch.fnmatchcase(symbol, pattern) for pattern in listed):
            yield f"exported, but not on the list: {symbol}"
        elif parts[-1] not in functions and not classes.intersection(parts):
            yield f"exported, but no header declares it TMAP_API: {symbol}"
    for name in sorted((functions | classes) - found):
        yield f"declared TMAP_API, but not exported: {name}"


def broken_needs():
    for symbol in symbols("--undefined-only"):
        if re.search(r"\b(fmt|spdlog)::", symbol):
            yield f"asked of another library: {symbol}"
    dynamic = output_of("readelf", "-d", LIBRARY)
    for name in re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic):
        if not NEEDED.fullmatch(name):
            yield f"needs {name}"
    if re.findall(r"\(SONAME\).*\[(.+)\]", dynamic) != [SONAME]:
        yield f"is not called {SONAME}"


broken = [*broken_exports(), *broken_needs()]
for line in broken:
    print(line)
print(f"{Path(LIBRARY).name}: {len(symbols('--defined-only'))} exported symbols, {len(broken)} broken rules")
sys.exit(1 if broken else 0)
