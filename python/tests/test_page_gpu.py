# SPDX-License-Identifier: Apache-2.0
"""The samples of pages run on the GPU."""
import unittest

import support

torch = support.need_torch_gpu()
import page  # noqa: E402


class Samples(unittest.TestCase):
    counts = {"python.md": 6, "cookbook.md": 1, "pytorch_names.md": 2, "grouped_gemm_package.md": 2}

    def test_each_runs(self):
        if hasattr(torch.library, "get_kernel"):
            import tmap.torch
            self.addCleanup(tmap.torch.uninstall)
        else:
            del self.counts["pytorch_names.md"]
        for name, count in self.counts.items():
            samples = page.samples("torch", name)
            self.assertEqual(len(samples), count)
            for line, text in samples.items():
                with self.subTest(name, line=line):
                    page.run(text, line, name)


if __name__ == "__main__":
    unittest.main()
