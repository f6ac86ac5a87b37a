# SPDX-License-Identifier: Apache-2.0
"""The programs of apps/bench/peer with PyTorch, on a machine without a GPU: their arguments, and
what they need."""
import subprocess
import sys
import unittest

import support

FOLDER = support.ROOT / "apps" / "bench" / "peer"
# The programs, with an option of each and values that it refuses.
PROGRAMS = (("peer_torch.py", "--sizes", ("17", "0", "-4096", "4096,12288", "many")),
            ("experts_torch.py", "--rows", ("5", "-1", "0,5", "", "many")),
            ("experts_torch.py", "--returned", ("sum",)),
            ("experts_torch.py", "--memory", ("cuda",)),
            ("layer_torch.py", "--tokens", ("0", "many")),
            ("layer_torch.py", "--width", ("0", "12")),
            ("layer_torch.py", "--inner", ("-8", "12")),
            ("layer_torch.py", "--experts", ("0", "17")),
            ("layer_torch.py", "--k", ("0", "33", "257")),
            ("layer_torch.py", "--blocks", ("0",)),
            ("layer_torch.py", "--seconds", ("0", "nan")),
            ("layer_torch.py", "--rounds", ("0", "1.5")),
            ("layer_torch.py", "--memory", ("cuda",)))
NAMES = sorted({program for program, _, _ in PROGRAMS})


def gpus():
    try:
        import torch
    except ImportError:
        return 0
    return torch.cuda.device_count()


class Arguments(unittest.TestCase):
    def run_with(self, program, *arguments):
        return subprocess.run([sys.executable, "-B", str(FOLDER / program), *arguments], capture_output=True,
                              text=True, timeout=100)

    def test_help(self):
        for program, option, _ in PROGRAMS:
            with self.subTest(program, option=option):
                done = self.run_with(program, "--help")
                self.assertEqual(done.returncode, 0)
                self.assertIn(option, done.stdout)

    def test_values_that_are_refused(self):
        for program, option, values in PROGRAMS:
            for value in values:
                with self.subTest(program, option=option, value=value):
                    done = self.run_with(program, f"{option}={value}")
                    self.assertEqual(done.returncode, 2)
                    self.assertIn(f"argument {option}:", done.stderr)

    @unittest.skipIf(gpus() > 1, "there are two GPUs")
    def test_a_machine_that_lacks_something(self):
        for program in NAMES:
            with self.subTest(program):
                done = self.run_with(program)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, rf"{program}: needs (PyTorch|two GPUs)")


if __name__ == "__main__":
    unittest.main()
