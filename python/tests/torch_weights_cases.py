# SPDX-License-Identifier: Apache-2.0
"""What gradients of weights in 8 bits promise on every device.

They are compared with float64 products of what the 8 bits and their scales stand for. Each group is
quantized alone for that, so that a block that begins elsewhere than its group shows."""
import itertools

import torch
from compiling import compiled
from rounding import E4M3, E5M2, exact
from torch_scaled_cases import K, N, OF_BF16, OPS, SIZES, Operands

GROUPS = len(SIZES)


class WeightCases(Operands):
    def setUp(self):
        super().setUp()
        unit = torch.logspace(-3, 3, self.rows, base=2, device=self.device)[:, None]  # scales differ
        self.x, self.d_out = (self.x * unit).bfloat16(), (self.random(self.rows, N) * unit).bfloat16()

    def gradient(self, d_out=None, x=None, ends=None, **options):
        return OPS.quantized_weight_gradient(self.d_out if d_out is None else d_out, self.x if x is None else x,
                                             self.ends if ends is None else ends, **options)

    def lines(self, values, dtype=E4M3, powers_of_two=False):
        """What the columns of each group's rows stand for in 8 bits."""
        made = []
        for rows in values[:self.used].split(SIZES):
            out, scales = OPS.quantize(rows.contiguous(), block="128x1", dtype=dtype, powers_of_two=powers_of_two)
            made.append(exact(out, scales.t()))
        return made

    def wanted(self, dtype=E4M3, powers_of_two=False):
        return torch.stack([a @ b.t() for a, b in zip(self.lines(self.d_out, dtype, powers_of_two),
                                                      self.lines(self.x, E4M3, powers_of_two))])

    def test_blocks_begin_where_groups_begin(self):
        for dtype, powers in itertools.product((None, E4M3, E5M2), (False, True)):
            with self.subTest(dtype=dtype, powers=powers):
                wanted = self.wanted(dtype or E4M3, powers)
                sums = self.gradient(dtype=dtype, powers_of_two=powers, out_dtype=torch.float32)
                self.assertEqual((sums.shape, sums.dtype), ((GROUPS, N, K), torch.float32))
                self.assertNear(sums, wanted)
                self.assertEqual(sums[1].abs().max().item(), 0)
                rounded = self.gradient(dtype=dtype, powers_of_two=powers)
                self.assertSame(rounded, sums.bfloat16())

    def test_rows_of_any_type_and_strides(self):
        wanted = self.gradient()
        self.assertSame(self.gradient(d_out=self.d_out.float(), x=self.x.half().bfloat16()),
                        self.gradient(x=self.x.half().bfloat16()))
        with_gaps = torch.stack((self.x, self.x), 2)[..., 0]
        self.assertSame(self.gradient(x=with_gaps, d_out=self.d_out.t().contiguous().t()), wanted)
        self.assertSame(self.gradient(ends=self.ends.long()), wanted)
        row = self.random(1, N).expand(self.rows, N)
        self.assertSame(self.gradient(d_out=row), self.gradient(d_out=row.contiguous()))

    def test_memory_that_nothing_was_written_to_is_not_read(self):
        wanted = self.gradient()
        torch.use_deterministic_algorithms(True, warn_only=True)  # fills new memory with NaNs
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.assertTrue(bool(self.x.new_empty(64, dtype=torch.float32).isnan().all()))
        self.assertSame(self.gradient(), wanted)

    def test_groups_without_a_product_are_zero(self):
        wild = torch.tensor((5, 3, 133, 9999, 210), device=self.device, dtype=torch.int32)
        sums = self.gradient(ends=wild)
        self.assertEqual([bool(group.any()) for group in sums], [True, False, False, False, False])
        self.assertSame(sums[0], self.gradient()[0])
        none = self.gradient(self.d_out[:0], self.x[:0], torch.zeros_like(self.ends))
        self.assertEqual((none.shape, none.abs().max().item()), ((GROUPS, N, K), 0))
        self.assertEqual(self.gradient(self.d_out[:, :0]).shape, (GROUPS, 0, K))

    def test_sums_are_added_to(self):
        for dtype, slack in ((torch.float32, 0.0), (torch.bfloat16, OF_BF16)):
            sums = torch.randn(GROUPS, N, K, device=self.device).to(dtype)
            wanted = sums.double() + self.wanted(E5M2)
            before = sums[1].clone()
            self.assertIsNone(OPS.add_quantized_weight_gradient(sums, self.d_out, self.x, self.ends, dtype=E5M2))
            self.assertNear(sums, wanted, slack)
            self.assertSame(sums[1], before)
        OPS.add_quantized_weight_gradient(sums, self.d_out[:0], self.x[:0], torch.zeros_like(self.ends))
        self.assertSame(sums[1], before)

    def layer(self, x, weights, **options):
        return OPS.grouped_quantized_mm(x, self.b, self.b_scales, self.ends, None, weights,
                                        quantized_weight_gradient=True, **options)

    def test_gradients_of_the_quantized_product(self):
        for options in ({}, {"gradient_dtype": E5M2}, {"out_dtype": torch.float32, "powers_of_two": True}):
            x, weights = (tensor.detach().requires_grad_() for tensor in (self.x, self.weights.transpose(1, 2)))
            product = self.layer(x, weights, **options)
            direction = self.d_out.to(product.dtype)
            of_x, of_weights = torch.autograd.grad(product, (x, weights), direction)
            self.assertSame(of_weights.transpose(1, 2),
                            self.gradient(d_out=direction, dtype=options.get("gradient_dtype"),
                                          powers_of_two=options.get("powers_of_two", False)))
            self.assertEqual(of_weights.stride(), weights.stride())
            self.assertEqual(of_x.shape, x.shape)
            along_n = weights.detach().contiguous().requires_grad_()
            found, = torch.autograd.grad(self.layer(x, along_n, **options), along_n, direction)
            is_e5m2 = options.get("gradient_dtype") == E5M2
            self.assertEqual(found.stride(), (weights if is_e5m2 else along_n).stride())
            self.assertNear(found, of_weights.double(), OF_BF16)

    def test_gradients_without_strides_of_their_own(self):
        weights = self.weights.transpose(1, 2).detach().requires_grad_()
        found, = torch.autograd.grad(self.layer(self.x, weights)[:self.used].sum(), weights)
        ones = torch.ones_like(self.d_out)
        ones[self.used:] = 0
        self.assertSame(found.transpose(1, 2), self.gradient(d_out=ones))

    def test_compiled(self):
        def step(x, weights, d_out, sums):
            product = self.layer(x, weights)
            OPS.add_quantized_weight_gradient(sums, d_out, x.detach(), self.ends)
            return torch.relu(product), sums * 2

        results = []
        for run in (compiled(step), step):
            x, weights = (tensor.detach().requires_grad_() for tensor in (self.x, self.weights.transpose(1, 2)))
            sums = torch.ones(GROUPS, N, K, device=self.device)
            product, doubled = run(x, weights, self.d_out, sums)
            results.append((sums, doubled, *torch.autograd.grad(product[:self.used].sum(), (x, weights))))
        for one, other in zip(*results):
            self.assertSame(one, other)

    def test_gradients_of_gradients_are_refused(self):
        for name, operands in (("d_out", {"d_out": self.d_out.detach().requires_grad_()}),
                               ("x", {"x": self.x.detach().requires_grad_()})):
            with self.assertRaisesRegex(ValueError, f"^{name} has no gradient: .*[Dd]etach"):
                self.gradient(**operands)
            with torch.no_grad():
                self.assertSame(self.gradient(**operands), self.gradient())

    def test_hostile_operands(self):
        for error, words, operands in (
                (TypeError, "d_out is of", {"d_out": self.a[:, :N]}), (TypeError, "x is of", {"x": self.a}),
                (ValueError, r"d_out is \[rows, n\]", {"d_out": self.d_out[1:]}),
                (ValueError, r"d_out is \[rows, n\]", {"x": self.x[0]}),
                (TypeError, "offs is", {"ends": self.ends.short()}),
                (ValueError, "x has 269 columns.*16 bytes", {"x": self.x[:, :K - 3]}),
                (TypeError, "8-bit d_out is of", {"dtype": torch.int8}),
                (TypeError, "product is of", {"out_dtype": torch.float16})):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                self.gradient(**operands)
        sums = torch.zeros(GROUPS, N, K, device=self.device)
        for error, words, given in ((ValueError, "sums is", sums[1:]), (ValueError, "sums is", sums.transpose(1, 2)),
                                    (TypeError, "product is of", sums.half())):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                OPS.add_quantized_weight_gradient(given, self.d_out, self.x, self.ends)
