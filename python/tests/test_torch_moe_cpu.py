# SPDX-License-Identifier: Apache-2.0
"""Operators of experts on the CPU."""
import unittest

import support

torch = support.need("torch")
from torch_moe_cases import EXPERTS, K, TOKENS, ExpertCases  # noqa: E402


class Experts(ExpertCases, unittest.TestCase):
    device = "cpu"

    def test_pytorchs_own_check(self):
        check, ops = torch.library.opcheck, torch.ops.tmap
        # PyTorch's check of compiled programs fails if the first result has integers.
        parts = ("test_schema", "test_autograd_registration", "test_faketensor")
        check(ops.moe_route.default, (torch.randn(TOKENS, EXPERTS, requires_grad=True), K), {"renormalise": True},
              test_utils=parts)
        check(ops.moe_sort.default, (torch.randint(0, EXPERTS, (TOKENS, K)), EXPERTS,
                                     torch.rand(TOKENS, K, requires_grad=True)), test_utils=parts)
        check(ops.moe_combine.default, self.combine_operands())
        (a, b, c), ends = self.product_operands()
        check(ops.grouped_gated_mm.default, (a, b, ends), {"columns": "interleaved"})
        check(ops.grouped_mlp.default, (a, b, c, ends))
        check(ops.grouped_mlp.default, (a, b, c, ends, *(torch.randn(ends.shape[0], w.shape[2]).bfloat16()
                                                         .requires_grad_() for w in (b, c))))
        layer = self.layer_operands()
        check(ops.moe_layer.default, layer)
        _, _, rows, tokens, _ = ops.moe_sort(layer[3], 8)
        check(ops.moe_gather.default, (layer[0].requires_grad_(), tokens, rows))


if __name__ == "__main__":
    unittest.main()
