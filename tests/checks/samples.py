# SPDX-License-Identifier: Apache-2.0
"""Checks that the code on pages is a marked part of files that are built and run.

    samples.py <root> [--write]

The line before a block names its source, `<!-- from apps/x/x.cu [name] -->`. The file has the part
between two lines `// [name]`. Every C and C++ block on these pages must have a source, and every
marked part must be on some page. `--write` updates the pages.
"""
import re
import sys
import textwrap
from pathlib import Path

PAGES = ("README.md", "docs/quick_start.md", "docs/cookbook.md", "docs/c_interface.md", "docs/grouped_gemm.md",
         "docs/experts.md", "docs/peers.md", "docs/pytorch_native.md")
ROOMS = ("apps", "tests")
BLOCK = re.compile(r"(?:<!-- from (\S+) \[(\w+)\] -->\n)?```(\w+)\n(.*?)\n?```", re.DOTALL)
MARK = re.compile(r"^ *// \[(\w+)\]$", re.MULTILINE)
MUST_BE_MARKED = ("c", "cpp")


def part_of(path, name):
    """Returns the unindented text between the two marks, or None unless there are just two."""
    text = path.read_text() if path.is_file() else ""
    parts = re.split(rf"^ *// \[{name}\]\n", text, flags=re.MULTILINE)
    return textwrap.dedent(parts[1]).strip("\n") if len(parts) == 3 else None


def marks_in(root):
    files = (p for room in ROOMS for p in sorted((root / room).rglob("*")) if p.suffix in (".c", ".cpp", ".cu", ".hpp", ".cuh"))
    return {(p.relative_to(root).as_posix(), name) for p in files for name in MARK.findall(p.read_text())}


def faults_of(root, page, shown):
    """Yields one line for each wrong block and adds the blocks of the page to `shown`."""
    if not (root / page).is_file():
        yield f"{page}: it is not there"
        return
    for source, name, language, code in BLOCK.findall((root / page).read_text()):
        first = code.split("\n")[0]
        if not source:
            if language in MUST_BE_MARKED:
                yield f"{page}: no line names the source of: {first}"
            continue
        shown.add((source, name))
        part = part_of(root / source, name)
        if part is None:
            yield f"{page}: {source} has no part between two marks [{name}]"
        elif part != code:
            yield f"{page}: this differs from [{name}] of {source}: {first}"


def renew(root, page):
    def from_source(found):
        source, name, language, code = found.groups()
        part = part_of(root / source, name) if source else None
        return found[0] if part is None else f"<!-- from {source} [{name}] -->\n```{language}\n{part}\n```"
    (root / page).write_text(BLOCK.sub(from_source, (root / page).read_text()))


def faults(root):
    shown = set()
    found = [fault for page in PAGES for fault in faults_of(root, page, shown)]
    found += [f"{source}: no page shows [{name}]" for source, name in sorted(marks_in(root) - shown)]
    return found if shown else found + ["no page shows a sample"]


def main(root, write):
    if write:
        for page in filter(lambda page: (root / page).is_file(), PAGES):
            renew(root, page)
    found = faults(root)
    for fault in found:
        print(fault)
    print(f"samples: {len(found)} differ or are missing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), "--write" in sys.argv))
