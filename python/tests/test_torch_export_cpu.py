# SPDX-License-Identifier: Apache-2.0
"""What compilers and exporters learn of every operator of PyTorch, on the CPU."""
import unittest

import support

support.need("torch")
from torch_export_cases import OperatorCases  # noqa: E402


class Operators(OperatorCases, unittest.TestCase):
    device = "cpu"


if __name__ == "__main__":
    unittest.main()
