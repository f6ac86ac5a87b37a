# SPDX-License-Identifier: Apache-2.0
"""The samples of pages of docs, by the library whose GPU arrays they take."""
import contextlib
import io
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


# The first of these words that a sample has names the library.
NEEDS = {"from numba": "numba", "import cutlass": "cutlass", "import triton": "triton", "import cupy": "cupy",
         "from cuda.core": "cuda.core", 'device="cuda"': "torch"}


def samples(library, page="python.md"):
    """Returns samples of a page by the line where each begins. `library` is a value of NEEDS,
    or None for samples that need no GPU."""
    found, lines = {}, (DOCS / page).read_text().split("\n")
    for begin, line in enumerate(lines):
        if line == "```python":
            text = "\n".join(lines[begin + 1:lines.index("```", begin)])
            if next((needed for words, needed in NEEDS.items() if words in text), None) == library:
                found[begin + 1] = text
    return found


def run(text, line, page="python.md"):
    """Runs a sample as a program of its own and returns its output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + text, str(DOCS / page), "exec"), {"__name__": "__main__"})
    return printed.getvalue()
