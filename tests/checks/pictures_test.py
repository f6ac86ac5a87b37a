# SPDX-License-Identifier: Apache-2.0
"""Checks that the drawings match what draw.py makes of the tables, and that it sees a change."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(sys.argv[1]).resolve() / "docs"


def check(docs):
    return subprocess.run([sys.executable, docs / "pictures/draw.py", "--check"], capture_output=True, text=True)


found = check(DOCS)
assert found.returncode == 0, found.stdout + found.stderr
with tempfile.TemporaryDirectory() as folder:
    docs = Path(folder)
    for part in ("pictures", "measurements"):
        shutil.copytree(DOCS / part, docs / part)
    table = docs / "measurements/grouped_gemm.md"
    rows = table.read_text()
    assert "| 674 |" in rows
    table.write_text(rows.replace("| 674 |", "| 675 |"))
    found = check(docs)
    assert (
        found.returncode == 1 and "grouped_products.svg" in found.stdout and "pad_tool.svg" not in found.stdout
    ), found.stdout
    table.write_text(rows.replace("| cuBLAS loop |", "| loop |"))
    found = check(docs)
    assert found.returncode != 0 and "has no table with the columns" in found.stderr, found.stderr
    shutil.copy(DOCS / "measurements/grouped_gemm.md", table)
    assert check(docs).returncode == 0
print("pictures: up to date")
