# SPDX-License-Identifier: Apache-2.0
"""The code in README.md is the marked part of a program that is built and run."""
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
sample = (ROOT / "apps/first_tile/first_tile.cu").read_text().split("// [readme]\n")[1].rstrip("\n")
if f"```cpp\n{sample}\n```" not in (ROOT / "README.md").read_text():
    sys.exit("README.md: the sample differs from apps/first_tile/first_tile.cu between its [readme] marks")
print("README.md: the sample is the program's")
