# SPDX-License-Identifier: Apache-2.0
"""The samples of pages run on the GPU."""
import sys
import unittest

import support

torch = support.need_torch_gpu()
import page  # noqa: E402


class Samples(unittest.TestCase):
    counts = {"python.md": 7, "cookbook.md": 2, "pytorch_names.md": 2, "grouped_gemm_package.md": 2}

    def test_each_runs(self):
        if not hasattr(torch.library, "get_kernel"):
            del self.counts["pytorch_names.md"]
        for name, count in self.counts.items():
            samples = page.samples("torch", name)
            self.assertEqual(len(samples), count)
            for line, text in samples.items():
                with self.subTest(name, line=line):
                    self.run_alone(text, line, name)

    def run_alone(self, text, line, name):
        """Undoes `tmap.torch.install`, so that the next sample counts its own calls."""
        try:
            page.run(text, line, name)
        finally:
            if "tmap.torch" in sys.modules:
                sys.modules["tmap.torch"].uninstall()


if __name__ == "__main__":
    unittest.main()
