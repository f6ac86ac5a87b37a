# SPDX-License-Identifier: Apache-2.0
"""Seeds one fault of each kind into a clean tree and expects include_rules.py to report it."""
import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = Path(__file__).with_name("include_rules.py")
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
FAULTS = {
    "lib/spec/a.cpp": (SPDX + '#include "lib/driver/b.hpp"\n', "lib/spec may not include lib/driver/b.hpp"),
    "lib/codec/a.cpp": (SPDX + '#include "lib/simulator/b.hpp"\n', "lib/codec may not include lib/simulator/b.hpp"),
    "lib/driver/a.cpp": (SPDX + '#include "kernels/launch.hpp"\n', "lib/driver may not include kernels/launch.hpp"),
    "kernels/a.cu": (SPDX + '#include "lib/support/b.hpp"\n', "kernels may not include lib/support/b.hpp"),
    "kernels/batch/a.cuh": (SPDX + '#include "kernels/ragged/b.cuh"\n', "kernels/batch may not include kernels/ragged/b.cuh"),
    "kernels/gemm/a.cu": (SPDX + '#include "kernels/ragged/b.cuh"\n', "kernels/gemm may not include kernels/ragged/b.cuh"),
    "apps/a.cpp": (SPDX + '#include "lib/spec/b.hpp"\n', "apps may not include lib/spec/b.hpp"),
    "lib/encode/a.cpp": (SPDX + "#include <tmap/device/acquire.cuh>\n", "only files compiled by nvcc may include"),
    "lib/spec/b.cpp": ("int x;\n", "the SPDX line is missing"),
    "kernels/b.cu": (SPDX + 'void f() { asm volatile(""); }\n', "inline PTX belongs in"),
    "include/tmap/device/a.cuh": (SPDX + "#include <cstdint>\n", "so it may not include cstdint"),
    "include/tmap/shared.hpp": (SPDX + "#include <string>\n",
                                "device code includes it (include/tmap/device/b.cuh), so it may not include string"),
    "include/tmap/a.hpp": (SPDX + "TMAP_API result<std::vector<int>> sum(int of);\n", "sum returns a result and is not marked"),
    "lib/pool/a.hpp": (SPDX + "  static result<std::shared_ptr<pool>> create();\n", "create returns a result and is not marked"),
    "docs/design.md": ("Who may include whom\n\n| `lib/spec` | `lib/support`, `lib/codec` |\n", "the table of lib/spec must have lib/support"),
    "lib/pool/b.hpp": (SPDX + "template <class T>\ninline result<void> check(T t) {\n", "check returns a result and is not marked"),
}


def run(files):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, CHECK, folder], capture_output=True, text=True)
    return done.returncode, done.stdout


clean = {
    "lib/spec/clean.cpp": SPDX + '#include "lib/support/b.hpp"\n',
    "include/tmap/device/b.cuh": SPDX + "#include <tmap/shared.hpp>\n#include <cuda/ptx>\n",
    "include/tmap/shared.hpp": SPDX + "#include <tmap/detail/standard.hpp>\n",
    "include/tmap/detail/standard.hpp": SPDX + "#include <cstdint>\n",
    "include/tmap/host.hpp": SPDX + "#include <string>\n",
    "include/tmap/clean.hpp": SPDX + "[[nodiscard]] TMAP_API result<int> sum(int of);\n  result<void> state;\n  result<int> (*ask)(int of);\n",
    "lib/spec/other.cpp": SPDX + "result<int> sum(int of) {\n",
    "include/tmap/device/ptx_copy.cuh": SPDX + 'void f() { asm volatile(""); }\n',
}
assert run(clean)[0] == 0, "a clean tree was refused"
for name, (text, expected) in FAULTS.items():
    code, output = run(clean | {name: text})
    assert code == 1 and expected in output, f"{name}: not caught: {output}"
print(f"{len(FAULTS)} seeded faults caught")
