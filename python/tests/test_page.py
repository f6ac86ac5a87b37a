# SPDX-License-Identifier: Apache-2.0
"""The samples of docs/python.md run."""
import unittest

import support

support.need("numpy")
import page  # noqa: E402


class Samples(unittest.TestCase):
    def test_each_runs(self):
        samples = page.samples(None)
        self.assertEqual(len(samples), 3)
        for line, text in samples.items():
            with self.subTest(line=line):
                page.run(text, line)

    def test_the_first_prints_what_the_page_says(self):
        line, text = next(iter(page.samples(None).items()))
        lines = text.split("print(tmap.explain(spec))")[1].split("\n")[:2]
        said = [each.split("# ")[1] for each in lines]
        self.assertEqual(page.run(text, line).split("\n")[:2], said)


if __name__ == "__main__":
    unittest.main()
