# SPDX-License-Identifier: Apache-2.0
"""The samples of docs/python.md. Those that need a GPU say so by device="cuda"."""
import contextlib
import io
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def samples(on_gpu):
    """By the line where each begins."""
    found, lines = {}, PAGE.read_text().split("\n")
    for begin, line in enumerate(lines):
        if line == "```python":
            text = "\n".join(lines[begin + 1:lines.index("```", begin)])
            if ('device="cuda"' in text) == on_gpu:
                found[begin + 1] = text
    return found


def run(text, line):
    """As a program of its own; answers with what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * line + text, str(PAGE), "exec"), {"__name__": "__main__"})
    return printed.getvalue()
