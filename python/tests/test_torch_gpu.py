# SPDX-License-Identifier: Apache-2.0
"""torch.ops.tmap.* on the GPU: what every device promises, and graphs, and that the host never
waits."""
import concurrent.futures
import unittest

import support

torch = support.need_torch_gpu()
import tmap  # noqa: E402
import torch_reference as reference  # noqa: E402
from torch_cases import SIZES, GroupedProductCases, PaddingCases, WritingCases, grouped, is_native  # noqa: E402


class GroupedProducts(GroupedProductCases, unittest.TestCase):
    device = "cuda"

    def test_operands_elsewhere_and_misaligned(self):
        a, b = self.cases()["rows, [n, k]"]
        grouped(a, b, self.ends)
        for operands in ((a, b, self.ends.cpu()), (a.cpu(), b, self.ends), (a, b.cpu(), self.ends)):
            with self.assertRaises(ValueError):
                grouped(*operands)
        with self.assertRaisesRegex(RuntimeError, "`problem.a.address` ") as caught:
            grouped(a.reshape(-1)[1:-63].view(-1, 64), b, self.ends)
        if not is_native("grouped_mm", "cuda"):
            self.assertIs(caught.exception.status, tmap.Status.INVALID_ARGUMENT)
            self.assertEqual(caught.exception.argument, "problem.a.address")

    def test_equals_torch(self):
        if not hasattr(torch, "_grouped_mm"):
            self.skipTest("this version of PyTorch has no _grouped_mm")
        a, b = self.cases()["rows, [n, k]"]
        self.assertNear(grouped(a, b, self.ends), torch._grouped_mm(a, b, offs=self.ends))

    def test_a_graph_replays_with_other_sizes_and_the_host_never_waits(self):
        a, b = self.cases()["rows, [n, k]"]
        grouped(a, b, self.ends)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        self.addCleanup(torch.cuda.set_sync_debug_mode, "default")
        grouped(a, b, self.ends)
        torch.cuda.set_sync_debug_mode("default")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            product = grouped(a, b, self.ends)
        # Later calls do not get the workspace of the graph.
        noise = [torch.full((1 << 14,), 255, device="cuda", dtype=torch.uint8) for _ in range(64)]
        grouped(a, b, self.ends)
        other = (100, 11, 0, 200, 0, 200)
        self.ends.copy_(torch.tensor(support.ends_of(other), device="cuda"))
        graph.replay()
        self.assertNear(product, reference.grouped_mm(a, b, other))
        self.assertEqual({int(one.min()) for one in noise}, {255})

    def test_memory_to_work_in_is_given_back(self):
        a, b = self.cases()["rows, [n, k]"]
        out = torch.zeros(self.rows, 96, device="cuda", dtype=self.dtype)
        misaligned = a.reshape(-1)[1:-63].view(-1, 64)

        def calls():
            grouped(a, b, self.ends)
            tmap.grouped_mm(a, b, self.ends, out=out)
            with self.assertRaises(RuntimeError):
                grouped(misaligned, b, self.ends)
            with self.assertRaises(tmap.Error):
                tmap.grouped_mm(misaligned, b, self.ends, out=out[1:])

        calls()
        before = torch.cuda.memory_allocated()
        calls()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_work_on_a_stream_that_is_not_the_current_one(self):
        a, b = self.cases()["rows, [n, k]"]
        expected, side = grouped(a, b, self.ends), torch.cuda.Stream()
        late, out = torch.zeros_like(a), torch.zeros_like(expected)
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        tmap.grouped_mm(late, b, self.ends, out=out, stream=side)
        with torch.cuda.stream(side):
            first = grouped(late, b, self.ends)
        noise = [torch.full((1 << 14,), 255, device="cuda", dtype=torch.uint8) for _ in range(64)]
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(out, expected) and torch.equal(first, expected))
        self.assertEqual({int(one.min()) for one in noise}, {255})

    def test_threads_share_a_stream(self):
        cases = list(self.cases().values())
        expected = [grouped(a, b, self.ends) for a, b in cases]

        def work(i):
            a, b = cases[i]
            products = [grouped(a, b, self.ends) for _ in range(200)]
            return all([torch.equal(product, expected[i]) for product in products])

        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            self.assertEqual(list(pool.map(work, range(len(cases)))), [True] * len(cases))

    def test_bad_groups_are_told_and_left_alone(self):
        a, b = self.cases()["rows, [n, k]"]
        out = torch.full((self.rows, 96), 7, device="cuda", dtype=self.dtype)
        statuses = torch.full((self.groups,), -1, device="cuda", dtype=torch.int32)
        wild = torch.tensor((5, 3, 133, 134, 9999, 511), device="cuda", dtype=torch.int32)
        tmap.grouped_mm(a, b, wild, out=out, statuses=statuses)
        self.assertEqual([status == 0 for status in statuses.tolist()][:4], [True, False, False, True])
        self.assertEqual(out[5:133].unique().tolist(), [7])
        self.assertNear(out[:5], a[:5] @ b[0])

    def test_the_function_takes_epilogues(self):
        a, b = self.cases()["rows, [n, k]"]
        bias, scales = self.random(self.groups, 96), torch.rand(self.rows, device="cuda")
        out = torch.zeros(self.rows, 96, device="cuda", dtype=self.dtype)
        plain = reference.grouped_mm(a, b, SIZES).float() * scales[:, None]
        tmap.grouped_mm(a, b, self.ends, out=out, bias=bias, row_scales=scales)
        begin = 0
        for group, end in enumerate(support.ends_of(SIZES)):
            plain[begin:end] += bias[group].float()
            begin = end
        self.assertNear(out, plain.to(self.dtype))
        with self.assertRaises(ValueError):
            tmap.grouped_mm(a, b, self.ends, out=out[:, :88])
        with self.assertRaises(ValueError):
            tmap.grouped_mm(a, b, self.ends, out=out, kept=out)
        with self.assertRaises(TypeError):
            tmap.grouped_mm(a, b, self.ends, out=out.double())

    def test_the_function_reads_rows_by_index(self):
        a, b = self.cases()["rows, [n, k]"]
        rows = torch.randint(0, self.rows, (self.rows,), device="cuda", dtype=torch.int32)
        scales = torch.rand(self.rows, device="cuda")
        sorted_a, sorted_scales = a[rows.long()], scales[rows.long()]
        rows[3] = -1
        sorted_a[3] = 0
        out, expected = (torch.zeros(self.rows, 96, device="cuda", dtype=self.dtype) for _ in range(2))
        tmap.grouped_mm(sorted_a, b, self.ends, out=expected, row_scales=sorted_scales)
        tmap.grouped_mm(a, b, self.ends, out=out, a_rows=rows, row_scales=scales)
        self.assertTrue(torch.equal(out, expected))
        few = a[:7].contiguous()
        tmap.grouped_mm(few[(rows % 7).long()], b, self.ends, out=expected)
        tmap.grouped_mm(few, b, self.ends, out=out, a_rows=rows % 7)
        self.assertTrue(torch.equal(out, expected))
        with self.assertRaises(TypeError):
            tmap.grouped_mm(a, b, self.ends, out=out, a_rows=rows.long())
        with self.assertRaises(ValueError):
            tmap.grouped_mm(a, b, self.ends, out=out, a_rows=rows[:-1])
        with self.assertRaises(ValueError):
            tmap.grouped_mm(a, b, self.ends, out=out, a_rows=torch.cat((rows, rows))[::2])

    def test_the_function_reads_scaled_rows_by_index(self):
        groups, k, n, few = 3, 272, 160, 50
        ends = torch.tensor((70, 70, 130), device="cuda", dtype=torch.int32)
        rows = torch.randint(-1, few, (130,), device="cuda", dtype=torch.int32)
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            with self.subTest(dtype):
                a = torch.randn(few, k, device="cuda").to(dtype)
                b = torch.randn(groups, n, k, device="cuda").to(torch.float8_e4m3fn).transpose(-2, -1)
                a_scales, b_scales = (torch.rand(shape, device="cuda") for shape in ((few, 3), (groups, 3, 2)))
                at = rows.long().clamp(min=0)
                sorted_a = a.view(torch.uint8)[at]
                sorted_a[rows < 0] = 0
                out, expected = (torch.zeros(130, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
                tmap.grouped_mm(sorted_a.view(dtype), b, ends, out=expected, a_scales=a_scales[at],
                                b_scales=b_scales)
                tmap.grouped_mm(a, b, ends, out=out, a_rows=rows, a_scales=a_scales, b_scales=b_scales)
                self.assertTrue(torch.equal(out, expected))
                self.assertGreater(out.abs().max().item(), 0)
        with self.assertRaisesRegex(ValueError, "a_scales"):
            tmap.grouped_mm(a, b, ends, out=out, a_rows=rows, a_scales=a_scales[at], b_scales=b_scales)

    def test_the_function_stores_rows_by_index(self):
        a, b = self.cases()["rows, [n, k]"]
        product, expected = (torch.full((self.rows, 96), 7, device="cuda", dtype=self.dtype)
                             for _ in range(2))
        tmap.grouped_mm(a, b, self.ends, out=product)
        rows = torch.randperm(self.rows, device="cuda").to(torch.int32)
        is_stored = torch.arange(self.rows, device="cuda") < self.ends[-1]
        is_stored[5] = False
        expected[rows[is_stored].long()] = product[is_stored]
        rows[5] = -1
        out = torch.full_like(expected, 7)
        tmap.grouped_mm(a, b, self.ends, out=out, out_rows=rows)
        self.assertTrue(torch.equal(out, expected))
        out = torch.full((self.rows + 9, 96), 7, device="cuda", dtype=self.dtype)
        rows[rows >= 0] += 9
        tmap.grouped_mm(a, b, self.ends, out=out, out_rows=rows)
        self.assertTrue(torch.equal(out[9:], expected))
        self.assertEqual(out[:9].unique().tolist(), [7])
        twice = torch.zeros(self.rows, 96, device="cuda")
        half = torch.arange(self.rows, device="cuda", dtype=torch.int32) // 2
        tmap.grouped_mm(a, b, self.ends, out=twice, out_rows=half, accumulate=True)
        apart = torch.zeros_like(twice)
        tmap.grouped_mm(a, b, self.ends, out=apart)
        sums = apart[:self.rows // 2 * 2].view(-1, 2, 96).sum(1)
        self.assertTrue(torch.equal(twice[:len(sums)], sums))
        with self.assertRaises(ValueError):
            tmap.grouped_mm(a, b, self.ends, out=out, out_rows=rows[:-1])
        with self.assertRaises(TypeError):
            tmap.grouped_mm(a, b, self.ends, out=out, out_rows=rows.long())

    def test_the_function_makes_f32_and_adds_to_it(self):
        a, b = self.cases()["rows, [n, k]"]
        plain = reference.grouped_mm(a, b, SIZES)
        out = torch.ones(self.rows, 96, device="cuda")
        tmap.grouped_mm(a, b, self.ends, out=out)
        used = sum(SIZES)
        self.assertNear(out[:used].to(self.dtype), plain[:used])
        once = out.clone()
        tmap.grouped_mm(a, b, self.ends, out=out, accumulate=True)
        torch.testing.assert_close(out[:used], 2 * once[:used])

    def test_the_function_takes_gates(self):
        a, b = self.cases()["rows, [n, k]"]
        bias, used = self.random(self.groups, 96), sum(SIZES)
        sums = torch.zeros(self.rows, 96, device="cuda")
        tmap.grouped_mm(a, b, self.ends, out=sums, bias=bias)
        for columns in ("halves", "interleaved"):
            with self.subTest(columns):
                out = torch.zeros(self.rows, 48, device="cuda")
                kept = torch.zeros(self.rows, 96, device="cuda", dtype=self.dtype)
                gate = tmap.Gate("silu", columns, alpha=1.702, limit=7, value_shift=1)
                tmap.grouped_mm(a, b, self.ends, out=out, bias=bias, gate=gate, kept=kept)
                self.assertEqual(kept[:used].tolist(), sums[:used].to(self.dtype).tolist())
                parts = sums[:used]
                gates, values = parts.chunk(2, 1) if columns == "halves" else (parts[:, ::2], parts[:, 1::2])
                gates, values = gates.clamp(max=7), values.clamp(-7, 7)
                torch.testing.assert_close(out[:used], gates * torch.sigmoid(1.702 * gates) * (values + 1), rtol=1e-4,
                                           atol=1e-4)

    def test_8_bit_sums_are_of_f32_or_fast(self):
        # A large product first, then ones: of 13 bits it would hide them.
        row = torch.cat((torch.tensor([256.0]), torch.zeros(127), torch.ones(1920))).to("cuda", torch.float8_e4m3fn)
        a, b = row.repeat(64, 1), row.repeat(2, 16, 1).transpose(-2, -1)
        ends = torch.tensor((30, 64), device="cuda", dtype=torch.int32)
        out = torch.empty(64, 16, device="cuda", dtype=torch.bfloat16)
        exact = torch.tensor(256.0**2 + 1920, dtype=torch.bfloat16).item()
        self.assertEqual(tmap.grouped_mm(a, b, ends, out=out).unique().tolist(), [exact])
        fast = tmap.grouped_mm(a, b, ends, out=out, fast_accumulation=True).unique().tolist()
        self.assertNotEqual(fast, [exact])
        self.assertTrue(all(256.0**2 <= value <= exact for value in fast))
        a, b = self.cases()["rows, [n, k]"]
        with self.assertRaisesRegex(ValueError, "f8_e4m3"):
            tmap.grouped_mm(a, b, self.ends, out=out.new_empty(self.rows, 96, dtype=a.dtype), fast_accumulation=True)

    def test_sums_over_rows_of_8_bits_have_scales(self):
        sizes, m, n = (144, 0, 256, 100), 72, 136
        ends = torch.tensor(sizes, device="cuda").cumsum(0).to(torch.int32)
        rows = sum(sizes)
        pitch = -(-rows // 16) * 16
        a, b = (torch.randn(lines, pitch, device="cuda").to(torch.float8_e4m3fn)[:, :rows] for lines in (m, n))
        blocks = rows // 128 + len(sizes)
        a_scales, b_scales = torch.rand(blocks, m, device="cuda"), torch.rand(blocks, n, device="cuda")
        out = torch.empty(len(sizes), m, n, device="cuda")
        tmap.grouped_mm(a, b.t(), ends, out=out, a_scales=a_scales.t(), b_scales=b_scales)
        left, right = a.float().double(), b.float().double()
        for group, size in enumerate(sizes):
            begin = sum(sizes[:group])
            want = torch.zeros(m, n, device="cuda", dtype=torch.float64)
            for row in range(begin, begin + size, 128):
                part = slice(row, min(row + 128, begin + size))
                block = begin // 128 + group + (row - begin) // 128
                want += (left[:, part] * a_scales[block, :, None]) @ (right[:, part].t() * b_scales[block])
            torch.testing.assert_close(out[group].double(), want, rtol=1e-3, atol=0.1)
        with self.assertRaisesRegex(ValueError, "need a_scales"):
            tmap.grouped_mm(a, b.t(), ends, out=out)


class Writing(WritingCases, unittest.TestCase):
    device = "cuda"

    def test_products_too(self):
        a, b = torch.ones(16, 16, device="cuda").bfloat16(), torch.ones(1, 16, 16, device="cuda").bfloat16()
        out, offs = torch.ones_like(a), torch.tensor([16], device="cuda", dtype=torch.int32)
        statuses = torch.zeros(1, device="cuda", dtype=torch.int32)
        self.counts(lambda: tmap.grouped_mm(a, b, offs, out=out, statuses=statuses), (out, statuses), (a, b, offs))


class Pointers(unittest.TestCase):
    SIZES = ((1, 64, 128), (130, 72, 64), (0, 64, 64), (300, 8, 520), (17, 128, 0), (40, 64, 64))

    def matrices(self, shapes, fill, dtype):
        """Each a part of a larger one."""
        return [torch.full((rows + 1, columns + 8), fill, device="cuda", dtype=dtype) for rows, columns in shapes]

    def operands(self, shapes, dtype):
        made = self.matrices(shapes, float("nan"), dtype)
        for matrix, (rows, columns) in zip(made, shapes):
            matrix[:rows, :columns] = torch.randint(-3, 4, (rows, columns), device="cuda").to(dtype)
        return made

    def column(self, values):
        return torch.tensor(list(values), device="cuda", dtype=torch.int64)

    def test_every_product_and_nothing_else(self):
        for dtype, name in ((torch.bfloat16, "bf16"), (torch.float16, "f16")):
            for layout in ("n_by_k", "k_by_n"):
                with self.subTest(name, layout=layout):
                    self.check(dtype, name, layout)

    def check(self, dtype, name, layout):
        a = self.operands([(m, k) for m, n, k in self.SIZES], dtype)
        b = self.operands([(n, k) if layout == "n_by_k" else (k, n) for m, n, k in self.SIZES], dtype)
        out = self.matrices([(m, n) for m, n, k in self.SIZES], 7, dtype)
        addresses = [self.column(matrix.data_ptr() for matrix in side) for side in (a, b, out)]
        pitches = [self.column(matrix.stride(0) * 2 for matrix in side) for side in (a, b, out)]
        pitches[1][-1] += 8  # bad: no multiple of 16
        statuses = torch.full((len(self.SIZES),), 77, device="cuda", dtype=torch.int32)
        sizes = [self.column(column) for column in zip(*self.SIZES)]
        tmap.grouped_mm_by_pointers(*addresses, sizes, pitches, dtype=name, b_layout=layout, statuses=statuses)
        empty = -1 << 31
        self.assertEqual(statuses.tolist(), [0, 0, empty, 0, empty, 1 << 3])
        for i, (m, n, k) in enumerate(self.SIZES):
            expected = torch.full_like(out[i], 7)
            right = b[i][:n, :k].float().t() if layout == "n_by_k" else b[i][:k, :n].float()
            if i + 1 < len(self.SIZES):
                expected[:m, :n] = (a[i][:m, :k].float() @ right).to(dtype)
            self.assertTrue(torch.equal(out[i], expected), f"product {i}")


class Padding(PaddingCases, unittest.TestCase):
    device = "cuda"

    def test_a_graph_replays_with_other_sizes(self):
        values, offsets = torch.randn(30, 16, device="cuda"), torch.tensor((10, 30), device="cuda")
        torch.ops.tmap.pad_ragged(values, offsets, 20)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            dense = torch.ops.tmap.pad_ragged(values, offsets, 20)
        offsets.copy_(torch.tensor((18, 30), device="cuda"))
        graph.replay()
        self.assertTrue(torch.equal(dense, reference.pad(values, (18, 12), 20, 0)))


if __name__ == "__main__":
    unittest.main()
