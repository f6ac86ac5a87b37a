# SPDX-License-Identifier: Apache-2.0
"""A rank's process is killed in the middle of its calls. The other rank learns it inside its
deadline, its context lives on, and it makes a new group with a new process."""
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

torch = support.need_torch_gpu()
support.need_ranks_over_nccl(2)


class KilledRanks(unittest.TestCase):
    def start(self, folder, role):
        variables = {**os.environ, **support.NCCL_OF_TESTS, "PYTHONPATH": os.pathsep.join(sys.path)}
        script = Path(__file__).with_name("peer_killed.py")
        process = subprocess.Popen([sys.executable, str(script), folder, role], env=variables,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.kill)
        return process

    def end(self, process, code):
        text = process.communicate(timeout=100)[0]
        self.assertEqual(process.returncode, code, text)
        return text

    def run_with_a_death(self, moment):
        with tempfile.TemporaryDirectory() as folder:
            stays, ends = self.start(folder, "stays"), self.start(folder, moment)
            self.end(ends, -signal.SIGKILL)
            joins = self.start(folder, "joins")
            self.assertIn("made a new group", self.end(stays, 0))
            self.assertIn("made a new group", self.end(joins, 0))

    def test_before_a_call(self):
        self.run_with_a_death("before")

    def test_while_its_kernel_runs(self):
        self.run_with_a_death("during")

    def test_after_its_rows_came(self):
        self.run_with_a_death("after")


if __name__ == "__main__":
    unittest.main()
