# SPDX-License-Identifier: Apache-2.0
"""The samples of docs/python.md, by the library whose GPU arrays they take."""
import contextlib
import io
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


NEEDS = {"import cupy": "cupy", "from cuda.core": "cuda.core", 'device="cuda"': "torch"}  # the first that a sample has


def samples(library):
    """Returns samples by the line where each begins. `library` is cupy, cuda.core or torch, or None
    for samples that need no GPU."""
    found, lines = {}, PAGE.read_text().split("\n")
    for begin, line in enumerate(lines):
        if line == "```python":
            text = "\n".join(lines[begin + 1:lines.index("```", begin)])
            if next((needed for words, needed in NEEDS.items() if words in text), None) == library:
                found[begin + 1] = text
    return found


def run(text, line):
    """Runs a sample as a program of its own and returns its output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + text, str(PAGE), "exec"), {"__name__": "__main__"})
    return printed.getvalue()
