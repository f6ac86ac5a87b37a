# SPDX-License-Identifier: Apache-2.0
"""Modules and models of Transformers whose experts run by tmap, on the GPU."""
import unittest

import support

torch = support.need_torch_gpu()
if torch.cuda.get_device_capability() != (9, 0):
    raise unittest.SkipTest("no Hopper GPU")
import transformers_cases as cases  # noqa: E402
from transformers_cases import experts, module_of  # noqa: E402


class Taken(cases.ExpertsCases, unittest.TestCase):
    device = "cuda"

    def test_the_host_never_waits_and_results_repeat(self):
        for name in cases.MODULES:
            with self.subTest(name):
                module, inputs = module_of(name, "tmap", "cuda"), self.inputs()
                d_out = torch.randn_like(inputs[0])
                first = self.outcome(module, *inputs, d_out)
                torch.cuda.synchronize()
                torch.cuda.set_sync_debug_mode("error")
                self.addCleanup(torch.cuda.set_sync_debug_mode, "default")
                again = self.outcome(module, *inputs, d_out)
                torch.cuda.set_sync_debug_mode("default")
                for one, other in zip(first, again):
                    self.assertTrue(torch.equal(one, other))

    def test_a_graph_replays_a_module(self):
        for name in ("mixtral.MixtralExperts", "gpt_oss.GptOssExperts"):
            with self.subTest(name), torch.no_grad():
                module, (x, ids, weights) = module_of(name, "tmap", "cuda"), self.inputs()
                module(x, ids, weights)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    out = module(x, ids, weights)
                other, other_ids, other_weights = self.inputs()
                for place, content in ((x, other), (ids, other_ids), (weights, other_weights)):
                    place.copy_(content)
                out.fill_(float("nan"))
                graph.replay()
                self.assertTrue(torch.equal(out, module(x, ids, weights)))

    def test_many_rows_of_an_expert(self):
        """Rows are copied there, not read by index."""
        for name in ("mixtral.MixtralExperts", "gpt_oss.GptOssExperts"):
            with self.subTest(name), torch.no_grad():
                module = module_of(name, "tmap", "cuda")
                x, ids, weights = (torch.cat([part] * 30) for part in self.inputs())
                made = module(x, ids, weights)
                self.assertTrue(torch.equal(made[:cases.TOKENS], made[-cases.TOKENS:]))
                self.assertLess(cases.error_of(made[:cases.TOKENS],
                                               module(*(part[:cases.TOKENS] for part in (x, ids, weights)))), 5e-3)

    def test_float32_falls_through(self):
        module, (x, ids, weights) = module_of("mixtral.MixtralExperts", "tmap", "cuda").float(), self.inputs()
        with torch.no_grad():
            made = module(x.float(), ids, weights)
            module.config._experts_implementation = "grouped_mm"
            self.assertTrue(torch.equal(made, module(x.float(), ids, weights)))
        self.assertEqual(experts.calls(), (0, {experts.TYPES: 1}))


if __name__ == "__main__":
    unittest.main()
