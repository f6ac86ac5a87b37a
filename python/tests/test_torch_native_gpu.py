# SPDX-License-Identifier: Apache-2.0
"""The operators of PyTorch in C++ on a GPU, compared bit for bit with those in Python."""
import concurrent.futures
import random
import tempfile
import unittest

import support

torch = support.need_torch_gpu()
import torch_model_case  # noqa: E402
import torch_native_cases as cases  # noqa: E402
import torch_reference as reference  # noqa: E402
from compiling import compiled  # noqa: E402

from tmap import torch_native, torch_ops  # noqa: E402,F401

if not torch_native.schemas:
    raise unittest.SkipTest("libtmap_torch.so is not built (TMAP_BUILD_TORCH)")


def poisoned(call):
    """Runs a call whose memory holds NaN before, in parts of the sizes that tests need."""
    noise = [torch.full((1 << power,), 255, device="cuda", dtype=torch.uint8) for power in range(9, 22) for _ in range(4)]
    del noise
    return call()


def both(name, arguments, keywords):
    """Returns the results of the kernels in C++ and in Python."""
    return (poisoned(lambda: getattr(torch.ops.tmap, name)(*arguments, **keywords)),
            poisoned(lambda: cases.IN_PYTHON[name](*arguments, **keywords)))


class Values(unittest.TestCase):
    def assertSame(self, found, expected):
        self.assertEqual((found.shape, found.stride(), found.dtype, found.device),
                         (expected.shape, expected.stride(), expected.dtype, expected.device))
        raw = (lambda one: one.contiguous().view(torch.uint8)) if found.numel() else (lambda one: one)
        self.assertTrue(torch.equal(raw(found), raw(expected)))

    def test_bits_are_those_of_python(self):
        torch.manual_seed(3)
        for name, arguments, keywords in cases.good("cuda"):
            for watch in (torch.enable_grad, torch.no_grad, torch.inference_mode):
                with self.subTest(name, arguments=[cases.short(each) for each in arguments], **keywords), watch():
                    self.assertSame(*both(name, arguments, keywords))

    def test_words_of_refusals_are_those_of_python(self):
        self.assertEqual(cases.expect_words_of_python(self, "cuda"), set(torch_native.schemas))

    def test_padding_of_random_rows(self):
        source = random.Random(11)
        for trial in range(150):
            sizes = [source.choice((0, 1, 2, source.randint(0, 70))) for _ in range(source.choice((1, 3, 40, 700, 5000)))]
            width, extra, longest = source.choice((1, 3, 8, 33, 64, 520)), source.randint(0, 3), source.choice((1, 7, 40, 80))
            dtype = source.choice((torch.uint8, torch.bfloat16, torch.float32, torch.float64))
            whole = torch.randint(0, 200, (sum(sizes) + extra, width + 3), device="cuda").to(dtype)
            values = whole[:, :width] if trial % 3 == 0 else whole[:, :width].contiguous()
            ends = torch.tensor(support.ends_of(sizes), device="cuda", dtype=source.choice((torch.int32, torch.int64)))
            with self.subTest(trial, count=len(sizes), width=width, longest=longest, dtype=dtype):
                dense = poisoned(lambda: torch.ops.tmap.pad_ragged(values, ends, longest, fill=7.0))
                self.assertSame(dense, reference.pad(values, sizes, longest, 7))
                back = poisoned(lambda: torch.ops.tmap.unpad_ragged(dense, ends, values.shape[0]))
                self.assertSame(back, reference.unpad(dense, sizes, values.shape[0]))

    def test_wild_offsets_lead_nowhere_else(self):
        source = random.Random(5)
        values = torch.arange(1, 65, device="cuda").repeat_interleave(8).reshape(64, 8)
        for trial in range(200):
            wild = torch.tensor([source.choice((-5, 0, 3, 70, 2**31 - 1, source.randint(-9, 80))) for _ in range(9)],
                                device="cuda", dtype=torch.int32)
            with self.subTest(trial, wild=wild.tolist()):
                dense = poisoned(lambda: torch.ops.tmap.pad_ragged(values, wild, 5, fill=-1.0))
                self.assertTrue(torch.equal(dense.cpu(), torch.ops.tmap.pad_ragged(values.cpu(), wild.cpu(), 5, fill=-1.0)))
                back = poisoned(lambda: torch.ops.tmap.unpad_ragged(dense, wild, 64))
                self.assertTrue(((back == values) | (back == 0)).all())
                if wild.clamp(0, 64).diff().ge(0).all():
                    self.assertTrue(torch.equal(back.cpu(), torch.ops.tmap.unpad_ragged(dense.cpu(), wild.cpu(), 64)))


class Calls(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(7)
        of = self.of = cases.Operands("cuda")
        self.b = of.weights.transpose(-2, -1)
        self.expected = torch.ops.tmap.grouped_mm(of.rows, self.b, of.ends, of.bias)

    def call(self, rows=None):
        return torch.ops.tmap.grouped_mm(self.of.rows if rows is None else rows, self.b, self.of.ends, self.of.bias)

    def test_work_is_in_the_order_of_the_current_stream(self):
        side, late = torch.cuda.Stream(), torch.zeros_like(self.of.rows)
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(50_000_000)
            late.copy_(self.of.rows)
            product = self.call(late)
            dense = torch.ops.tmap.pad_ragged(late, self.of.ends, 70)
            late.fill_(torch.nan)
            back = torch.ops.tmap.unpad_ragged(dense, self.of.ends, 77)
        side.synchronize()
        self.assertTrue(torch.equal(product, self.expected))
        self.assertTrue(torch.equal(back, self.of.rows))

    def test_a_graph_replays_with_other_offsets(self):
        ends = self.of.ends.clone()
        torch.cuda.set_sync_debug_mode("error")
        self.addCleanup(torch.cuda.set_sync_debug_mode, "default")
        self.call()
        torch.cuda.set_sync_debug_mode("default")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            product = torch.ops.tmap.grouped_mm(self.of.rows, self.b, ends)
            dense = torch.ops.tmap.pad_ragged(self.of.rows, ends, 70)
            back = torch.ops.tmap.unpad_ragged(dense, ends, 77)
        noise = [torch.full((1 << 14,), 255, device="cuda", dtype=torch.uint8) for _ in range(64)]
        self.call()
        ends.copy_(torch.tensor((20, 30, 30, 77), device="cuda"))
        for one in (product, dense, back):
            one.fill_(torch.nan)
        graph.replay()
        self.assertTrue(torch.equal(product, torch.ops.tmap.grouped_mm(self.of.rows, self.b, ends)))
        self.assertTrue(torch.equal(dense, reference.pad(self.of.rows, (20, 10, 0, 47), 70, 0)))
        self.assertTrue(torch.equal(back, self.of.rows))
        self.assertEqual({int(one.min()) for one in noise}, {255})

    def test_threads_share_it(self):
        inputs = [cases.Operands("cuda") for _ in range(8)]
        expected = [cases.IN_PYTHON["grouped_mm"](of.rows, of.weights.transpose(-2, -1), of.ends) for of in inputs]
        torch.cuda.synchronize()

        def work(number):
            of = inputs[number]
            with torch.cuda.stream(torch.cuda.Stream()):
                found = [torch.ops.tmap.grouped_mm(of.rows, of.weights.transpose(-2, -1), of.ends) for _ in range(100)]
                torch.cuda.current_stream().synchronize()
            return all(torch.equal(one, expected[number]) for one in found)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(work, range(8))), [True] * 8)

    def test_memory_to_work_in_is_given_back(self):
        misaligned = self.of.rows.reshape(-1)[1:-63].view(-1, 64)

        def calls():
            self.call()
            with self.assertRaisesRegex(RuntimeError, "`problem.a.address` "):
                self.call(misaligned)

        calls()
        before = torch.cuda.memory_allocated()
        calls()
        self.assertEqual(torch.cuda.memory_allocated(), before)

    def test_compiled(self):
        for options in ({}, {"mode": "reduce-overhead"}, {"dynamic": True}):
            with self.subTest(**options):
                program = compiled(lambda a, b, ends, bias: torch.relu(torch.ops.tmap.grouped_mm(a, b, ends, bias)),
                                   "inductor", **options)
                for _ in range(3):
                    found = program(self.of.rows, self.b, self.of.ends, self.of.bias)
                self.assertTrue(torch.equal(found, torch.relu(self.expected)))

    def test_gradients(self):
        leaves = [one.clone().requires_grad_() for one in (self.of.rows, self.b, self.of.bias)]
        product = torch.ops.tmap.grouped_mm(leaves[0], leaves[1], self.of.ends, leaves[2])
        self.assertTrue(torch.equal(product, self.expected))
        direction = torch.randn_like(product)
        found = torch.autograd.grad(product, leaves, direction)
        a, b, bias = leaves
        which = torch.repeat_interleave(torch.arange(4, device="cuda"), torch.tensor((5, 0, 59, 13), device="cuda"))
        plain = reference.grouped_mm(a.float(), b.float(), (5, 0, 59, 13)) + bias.float()[which]
        for one, other in zip(found, torch.autograd.grad(plain, leaves, direction.float())):
            torch.testing.assert_close(one.float(), other.float(), rtol=2e-2, atol=2e-2)

    def test_pytorchs_own_check(self):
        for name, arguments, keywords in cases.checked("cuda"):
            with self.subTest(name):
                torch.library.opcheck(getattr(torch.ops.tmap, name).default, arguments, keywords)

    def test_devices(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("one GPU")
        of = cases.Operands("cuda:1")
        found = torch.ops.tmap.grouped_mm(of.rows, of.weights.transpose(-2, -1), of.ends)
        self.assertTrue(torch.equal(found, cases.IN_PYTHON["grouped_mm"](of.rows, of.weights.transpose(-2, -1), of.ends)))
        self.assertEqual(torch.cuda.current_device(), 0)


class Model(torch.nn.Module):
    def forward(self, a, b, ends, bias):
        product = torch.relu(torch.ops.tmap.grouped_mm(a, b, ends, bias))
        dense = torch.ops.tmap.pad_ragged(product, ends, 70, fill=-1.5)
        return product, dense, torch.ops.tmap.unpad_ragged(dense * 2, ends, a.shape[0])


class WithoutPython(unittest.TestCase):
    def test_a_compiled_model_runs_in_cpp(self):
        torch_model_case.program()
        of = cases.Operands("cuda")
        inputs = of.rows, of.weights.transpose(-2, -1), of.ends, of.bias
        with tempfile.TemporaryDirectory() as folder:
            found, _ = torch_model_case.run_without_python(Model(), inputs, folder)
        expected = Model()(*inputs)
        self.assertEqual(len(found), 3)
        for one, other in zip(found, expected):
            self.assertTrue(torch.equal(one.cuda(), other))


if __name__ == "__main__":
    unittest.main()
