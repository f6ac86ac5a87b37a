# SPDX-License-Identifier: Apache-2.0
"""Runs test files, all or those named, and prints a line that counts their tests at the end:
python/tests/run.py [--installed] [test_x.py ...]

The tests use the package in this repository or, with --installed, the one that this Python has.
The package finds the library as always: TMAP_LIBRARY names one of a build folder. The exit status
is 77 if every test was skipped.
"""
import importlib.util
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
INSTALLED = sys.argv[1:2] == ["--installed"]
sys.path[:0] = [str(HERE)] if INSTALLED else [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True


class Counted(unittest.TextTestResult):
    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main():
    print(f"testing {importlib.util.find_spec('tmap').origin}")
    names = [Path(name).name for name in sys.argv[1 + INSTALLED:]] or ["test_*.py"]
    # Only `discover` counts a file that skips itself.
    suite = unittest.TestSuite(unittest.TestLoader().discover(str(HERE), name) for name in names)
    done = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Counted).run(suite)
    failed = len(done.failures) + len(done.errors)
    print(f"{done.passed} passed, {failed} failed, {len(done.skipped)} skipped")
    if failed or not (done.passed or done.skipped):
        return 1
    return 0 if done.passed else 77


sys.exit(main())
