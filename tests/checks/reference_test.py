# SPDX-License-Identifier: Apache-2.0
"""Checks docs/reference.py: declarations come out with their text, private ones do not.

Every public header and every name of the Python package has a place.
"""

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1]).resolve()
SKIPPED = 77

HEADER = """// SPDX-License-Identifier: Apache-2.0
#pragma once

/// @file
/// What the header is for, with a `<tag>`, a[i] and a * star:
/// - one
/// - two

#include <cstdint>

namespace tmap::room {

namespace detail {
struct hidden {};
}  // namespace detail

class forward;

/// How many.
inline constexpr int count{3};
static_assert(count == 3);

/// Rows, `count` of them.
struct alignas(16) rows {
  int first{7};  ///< the first
  int sum() const { return first; }
};

/// Something larger.
class TMAP_API box {
 public:
  explicit box(int size) : size_(f(size, g(1))), other_{size} {}
  /// Not empty.
  explicit operator bool() const { return size_ != 0; }

 private:
  friend struct access;
  int size_;
};

/// The sum.
/// @param of whose numbers are added
/// @param from where it begins
/// @return the number
/// @fails `invalid_argument` where `of` is empty
template <class T>
TMAP_API result<T> sum(const rows& of,
                       int from = 0);
TMAP_API result<int> sum(const box& of) noexcept { return of.size(); }

/// Colours.
enum class colour : int {
  red,  ///< like blood
  blue
};

}  // namespace tmap::room
"""
EXPECTED = """## room.hpp { #tmap.room.hpp }

```cpp
#include <tmap/room.hpp>
```

What the header is for, with a `<tag>`, a\\[i] and a \\* star:

- one
- two

### `room::count` { #room.count }

```cpp
constexpr int count {3};
```

How many.

### `room::rows` { #room.rows }

Rows, [`count`](#room.count) of them.

| Member | Type | Initial value | Meaning |
| --- | --- | --- | --- |
| `first`{ #room.rows.first } | `int` | `7` | the first |

Further members:

```cpp
int sum() const;
```

### `room::box` { #room.box }

Something larger.

#### `operator bool` { #room.box.operator-20bool }

```cpp
explicit operator bool() const;
```

Not empty.

Further members:

```cpp
explicit box(int size);
```

### `room::sum` { #room.sum }

```cpp
template <class T>
result<T> sum(const rows& of, int from = 0);
result<int> sum(const box& of) noexcept;
```

The sum.

| Parameter | Meaning |
| --- | --- |
| `of` | whose numbers are added |
| `from` | where it begins |

**Returns**: the number

**Fails with**: `invalid_argument` where `of` is empty

### `room::colour` { #room.colour }

Colours.

| Value | Meaning |
| --- | --- |
| `red` | like blood |
| `blue` |  |"""


def load(name):
    """Loads the module by its path: Python has a module `site` of its own."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def doxygen(root, *settings):
    """Runs Doxygen over the headers below `root`, with docs/Doxyfile and more settings."""
    configuration = "\n".join([(ROOT / "docs/Doxyfile").read_text(), *settings])
    return subprocess.run(["doxygen", "-"], input=configuration, cwd=root, capture_output=True, text=True)


def pages_of_header(folder, header):
    include = folder / "include/tmap"
    include.mkdir(parents=True, exist_ok=True)
    (folder / "build").mkdir(exist_ok=True)
    (include / "room.hpp").write_text(header)
    reference.ROOT = folder
    reference.PAGES = {"reference/room.md": ("Room", "room")}
    ran = doxygen(folder)
    assert ran.returncode == 0, ran.stderr
    return reference_pages.header_as_markdown(
        reference.Reference(folder / "build/doxygen/xml"), "tmap/room.hpp", "reference/room.md"
    )


def check_links():
    text = "See `docs/a.md`, docs/b.md and `README.md`.\n\n```\n`docs/a.md`\n```\n"
    titles = site.titles_of([{"README": "index.md"}, {"Guide": [{"Page a": "a.md"}, {"Page b": "b.md"}]}])
    assert titles == {"index.md": "README", "a.md": "Page a", "b.md": "Page b"}, titles
    assert site.with_links(text, "measurements/x.md", titles) == (
        "See [Page a](../a.md), [Page b](../b.md) and [README](../index.md).\n\n```\n`docs/a.md`\n```\n"
    ), site.with_links(text, "measurements/x.md", titles)
    assert site.with_links("`docs/a.md`", "a.md", titles) == "`docs/a.md`"


def check_drawings(folder):
    (folder / "a.svg").write_text('<svg color="currentColor">\n  <g/>\n</svg>')
    (folder / "b.svg").write_text("<svg/>")
    assert site.with_drawings("![Two\nlines](a.svg)", folder) == (
        '<figure class="drawing"><svg color="currentColor"> <g/> </svg><figcaption>Two lines</figcaption></figure>'
    ), site.with_drawings("![Two\nlines](a.svg)", folder)
    assert site.with_drawings("![Of others](b.svg)", folder) == "![Of others](b.svg)"


def check_python():
    page = (ROOT / "docs/reference/python.md").read_text()
    module = ast.parse((ROOT / "python/tmap/__init__.py").read_text())
    names = next(
        ast.literal_eval(each.value)
        for each in module.body
        if isinstance(each, ast.Assign) and each.targets[0].id == "__all__"
    )
    assert set(re.findall(r"^::: tmap\.(\w+)$", page, re.MULTILINE)) == set(
        names
    ), "docs/reference/python.md lacks or invents names"


def check_homeless(folder):
    for name in ("tmap/tensor_spec.hpp", "tmap/fresh.hpp", "tmap/detail/own.hpp", "tmap/device/ptx_new.cuh"):
        (folder / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "include" / name).write_text("")
    reference.ROOT = folder
    assert reference.homeless_headers() == ["tmap/fresh.hpp"], reference.homeless_headers()


sys.dont_write_bytecode = True
site = load("site")
reference, reference_pages = site.reference, site.reference_pages
check_links()
check_python()
assert reference.homeless_headers() == []
headers = [header for page in reference.PAGES for header in reference.headers_of(page)]
assert sorted(headers) == sorted(reference.public_headers()), "a header has two places"
with tempfile.TemporaryDirectory() as folder:
    check_homeless(Path(folder))
    check_drawings(Path(folder))
reference.ROOT = ROOT

if shutil.which("doxygen") is None:
    print("reference: skipped: no Doxygen (Debian package doxygen)")
    sys.exit(SKIPPED)
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "build").mkdir()
    ran = doxygen(ROOT, f"OUTPUT_DIRECTORY = {folder}")
    assert ran.returncode == 0, ran.stderr
    whole = reference.Reference(Path(folder) / "xml")
    pages = "".join(reference_pages.page_as_markdown(whole, page) for page in reference.PAGES)
for header in headers:
    assert pages.count(f"#include <{header}>\n") == 1, header
for line in (
    "### `map_service` {",
    "acquired_map acquire(const tensor_map* slot,",
    "tmap_status tmap_service_create(",
    "#define TMAP_VERSION_MAJOR",
    "lends slots of device memory",
    "TMAP_SOURCE_COLUMNS",
):
    assert line in pages, line
for line in (
    "\nTMAP_API ",
    " TMAP_API result",
    "class TMAP_API",
    "static_assert(sizeof",
    "namespace detail",
    "core_;",
    "friend ",
    "::@",
):
    assert line not in pages, line
with tempfile.TemporaryDirectory() as folder:
    found = pages_of_header(Path(folder), HEADER)
    assert found == EXPECTED, found
    wrong = HEADER.replace("@param from", "@param form")
    (Path(folder) / "include/tmap/room.hpp").write_text(wrong)
    ran = doxygen(folder)
    assert ran.returncode != 0 and "form" in ran.stderr, "a parameter that does not exist passes"
print(f"reference: {len(headers)} headers, {pages.count('### ')} entries")
