# SPDX-License-Identifier: Apache-2.0
"""The samples of docs/python.md run on the GPU."""
import unittest

import support

support.need_torch_gpu()
import page  # noqa: E402


class Samples(unittest.TestCase):
    def test_each_runs(self):
        samples = page.samples("torch")
        self.assertEqual(len(samples), 5)
        for line, text in samples.items():
            with self.subTest(line=line):
                page.run(text, line)


if __name__ == "__main__":
    unittest.main()
