# SPDX-License-Identifier: Apache-2.0
"""Kernels of CuTe DSL that take maps, compiled for a Hopper GPU. Needs no GPU."""
import re
import tempfile
import unittest

import support

cutlass = support.need("cutlass")
cute = support.need("cutlass.cute")
runtime = support.need("cutlass.cute.runtime")
torch = support.need("torch")
from cuda.bindings import driver  # noqa: E402

import cute_dsl_cases as cases  # noqa: E402
import page  # noqa: E402

STREAM = driver.CUstream(0)
ACQUIRE = r"fence\.proxy\.tensormap::generic\.acquire\.gpu \[(%\w+)\], 128;"
LOAD = r"cp\.async\.bulk\.tensor\.2d\.shared\S+\s+\[[^]]+\],\s*\[(%\w+),"
STORE = r"cp\.async\.bulk\.tensor\.2d\.global\S+\s+\[(%\w+),"


class Kernels(unittest.TestCase):
    def ptx_of(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            return cute.compile(*arguments, options=f"--keep-ptx --gpu-arch sm_90a --dump-dir {folder}").__ptx__

    def test_the_sample_of_the_page_acquires_the_map_and_loads_through_it(self):
        (line, text), = page.samples("cutlass", "kernel_languages.md").items()
        names = {"__name__": "kernel_languages"}
        exec(compile("\n" * line + text, str(page.DOCS / "kernel_languages.md"), "exec"), names)
        values = runtime.make_fake_compact_tensor(cutlass.BFloat16, (1024, 64), stride_order=(1, 0), assumed_align=16)
        out = runtime.make_fake_compact_tensor(cutlass.BFloat16, (4, 64, 64), stride_order=(2, 1, 0), assumed_align=16)
        ptx = self.ptx_of(names["launch"], values, cutlass.Int64(0), out, STREAM)
        acquired, load = re.search(ACQUIRE, ptx), re.search(LOAD, ptx)
        self.assertLess(acquired.start(), load.start())
        self.assertEqual(acquired[1], load[1])

    def test_copies_acquire_both_maps_for_each_type(self):
        for element in (cutlass.BFloat16, cutlass.Float16, cutlass.Float32, cutlass.Uint8):
            with self.subTest(element):
                ptx = self.ptx_of(cases.copy_groups, *map(cutlass.Int64, (0, 0)),
                                  *map(cutlass.Int32, (0, 1, 1, 1)), STREAM, element)
                source, target = re.finditer(ACQUIRE, ptx)
                load, store = re.search(LOAD, ptx), re.search(STORE, ptx)
                self.assertLess(target.start(), load.start())
                self.assertEqual((source[1], target[1]), (load[1], store[1]))


if __name__ == "__main__":
    unittest.main()
