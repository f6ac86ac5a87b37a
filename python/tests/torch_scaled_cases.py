# SPDX-License-Identifier: Apache-2.0
"""What products with block scales promise on every device.

Products are compared with float64 products of what the 8 bits and their scales stand for, so that
quantizing is no part of the error."""
import itertools

import support
import torch
from compiling import compiled
from rounding import E4M3, E5M2, HALF_UNIT, OF_SUMS, exact, is_rounded
from torch_cases import is_native

import tmap.torch_moe  # noqa: F401
from tmap import ragged

SIZES, REST = (5, 0, 128, 1, 77), 9  # rows of groups, then of none
K, N = 272, 144  # neither is a multiple of a block
OF_BF16 = HALF_UNIT[torch.bfloat16]
OPS = torch.ops.tmap


def bits(tensor):
    """Equal NaNs are equal, too."""
    return tensor.contiguous().view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()])


def grouped(a, b, sizes=SIZES):
    """[rows, k] times [groups, k, n], without rows of no group."""
    return torch.cat([rows @ b[i] for i, rows in enumerate(a[:sum(sizes)].split(sizes))])


class Operands:
    def setUp(self):
        torch.manual_seed(5)
        self.used, self.rows = sum(SIZES), sum(SIZES) + REST
        self.ends = torch.tensor(support.ends_of(SIZES), device=self.device, dtype=torch.int32)
        self.x, self.weights = self.random(self.rows, K), self.random(len(SIZES), N, K) * K ** -0.5
        self.a, self.a_scales = OPS.quantize(self.x)
        stored, scales = OPS.quantize(self.weights, block="128x128")
        self.exact_a = exact(self.a, self.a_scales)
        self.exact_b = exact(stored, scales, 128).transpose(1, 2)
        self.b, self.b_scales = stored.transpose(1, 2), scales.transpose(1, 2)
        self.bias = self.random(len(SIZES), N)

    def random(self, *shape):
        return torch.randn(*shape, device=self.device).bfloat16()

    def assertSame(self, one, other):
        self.assertEqual((one.shape, one.dtype), (other.shape, other.dtype))
        self.assertTrue(torch.equal(bits(one), bits(other)))

    def assertNear(self, found, wanted, of_each=0.0):
        """Compares the norm of the error with that of the sums. `of_each` is for rounding them."""
        self.assertEqual(found.shape, wanted.shape)
        error = ((found.double() - wanted).abs() - of_each * wanted.abs()).clamp(min=0)
        self.assertLess((error.norm() / wanted.norm()).item(), OF_SUMS)


class ScaledCases(Operands):
    def multiply(self, *rest, **options):
        return OPS.grouped_scaled_mm(self.a, self.b, self.a_scales, self.b_scales, self.ends, *rest, **options)

    def quantized(self, x, *rest, **options):
        return OPS.grouped_quantized_mm(x, self.b, self.b_scales, self.ends, *rest, **options)

    def test_rounding_is_that_of_ragged_quantize(self):
        for values, block, dtype, powers in itertools.product(
                (self.x, self.weights, self.x.float()[:, ::2], self.x.half()[:, 3:200], self.x[0].expand(9, K)),
                ("row", "1x128", "128x128", "128x1"), (E4M3, E5M2), (False, True)):
            with self.subTest(shape=tuple(values.shape), block=block, dtype=dtype, powers=powers):
                out, scales = OPS.quantize(values, block=block, dtype=dtype, powers_of_two=powers)
                wanted, factors = torch.empty_like(out), torch.full_like(scales, 77)
                blocks = factors[..., None] if block == "row" else factors
                ragged.quantize(*(ragged.Tensors([tensor]) for tensor in (values.contiguous(), wanted, blocks)),
                                block=block, powers_of_two=powers)
                self.assertSame(out, wanted)
                self.assertSame(scales, factors)
                self.assertTrue(out.is_contiguous() and scales.is_contiguous())

    def test_rounding_loses_half_a_unit(self):
        for dtype in (E4M3, E5M2):
            out, scales = OPS.quantize(self.x, dtype=dtype)
            self.assertEqual(scales.shape, (self.rows, 3))
            self.assertTrue(is_rounded(out, self.x, scales, dtype))

    def test_nothing_to_round(self):
        for shape, blocks in (((0, 256), (0, 2)), ((3, 0), (3, 0)), ((2, 0, 5), (2, 0, 1))):
            out, scales = OPS.quantize(torch.empty(shape, device=self.device))
            self.assertEqual((out.shape, scales.shape), (shape, blocks))

    def test_products(self):
        sums = self.multiply(None, torch.float32)
        self.assertNear(sums[:self.used], grouped(self.exact_a, self.exact_b))
        self.assertEqual(self.multiply().dtype, torch.bfloat16)
        self.assertSame(self.multiply()[:self.used], sums.bfloat16()[:self.used])
        self.a, self.a_scales = OPS.quantize(self.x, dtype=E5M2)
        self.assertNear(self.multiply(None, torch.float32)[:self.used],
                        grouped(exact(self.a, self.a_scales), self.exact_b))

    def of_rows(self, dtype=E4M3):
        """Operands with a scale for each row of a and each column of b."""
        a, a_scales = OPS.quantize(self.x, block="row", dtype=dtype)
        stored, b_scales = OPS.quantize(self.weights, block="row")
        self.assertEqual((a_scales.shape, b_scales.shape), ((self.rows,), (len(SIZES), N)))
        wanted = grouped(a.double() * a_scales[:, None], (stored.double() * b_scales[..., None]).transpose(1, 2))
        return (a, stored.transpose(1, 2), a_scales, b_scales, self.ends), wanted

    def test_scales_of_rows_and_columns(self):
        for dtype in (E4M3, E5M2):
            operands, wanted = self.of_rows(dtype)
            sums = OPS.grouped_scaled_mm(*operands, None, torch.float32)[:self.used]
            self.assertNear(sums, wanted)
            self.assertSame(OPS.grouped_scaled_mm(*operands)[:self.used], sums.bfloat16())
        operands, wanted = self.of_rows()
        fast = OPS.grouped_scaled_mm(*operands, None, torch.float32, fast_accumulation=True)[:self.used]
        self.assertNear(fast, wanted, OF_BF16)  # of short rows it loses no more than rounding to bf16
        a, b, a_scales, b_scales, ends = operands
        same = a_scales[:1].expand(self.rows), b_scales.t().contiguous().t()
        self.assertSame(OPS.grouped_scaled_mm(a, b, *same, ends)[:self.used],
                        OPS.grouped_scaled_mm(a, b, same[0].contiguous(), b_scales, ends)[:self.used])

    def test_scales_have_any_strides_and_offsets_both_widths(self):
        wanted = self.multiply()[:self.used]
        self.a_scales = self.a_scales.t().contiguous().t()
        padded = torch.full((len(SIZES), 4, 7), torch.nan, device=self.device)
        padded[:, :3, 2:4] = self.b_scales
        self.b_scales = padded[:, :3, 2:4]
        self.assertSame(self.multiply()[:self.used], wanted)
        self.ends = self.ends.long()
        self.assertSame(self.multiply()[:self.used], wanted)

    def test_rows_of_no_group(self):
        product = self.multiply(zero_rest=True)
        self.assertEqual(product[self.used:].abs().max().item(), 0)
        self.assertSame(product[:self.used], self.multiply()[:self.used])
        wild = torch.tensor((5, 3, 133, 9999, 210), device=self.device, dtype=torch.int32)
        product = OPS.grouped_scaled_mm(self.a, self.b, self.a_scales, self.b_scales, wild, zero_rest=True)
        has_sums = (product != 0).any(1)
        self.assertEqual(has_sums.nonzero().flatten().tolist(), list(range(5)))

    def test_a_bias_and_its_gradient(self):
        bias = self.bias.requires_grad_()
        which = torch.repeat_interleave(torch.arange(len(SIZES)), torch.tensor(SIZES)).to(self.device)
        for product in (self.multiply(bias, torch.float32), self.quantized(self.x, bias, None, torch.float32)):
            wanted = grouped(self.exact_a, self.exact_b) + bias.detach().double()[which]
            self.assertNear(product.detach()[:self.used], wanted)
            direction = torch.randn_like(product)
            found, = torch.autograd.grad(product, bias, direction)
            sums = torch.stack([part.double().sum(0) for part in direction[:self.used].split(SIZES)])
            self.assertNear(found, sums, OF_BF16)
            self.assertEqual((found.dtype, found[1].abs().max().item()), (torch.bfloat16, 0))

    def test_rows_in_bf16_are_quantized_on_the_way(self):
        self.assertSame(self.quantized(self.x)[:self.used], self.multiply()[:self.used])
        self.a, self.a_scales = OPS.quantize(self.x, powers_of_two=True)
        self.assertSame(self.quantized(self.x, powers_of_two=True)[:self.used], self.multiply()[:self.used])

    def test_gradients_of_rows_are_products_of_quantized_gradients(self):
        turned = self.b.contiguous().transpose(1, 2)  # lines along n
        for dtype, out_dtype, powers in itertools.product((None, E4M3, E5M2), (None, torch.float32), (False, True)):
            with self.subTest(dtype=dtype, out_dtype=out_dtype, powers=powers):
                x = self.x.detach().requires_grad_()
                product = self.quantized(x, None, None, out_dtype, gradient_dtype=dtype, powers_of_two=powers)
                direction = torch.randn_like(product)
                found, = torch.autograd.grad(product, x, direction)
                of_rows, scales = OPS.quantize(direction, dtype=dtype, powers_of_two=powers)
                self.assertEqual(of_rows.dtype, dtype or E4M3)
                self.assertSame(found, OPS.grouped_scaled_mm(of_rows, turned, scales, self.b_scales.transpose(1, 2),
                                                             self.ends, zero_rest=True))
                wanted = grouped(exact(of_rows, scales), self.exact_b.transpose(1, 2))
                self.assertNear(found[:self.used], wanted, OF_BF16)
                self.assertEqual(found[self.used:].abs().max().item(), 0)

    def test_gradients_of_weights_are_products_in_16_bits(self):
        for weights in (self.weights.transpose(1, 2), self.weights.transpose(1, 2).contiguous()):
            weights = weights.detach().requires_grad_()
            product = self.quantized(self.x, None, weights)
            direction = torch.randn_like(product)
            found, = torch.autograd.grad(product, weights, direction)
            wanted = torch.stack([x.double().t() @ of.double() for x, of in
                                  zip(self.x[:self.used].split(SIZES), direction[:self.used].split(SIZES))])
            self.assertNear(found, wanted, OF_BF16)
            self.assertEqual(found.stride(), weights.stride())
            with_gaps = torch.stack((self.x, self.x), 2)[..., 0]
            again, = torch.autograd.grad(self.quantized(with_gaps, None, weights), weights, direction)
            self.assertSame(again, found)

    def test_gradients_without_strides_of_their_own(self):
        x, weights = self.x.detach().requires_grad_(), self.weights.transpose(1, 2).detach().requires_grad_()
        product = self.quantized(x, None, weights)[:self.used]
        row = self.random(N)
        for sums in (product.sum(), (product.sum(0) * row).sum()):
            of_x, of_weights = torch.autograd.grad(sums, (x, weights), retain_graph=True)
            self.assertGreater(of_x[:self.used].abs().max().item(), 0)
            self.assertEqual((of_x.shape, of_weights.shape), (x.shape, weights.shape))

    def test_compiled(self):
        def layer(x, b, b_scales, ends, bias, weights):
            return torch.relu(OPS.grouped_quantized_mm(x, b, b_scales, ends, bias, weights, torch.float32))

        wants = (self.x, self.bias, self.weights.transpose(1, 2))
        x, bias, weights = (tensor.detach().requires_grad_() for tensor in wants)
        operands = x, self.b, self.b_scales, self.ends, bias, weights
        found, wanted = compiled(layer)(*operands)[:self.used], layer(*operands)[:self.used]
        self.assertSame(found.detach(), wanted.detach())
        for one, other in zip(torch.autograd.grad(found.sum(), (x, bias, weights)),
                              torch.autograd.grad(wanted.sum(), (x, bias, weights))):
            self.assertSame(one, other)

    def test_one_compilation_serves_other_sizes(self):
        counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")

        def layer(x, ends):
            a, scales = OPS.quantize(x)
            return OPS.grouped_scaled_mm(a, self.b, scales, self.b_scales, ends)

        program = compiled(layer, counter, dynamic=True)
        for rows in (self.used, 64, 200):
            x, ends = self.x[:rows].contiguous(), self.ends.clamp(max=rows)
            self.assertSame(program(x, ends), layer(x, ends))
        self.assertEqual(counter.frame_count, 1)

    def test_products_of_nothing(self):
        none = self.a[:0], self.b, self.a_scales[:0], self.b_scales, torch.zeros_like(self.ends)
        self.assertEqual(OPS.grouped_scaled_mm(*none).shape, (0, N))
        flat = OPS.grouped_scaled_mm(self.a[:, :0], self.b[:, :0], self.a_scales[:, :0], self.b_scales[:, :0],
                                     self.ends)
        self.assertEqual((flat.shape, flat.abs().max().item()), ((self.rows, N), 0))

    def test_gradients_that_do_not_exist_are_refused(self):
        floats = {"a": self.a, "b": self.b, "a_scales": self.a_scales, "b_scales": self.b_scales}
        for name, tensor in floats.items():
            given = {**floats, name: tensor.detach().requires_grad_()}
            with self.subTest(name), self.assertRaisesRegex(ValueError, f"^{name} has no gradient: .*bfloat16"):
                OPS.grouped_scaled_mm(**given, offs=self.ends)
            with torch.no_grad():
                self.assertSame(OPS.grouped_scaled_mm(**given, offs=self.ends)[:self.used], self.multiply()[:self.used])
        with self.assertRaisesRegex(ValueError, "b has no gradient: .*weights"):
            OPS.grouped_quantized_mm(self.x, self.b.detach().requires_grad_(), self.b_scales, self.ends)
        with self.assertRaisesRegex(ValueError, "values has no gradient: .*detach"):
            OPS.quantize(self.x.detach().requires_grad_())

    def test_columns_that_no_gradient_takes(self):
        b, scales = OPS.quantize(self.weights[:, :136], block="128x128")
        operands = b.transpose(1, 2), scales.transpose(1, 2), self.ends
        self.assertEqual(OPS.grouped_quantized_mm(self.x, *operands).shape, (self.rows, 136))
        with self.assertRaisesRegex(ValueError, "136 columns.* 16"):
            OPS.grouped_quantized_mm(self.x.detach().requires_grad_(), *operands)

    def test_hostile_operands(self):
        a, b, of_a, of_b, ends = self.a, self.b, self.a_scales, self.b_scales, self.ends
        type_error = ValueError if is_native("grouped_scaled_mm", self.device) else TypeError
        for error, words, operands in (
                (type_error, "a is of", (self.x, b, of_a, of_b, ends)),
                (type_error, "b is of", (a, b.to(E5M2), of_a, of_b, ends)),
                (ValueError, r"a is \[rows, k\]", (a[:, :256], b, of_a, of_b, ends)),
                (ValueError, r"a is \[rows, k\]", (a[0], b, of_a, of_b, ends)),
                (ValueError, "read along k", (a, b.contiguous(), of_a, of_b, ends)),
                (ValueError, "a_scales is", (a, b, of_a[:-1], of_b, ends)),
                (ValueError, "a_scales is", (a, b, of_a.double(), of_b, ends)),
                (ValueError, "b_scales is", (a, b, of_a, of_b[:, :2], ends)),
                (ValueError, "b_scales is", (a, b, of_a, of_b.transpose(1, 2), ends)),
                (ValueError, "groups", (a, b, of_a, of_b, ends[1:])),
                (type_error, "offs is", (a, b, of_a, of_b, ends.short())),
                (ValueError, "bias is", (a, b, of_a, of_b, ends, self.bias[:, 1:])),
                (ValueError, "bias is", (a, b, of_a, of_b, ends, self.bias.half())),
                (ValueError, "a_scales is", (a, b, of_a[:-1, 0], of_b, ends)),
                (ValueError, "b_scales is", (a, b, of_a[:, 0], of_b, ends)),
                (type_error, "product is of", (a, b, of_a, of_b, ends, None, torch.float16))):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                OPS.grouped_scaled_mm(*operands)
        for operands in ((a, b, of_a, of_b, ends), self.of_rows(E5M2)[0]):
            with self.assertRaisesRegex(ValueError, "fast_accumulation is for"):
                OPS.grouped_scaled_mm(*operands, fast_accumulation=True)
        for error, words, options in ((TypeError, "x is of", {"x": self.x.half()}),
                                      (ValueError, "weights is", {"weights": self.weights}),
                                      (ValueError, "weights is", {"weights": self.b}),
                                      (ValueError, "b_scales is", {"b_scales": of_b[:, 0]}),
                                      (TypeError, "gradient is of", {"gradient_dtype": torch.bfloat16})):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                OPS.grouped_quantized_mm(**{"x": self.x, "b": b, "b_scales": of_b, "offs": ends, **options})
        for error, words, values, options in ((TypeError, "values is of", a, {}), (ValueError, "dims", self.x[0], {}),
                                              (ValueError, "block", self.x, {"block": "128"}),
                                              (TypeError, "result is of", self.x, {"dtype": torch.int8})):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                OPS.quantize(values, **options)


class GatedCases(Operands):
    COLUMNS = 256  # in halves, a gate and its value lie a multiple of 128 columns apart

    def setUp(self):
        super().setUp()
        weights = self.random(len(SIZES), self.COLUMNS, K) * K ** -0.5
        self.bias = self.random(len(SIZES), self.COLUMNS)
        self.kinds = {}
        for kind, of_a, of_b in (("blocks", "1x128", "128x128"), ("rows", "row", "row")):
            (a, a_scales), (b, b_scales) = OPS.quantize(self.x, block=of_a), OPS.quantize(weights, block=of_b)
            if kind == "rows":
                exact_a, exact_b = a.double() * a_scales[:, None], b.double() * b_scales[..., None]
            else:
                exact_a, exact_b, b_scales = exact(a, a_scales), exact(b, b_scales, 128), b_scales.transpose(1, 2)
            self.kinds[kind] = ((a, b.transpose(1, 2), a_scales, b_scales, self.ends),
                                grouped(exact_a, exact_b.transpose(1, 2)))

    def with_gate(self, sums, columns="halves", alpha=1.0, limit=None, value_shift=0.0):
        gates, values = sums.chunk(2, 1) if columns == "halves" else (sums[:, ::2], sums[:, 1::2])
        if limit is not None:
            gates, values = gates.clamp(max=limit), values.clamp(-limit, limit)
        return gates * torch.sigmoid(alpha * gates) * (values + value_shift)

    def gates(self):
        for kind, (operands, sums) in self.kinds.items():
            for options in ({}, {"columns": "interleaved", "alpha": 1.702, "limit": 0.7, "value_shift": 1.0}):
                for bias in (None, self.bias):
                    yield {"kind": kind, **options, "bias": bias is not None}, (*operands, bias), sums, options

    def test_results_of_gates(self):
        which = torch.repeat_interleave(torch.arange(len(SIZES)), torch.tensor(SIZES)).to(self.device)
        for words, operands, sums, options in self.gates():
            with self.subTest(**words):
                bias = operands[5]
                self.check(operands, options,
                           self.with_gate(sums if bias is None else sums + bias.double()[which], **options))

    def check(self, operands, options, wanted):
        # A gate and a value move a result by at most 1.28 times, and once, their own errors, which
        # do not depend on each other: 1.6 times 2^-11.
        for dtype, half in ((torch.float32, 0.0), (torch.bfloat16, OF_BF16)):
            out, none = OPS.grouped_scaled_gated_mm(*operands, dtype, **options)
            self.assertEqual((out.dtype, none.numel()), (dtype, 0))
            self.assertNear(out[:self.used], wanted, half)
        for powers in (False, True):
            out, scales = OPS.grouped_scaled_gated_mm(*operands, **options, powers_of_two=powers)
            self.assertEqual((out.dtype, scales.shape), (E4M3, (self.rows, 1)))
            self.assertNear(exact(out, scales)[:self.used], wanted, HALF_UNIT[E4M3])
            # The error of one result is up to 4 times the root mean square of all.
            ratio, slack = scales[:self.used, 0].double() * 448 / wanted.abs().amax(1), 4 * OF_SUMS
            self.assertTrue(bool((ratio > 1 - slack).all() and (ratio < (1 + slack) * (2 if powers else 1)).all()))
            self.assertEqual(bool((scales[:self.used].log2() % 1 == 0).all()), powers)

    def test_a_layer_of_two_products(self):
        operands, sums = self.kinds["blocks"]
        hidden, scales = OPS.grouped_scaled_gated_mm(*operands)
        stored, of_down = OPS.quantize(self.random(len(SIZES), 64, 128), block="128x128")
        out = OPS.grouped_scaled_mm(hidden, stored.transpose(1, 2), scales, of_down.transpose(1, 2), self.ends)
        wanted = grouped(exact(hidden, scales), exact(stored, of_down, 128).transpose(1, 2))
        self.assertNear(out[:self.used], wanted, OF_BF16)

    def test_gates_have_no_gradients(self):
        operands, _ = self.kinds["blocks"]
        bias = self.bias.requires_grad_()
        with self.assertRaisesRegex(ValueError, "bias has no gradient"):
            OPS.grouped_scaled_gated_mm(*operands, bias)
        with torch.no_grad():
            OPS.grouped_scaled_gated_mm(*operands, bias)
        for error, words, options in ((ValueError, "function", {"function": "relu"}),
                                      (TypeError, "result is of", {"out_dtype": torch.float16})):
            with self.assertRaisesRegex(error, words):
                OPS.grouped_scaled_gated_mm(*operands, **options)

    def test_gates_compiled(self):
        operands, _ = self.kinds["blocks"]
        again = compiled(lambda *of: OPS.grouped_scaled_gated_mm(*of))(*operands)
        for one, other in zip(again, OPS.grouped_scaled_gated_mm(*operands)):
            self.assertSame(one[:self.used], other[:self.used])
