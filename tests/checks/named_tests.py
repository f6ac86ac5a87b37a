# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests that pages name as `suite.case` exist. docs/peers.md also names functions
so: only names with a suite of the tests are checked there."""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
NAMES_TESTS_ALONE = {"docs/lifetime_and_threads.md": True, "docs/peers.md": False}
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
FILES = {"hpp", "cuh", "cpp", "cu", "md", "py"}

sources = [p for p in (ROOT / "tests").rglob("*") if p.suffix in (".cpp", ".cu")]
known = {".".join(name) for p in sources for name in TEST.findall(p.read_text())}
suites = {name.split(".")[0] for name in known}
faults = 0
for page, names_tests_alone in NAMES_TESTS_ALONE.items():
    pairs = {name for name in re.findall(r"`(\w+\.\w+)`", (ROOT / page).read_text())
             if name.split(".")[1] not in FILES}
    named = {name for name in pairs if names_tests_alone or name.split(".")[0] in suites}
    missing = sorted(named - known)
    for name in missing:
        print(f"{page}: there is no test {name}")
    print(f"{page}: {len(named)} tests named, {len(missing)} missing")
    faults += len(missing) + (not named)
sys.exit(1 if faults else 0)
