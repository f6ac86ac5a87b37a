# SPDX-License-Identifier: Apache-2.0
"""torch.ops.tmap.* on the CPU."""
import unittest

import support

torch = support.need("torch")
from torch_cases import GroupedProductCases, PaddingCases, WritingCases  # noqa: E402


class GroupedProducts(GroupedProductCases, unittest.TestCase):
    device = "cpu"

    def test_pytorchs_own_check(self):
        for name, (a, b) in self.cases().items():
            with self.subTest(name):
                operands = a.detach().requires_grad_(), b.detach().requires_grad_(), self.ends
                torch.library.opcheck(torch.ops.tmap.grouped_mm.default, operands, {"zero_rest": True})


    def test_compilers_are_told_the_truth_about_strides(self):
        self.assertTrue({torch.Tag.needs_fixed_stride_order, getattr(torch.Tag, "needs_exact_strides", None)}
                        & set(torch.ops.tmap.grouped_mm.default.tags))
        for name, (a, b) in self.cases().items():
            with self.subTest(name), torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
                fake = torch.ops.tmap.grouped_mm(*(mode.from_tensor(tensor) for tensor in (a, b, self.ends)))
            real = torch.ops.tmap.grouped_mm(a, b, self.ends)
            self.assertEqual((fake.shape, fake.stride(), fake.dtype), (real.shape, real.stride(), real.dtype))


class Padding(PaddingCases, unittest.TestCase):
    device = "cpu"

    def test_pytorchs_own_check(self):
        values, offsets = torch.randn(9, 4, requires_grad=True), torch.tensor((2, 9))
        torch.library.opcheck(torch.ops.tmap.pad_ragged.default, (values, offsets, 8))
        dense = torch.randn(2, 5, 4, requires_grad=True)
        torch.library.opcheck(torch.ops.tmap.unpad_ragged.default, (dense, offsets, 9))


class Writing(WritingCases, unittest.TestCase):
    device = "cpu"


if __name__ == "__main__":
    unittest.main()
