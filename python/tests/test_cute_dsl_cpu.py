# SPDX-License-Identifier: Apache-2.0
"""The page's kernel of CuTe DSL, compiled for a Hopper GPU. Needs no GPU."""
import os
import re
import tempfile
import unittest
from pathlib import Path

import support

DUMP = tempfile.TemporaryDirectory()
os.environ.update(CUTE_DSL_ARCH="sm_90a", CUTE_DSL_KEEP_PTX="1", CUTE_DSL_DUMP_DIR=DUMP.name)
cutlass = support.need("cutlass")
cute = support.need("cutlass.cute")
runtime = support.need("cutlass.cute.runtime")
import page  # noqa: E402


class Kernels(unittest.TestCase):
    def test_the_sample_of_the_page_acquires_the_map_and_loads_through_it(self):
        (line, text), = page.samples("cutlass", "kernel_languages.md").items()
        names = {"__name__": "kernel_languages"}
        exec(compile("\n" * line + text, str(page.DOCS / "kernel_languages.md"), "exec"), names)
        values = runtime.make_fake_compact_tensor(cutlass.BFloat16, (1024, 64), stride_order=(1, 0), assumed_align=16)
        out = runtime.make_fake_compact_tensor(cutlass.BFloat16, (4, 64, 64), stride_order=(2, 1, 0), assumed_align=16)
        cute.compile(names["launch"], values, cutlass.Int64(0), out)
        ptx, = (path.read_text() for path in Path(DUMP.name).glob("*.ptx"))
        acquired = re.search(r"fence\.proxy\.tensormap::generic\.acquire\.gpu \[(%\w+)\], 128;", ptx)
        load = re.search(r"cp\.async\.bulk\.tensor\.2d\.shared\S+\s+\[[^]]+\],\s*\[(%\w+),", ptx)
        self.assertLess(acquired.start(), load.start())
        self.assertEqual(acquired[1], load[1])


if __name__ == "__main__":
    unittest.main()
