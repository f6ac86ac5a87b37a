# SPDX-License-Identifier: Apache-2.0
"""tmap among Transformers' implementations of experts without a GPU: the registry, what falls
through, and what is computed, by the operators of the CPU."""
import sys
import types
import unittest
from unittest import mock

import support

torch = support.need("torch")
import transformers_cases as cases  # noqa: E402
from compiling import compiled  # noqa: E402
from transformers_cases import EXPERTS, K, TOKENS, WIDTH, experts, module_of  # noqa: E402

from tmap import torch_rules as rules  # noqa: E402

moe = support.need("transformers.integrations.moe")


class Registry(unittest.TestCase):
    def setUp(self):
        experts.unregister()
        self.addCleanup(experts.unregister)

    def test_it_is_there_after_register_alone(self):
        self.assertNotIn("tmap", moe.ALL_EXPERTS_FUNCTIONS)
        experts.register()
        self.assertIn("tmap", moe.ALL_EXPERTS_FUNCTIONS.valid_keys())
        module = module_of("mixtral.MixtralExperts", "tmap", "cpu")
        x = torch.zeros(1, WIDTH, dtype=torch.bfloat16), torch.zeros(1, 1, dtype=torch.int64), torch.ones(1, 1)
        module(*x)
        experts.register()  # changes nothing, also no counts
        self.assertEqual(experts.calls(), (0, {experts.DEVICES: 1}))
        experts.unregister()
        experts.unregister()
        with self.assertRaises(KeyError):
            module(*x)
        experts.register()
        self.assertEqual(experts.calls(), (0, {}))

    def test_a_name_that_is_taken(self):
        moe.ALL_EXPERTS_FUNCTIONS.register("tmap", moe.batched_mm_experts_forward)
        self.addCleanup(moe.ALL_EXPERTS_FUNCTIONS._global_mapping.pop, "tmap", None)
        with self.assertRaisesRegex(RuntimeError, "registered already.*batched_mm_experts_forward"):
            experts.register()
        experts.unregister()
        self.assertIs(moe.ALL_EXPERTS_FUNCTIONS["tmap"], moe.batched_mm_experts_forward)

    def test_other_versions_are_refused(self):
        old = types.ModuleType("transformers.integrations.moe")
        old.ALL_EXPERTS_FUNCTIONS = {"grouped_mm": None}
        old.use_experts_implementation = lambda experts_class=None, *, experts_interface=None: None
        package = types.ModuleType("transformers")
        package.__version__ = "4.57.1"
        for module in (None, old):
            with mock.patch.dict(sys.modules, {"transformers": package, "transformers.integrations.moe": module}):
                with self.assertRaisesRegex(RuntimeError, r"needs Transformers 5\.17.*ALL_EXPERTS_FUNCTIONS.*4\.57\.1"):
                    experts.register()


class FallsThrough(unittest.TestCase):
    """What tmap does not take. Tensors of the CPU count as those of a GPU until there is a
    reason."""

    def setUp(self):
        torch.manual_seed(12)
        experts.unregister()
        experts.register()
        self.addCleanup(experts.unregister)

    def expect(self, reason, module, x=None, ids=None, weights=None, capability=rules.HOPPER):
        x = torch.randn(TOKENS, module.down_proj.shape[-1 if module.is_transposed else 1]) if x is None else x
        ids = torch.rand(x.shape[0], EXPERTS).topk(K).indices if ids is None else ids
        weights = torch.rand(ids.shape) if weights is None else weights
        x = x.to(module.down_proj.dtype)
        experts.unregister()
        experts.register()
        with mock.patch.object(experts, "_capability_of", lambda device: capability), torch.no_grad():
            made = module(x, ids, weights)
        self.assertEqual(experts.calls(), (0, {reason: 1}))
        alone = reason in (experts.UNITS, experts.LINES)  # PyTorch's grouped product refuses them
        module.config._experts_implementation = "batched_mm" if alone else "grouped_mm"
        self.assertTrue(torch.equal(made, module(x, ids, weights)))
        module.config._experts_implementation = "tmap"

    def module(self, name="mixtral.MixtralExperts", dtype=torch.bfloat16):
        return module_of(name, "tmap", "cpu").to(dtype)

    def test_each_reason(self):
        self.expect(experts.DEVICES, self.module(), capability=None)
        self.expect(rules.CAPABILITY, self.module(), capability=(8, 0))
        self.expect(rules.CAPABILITY, self.module(), capability=(10, 0))
        self.expect(experts.TYPES, self.module(dtype=torch.float32))
        self.expect(experts.SHAPES, self.module(), x=torch.zeros(0, WIDTH))
        self.expect(experts.LIMITS, self.module(), ids=torch.zeros(TOKENS, 33, dtype=torch.int64))
        odd = self.module()
        odd.down_proj = torch.nn.Parameter(odd.down_proj[:, :, :12].contiguous())
        odd.gate_up_proj = torch.nn.Parameter(odd.gate_up_proj[:, :24].contiguous())
        self.expect(experts.UNITS, odd)
        gaps = self.module()
        gaps.down_proj = torch.nn.Parameter(torch.randn(EXPERTS, WIDTH, 52).bfloat16()[:, :, :48])
        self.expect(experts.LINES, gaps)
        moved = self.module()
        space = torch.randn(moved.down_proj.numel() + 1).bfloat16()
        moved.down_proj = torch.nn.Parameter(space[1:].view(moved.down_proj.shape))
        self.expect(experts.LINES, moved)
        learned = self.module()
        learned.act_fn = torch.nn.PReLU(dtype=torch.bfloat16)
        self.expect(experts.PARAMETERS, learned)

    def test_a_distributed_tensor(self):
        module = self.module()
        with mock.patch.object(experts, "_is_distributed", lambda tensor: tensor is module.down_proj):
            self.expect(experts.DISTRIBUTED, module)

    def test_more_experts_than_tmap_takes(self):
        module = self.module()
        for name in ("gate_up_proj", "down_proj"):
            setattr(module, name, torch.nn.Parameter(getattr(module, name)[:1].expand(1025, -1, -1)))
        module.num_experts = 1025
        self.expect(experts.LIMITS, module)

    def test_models_give_the_bits_of_grouped_mm(self):
        ids = torch.randint(1, 99, (2, 7))
        for name in ("Mixtral", "GptOss"):
            model, _ = cases.model_of(name, "cpu")
            made = []
            for implementation in ("tmap", "grouped_mm"):
                model.set_experts_implementation(implementation)
                out = model(ids, labels=ids)
                made.append((out.logits, *torch.autograd.grad(out.loss, list(model.parameters()))))
            for one, other in zip(*made):
                self.assertTrue(torch.equal(one, other))
        self.assertEqual(experts.calls(), (0, {experts.DEVICES: 4}))

    def test_a_compiled_module(self):
        module = self.module()
        x, ids = torch.randn(TOKENS, WIDTH).bfloat16(), torch.rand(TOKENS, EXPERTS).topk(K).indices
        weights = torch.rand(TOKENS, K)
        made = compiled(module)
        self.assertLess(cases.error_of(made(x, ids, weights), module(x, ids, weights)), 5e-3)


class Taken(cases.ExpertsCases, unittest.TestCase):
    device = "cpu"
    backend = "aot_eager"

    def setUp(self):
        super().setUp()
        patch = mock.patch.object(experts, "_capability_of", lambda device: rules.HOPPER)
        patch.start()
        self.addCleanup(patch.stop)


if __name__ == "__main__":
    unittest.main()
