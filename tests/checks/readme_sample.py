# SPDX-License-Identifier: Apache-2.0
"""The code in README.md is the marked part of programs that are built and run."""
import sys
from pathlib import Path

ROOT = Path(sys.argv[1])
PROGRAMS = ("apps/ragged_batch/ragged_batch.cu", "apps/first_tile/first_tile.cu")


def sample_of(program):
    return (ROOT / program).read_text().split("// [readme]\n")[1].rstrip("\n")


blocks = (ROOT / "README.md").read_text().split("```cpp\n")[1:]
shown = [block.split("\n```")[0] for block in blocks]
if len(shown) != len(PROGRAMS):
    sys.exit(f"README.md: {len(shown)} samples of code, {len(PROGRAMS)} programs")
for text, program in zip(shown, PROGRAMS):
    if text != sample_of(program):
        sys.exit(f"README.md: a sample differs from {program} between its [readme] marks")
print("README.md: the samples are the programs'")
