# SPDX-License-Identifier: Apache-2.0
"""What the operators of experts promise on every device."""
import itertools
import math

import support
import torch
from compiling import compiled

import tmap.torch_moe  # noqa: F401
from tmap._routing import SCORINGS

TOKENS, EXPERTS, K, COLUMNS = 40, 16, 4, 32
SIZES = (5, 0, 17, 1, 42)
GATES = ({}, {"function": "gelu", "columns": "interleaved"}, {"function": "gelu_tanh"},
         {"columns": "interleaved", "alpha": 1.702, "limit": 0.5, "value_shift": 1.0})


class ExpertCases:
    def setUp(self):
        torch.manual_seed(3)

    def random(self, *shape, dtype=torch.float32):
        return torch.randn(*shape, device=self.device).to(dtype)

    def expect_gradients(self, found, wanted, operands, rtol=1e-4, atol=1e-5):
        direction = self.random(*found.shape)
        of_found = torch.autograd.grad(found, operands, direction.to(found.dtype), retain_graph=True)
        of_wanted = torch.autograd.grad(wanted, operands, direction.to(wanted.dtype))
        for one, other in zip(of_found, of_wanted):
            self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
            torch.testing.assert_close(one.double(), other.double(), rtol=rtol, atol=atol)

    def weights_of(self, logits, ids, scoring, renormalise, scale):
        logits = logits.double()
        if scoring == "softmax_then_top_k":
            made = torch.softmax(logits, 1).gather(1, ids.long())
        else:
            chosen = logits.gather(1, ids.long())
            made = chosen.sigmoid() if scoring == "sigmoid" else torch.softmax(chosen, 1)
        return (made / made.sum(1, keepdim=True) if renormalise else made) * scale

    def expect_order(self, ids, weights, made):
        counts, ends, rows, tokens, of_rows = made
        order = torch.sort(ids.flatten(), stable=True).indices
        self.assertTrue(torch.equal(counts.long(), torch.bincount(ids.flatten(), minlength=EXPERTS)))
        self.assertTrue(torch.equal(ends.long(), counts.long().cumsum(0)))
        self.assertTrue(torch.equal(rows.flatten()[order].long(), torch.arange(ids.numel(), device=self.device)))
        self.assertTrue(torch.equal(tokens.long(), order // K))
        self.assertTrue(torch.equal(of_rows, weights.flatten()[order]))

    def test_routes_and_gradients_of_logits(self):
        for scoring, renormalise in itertools.product(SCORINGS, (False, True)):
            with self.subTest(scoring, renormalise=renormalise):
                logits = self.random(TOKENS, EXPERTS).requires_grad_()
                made = torch.ops.tmap.moe_route(logits, K, scoring=scoring, renormalise=renormalise, scale=2.5)
                ids, weights = made[:2]
                self.assertTrue(torch.equal(ids.long(), torch.topk(logits, K).indices))
                wanted = self.weights_of(logits, ids, scoring, renormalise, 2.5)
                torch.testing.assert_close(weights.double(), wanted, rtol=1e-4, atol=1e-6)
                self.expect_order(ids, weights, made[2:])
                self.expect_gradients(weights, wanted, (logits,))
                order = torch.sort(ids.flatten(), stable=True).indices
                self.expect_gradients(made[6], self.weights_of(logits, ids, scoring, renormalise, 2.5).flatten()[order],
                                      (logits,))
                again = compiled(lambda x: torch.ops.tmap.moe_route(x, K, scoring=scoring, renormalise=renormalise,
                                                                    scale=2.5))(logits)
                for one, other in zip(made, again):
                    self.assertTrue(torch.equal(one, other))

    def test_a_route_by_groups_with_a_bias(self):
        logits, bias = self.random(TOKENS, EXPERTS), self.random(EXPERTS)
        ids = torch.ops.tmap.moe_route(logits, K, scoring="sigmoid", bias=bias, expert_groups=4, chosen_groups=2,
                                       group_score="sum_of_two_largest")[0]
        scores = (logits.sigmoid() + bias).view(TOKENS, 4, -1)
        best = scores.topk(2, 2).values.sum(2).topk(2, 1).indices
        may = torch.zeros(TOKENS, 4, dtype=torch.bool, device=self.device).scatter_(1, best, True)
        wanted = torch.where(may[:, :, None], scores, -torch.inf).view(TOKENS, -1).topk(K, 1).indices
        self.assertTrue(torch.equal(ids.long(), wanted))

    def test_choices_that_exist_are_sorted(self):
        for dtype in (torch.int32, torch.int64):
            ids = torch.randint(0, EXPERTS, (TOKENS, K), device=self.device).to(dtype)
            weights = torch.rand(TOKENS, K, device=self.device).requires_grad_()
            made = torch.ops.tmap.moe_sort(ids, EXPERTS, weights)
            self.expect_order(ids, weights, made)
            order = torch.sort(ids.flatten(), stable=True).indices
            self.expect_gradients(made[4], weights.flatten()[order], (weights,))
        ids[1, 2], ids[3, 0] = -1, EXPERTS
        counts, _, rows, tokens, of_rows = torch.ops.tmap.moe_sort(ids, EXPERTS)
        self.assertEqual(int(counts.sum()), TOKENS * K - 2)
        self.assertEqual((rows[1, 2].item(), rows[3, 0].item()), (-1, -1))
        self.assertEqual(tokens[-2:].tolist(), [-1, -1])
        self.assertEqual(of_rows[-3:].tolist(), [1, 0, 0])

    def combine_operands(self, dtype=torch.float32):
        rows = torch.randperm(TOKENS * K, device=self.device).int().view(TOKENS, K)
        rows[0, 1] = rows[5, 3] = -1
        return (self.random(TOKENS * K, COLUMNS, dtype=dtype).requires_grad_(), rows,
                torch.rand(TOKENS, K, device=self.device).requires_grad_(),
                self.random(TOKENS, COLUMNS, dtype=dtype).requires_grad_())

    def sums_of(self, values, rows, weights, base):
        has_row = rows >= 0
        parts = torch.where(has_row[:, :, None], values.double()[rows.clamp(min=0).long()], 0.0)
        parts = parts if weights is None else parts * weights.double()[:, :, None]
        return parts.sum(1) if base is None else base.double() + parts.sum(1)

    def test_sums_and_their_gradients(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
            values, rows, weights, base = self.combine_operands(dtype)
            for of in ((values, rows, weights, base), (values, rows, weights, None), (values, rows, None, None),
                       (values.detach(), rows, weights, None), (values, rows, weights.detach(), base)):
                with self.subTest(dtype, given=[part is not None and part.requires_grad for part in of]):
                    found, wanted = torch.ops.tmap.moe_combine(*of), self.sums_of(*of)
                    self.assertEqual(found.dtype, dtype)
                    torch.testing.assert_close(found.double(), wanted, rtol=tolerance, atol=tolerance)
                    operands = [part for part in of if part is not None and part.requires_grad]
                    self.expect_gradients(found, wanted, operands, tolerance, 20 * tolerance)
                    again = compiled(lambda *of: torch.ops.tmap.moe_combine(*of))(*of)
                    self.assertTrue(torch.equal(found, again))
                    again.sum().backward()  # of a gradient whose strides are 0

    def product_operands(self, n=128, k=64, dtype=torch.bfloat16):
        groups = len(SIZES)
        made = ((self.random(sum(SIZES), k) * 0.5).to(dtype),
                (self.random(groups, n, k) * 0.2).to(dtype).transpose(-2, -1),
                (self.random(groups, k, n // 2) * 0.2).to(dtype).transpose(-2, -1))
        ends = torch.tensor(support.ends_of(SIZES), device=self.device, dtype=torch.int32)
        return [operand.detach().requires_grad_() for operand in made], ends

    def gated(self, a, b, function="silu", columns="halves", alpha=1.0, limit=None, value_shift=0.0):
        """The gate by definition, in f64."""
        sums = torch.cat([rows @ b[g].double() for g, rows in enumerate(a.double().split(SIZES))])
        gates, values = sums.chunk(2, 1) if columns == "halves" else (sums[:, 0::2], sums[:, 1::2])
        most = math.inf if limit is None else limit
        gates, values = gates.clamp(max=most), values.clamp(-most, most)
        if function == "silu":
            made = gates * torch.sigmoid(alpha * gates)
        else:
            made = torch.nn.functional.gelu(gates, approximate="tanh" if function == "gelu_tanh" else "none")
        return made * (values + value_shift)

    def test_gates_and_their_gradients(self):
        for options in GATES:
            with self.subTest(**options):
                (a, b, c), ends = self.product_operands()
                found = torch.ops.tmap.grouped_gated_mm(a, b, ends, **options)[0]
                wanted = self.gated(a, b, **options)
                torch.testing.assert_close(found.double(), wanted, rtol=2e-2, atol=2e-2)
                if "limit" not in options:  # at a limit, rounding decides
                    self.expect_gradients(found, wanted, (a, b), 3e-2, 6e-2)
                out = torch.ops.tmap.grouped_mlp(a, b, c, ends, **options)[0]
                hidden = self.gated(a, b, **options)
                wanted = torch.cat([rows @ c[g].double() for g, rows in enumerate(hidden.split(SIZES))])
                torch.testing.assert_close(out.double(), wanted, rtol=3e-2, atol=3e-2)
                if "limit" not in options:
                    self.expect_gradients(out, wanted, (a, b, c), 4e-2, 8e-2)
                again = compiled(lambda *of: torch.ops.tmap.grouped_mlp(*of, **options)[0])(a, b, c, ends)
                self.assertTrue(torch.equal(out, again))
                for one, other in zip(torch.autograd.grad(out.sum(), (a, b, c)),
                                      torch.autograd.grad(again.sum(), (a, b, c))):
                    torch.testing.assert_close(one, other)

    def test_biases_and_their_gradients(self):
        (a, b, c), ends = self.product_operands()
        biases = [self.random(len(SIZES), w.shape[2], dtype=torch.bfloat16).requires_grad_() for w in (b, c)]
        lines = [torch.repeat_interleave(bias.double(), torch.tensor(SIZES, device=self.device), 0) for bias in biases]
        sums = torch.cat([rows @ b[g].double() for g, rows in enumerate(a.double().split(SIZES))]) + lines[0]
        gates, values = sums.chunk(2, 1)
        hidden = torch.nn.functional.silu(gates) * values
        found = torch.ops.tmap.grouped_gated_mm(a, b, ends, biases[0])[0]
        torch.testing.assert_close(found.double(), hidden, rtol=2e-2, atol=4e-2)
        direction = self.random(*found.shape)
        for one, other in zip(torch.autograd.grad(found, (a, b, biases[0]), direction.bfloat16()),
                              torch.autograd.grad(hidden, (a, b, biases[0]), direction.double(), retain_graph=True)):
            torch.testing.assert_close(one, other, rtol=4e-2, atol=0.15)
        out = torch.ops.tmap.grouped_mlp(a, b, c, ends, *biases)[0]
        wanted = torch.cat([rows @ c[g].double() for g, rows in enumerate(hidden.split(SIZES))]) + lines[1]
        torch.testing.assert_close(out.double(), wanted, rtol=3e-2, atol=5e-2)
        self.expect_gradients(out, wanted, (a, b, c, *biases), 4e-2, 0.2)
        again = compiled(lambda *of: torch.ops.tmap.grouped_mlp(*of)[0])(a, b, c, ends, *biases)
        self.assertTrue(torch.equal(out, again))
        alone = torch.ops.tmap.grouped_mlp(a.detach(), b.detach(), c.detach(), ends, *biases)[0]
        for one, other in zip(torch.autograd.grad(alone.sum(), biases), torch.autograd.grad(again.sum(), biases)):
            self.assertTrue(torch.equal(one, other))

    def layer_operands(self):
        """Returns operands of moe_layer, with choices of no expert, and of 8 experts."""
        ids = self.random(TOKENS, 8).topk(K).indices
        ids[3], ids[5, 1] = -1, -1
        parts = ((TOKENS, 64), (8, 128, 64), (8, 64, 64), (TOKENS, K), (8, 128), (8, 64))
        x, up, down, weights, up_bias, down_bias = (self.random(*shape, dtype=torch.bfloat16) * 0.3 for shape in parts)
        return x, up.transpose(1, 2), down.transpose(1, 2), ids, weights.float(), up_bias, down_bias

    def test_tokens_are_copied_into_the_order_by_expert(self):
        x, _, _, ids, weights, _, _ = self.layer_operands()
        _, ends, row_of_choice, token_of_row, _ = torch.ops.tmap.moe_sort(ids, 8)
        x, count = x.requires_grad_(), int(ends[-1])
        rows = torch.ops.tmap.moe_gather(x, token_of_row, row_of_choice)
        self.assertEqual((rows.shape, count), ((TOKENS * K, 64), TOKENS * K - K - 1))
        wanted = x.double()[token_of_row[:count].long()]
        self.assertTrue(torch.equal(rows[:count].double(), wanted))
        d_rows = self.random(*rows.shape, dtype=torch.bfloat16)
        d_rows[count:] = torch.nan  # the gradient of a row of no choice is not read
        of_x, = torch.autograd.grad(rows, x, d_rows, retain_graph=True)
        of_wanted, = torch.autograd.grad(wanted, x, d_rows[:count].double())
        torch.testing.assert_close(of_x, of_wanted, rtol=2e-2, atol=2e-2)
        torch.autograd.grad(rows.sum(), x)  # of a gradient whose strides are 0
        again = compiled(lambda *of: torch.ops.tmap.moe_gather(*of))(x, token_of_row, row_of_choice)
        self.assertTrue(torch.equal(again[:count], rows[:count]))

    def test_a_layer_of_given_choices(self):
        x, up, down, ids, weights, *biases = self.layer_operands()
        for options in GATES:
            for has_bias, along_n in itertools.product((False, True), repeat=2):
                with self.subTest(has_bias=has_bias, along_n=along_n, **options):
                    b, c = (w.contiguous() if along_n else w for w in (up, down))
                    of = biases if has_bias else (None, None)
                    made = torch.ops.tmap.moe_layer(x, b, c, ids, weights, *of, **options)
                    _, ends, rows, tokens, _ = torch.ops.tmap.moe_sort(ids, 8)
                    steps = torch.ops.tmap.grouped_mlp(torch.ops.tmap.moe_gather(x, tokens, rows), b, c, ends, *of,
                                                       **options)[0]
                    torch.testing.assert_close(made, torch.ops.tmap.moe_combine(steps, rows, weights), rtol=2e-2,
                                               atol=1e-2)
                    self.assertFalse(made[3].any())
                    self.assertTrue(made[5].any())
                    again = compiled(lambda *of: torch.ops.tmap.moe_layer(*of, **options))(x, b, c, ids, weights, *of)
                    self.assertTrue(torch.equal(made, again))
        with self.assertRaisesRegex(ValueError, "down has no gradient.*grouped_mlp"):
            torch.ops.tmap.moe_layer(x, up, down.requires_grad_(), ids, weights)

    def test_gradients_stop_at_limits(self):
        (a, b, _), ends = self.product_operands()
        limit = 0.2501  # no sum of 16 bits equals it
        found, sums = torch.ops.tmap.grouped_gated_mm(a, b, ends, limit=limit)
        of_a, = torch.autograd.grad(found.float().sum(), a)
        gates, values = sums.detach().double().chunk(2, 1)
        gates, values = gates.requires_grad_(), values.requires_grad_()
        made = gates.clamp(max=limit) * gates.clamp(max=limit).sigmoid() * values.clamp(-limit, limit)
        of_sums = torch.cat(torch.autograd.grad(made.sum(), (gates, values)), 1)
        wanted = torch.cat([rows @ b[g].double().t() for g, rows in enumerate(of_sums.split(SIZES))])
        torch.testing.assert_close(of_a.double(), wanted, rtol=3e-2, atol=3e-2)

    def test_operands_that_do_not_fit(self):
        (a, b, c), ends = self.product_operands()
        with self.assertRaises(ValueError):
            torch.ops.tmap.grouped_gated_mm(a, b.float(), ends)
        with self.assertRaises(ValueError):
            torch.ops.tmap.grouped_gated_mm(a, b, ends, function="relu")
        with self.assertRaises(ValueError):
            torch.ops.tmap.moe_route(self.random(TOKENS, EXPERTS), K, scoring="softmax")
