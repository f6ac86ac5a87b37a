# SPDX-License-Identifier: Apache-2.0
"""What compilers and exporters learn of every operator of PyTorch, on the GPU."""
import unittest

import support

support.need_torch_gpu()
from torch_export_cases import OperatorCases  # noqa: E402


class Operators(OperatorCases, unittest.TestCase):
    device, backend = "cuda", "inductor"


if __name__ == "__main__":
    unittest.main()
