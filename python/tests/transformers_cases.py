# SPDX-License-Identifier: Apache-2.0
"""Modules and models of Transformers with random weights, and what tmap promises of them on every
device. Nothing is downloaded."""
import copy
import importlib
import os
from types import SimpleNamespace

os.environ["HF_HUB_OFFLINE"] = "1"

import support  # noqa: E402
import torch  # noqa: E402
from compiling import compiled  # noqa: E402

transformers = support.need("transformers")
import tmap.transformers as experts  # noqa: E402

TOKENS, EXPERTS, K, WIDTH, INNER = 53, 8, 2, 64, 48
# Experts with the gate of Transformers, with each gate of their own, and without a gate.
MODULES = ("mixtral.MixtralExperts", "gpt_oss.GptOssExperts", "openai_privacy_filter.OpenAIPrivacyFilterExperts",
           "minimax_m3_vl.MiniMaxM3VLExperts", "deepseek_v4.DeepseekV4Experts", "hy_v4.HYV4Experts",
           "glm5_next.Glm5NextTextExperts", "nemotron_h.NemotronHExperts")
IN_STEPS = "nemotron_h.NemotronHExperts"
SIZES = {"vocab_size": 99, "hidden_size": WIDTH, "intermediate_size": INNER, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0,
         "eos_token_id": None, "num_experts_per_tok": K}
SMALL = {"moe_intermediate_size": 32, "head_dim": 16}
MODELS = {
    "Mixtral": {"num_local_experts": EXPERTS},
    "Qwen2Moe": {"num_experts": EXPERTS, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32},
    "Qwen3Moe": {"num_experts": EXPERTS, **SMALL},
    "Olmoe": {"num_experts": EXPERTS, "hidden_act": "gelu"},
    "GptOss": {"num_local_experts": EXPERTS, "head_dim": 16},
    "DeepseekV3": {"n_routed_experts": EXPERTS, "moe_intermediate_size": 32, "n_group": 2, "topk_group": 1,
                   "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8,
                   "v_head_dim": 16, "first_k_dense_replace": 1},
    "Glm4Moe": {"n_routed_experts": EXPERTS, "first_k_dense_replace": 1, **SMALL},
    "Phimoe": {"num_local_experts": EXPERTS},
}


def module_of(name, implementation, device, act="silu", inner=INNER):
    """Returns a module of experts in bf16. Many sums exceed its limit, if it has one."""
    model, class_name = name.split(".")
    made = getattr(importlib.import_module(f"transformers.models.{model}.modeling_{model}"), class_name)
    config = SimpleNamespace(
        num_local_experts=EXPERTS, n_routed_experts=EXPERTS, num_experts=EXPERTS, hidden_size=WIDTH,
        intermediate_size=inner, moe_intermediate_size=inner, moe_latent_size=None, hidden_act=act,
        mlp_hidden_act="relu2", swiglu_limit=0.7, swiglu_alpha=1.5, _experts_implementation=implementation)
    module = made(config)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return module.to(device, torch.bfloat16)


def model_of(name, device):
    """Returns a model in bf16 and the same one in f32, which runs its experts one by one."""
    config = getattr(transformers, f"{name}Config")(**{**SIZES, **MODELS[name]})
    config._experts_implementation = "eager"
    wide = getattr(transformers, f"{name}ForCausalLM")(config)
    for parameter in wide.parameters():
        parameter.data = (parameter.data + 0.1 * torch.randn_like(parameter)).bfloat16().float()
    wide = wide.to(device).eval()
    return copy.deepcopy(wide).bfloat16(), wide


def error_of(found, wanted):
    return ((found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-12)).item()


class ExpertsCases:
    """What holds where tmap takes calls. Results are compared with those in f32, expert by expert:
    their distance is at most 2 %, and 1.5 times that of Transformers' grouped_mm. It is at most 6 %
    if there is a limit: rounding decides whether a sum near it has a gradient."""
    backend = "inductor"

    def setUp(self):
        torch.manual_seed(11)
        experts.unregister()
        experts.register()
        self.addCleanup(experts.unregister)

    def inputs(self, k=K):
        x = torch.randn(TOKENS, WIDTH, device=self.device).bfloat16()
        ids = torch.rand(TOKENS, EXPERTS, device=self.device).topk(k).indices
        weights = torch.rand(TOKENS, k, device=self.device)
        return x.requires_grad_(), ids, weights.requires_grad_()

    def outcome(self, module, x, ids, weights, d_out, call=None):
        """Returns the result, and the gradients of tokens, weights of choices, and parameters."""
        operands = x, weights, *module.parameters()
        out = (module if call is None else call)(x, ids, weights)
        return out, *torch.autograd.grad(out, operands, d_out.to(out.dtype))

    def three(self, module, x, ids, weights):
        """Returns the outcomes of tmap, of grouped_mm, and of a copy in f32."""
        d_out = torch.randn(TOKENS, WIDTH, device=self.device).bfloat16()
        made = []
        for implementation in ("tmap", "grouped_mm"):
            module.config._experts_implementation = implementation
            made.append(self.outcome(module, x, ids, weights, d_out))
        wide = copy.deepcopy(module).float()
        wide.config._experts_implementation = "eager"
        within = ids < EXPERTS
        wide_weights = (weights * within).detach().requires_grad_()
        made.append(list(self.outcome(wide, x.detach().float().requires_grad_(), ids.clamp(max=EXPERTS - 1),
                                      wide_weights, d_out)))
        made[2][2] = made[2][2] * within
        return made

    def expect_close(self, found, theirs, wanted, most=0.02):
        for part, (one, other, best) in enumerate(zip(found, theirs, wanted)):
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            error = error_of(one, best)
            self.assertLess(error, most, f"part {part}")
            self.assertLess(error, 1.5 * error_of(other, best) + 1e-3, f"part {part}")

    def test_modules_and_their_gradients(self):
        for name in MODULES:
            for act in ("silu", "gelu", "gelu_pytorch_tanh", "relu") if "mixtral" in name else ("silu",):
                with self.subTest(name, act=act):
                    module = module_of(name, "tmap", self.device, act)
                    gate = experts._gate_of(module)
                    self.assertEqual(gate is None, name == IN_STEPS or act == "relu")
                    most = 0.06 if gate is not None and "limit" in gate else 0.02
                    self.expect_close(*self.three(module, *self.inputs()), most)
        self.assertEqual(experts.calls().passed, {})

    def test_a_width_that_no_gate_takes(self):
        for name in MODULES:
            with self.subTest(name):
                module, inputs = module_of(name, "tmap", self.device, inner=40), self.inputs()
                self.assertIsNone(experts._gate_of(module))
                outcomes = self.three(module, *inputs)
                self.expect_close(*outcomes, 0.12)  # both round sums before the limit
                module.config._experts_implementation = "tmap"
                with torch.no_grad():
                    self.assertLess(error_of(module(*inputs), outcomes[0][0]), 5e-3)
        self.assertEqual(experts.calls().passed, {})

    def test_results_without_gradients(self):
        for name in MODULES:
            with self.subTest(name):
                module, (x, ids, weights) = module_of(name, "tmap", self.device), self.inputs()
                out = module(x, ids, weights)
                with torch.no_grad():
                    again = module(x, ids, weights)
                self.assertLess(error_of(again, out), 5e-3)

    def test_choices_of_other_ranks(self):
        for name in ("mixtral.MixtralExperts", "gpt_oss.GptOssExperts", IN_STEPS):
            with self.subTest(name):
                x, ids, weights = self.inputs(k=3)
                ids[::3, 1] = ids[5:9] = EXPERTS
                module = module_of(name, "tmap", self.device)
                found, _, wanted = self.three(module, x, ids, weights)
                self.expect_close(found, found, wanted)
                self.assertFalse(found[0][5:9].any())
                self.assertFalse(found[1][5:9].any())
                self.assertFalse(found[2][ids == EXPERTS].any())
                with torch.no_grad():
                    self.assertLess(error_of(module(x, ids, weights), wanted[0]), 0.02)

    def test_types_of_tokens_and_weights(self):
        module, (x, ids, weights) = module_of("mixtral.MixtralExperts", "tmap", self.device), self.inputs()
        wanted = module(x, ids, weights)
        for other in (x.float(), x), (x, x.bfloat16()):
            made = module(other[0], ids.int(), weights)
            self.assertEqual(made.dtype, other[0].dtype)
            self.assertTrue(torch.equal(made.bfloat16(), wanted))
        made = module(x, ids, weights.detach().bfloat16().requires_grad_())
        self.assertEqual(made.dtype, torch.bfloat16)
        half = module.half()(x.half(), ids, weights)
        self.assertLess(error_of(half, wanted), 0.02)
        self.assertEqual(experts.calls().passed, {})

    def test_compiled_modules(self):
        for name in ("mixtral.MixtralExperts", "gpt_oss.GptOssExperts", IN_STEPS):
            with self.subTest(name):
                module, inputs = module_of(name, "tmap", self.device), self.inputs()
                d_out = torch.randn(TOKENS, WIDTH, device=self.device)
                wanted = self.outcome(module, *inputs, d_out)
                before = experts.calls().taken
                made = compiled(module, backend=self.backend)
                for _ in range(2):
                    for one, other in zip(self.outcome(module, *inputs, d_out, made), wanted):
                        self.assertLess(error_of(one, other), 5e-3)
                with torch.no_grad():
                    self.assertLess(error_of(made(*inputs), wanted[0]), 5e-3)
                # Each of both programs counts once.
                self.assertEqual(experts.calls().taken, before + 2)

    def test_models_and_their_gradients(self):
        ids = torch.randint(1, 99, (3, 11), device=self.device)
        for name in MODELS:
            with self.subTest(name):
                model, wide = model_of(name, self.device)
                layers = sum(hasattr(module, "_apply_gate") for module in model.modules())
                self.assertGreater(layers, 0)
                made = []
                for each, implementation in ((model, "tmap"), (model, "grouped_mm"), (wide, "eager")):
                    each.set_experts_implementation(implementation)
                    before = experts.calls().taken
                    out = each(ids, labels=ids)
                    self.assertEqual(experts.calls().taken - before, layers if implementation == "tmap" else 0)
                    gradients = torch.autograd.grad(out.loss, list(each.parameters()), allow_unused=True)
                    parts = [torch.zeros(1, device=self.device) if part is None else part.double().flatten()
                             for part in gradients]
                    made.append((out.logits, torch.cat(parts)))
                found, theirs, wanted = ([error_of(*pair) for pair in zip(each, made[2])] for each in made)
                # Rounding may send a token to another expert, as far as both are concerned.
                for one, other in zip(found, theirs):
                    self.assertLess(one, 1.5 * other + 0.02)
                self.assertEqual(wanted, [0, 0])
        self.assertEqual(experts.calls().passed, {})

    def test_words_that_follow(self):
        ids = torch.randint(1, 99, (2, 5), device=self.device)
        for name in ("Mixtral", "GptOss"):
            with self.subTest(name):
                model, _ = model_of(name, self.device)
                model = model.float() if self.device == "cpu" else model
                model.set_experts_implementation("tmap")
                taken = experts.calls()
                made = model.generate(ids, max_new_tokens=6, do_sample=False)
                self.assertEqual(made.shape, (2, 11))
                now = experts.calls()
                self.assertEqual(now.taken + sum(now.passed.values())
                                 - taken.taken - sum(taken.passed.values()), 6 * 2)
