# SPDX-License-Identifier: Apache-2.0
"""Writes the drawings of this folder. With `--check`, lists those that it would change."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from charts import CHARTS
from concepts import DRAWINGS
from ranks import RANKS

FOLDER = Path(__file__).resolve().parent


def main():
    stale = []
    for name, draw in {**CHARTS, **DRAWINGS, **RANKS}.items():
        made, path = draw(name), FOLDER / name
        if not path.is_file() or path.read_text() != made:
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(made)
    if stale and "--check" in sys.argv:
        print(f"drawings are older than their tables: {', '.join(stale)}; run python3 docs/pictures/draw.py")
        return 1
    return 0


sys.exit(main())
