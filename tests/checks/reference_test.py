# SPDX-License-Identifier: Apache-2.0
"""docs/reference.py: what a header declares comes out, bodies and what is private do not, and every public header has a page."""
import importlib.util
import sys
import tempfile
from pathlib import Path

ROOT = Path(sys.argv[1])

HEADER = """// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the header is for, with a <tag>:
// - one
// - two

#include <cstdint>

namespace tmap::room {

namespace detail {
struct hidden {};
}  // namespace detail

class forward;

/// How many.
inline constexpr int count{3};
static_assert(count == 3);

/// Rows.
struct alignas(16) rows {
  int first{};  ///< the first
  int sum() const { return first; }
};

// box: something larger.

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
template <class T>
TMAP_API result<T> sum(const rows& of,
                       int from = 0);
TMAP_API result<int> sum(const box& of) noexcept { return of.size(); }

[[nodiscard]] TMAP_API result<int> sum(int of);

}  // namespace tmap::room
"""
EXPECTED = """## `tmap/room.hpp`

Namespace `tmap::room`.

What the header is for, with a &lt;tag>:

- one
- two

### `count`

How many.

```cpp
inline constexpr int count{3};
```

### `rows`

Rows.

```cpp
struct alignas(16) rows {
  int first{};  ///< the first
  int sum() const;
};
```

### `box`

box: something larger.

```cpp
class box {
 public:
  explicit box(int size);
  /// Not empty.
  explicit operator bool() const;
};
```

### `sum`

The sum.

```cpp
template <class T>
result<T> sum(const rows& of,
              int from = 0);
result<int> sum(const box& of) noexcept;
[[nodiscard]] result<int> sum(int of);
```"""


def load(name):
    """Not by import: Python has a module `site` of its own."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sys.dont_write_bytecode = True
site = load("site")
reference = site.reference
found = reference.header_as_markdown("tmap/room.hpp", HEADER)
assert found == EXPECTED, found

assert reference.homeless_headers() == []
pages = "".join(reference.page_as_markdown(page) for page in reference.PAGES)
for header in reference.public_headers():
    assert pages.count(f"## `{header}`\n") == 1, header
for line in ("class map_service {", "acquired_map acquire(const tensor_map* slot,", "tmap_status tmap_service_create(", "#define TMAP_VERSION_MAJOR"):
    assert line in pages, line
for line in (" private:", "\nTMAP_API ", " TMAP_API result", "class TMAP_API", "static_assert(sizeof", "namespace detail", "core_;"):
    assert line not in pages, line

with tempfile.TemporaryDirectory() as folder:
    for name in ("tmap/tensor_spec.hpp", "tmap/fresh.hpp", "tmap/detail/own.hpp", "tmap/device/ptx_new.cuh"):
        (Path(folder) / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (Path(folder) / "include" / name).write_text("")
    reference.ROOT = Path(folder)
    assert reference.homeless_headers() == ["tmap/fresh.hpp"], reference.homeless_headers()

text = "See `docs/a.md`, docs/b.md and `README.md`.\n\n```\n`docs/a.md`\n```\n"
assert site.with_links(text, "measurements/x.md") == (
    "See [docs/a.md](../a.md), [docs/b.md](../b.md) and [README.md](../index.md).\n\n```\n`docs/a.md`\n```\n"), site.with_links(text, "measurements/x.md")
assert site.with_links("`docs/a.md`", "a.md") == "`docs/a.md`"
print(f"reference: {len(reference.PAGES)} pages, {pages.count('### ')} entries")
