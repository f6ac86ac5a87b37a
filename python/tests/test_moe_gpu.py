# SPDX-License-Identifier: Apache-2.0
"""Routes and sums of experts of PyTorch's arrays, compared with PyTorch."""
import unittest

import support
import tmap
from tmap import moe

torch = support.need_torch_gpu()
TOKENS, EXPERTS, K, COLUMNS = 300, 64, 6, 256


def empty(*shape, dtype=torch.int32):
    return torch.full(shape, 77, dtype=dtype, device="cuda")


def results(rows=TOKENS * K):
    return {"counts": empty(EXPERTS), "begins": empty(EXPERTS + 1), "ends": empty(EXPERTS),
            "row_of_choice": empty(TOKENS, K), "token_of_row": empty(rows),
            "weight_of_row": empty(rows, dtype=torch.float32)}


class Experts(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)

    def expect_sorted(self, ids, weights, got):
        flat = ids.flatten().long()
        order = torch.sort(flat, stable=True).indices
        counts = torch.bincount(flat, minlength=EXPERTS)
        ends = torch.cumsum(counts, 0)
        self.assertTrue(torch.equal(got["counts"].long(), counts))
        self.assertTrue(torch.equal(got["ends"].long(), ends))
        self.assertTrue(torch.equal(got["begins"][1:].long(), ends))
        self.assertEqual(got["begins"][0].item(), 0)
        self.assertTrue(torch.equal(got["token_of_row"].long(), order // K))
        self.assertTrue(torch.equal(got["weight_of_row"], weights.flatten()[order]))
        self.assertTrue(torch.equal(got["row_of_choice"].flatten().long()[order],
                                    torch.arange(TOKENS * K, device="cuda")))

    def test_a_route_by_logits(self):
        logits = torch.randn(TOKENS, EXPERTS, device="cuda")
        ids, weights, got = empty(TOKENS, K), empty(TOKENS, K, dtype=torch.float32), results()
        moe.route(logits, k=K, ids=ids, weights=weights, renormalise=True, **got)
        want = torch.topk(torch.softmax(logits, 1), K)
        self.assertTrue(torch.equal(ids.long(), want.indices))
        torch.testing.assert_close(weights, want.values / want.values.sum(1, keepdim=True))
        self.expect_sorted(ids, weights, got)

    def test_a_route_by_given_ids(self):
        ids = torch.randint(0, EXPERTS, (TOKENS, K), device="cuda")
        weights, got = torch.rand(TOKENS, K, device="cuda"), results()
        moe.route(ids=ids, experts=EXPERTS, weights=weights, **got)
        self.expect_sorted(ids, weights, got)

    def test_sums_of_rows(self):
        ids = torch.randint(0, EXPERTS, (TOKENS, K), device="cuda", dtype=torch.int32)
        weights, got = torch.rand(TOKENS, K, device="cuda"), results()
        moe.route(ids=ids, experts=EXPERTS, **got)
        values = torch.randn(TOKENS * K, COLUMNS, device="cuda").bfloat16()
        base, out = torch.randn(TOKENS, COLUMNS, device="cuda").bfloat16(), empty(TOKENS, COLUMNS, dtype=torch.bfloat16)
        self.assertIs(moe.combine(values, got["row_of_choice"], out=out, weights=weights, base=base), out)
        rows = values[got["row_of_choice"].long()].double()
        want = base.double() + (rows * weights.double()[:, :, None]).sum(1)
        torch.testing.assert_close(out.double(), want, rtol=2 ** -8, atol=1e-5)

    def test_bad_choices_are_reported(self):
        ids = torch.zeros(TOKENS, K, dtype=torch.int32, device="cuda")
        ids[1, 1], ids[2, 2] = EXPERTS, -1
        statuses, header = empty(TOKENS, K), empty(4)
        moe.route(ids=ids, experts=EXPERTS, statuses=statuses, header=header)
        self.assertEqual(moe.faults_of(statuses[1, 1].item()), moe.Fault.EXPERT)
        self.assertEqual(moe.faults_of(statuses[2, 2].item()), moe.Fault.EMPTY)
        self.assertEqual(header.tolist()[:3], [1, K + 1, 1])
        with self.assertRaisesRegex(tmap.Error, "expert"):
            moe.route(ids=ids, experts=EXPERTS, check="sync")


class Layers(unittest.TestCase):
    WIDTH, INNER = 128, 96

    def setUp(self):
        torch.manual_seed(8)
        self.x = self.random(TOKENS, self.WIDTH)
        self.gate_up = self.random(EXPERTS, 2 * self.INNER, self.WIDTH) * self.WIDTH ** -0.5
        self.down = self.random(EXPERTS, self.WIDTH, self.INNER) * self.INNER ** -0.5
        self.out = empty(TOKENS, self.WIDTH, dtype=torch.bfloat16)

    @staticmethod
    def random(*shape):
        return torch.randn(*shape, device="cuda").bfloat16()

    def expected(self, ids, weights, base=None, gate_up_bias=None, down_bias=None):
        x, out = self.x.float(), torch.zeros(TOKENS, self.WIDTH, device="cuda")
        for j in range(K):
            chosen = ids[:, j].long()
            sums = torch.einsum("tw,tnw->tn", x, self.gate_up[chosen].float())
            if gate_up_bias is not None:
                sums += gate_up_bias[chosen].float()
            gate, value = sums.chunk(2, 1)
            hidden = torch.nn.functional.silu(gate) * value
            rows = torch.einsum("ti,twi->tw", hidden, self.down[chosen].float())
            if down_bias is not None:
                rows += down_bias[chosen].float()
            out += weights[:, j:j + 1] * rows
        return out if base is None else out + base.float()

    def expect_close(self, want):
        # Gated rows and the experts' outputs are rounded to bf16.
        difference = self.out.float() - want
        self.assertLess(difference.norm() / want.norm(), 2 ** -7)
        self.assertLess(difference.abs().max(), 2 ** -3)

    def test_a_layer_by_logits(self):
        logits = torch.randn(TOKENS, EXPERTS, device="cuda")
        ids, weights = empty(TOKENS, K), empty(TOKENS, K, dtype=torch.float32)
        self.assertIs(moe.layer(self.x, self.gate_up, self.down, logits, k=K, ids=ids,
                                weights=weights, renormalise=True, out=self.out), self.out)
        self.assertTrue(torch.equal(ids.long(), torch.topk(logits, K).indices))
        self.expect_close(self.expected(ids, weights))

    def test_a_layer_with_biases_a_base_and_intermediates(self):
        ids = torch.randint(0, EXPERTS, (TOKENS, K), device="cuda", dtype=torch.int32)
        weights, rows = torch.rand(TOKENS, K, device="cuda"), TOKENS * K
        terms = {"base": self.random(TOKENS, self.WIDTH),
                 "gate_up_bias": self.random(EXPERTS, 2 * self.INNER),
                 "down_bias": self.random(EXPERTS, self.WIDTH)}
        half = {"dtype": torch.bfloat16}
        kept = {"sorted": empty(rows, self.WIDTH, **half), "kept": empty(rows, 2 * self.INNER, **half),
                "activated": empty(rows, self.INNER, **half), "outputs": empty(rows, self.WIDTH, **half)}
        got = results()
        moe.layer(self.x, self.gate_up, self.down, ids=ids, weights=weights, out=self.out, **terms,
                  **kept, **got)
        self.expect_close(self.expected(ids, weights, **terms))
        self.assertTrue(torch.equal(kept["sorted"], self.x[got["token_of_row"].long()]))
        gate, value = kept["kept"].float().chunk(2, 1)
        torch.testing.assert_close(kept["activated"].float(), torch.nn.functional.silu(gate) * value,
                                   rtol=2 ** -6, atol=2 ** -6)
        again = torch.empty_like(self.out)
        moe.combine(kept["outputs"], got["row_of_choice"], out=again, weights=weights, base=terms["base"])
        self.assertTrue(torch.equal(again, self.out))
        moe.layer(self.x, self.gate_up, self.down, ids=ids, weights=weights, out=self.out, **terms)
        self.assertTrue(torch.equal(again, self.out))

    @staticmethod
    def quantized(weights):
        """Returns weights in e4m3, a scale for each 128 x 128, and their product."""
        experts, n, k = weights.shape
        blocks = weights.float().view(experts, n // 128, 128, k // 128, 128)
        scales = blocks.abs().amax((2, 4)) / 448
        values = (blocks / scales[:, :, None, :, None]).to(torch.float8_e4m3fn)
        exact = values.float() * scales[:, :, None, :, None]
        return values.view(weights.shape), scales, exact.view(weights.shape)

    def test_a_layer_of_weights_of_8_bits(self):
        width, inner, rows = 256, 128, TOKENS * K
        self.x = self.random(TOKENS, width)
        gate_up, gate_up_scales, self.gate_up = self.quantized(
            self.random(EXPERTS, 2 * inner, width) * width ** -0.5)
        down, down_scales, self.down = self.quantized(
            self.random(EXPERTS, width, inner) * inner ** -0.5)
        self.WIDTH, self.out = width, empty(TOKENS, width, dtype=torch.bfloat16)
        ids = torch.randint(0, EXPERTS, (TOKENS, K), device="cuda", dtype=torch.int32)
        weights = torch.rand(TOKENS, K, device="cuda")
        scales = {"gate_up_scales": gate_up_scales, "down_scales": down_scales}
        f8, f32 = {"dtype": torch.float8_e4m3fn}, {"dtype": torch.float32}
        kept = {"sorted": torch.empty(rows, width, device="cuda", **f8), "sorted_scales": empty(rows, 2, **f32)}
        got = results()
        moe.layer(self.x, gate_up, down, ids=ids, weights=weights, out=self.out, **scales, **kept, **got)
        want = self.expected(ids, weights)
        self.assertLess((self.out.float() - want).norm() / want.norm(), 0.06)
        sorted_x = self.x[got["token_of_row"].long()].float().view(rows, 2, 128)
        torch.testing.assert_close(kept["sorted_scales"], sorted_x.abs().amax(2) / 448)
        values = kept["sorted"].float().view(rows, 2, 128) * kept["sorted_scales"][:, :, None]
        torch.testing.assert_close(values, sorted_x, rtol=2 ** -4, atol=1e-4)
        with self.assertRaisesRegex(ValueError, "gate_up_scales is"):
            moe.layer(self.x, gate_up, down, ids=ids, out=self.out, gate_up_scales=down_scales,
                      down_scales=down_scales)
        with self.assertRaisesRegex(tmap.Error, "scales"):
            moe.layer(self.x, gate_up, down, ids=ids, out=self.out)

    def test_what_does_not_fit_is_refused(self):
        ids = torch.zeros(TOKENS, K, dtype=torch.int32, device="cuda")
        with self.assertRaisesRegex(ValueError, "neither"):
            moe.layer(self.x, self.gate_up, self.down, out=self.out)
        with self.assertRaisesRegex(ValueError, "must be .tokens, width."):
            moe.layer(self.x, self.gate_up, self.down[:, :64], ids=ids, out=self.out)
        with self.assertRaisesRegex(ValueError, "out is"):
            moe.layer(self.x, self.gate_up, self.down, ids=ids, out=self.out[1:])
        with self.assertRaisesRegex(ValueError, "choices are of"):
            moe.layer(self.x, self.gate_up, self.down, ids=ids[1:], out=self.out)
        with self.assertRaisesRegex(TypeError, "down has elements"):
            moe.layer(self.x, self.gate_up, self.down.half(), ids=ids, out=self.out)


if __name__ == "__main__":
    unittest.main()
