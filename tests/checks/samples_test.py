# SPDX-License-Identifier: Apache-2.0
"""Seeds one fault of each kind into a clean tree and expects samples.py to report it.

`--write` must repair the faults that it can.
"""
import tempfile
from pathlib import Path

import samples

SOURCE = "int f() {\n  // [part]\n  if (true)\n    return 1;\n  // [part]\n}\n"
PAGE = "Words.\n\n<!-- from apps/a/a.cpp [part] -->\n```cpp\nif (true)\n  return 1;\n```\n\n```cmake\nproject(x)\n```\n"
FAULTS = {
    "a changed line": ({"README.md": PAGE.replace("return 1", "return 2")}, "differs from [part] of apps/a/a.cpp"),
    "a changed source": ({"apps/a/a.cpp": SOURCE.replace("return 1", "return 2")}, "differs from [part] of apps/a/a.cpp"),
    "one mark": ({"apps/a/a.cpp": SOURCE.replace("  // [part]\n}", "}")}, "has no part between two marks [part]"),
    "three marks": ({"apps/a/a.cpp": SOURCE + "// [part]\n"}, "has no part between two marks [part]"),
    "no file": ({"README.md": PAGE.replace("a.cpp", "b.cpp")}, "apps/a/b.cpp has no part"),
    "no source named": ({"docs/cookbook.md": "```c\nint x;\n```\n"}, "no line names the source of: int x;"),
    "a part nobody shows": ({"tests/b.cu": "// [other]\nint x;\n// [other]\n"}, "tests/b.cu: no page shows [other]"),
    "nothing at all": ({"README.md": "Words.\n", "apps/a/a.cpp": ""}, "no page shows a sample"),
}
WRITABLE = ("a changed line", "a changed source")


def put(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


clean = {"README.md": PAGE, "apps/a/a.cpp": SOURCE}
clean |= {page: "Words.\n" for page in samples.PAGES if page != "README.md"}
with tempfile.TemporaryDirectory() as folder:
    put(Path(folder), clean)
    assert samples.faults(Path(folder)) == [], "a clean tree was refused"
for name, (files, expected) in FAULTS.items():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        put(root, clean | files)
        found = samples.faults(root)
        assert any(expected in fault for fault in found), f"{name}: not caught: {found}"
        code = samples.main(root, write=True)
        assert (code == 0) == (name in WRITABLE), f"{name}: --write returned {code}"
with tempfile.TemporaryDirectory() as folder:
    put(Path(folder), clean)
    (Path(folder) / "README.md").unlink()
    assert samples.faults(Path(folder)) != [], "a page that is gone was not missed"
print(f"{len(FAULTS)} seeded faults caught")
