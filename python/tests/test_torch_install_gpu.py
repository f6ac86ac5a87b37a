# SPDX-License-Identifier: Apache-2.0
"""tmap in front of PyTorch's grouped products, compared with PyTorch's kernels on the same GPU."""
import unittest

import support

torch = support.need_torch_gpu()
if not hasattr(torch.library, "get_kernel"):
    raise unittest.SkipTest(f"PyTorch {torch.__version__} cannot give its kernels away")
if torch.cuda.get_device_capability() != (9, 0):
    raise unittest.SkipTest("no Hopper GPU")
import torch_install_cases as cases  # noqa: E402
from compiling import compiled  # noqa: E402

import tmap.torch  # noqa: E402
from tmap import torch_rules as rules  # noqa: E402

F = torch.nn.functional
FULL = (16, 24, 40, 8)  # PyTorch stops at empty groups in some orders


def with_gradients(a, b, offs, d_out):
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    product = F.grouped_mm(a, b, offs=offs)
    product.backward(d_out.as_strided(product.shape, product.stride()))
    return product.detach(), a.grad, b.grad


def outcome(call):
    try:
        return call()
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return type(error), str(error).split("\n")[0]


class Installed(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(6)
        self.addCleanup(tmap.torch.uninstall)

    def both(self, call):
        """Results of PyTorch and of tmap in front of it."""
        tmap.torch.uninstall()
        expected = call()
        tmap.torch.install()
        found = call()
        return found, expected

    def count(self, name="_grouped_mm"):
        taken, passed = tmap.torch.installed_calls()[name]
        return taken, sum(passed.values())

    def assertSameForm(self, one, other):
        self.assertEqual((one.shape, one.stride(), one.dtype), (other.shape, other.stride(), other.dtype))

    def test_all_orders_with_gradients(self):
        offs = cases.offsets("cuda", FULL)
        total = sum(FULL)
        for dtype in (torch.bfloat16, torch.float16):
            for name, a, b in cases.products("cuda", dtype, sizes=FULL):
                d_out = torch.randn(total * 256, device="cuda").to(dtype)
                with self.subTest(name, dtype=dtype):
                    found, expected = self.both(lambda: with_gradients(a, b, offs, d_out))
                    self.assertEqual(self.count(), (3, 0))
                    for one, other in zip(found, expected):
                        self.assertSameForm(one, other)
                        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-2)

    def test_how_many_bytes_differ(self):
        """Both sum up in float32 in some order and round once, so most results are the same."""
        offs = cases.offsets("cuda", (1000, 0, 2000, 1096))
        a, b = torch.randn(4096, 1024, device="cuda").bfloat16(), torch.randn(4, 1024, 512, device="cuda").bfloat16()
        found, expected = self.both(lambda: F.grouped_mm(a, b, offs=offs))
        differing = (found != expected).float().mean().item()
        self.assertLess(differing, 0.02)

    def test_what_is_not_taken_is_pytorchs(self):
        a, b = torch.randn(64, 48, device="cuda"), torch.randn(4, 48, 32, device="cuda")
        offs, half_a, half_b = cases.offsets("cuda", (16,) * 4), a.bfloat16(), b.bfloat16()
        padded = torch.randn(64, 24, device="cuda").bfloat16()[:, :20]
        calls = (((a, b, offs), rules.TYPES), ((half_a.view(4, 16, 48), half_b), rules.BATCHED),
                 ((half_a, half_b, offs.long()), rules.OFFSETS), ((half_a, half_b), rules.OFFSETS),
                 ((half_a, half_b, offs, torch.zeros(4, 32, device="cuda").bfloat16()), rules.BIAS),
                 ((half_a, half_b, offs, None, torch.float32), rules.RESULT),
                 ((half_a.cpu(), half_b, offs), rules.DEVICES), ((half_a, half_b.cpu(), offs), rules.DEVICES),
                 ((half_a[:, ::2], half_b, offs), rules.SHAPES), ((padded, half_b[:, :20], offs), rules.UNITS),
                 ((half_a.view(-1)[1:-47].view(63, 48), half_b, cases.offsets("cuda", (8,) * 4)), rules.ADDRESS))
        for i, (call, reason) in enumerate(calls):
            with self.subTest(i):
                found, expected = self.both(lambda: outcome(lambda: torch._grouped_mm(*call)))
                self.assertEqual(tmap.torch.installed_calls()["_grouped_mm"], (0, {reason: 1}))
                if isinstance(expected, torch.Tensor):
                    self.assertTrue(torch.equal(found, expected))
                else:
                    self.assertEqual(found, expected)

    def test_scales(self):
        a, b, a_scales, b_scales, offs = cases.scaled("cuda", rows=1000, n=256, k=512)
        offs = cases.offsets("cuda", (100, 0, 700, 200))
        recipe, swizzle = F.ScalingType.RowWise, F.SwizzleType.NO_SWIZZLE
        for fast in (False, True):
            for name, call in (
                    ("_scaled_grouped_mm", lambda: torch._scaled_grouped_mm(
                        a, b, a_scales, b_scales, offs=offs, out_dtype=torch.bfloat16, use_fast_accum=fast)),
                    ("_scaled_grouped_mm_v2", lambda: F.scaled_grouped_mm(
                        a, b, a_scales, recipe, b_scales, recipe, swizzle, swizzle, offs=offs, use_fast_accum=fast))):
                with self.subTest(name, fast=fast):
                    found, expected = self.both(call)
                    self.assertEqual(self.count(name), (1, 0))
                    self.assertSameForm(found, expected)
                    torch.testing.assert_close(found, expected, rtol=2e-2, atol=5e-2 * expected.abs().max().item())

    def test_halves_do_not_wait_and_a_graph_replays_with_other_sizes(self):
        a, b = torch.randn(512, 64, device="cuda").half(), torch.randn(4, 64, 96, device="cuda").half()
        offs = cases.offsets("cuda", (100, 200, 0, 212))
        tmap.torch.install()
        F.grouped_mm(a, b, offs=offs)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            product = F.grouped_mm(a, b, offs=offs)
        other = (12, 0, 300, 200)
        offs.copy_(cases.offsets("cuda", other))
        graph.replay()
        self.assertEqual(self.count(), (2, 0))
        expected = torch.cat([part @ b[i] for i, part in enumerate(a.split(other))])
        torch.testing.assert_close(product, expected, rtol=1e-2, atol=1e-2)

    def test_compiled_programs_reach_it(self):
        a, b = torch.randn(512, 64, device="cuda").bfloat16(), torch.randn(4, 64, 96, device="cuda").bfloat16()
        offs = cases.offsets("cuda", (100, 200, 0, 212))
        expected = F.grouped_mm(a, b, offs=offs)
        tmap.torch.install()
        found = compiled(lambda a, b: F.grouped_mm(a, b, offs=offs), "inductor")(a, b)
        self.assertEqual(self.count(), (1, 0))
        torch.testing.assert_close(found, expected, rtol=1e-2, atol=1e-2)

    def test_multiprocessors_that_are_left_free(self):
        a, b = torch.randn(512, 64, device="cuda").bfloat16(), torch.randn(4, 64, 96, device="cuda").bfloat16()
        offs = cases.offsets("cuda", (100, 200, 0, 212))
        self.addCleanup(torch._C._set_sm_carveout_experimental, None)
        tmap.torch.install()
        torch._C._set_sm_carveout_experimental(8)
        F.grouped_mm(a, b, offs=offs)
        self.assertEqual(tmap.torch.installed_calls()["_grouped_mm"], (0, {rules.CARVEOUT: 1}))


if __name__ == "__main__":
    unittest.main()
