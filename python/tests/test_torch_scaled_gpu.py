# SPDX-License-Identifier: Apache-2.0
"""Products with block scales on the GPU: the bits of `tmap.grouped_mm`, graphs, and that the host
never waits."""
import unittest

import support

torch = support.need_torch_gpu()
from rounding import E4M3, E5M2  # noqa: E402
from torch_scaled_cases import K, N, OPS, SIZES, GatedCases, ScaledCases  # noqa: E402
from torch_weights_cases import GROUPS, WeightCases  # noqa: E402

import tmap  # noqa: E402
from tmap import ragged  # noqa: E402


class Scaled(ScaledCases, unittest.TestCase):
    device = "cuda"

    def test_equals_the_function_bit_for_bit(self):
        for dtype in (E4M3, E5M2):
            self.a, self.a_scales = OPS.quantize(self.x, dtype=dtype)
            for out_dtype in (torch.bfloat16, torch.float32):
                for bias in (None, self.bias):
                    with self.subTest(dtype=dtype, out_dtype=out_dtype, bias=bias is not None):
                        out = torch.full((self.rows, N), torch.nan, device="cuda", dtype=out_dtype)
                        tmap.grouped_mm(self.a, self.b, self.ends, out=out, bias=bias, a_scales=self.a_scales,
                                        b_scales=self.b_scales)
                        self.assertFalse(bool(out[:self.used].isnan().any()))
                        self.assertSame(self.multiply(bias, out_dtype)[:self.used], out[:self.used])

    def test_scales_of_rows_equal_the_function_bit_for_bit(self):
        for dtype, fast in ((E4M3, False), (E4M3, True), (E5M2, False)):
            operands, _ = self.of_rows(dtype)
            out = torch.full((self.rows, N), torch.nan, device="cuda", dtype=torch.float32)
            a, b, a_scales, b_scales, ends = operands
            tmap.grouped_mm(a, b, ends, out=out, row_scales=a_scales, column_scales=b_scales, bias=self.bias,
                            fast_accumulation=fast)
            self.assertFalse(bool(out[:self.used].isnan().any()))
            found = OPS.grouped_scaled_mm(*operands, self.bias, torch.float32, fast_accumulation=fast)
            self.assertSame(found[:self.used], out[:self.used])

    def test_equals_the_cpu(self):
        on_cpu = [tensor.cpu() for tensor in (self.a, self.b, self.a_scales, self.b_scales, self.ends)]
        self.assertNear(self.multiply(None, torch.float32)[:self.used].cpu(),
                        OPS.grouped_scaled_mm(*on_cpu, None, torch.float32)[:self.used].double())
        for values, block in ((self.x, "1x128"), (self.weights, "128x128")):
            for one, other in zip(OPS.quantize(values, block=block), OPS.quantize(values.cpu(), block=block)):
                self.assertSame(one.cpu(), other)

    def test_operands_elsewhere_and_misaligned(self):
        operands = [self.a, self.b, self.a_scales, self.b_scales, self.ends]
        for i, operand in enumerate(operands):
            with self.assertRaises(ValueError):
                OPS.grouped_scaled_mm(*operands[:i], operand.cpu(), *operands[i + 1:])
        operands[0] = torch.cat((self.a.view(-1).view(torch.uint8), self.a[0].view(torch.uint8))).view(
            E4M3)[8:8 + self.a.numel()].view(self.a.shape)
        with self.assertRaisesRegex(RuntimeError, "`problem.a.address` "):
            OPS.grouped_scaled_mm(*operands)

    def test_a_graph_replays_with_other_sizes_and_the_host_never_waits(self):
        x = self.x.detach().requires_grad_()
        weights = self.weights.transpose(1, 2).detach().requires_grad_()
        direction = self.random(self.rows, N)

        def step():
            product = self.quantized(x, None, weights)
            return (product.detach(), *torch.autograd.grad(product, (x, weights), direction))

        # Graphs with gradients are captured on the stream on which they ran before.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            step()
            torch.cuda.synchronize()
            torch.cuda.set_sync_debug_mode("error")
            self.addCleanup(torch.cuda.set_sync_debug_mode, "default")
            step()
            torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            captured = step()
        other = (100, 11, 0, 100, 0)
        self.assertEqual((sum(other), len(other)), (sum(SIZES), len(SIZES)))
        self.ends.copy_(torch.tensor(support.ends_of(other), device="cuda"))
        with torch.no_grad():
            x.copy_(self.random(*x.shape))
        graph.replay()
        for one, wanted in zip(captured, step()):
            self.assertSame(*(part[:self.used] if part.shape[0] == self.rows else part for part in (one, wanted)))

    def test_work_on_a_stream_that_is_not_the_current_one(self):
        wanted, side = self.quantized(self.x)[:self.used], torch.cuda.Stream()
        late = torch.zeros_like(self.x)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            late.copy_(self.x)
            found = self.quantized(late)[:self.used]
        noise = [torch.full((1 << 14,), 255, device="cuda", dtype=torch.uint8) for _ in range(64)]
        torch.cuda.synchronize()
        self.assertSame(found, wanted)
        self.assertEqual({int(one.min()) for one in noise}, {255})


class Gated(GatedCases, unittest.TestCase):
    device = "cuda"

    def test_equals_the_function_bit_for_bit(self):
        for words, operands, _, options in self.gates():
            for powers in (False, True):
                with self.subTest(**words, powers=powers):
                    self.check_bits(operands, {**options, "powers_of_two": powers}, tmap.Gate(
                        **{"limit": float("inf"), **options}))

    def check_bits(self, operands, options, gate):
        a, b, a_scales, b_scales, ends, bias = operands
        terms = {"a_scales": a_scales, "b_scales": b_scales}
        if a_scales.dim() == 1:
            terms = {"row_scales": a_scales, "column_scales": b_scales}
        out = torch.zeros(self.rows, self.COLUMNS // 2, device="cuda", dtype=torch.uint8).view(E4M3)
        scales = torch.full((self.rows, 1), torch.nan, device="cuda")
        tmap.grouped_mm(a, b, ends, out=out, gate=gate, bias=bias, out_scales=scales,
                        powers_of_two=options["powers_of_two"], **terms)
        self.assertFalse(bool(scales[:self.used].isnan().any()))
        for one, wanted in zip(OPS.grouped_scaled_gated_mm(*operands, **options), (out, scales)):
            self.assertSame(one[:self.used], wanted[:self.used])
        if options["powers_of_two"]:  # the reciprocals are exact
            again = torch.zeros_like(out.view(torch.uint8)).view(E4M3)
            tmap.grouped_mm(a, b, ends, out=again, gate=gate, bias=bias, given_scales=scales, **terms)
            self.assertSame(again[:self.used], out[:self.used])


class Weights(WeightCases, unittest.TestCase):
    device = "cuda"

    def test_equals_the_function_bit_for_bit(self):
        sizes = 128, 0, 256, 384, 80
        ends, rows = torch.tensor(support.ends_of(sizes), device="cuda", dtype=torch.int32), sum(sizes)
        d_out, x = self.random(rows, N), self.random(rows, K)
        for dtype in (E4M3, E5M2):
            lines, scales = [], []
            for values, to in ((d_out, dtype), (x, E4M3)):
                made = torch.zeros(values.shape[1], rows, device="cuda", dtype=torch.uint8).view(to)
                blocks = torch.empty(7, values.shape[1], device="cuda")
                ragged.quantize(*(ragged.Tensors([tensor]) for tensor in (values, made, blocks)), block="128x1")
                lines.append(made)
                scales.append(blocks)
            for out_dtype in (torch.bfloat16, torch.float32):
                out = torch.full((GROUPS, N, K), torch.nan, device="cuda", dtype=out_dtype)
                tmap.grouped_mm(lines[0], lines[1].t(), ends, out=out, a_scales=scales[0].t(), b_scales=scales[1])
                self.assertSame(self.gradient(d_out, x, ends, dtype=dtype, out_dtype=out_dtype), out)

    def test_equals_the_cpu(self):
        on_cpu = [tensor.cpu() for tensor in (self.d_out, self.x, self.ends)]
        self.assertNear(self.gradient(out_dtype=torch.float32).cpu(),
                        OPS.quantized_weight_gradient(*on_cpu, out_dtype=torch.float32).double())
        for one, other in zip(OPS.quantize(self.x, block="128x1"), OPS.quantize(on_cpu[1], block="128x1")):
            self.assertSame(one.cpu(), other)

    def test_a_graph_replays_with_other_sizes_and_the_host_never_waits(self):
        sums = torch.zeros(GROUPS, N, K, device="cuda")

        def step():
            OPS.add_quantized_weight_gradient(sums, self.d_out, self.x, self.ends)
            return self.gradient(dtype=E5M2)

        step()
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        self.addCleanup(torch.cuda.set_sync_debug_mode, "default")
        step()
        torch.cuda.set_sync_debug_mode("default")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = step()
        other = (100, 11, 0, 100, 0)
        self.ends.copy_(torch.tensor(support.ends_of(other), device="cuda"))
        self.x.copy_(self.random(*self.x.shape))
        sums.zero_()
        graph.replay()
        self.assertSame(captured, self.gradient(dtype=E5M2))
        self.assertSame(sums, self.gradient(out_dtype=torch.float32))


if __name__ == "__main__":
    unittest.main()
