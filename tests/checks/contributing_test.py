# SPDX-License-Identifier: Apache-2.0
"""Checks that CONTRIBUTING.md is true.

Every path that it names exists. Its lists "Add a ragged operation" and "Add a gate" hold the
product files that a new one touches. Each of these files names all operations or gates, no
other file does, and the lists are not longer than allowed. Dims of Python turn around in one place.
The test seeds one fault of each kind and must find it.
"""
import ast
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
PAGE = "CONTRIBUTING.md"
PRODUCT = ("include", "lib", "kernels", "python/tmap")
CODE = (".hpp", ".cpp", ".h", ".cuh", ".cu", ".py", ".txt")
PATH = re.compile(r"`((?:include|lib|kernels|python|tests|docs|cmake|apps)/[^`\s]*|[A-Z]+\.md)`")
DIMS = "python/tmap/_batch.py"
TURNS_DIMS = re.compile(r"(?:tuple\(|\*)reversed\(")


class Operations:
    title, most, header = "Add a ragged operation", 9, "include/tmap/ragged.hpp"
    few = 3  # that a file may name which the list has not: those that it uses
    kernels = {"copy": "move", "pack": "move", "unpack": "move", "pad": "move", "unpad": "move", "gather_rows": "move_rows",
               "scatter_rows": "move_rows", "reduce_rows": "reduce", "max_pool_1d": "max_pool"}

    @staticmethod
    def all_in(header):
        return re.findall(r"TMAP_API result<void> (\w+?)(?:_async)?\(", header)

    @classmethod
    def is_named(cls, name, path, text):
        word = cls.kernels.get(name, name) if path.startswith("kernels/") else name
        return re.search(rf"(?<![a-z]){word}(?![a-z])", text)

    @staticmethod
    def is_listed(name, text):
        """Counts a short word such as `pad` only after its owner: other code pads, too."""
        owner = r"(?:(?:tmap_)?ragged_|launch_|check_|ragged(?:::|\.)|simulated::)"
        owner += "" if name in ("copy", "pack", "pad", "cast", "transpose") else "?"
        return name in text and re.search(rf"(?<!\w){owner}{name}(?:_async|_pieces)?\b", text)


class Gates:
    title, most, header = "Add a gate", 5, "include/tmap/grouped_gemm.hpp"
    few = 2

    @staticmethod
    def all_in(header):
        return [name for name in re.findall(r"\w+", re.search(r"enum class gate_function[^{]*\{(.*?)\}", header, re.DOTALL)[1])
                if name != "none"]

    @staticmethod
    def is_named(name, path, text):
        return re.search(rf"(?<![a-z]){name}(?![a-z_]|\d)", text, re.IGNORECASE)

    @staticmethod
    def is_listed(name, text):
        return re.search(rf"gate_function::{name}\b|TMAP_GATE_{name.upper()}\b|[\"']{name}[\"']", text)


def without_comments(path, text):
    if path.endswith(".txt"):
        return re.sub(r"#.*", "", text)
    if not path.endswith(".py"):
        return re.sub(r'("(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', lambda found: found[1] or " ", text, flags=re.DOTALL)
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def files_of(path, files):
    """Returns the files that a path means: `<name>` and `*` stand for any name or part of one."""
    if path in files:
        return [path]
    pattern = re.sub("<\\w+>", r"\\w+", re.escape(path)).replace(r"\*", r"\w*")
    return [file for file in files if re.fullmatch(pattern, file)]


def broken_paths(page, files):
    folders = {parent.as_posix() for file in files for parent in Path(file).parents}
    for path in PATH.findall(page):
        if path.rstrip("/") not in folders and not files_of(path, files):
            yield f"{PAGE}: there is no {path}"


def broken_list(kind, page, product):
    section = page.partition(f"\n## {kind.title}\n")[2].partition("\n## ")[0]
    numbered = [PATH.findall(entry) for entry in re.findall(r"^\d+\. .*(?:\n   .*)*", section, re.MULTILINE)]
    if not 0 < len(numbered) <= kind.most:
        yield f"{kind.title}: {len(numbered)} files, of at most {kind.most}"
    names = kind.all_in(product[kind.header])
    for paths in numbered:
        files = [file for path in paths for file in files_of(path, product)]
        for name in names:
            if not any(kind.is_named(name, file, product[file]) for file in files):
                yield f"{kind.title}: {paths[0]} does not name {name}"
    listed = {file for path in PATH.findall(section) for file in files_of(path, product)}
    for file in product.keys() - listed:
        named = [name for name in names if kind.is_listed(name, product[file])]
        if len(named) > kind.few:
            yield f"{kind.title}: {file} is not in the list, but names {', '.join(named)}"


def turned_dims(product):
    for file, text in product.items():
        if file.startswith("python/") and file != DIMS and TURNS_DIMS.search(text):
            yield f"{file} turns dims around; {DIMS} does that"


def broken(page, files, product):
    return [*broken_paths(page, files), *broken_list(Operations, page, product), *broken_list(Gates, page, product),
            *turned_dims(product)]


def expect_found(what, page, files, product):
    found = broken(page, files, product)
    assert any(what in line for line in found), f"not found: {what}: {found}"


def seed_faults(page, files, product):
    def with_line(file, line):
        return product | {file: product.get(file, "") + "\n" + line}

    entry = re.search(r"^\d+\. `include/tmap/c/ragged.h`.*\n", page, re.MULTILINE)[0]
    all_calls = " ".join(f"ragged::{name}(" for name in Operations.all_in(product[Operations.header]))
    expect_found("there is no lib/codec/bits.hpp", page.replace("`lib/codec/layout.hpp`", "`lib/codec/bits.hpp`"), files, product)
    expect_found("include/tmap/c/ragged.h is not in the list", page.replace(entry, ""), files, product)
    expect_found("files, of at most", page.replace(entry, entry + entry), files, product)
    expect_found("lib/other.cpp is not in the list", page, files, with_line("lib/other.cpp", all_calls))
    new_one = with_line(Operations.header, "TMAP_API result<void> unfold(")
    expect_found("python/tmap/ragged.py does not name unfold", page, files, new_one)
    new_one = product | {Gates.header: product[Gates.header].replace("  gelu_tanh,", "  relu,\n  gelu_tanh,", 1)}
    expect_found("kernels/gemm/results/gates.cuh does not name relu", page, files, new_one)
    named = "gate_function::silu gate_function::gelu gate_function::gelu_tanh"
    expect_found("lib/gemm/other.cpp is not in the list", page, files, with_line("lib/gemm/other.cpp", named))
    expect_found("turns dims around", page, files, with_line("python/tmap/_spec.py", "dims = tuple(reversed(shape))"))


def main():
    page = (ROOT / PAGE).read_text()
    folders = (*PRODUCT, "python", "tests", "docs", "cmake", "apps")
    files = {path.relative_to(ROOT).as_posix() for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()}
    files |= {path.name for path in ROOT.glob("*.md")}
    product = {file: without_comments(file, (ROOT / file).read_text()) for file in sorted(files)
               if file.startswith(PRODUCT) and file.endswith(CODE)}
    found = broken(page, files, product)
    print(*found, f"{PAGE}: {len(PATH.findall(page))} paths, {len(found)} faults", sep="\n")
    if found:
        return 1
    seed_faults(page, files, product)
    return 0


sys.exit(main())
