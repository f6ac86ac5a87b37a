# SPDX-License-Identifier: Apache-2.0
"""Routes and sums of experts of PyTorch's arrays, compared with PyTorch."""
import unittest

import support
import tmap
from tmap import moe

torch = support.need_torch_gpu()
from rounding import E4M3, HALF_UNIT, OF_SUMS, exact, is_rounded  # noqa: E402

HALF = HALF_UNIT[torch.bfloat16]
TOKENS, EXPERTS, K, COLUMNS = 300, 64, 6, 256


def empty(*shape, dtype=torch.int32):
    return torch.full(shape, 77, dtype=dtype, device="cuda")


def results(rows=TOKENS * K):
    return {"counts": empty(EXPERTS), "begins": empty(EXPERTS + 1), "ends": empty(EXPERTS),
            "row_of_choice": empty(TOKENS, K), "token_of_row": empty(rows),
            "weight_of_row": empty(rows, dtype=torch.float32)}


def distinct_logits():
    """No two of a token are equal, nor close enough for a softmax to round them to the same."""
    order = torch.rand(TOKENS, EXPERTS, device="cuda").argsort(1).float() / 8 - 4
    return order * (0.5 + torch.rand(TOKENS, 1, device="cuda") / 2)


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
        logits = distinct_logits()
        ids, weights, got = empty(TOKENS, K), empty(TOKENS, K, dtype=torch.float32), results()
        moe.route(logits, k=K, ids=ids, weights=weights, renormalise=True, **got)
        want = torch.topk(torch.softmax(logits.double(), 1), K)
        self.assertTrue(torch.equal(ids.long(), want.indices))
        # A logit less the largest is up to 8: half a unit is 2^-22. expf adds as much. A weight is
        # a quotient of such terms: 2^-20. That is doubled for the sums and the quotients.
        torch.testing.assert_close(weights.double(), want.values / want.values.sum(1, keepdim=True),
                                   rtol=2 ** -19, atol=0)
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
        # Results are rounded to bf16. The f32 sums before that round 6 products and 6 sums, each
        # by at most 2^-24 of the terms so far.
        terms = base.double().abs() + (rows.abs() * weights.double()[:, :, None]).sum(1)
        allowed = HALF * want.abs() + 2 * K * 2 ** -24 * terms
        self.assertTrue(bool(((out.double() - want).abs() <= allowed).all()))

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
        """Returns the results, and the sum of all that is rounded to bf16 on the way to each: gated
        rows, outputs of experts, the result."""
        x = self.x.double()
        out, rounded = (torch.zeros(TOKENS, self.WIDTH, device="cuda", dtype=torch.double) for _ in range(2))
        for j in range(K):
            chosen = ids[:, j].long()
            sums = torch.einsum("tw,tnw->tn", x, self.gate_up[chosen].double())
            if gate_up_bias is not None:
                sums += gate_up_bias[chosen].double()
            gate, value = sums.chunk(2, 1)
            hidden, down = torch.nn.functional.silu(gate) * value, self.down[chosen].double()
            rows = torch.einsum("ti,twi->tw", hidden, down)
            if down_bias is not None:
                rows += down_bias[chosen].double()
            weight = weights[:, j:j + 1].double()
            out += weight * rows
            rounded += weight * (torch.einsum("ti,twi->tw", hidden.abs(), down.abs()) + rows.abs())
        if base is not None:
            out += base.double()
        return out, rounded + out.abs()

    def expect_close(self, want, rounded):
        difference = self.out.double() - want
        # Three roundings to bf16 do not depend on each other, and none moves a norm by more than
        # HALF: the square root of 3 times it. 2 leaves room for sums in f32.
        self.assertLess((difference.norm() / want.norm()).item(), 2 * HALF)
        # No element moves by more than HALF of all that was rounded. 1.02 is for sums in f32.
        self.assertTrue(bool((difference.abs() <= 1.02 * HALF * rounded).all()))

    def test_a_layer_by_logits(self):
        logits = distinct_logits()
        ids, weights = empty(TOKENS, K), empty(TOKENS, K, dtype=torch.float32)
        self.assertIs(moe.layer(self.x, self.gate_up, self.down, logits, k=K, ids=ids,
                                weights=weights, renormalise=True, out=self.out), self.out)
        self.assertTrue(torch.equal(ids.long(), torch.topk(logits, K).indices))
        self.expect_close(*self.expected(ids, weights))

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
        self.expect_close(*self.expected(ids, weights, **terms))
        self.assertTrue(torch.equal(kept["sorted"], self.x[got["token_of_row"].long()]))
        # Kept sums are rounded, which moves a result by its slope, and results are rounded.
        gate, value = kept["kept"].double().chunk(2, 1)
        made, part = torch.nn.functional.silu(gate) * value, torch.sigmoid(gate)
        slope = part * (1 + gate * (1 - part))
        allowed = 1.02 * HALF * ((gate * slope * value).abs() + 2 * made.abs())  # 1.02: the squares of these
        self.assertTrue(bool(((kept["activated"].double() - made).abs() <= allowed).all()))
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
        kept = {name: torch.empty(rows, columns, device="cuda", dtype=dtype) for name, columns, dtype in
                (("sorted", width, E4M3), ("activated", inner, E4M3), ("outputs", width, torch.bfloat16))}
        factors = {"sorted_scales": empty(rows, 2, dtype=torch.float32),
                   "activated_scales": empty(rows, 1, dtype=torch.float32)}
        got = results()
        moe.layer(self.x, gate_up, down, ids=ids, weights=weights, out=self.out, **scales, **kept, **factors, **got)
        self.expect_steps(got, kept, factors, weights)
        # Rows are rounded to e4m3, which moves gates and values, and then their results: three
        # roundings that do not depend on each other. Errors of at most half a unit have a root mean
        # square below half a unit over the square root of 3. Rounding to bf16 is far below that.
        want, _ = self.expected(ids, weights)
        self.assertLess(((self.out.double() - want).norm() / want.norm()).item(), HALF_UNIT[E4M3])
        with self.assertRaisesRegex(ValueError, "gate_up_scales is"):
            moe.layer(self.x, gate_up, down, ids=ids, out=self.out, gate_up_scales=down_scales,
                      down_scales=down_scales)
        with self.assertRaisesRegex(tmap.Error, "scales"):
            moe.layer(self.x, gate_up, down, ids=ids, out=self.out)

    def expect_steps(self, got, kept, factors, weights):
        """Compares each step of a layer in 8 bits with what the step before it has left."""
        experts = torch.repeat_interleave(torch.arange(EXPERTS, device="cuda"), got["counts"])
        x = self.x[got["token_of_row"].long()].float()
        most = x.view(x.shape[0], -1, 128).abs().amax(2)
        # By a tensor: PyTorch multiplies by the reciprocal of a number.
        self.assertTrue(torch.equal(factors["sorted_scales"], most / torch.full_like(most, 448)))
        self.assertTrue(is_rounded(kept["sorted"], x, factors["sorted_scales"], E4M3))

        def multiply(values, scales, matrices):
            rows = exact(kept[values], factors[scales])
            return torch.cat([rows[experts == i] @ matrices[i].double().t() for i in range(EXPERTS)])

        gate, value = multiply("sorted", "sorted_scales", self.gate_up).chunk(2, 1)
        gated = torch.nn.functional.silu(gate) * value
        # None of these norms moves by more than rounding moves each element, and by OF_SUMS.
        sums = multiply("activated", "activated_scales", self.down)
        for found, want, half in ((exact(kept["activated"], factors["activated_scales"]), gated, HALF_UNIT[E4M3]),
                                  (kept["outputs"].double(), sums, HALF)):
            self.assertLess(((found - want).norm() / want.norm()).item(), half + OF_SUMS)
        again = torch.empty_like(self.out)
        moe.combine(kept["outputs"], got["row_of_choice"], out=again, weights=weights)
        self.assertTrue(torch.equal(again, self.out))

    def test_a_layer_has_the_same_bits_by_index_and_sorted(self):
        # A layer of few rows reads them by index, one of many rows copies them, as `sorted` does.
        for tokens, inner in ((TOKENS, 128), (160 * EXPERTS // K, 1536)):
            width, rows = 256, tokens * K
            x, out = self.random(tokens, width), empty(tokens, width, dtype=torch.bfloat16)
            gate_up = self.random(EXPERTS, 2 * inner, width) * width ** -0.5
            down = self.random(EXPERTS, width, inner) * inner ** -0.5
            ids = torch.randint(-1, EXPERTS, (tokens, K), device="cuda", dtype=torch.int32)
            weights = torch.rand(tokens, K, device="cuda")
            values, scales, _ = self.quantized(gate_up)
            down_values, down_scales, _ = self.quantized(down)
            scaled = {"gate_up_scales": scales, "down_scales": down_scales}
            f8 = torch.empty(rows, width, device="cuda", dtype=torch.float8_e4m3fn)
            for first, second, terms, kept in (
                    (gate_up, down, {}, {"sorted": empty(rows, width, dtype=torch.bfloat16)}),
                    (values, down_values, scaled,
                     {"sorted": f8, "sorted_scales": empty(rows, 2, dtype=torch.float32)})):
                with self.subTest(tokens=tokens, dtype=first.dtype):
                    moe.layer(x, first, second, ids=ids, weights=weights, out=out, **terms)
                    again = torch.zeros_like(out)
                    moe.layer(x, first, second, ids=ids, weights=weights, out=again, **terms, **kept)
                    self.assertTrue(torch.equal(again, out))
                    self.assertGreater(out.abs().max().item(), 0)

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
