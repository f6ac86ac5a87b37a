# SPDX-License-Identifier: Apache-2.0
"""apps/bench/peer/peer_torch.py without a GPU: its arguments, and what it needs."""
import subprocess
import sys
import unittest

import support

PROGRAM = support.ROOT / "apps" / "bench" / "peer" / "peer_torch.py"


def gpus():
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


class Arguments(unittest.TestCase):
    def run_with(self, *arguments):
        return subprocess.run([sys.executable, "-B", str(PROGRAM), *arguments], capture_output=True, text=True,
                              timeout=100)

    def test_help(self):
        done = self.run_with("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--sizes", done.stdout)

    def test_sizes_that_no_rows_have(self):
        for sizes in ("17", "0", "-4096", "4096,12288", "many"):
            done = self.run_with(f"--sizes={sizes}")
            self.assertEqual(done.returncode, 2, sizes)
            self.assertIn("--sizes", done.stderr)

    @unittest.skipIf(gpus() > 1, "there are two GPUs")
    def test_a_machine_that_lacks_something(self):
        done = self.run_with()
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "needs (PyTorch|two GPUs)")


if __name__ == "__main__":
    unittest.main()
