# SPDX-License-Identifier: Apache-2.0
"""tmap.compat.grouped_gemm on the CPU, and under the name that others import."""
import sys
import types
import unittest
from unittest import mock

import support

torch = support.need("torch")
from grouped_gemm_cases import GroupedGemmCases  # noqa: E402

from tmap import compat  # noqa: E402


class Calls(GroupedGemmCases, unittest.TestCase):
    device = "cpu"


class Name(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.dict(sys.modules)
        patch.start()
        self.addCleanup(patch.stop)
        for name in [name for name in sys.modules if name.split(".")[0] == "grouped_gemm"]:
            del sys.modules[name]

    def test_others_import_it(self):
        compat.install_grouped_gemm()
        compat.install_grouped_gemm()
        import grouped_gemm
        import grouped_gemm.backend
        from grouped_gemm import ops
        self.assertIs(grouped_gemm, compat.grouped_gemm)
        self.assertIs(ops.gmm, compat.grouped_gemm.ops.gmm)
        self.assertIs(ops.backend, grouped_gemm.backend)

    def test_a_package_that_is_imported_stays(self):
        other = sys.modules["grouped_gemm"] = types.ModuleType("grouped_gemm")
        with self.assertRaisesRegex(RuntimeError, "imported already"):
            compat.install_grouped_gemm()
        self.assertIs(sys.modules["grouped_gemm"], other)


if __name__ == "__main__":
    unittest.main()
