# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests that docs/lifetime_and_threads.md names as `Suite.case` exist."""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
PAGE = "docs/lifetime_and_threads.md"
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
FILES = {"hpp", "cuh", "cpp", "cu", "md", "py"}

sources = [p for p in (ROOT / "tests").rglob("*") if p.suffix in (".cpp", ".cu")]
known = {".".join(name) for p in sources for name in TEST.findall(p.read_text())}
named = {name for name in re.findall(r"`(\w+\.\w+)`", (ROOT / PAGE).read_text()) if name.split(".")[1] not in FILES}
missing = sorted(named - known)
for name in missing:
    print(f"{PAGE}: there is no test {name}")
print(f"{PAGE}: {len(named)} tests named, {len(missing)} missing")
sys.exit(1 if missing or not named else 0)
