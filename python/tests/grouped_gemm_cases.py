# SPDX-License-Identifier: Apache-2.0
"""What tmap.compat.grouped_gemm promises on every device."""
import torch

from tmap.compat import grouped_gemm

SIZES = (5, 0, 40, 19)
TOKENS, M, N, K = sum(SIZES), 24, 48, 32


def loop(a, b, trans_b=False):
    """The rows of each group multiplied by its matrix, in plain PyTorch."""
    parts = [part @ (b[i].t() if trans_b else b[i]) for i, part in enumerate(a[:TOKENS].split(SIZES))]
    return torch.cat(parts)


class GroupedGemmCases:
    dtype = torch.bfloat16

    def setUp(self):
        torch.manual_seed(5)

    def random(self, *shape):
        return (torch.randn(*shape, device=self.device) * 0.3).to(self.dtype).requires_grad_()

    def sizes(self):
        for dtype in (torch.int32, torch.int64):
            for device in {"cpu", self.device}:
                yield torch.tensor(SIZES, device=device, dtype=dtype)

    def assertNear(self, found, expected):
        self.assertEqual((found.shape, found.dtype), (expected.shape, expected.dtype))
        torch.testing.assert_close(found, expected, rtol=2e-2, atol=2e-2)

    def test_values_and_gradients(self):
        for trans_b in (False, True):
            for sizes in self.sizes():
                with self.subTest(trans_b=trans_b, device=sizes.device, dtype=sizes.dtype):
                    a = self.random(TOKENS, K)
                    b = self.random(len(SIZES), *((N, K) if trans_b else (K, N)))
                    d_out = torch.randn_like(loop(a, b, trans_b)).detach()
                    expected = loop(a, b, trans_b)
                    of_a, of_b = torch.autograd.grad(expected, (a, b), d_out)
                    found = grouped_gemm.ops.gmm(a, b, sizes, trans_b)
                    found.backward(d_out)
                    for one, other in ((found, expected), (a.grad, of_a), (b.grad, of_b)):
                        self.assertNear(one, other)
                    self.assertEqual(b.grad[1].count_nonzero(), 0)
                    self.assertTrue(b.grad.is_contiguous())

    def test_rows_of_no_group_have_gradients_of_zero(self):
        a, b = self.random(TOKENS + 3, K), self.random(len(SIZES), K, N)
        product = grouped_gemm.ops.gmm(a, b, next(self.sizes()))
        self.assertNear(product[:TOKENS], loop(a, b))
        product.backward(torch.ones_like(product))
        self.assertEqual(a.grad[TOKENS:].count_nonzero(), 0)

    def test_calls_without_gradients(self):
        a, b, x = self.random(TOKENS, K), self.random(len(SIZES), K, N), self.random(TOKENS, M)
        gmm = grouped_gemm.backend.gmm
        for sizes in self.sizes():
            found = gmm(a, b, sizes), gmm(a, b.transpose(1, 2).contiguous(), sizes, trans_b=True)
            for product in found:
                self.assertFalse(product.requires_grad)
                self.assertNear(product, loop(a, b).detach())
            sums = gmm(a, x, sizes, trans_a=True)
            parts = zip(a.split(SIZES), x.split(SIZES))
            self.assertNear(sums, torch.stack([left.t() @ right for left, right in parts]).detach())

    def test_refused_arguments(self):
        a, b, sizes = self.random(TOKENS, K), self.random(len(SIZES), K, N), next(self.sizes())
        gmm = grouped_gemm.backend.gmm
        refused = (("trans_a", lambda: gmm(a, b, sizes, True, True)), ("a has 3", lambda: gmm(b, b, sizes)),
                   ("b has 3", lambda: gmm(a, b, sizes, trans_a=True)), ("b has 2", lambda: gmm(a, a, sizes)),
                   ("batch_sizes has 2", lambda: gmm(a, b, sizes[None])),
                   ("batch_sizes is of torch.float32", lambda: gmm(a, b, sizes.float())),
                   ("c is", lambda: gmm(a, b, sizes, c=torch.empty(TOKENS, N + 8, device=self.device, dtype=self.dtype))),
                   ("c is", lambda: gmm(a, b, sizes, c=torch.empty(TOKENS, N, device=self.device))))
        for words, call in refused:
            with self.subTest(words), self.assertRaisesRegex((ValueError, TypeError), words):
                call()
