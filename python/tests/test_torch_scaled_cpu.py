# SPDX-License-Identifier: Apache-2.0
"""Products with block scales on the CPU, and what compilers learn of them."""
import unittest

import support

torch = support.need("torch")
from torch_scaled_cases import OPS, GatedCases, ScaledCases  # noqa: E402
from torch_weights_cases import GROUPS, WeightCases  # noqa: E402


class Scaled(ScaledCases, unittest.TestCase):
    device = "cpu"

    def cases(self):
        """Each operator with operands. The last rows belong to no group, so they must be zero."""
        scaled = self.a, self.b, self.a_scales, self.b_scales, self.ends, self.bias
        x, weights = (tensor.detach().requires_grad_() for tensor in (self.x, self.weights.transpose(1, 2)))
        return ((OPS.quantize, (self.x,), {}), (OPS.quantize, (self.weights,), {"block": "128x128"}),
                (OPS.grouped_scaled_mm, scaled, {"zero_rest": True}),
                (OPS.grouped_quantized_mm, (x[:self.used], self.b, self.b_scales, self.ends, self.bias, weights), {}),
                (OPS.grouped_quantized_mm_backward, (self.random(self.rows, self.b.shape[2]), self.b, self.b_scales,
                                                     self.ends), {}))

    def test_pytorchs_own_check(self):
        for operator, operands, options in self.cases():
            with self.subTest(operator):
                # PyTorch checks schemas by arithmetic on operands, which those of 8 bits lack.
                parts = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
                if operator is OPS.quantize:
                    parts += ("test_schema",)
                torch.library.opcheck(operator.default, operands, options, test_utils=parts)

    def test_fakes_are_as_results(self):
        for operator, operands, options in self.cases():
            with self.subTest(operator), torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
                fake = operator(*(mode.from_tensor(tensor) for tensor in operands), **options)
            for one, real in zip(torch.utils._pytree.tree_leaves(fake),
                                 torch.utils._pytree.tree_leaves(operator(*operands, **options))):
                self.assertEqual((one.shape, one.stride(), one.dtype), (real.shape, real.stride(), real.dtype))

    def test_fakes_refuse_what_products_do(self):
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            a, b, of_a, of_b, ends = (mode.from_tensor(tensor) for tensor in
                                      (self.a, self.b, self.a_scales, self.b_scales, self.ends))
            for operands in ((a, b, of_a[1:], of_b, ends), (a, b, of_a, of_b[1:], ends), (a, b, of_a, of_b, ends[1:])):
                with self.assertRaises(ValueError):
                    OPS.grouped_scaled_mm(*operands)


class Gated(GatedCases, unittest.TestCase):
    device = "cpu"

    def test_pytorchs_own_check(self):
        parts = "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"
        for operands, _ in self.kinds.values():
            operands = *(operand[:self.used] if operand.shape[0] == self.rows else operand for operand in operands),
            torch.library.opcheck(OPS.grouped_scaled_gated_mm.default, operands, {"columns": "interleaved"},
                                  test_utils=parts)


class Weights(WeightCases, unittest.TestCase):
    device = "cpu"

    def test_pytorchs_own_check(self):
        operands = self.d_out, self.x, self.ends
        sums = torch.randn(GROUPS, self.d_out.shape[1], self.x.shape[1])
        torch.library.opcheck(OPS.quantized_weight_gradient.default, operands, {"out_dtype": torch.float32})
        torch.library.opcheck(OPS.add_quantized_weight_gradient.default, (sums, *operands), {})

    def test_fakes_are_as_results(self):
        operands = self.d_out, self.x, self.ends
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fakes = [mode.from_tensor(tensor) for tensor in operands]
            fake = OPS.quantized_weight_gradient(*fakes)
            with self.assertRaises(ValueError):
                OPS.quantized_weight_gradient(fakes[0][1:], *fakes[1:])
        real = OPS.quantized_weight_gradient(*operands)
        self.assertEqual((fake.shape, fake.stride(), fake.dtype), (real.shape, real.stride(), real.dtype))


if __name__ == "__main__":
    unittest.main()
