# SPDX-License-Identifier: Apache-2.0
"""Operators of experts on the GPU, and that the host never waits."""
import unittest

import support

torch = support.need_torch_gpu()
from torch_moe_cases import EXPERTS, K, TOKENS, ExpertCases  # noqa: E402


class Experts(ExpertCases, unittest.TestCase):
    device = "cuda"

    def test_equals_the_cpu(self):
        logits = self.random(1000, EXPERTS)
        for scoring in ("softmax_then_top_k", "top_k_then_softmax", "sigmoid"):
            of = {"scoring": scoring, "renormalise": True}
            for one, other in zip(torch.ops.tmap.moe_route(logits, K, **of),
                                  torch.ops.tmap.moe_route(logits.cpu(), K, **of)):
                torch.testing.assert_close(one.cpu(), other)

    def test_a_graph_replays_a_layer_and_the_host_never_waits(self):
        logits = self.random(TOKENS, EXPERTS)
        (_, b, c), _ = self.product_operands()
        b, c = (w.detach()[:1].expand(EXPERTS, -1, -1).transpose(-2, -1).contiguous().transpose(-2, -1) for w in (b, c))
        x = self.random(TOKENS, 64, dtype=torch.bfloat16)

        def layer():
            _, weights, _, ends, rows, tokens, _ = torch.ops.tmap.moe_route(logits, K)
            made = torch.ops.tmap.grouped_mlp(x.index_select(0, tokens), b, c, ends)[0]
            return torch.ops.tmap.moe_combine(made, rows, weights)

        layer()
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        self.addCleanup(torch.cuda.set_sync_debug_mode, "default")
        layer()
        torch.cuda.set_sync_debug_mode("default")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = layer()
        logits.copy_(self.random(TOKENS, EXPERTS))
        graph.replay()
        self.assertTrue(torch.equal(out, layer()))


if __name__ == "__main__":
    unittest.main()
