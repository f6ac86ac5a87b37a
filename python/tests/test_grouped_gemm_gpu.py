# SPDX-License-Identifier: Apache-2.0
"""tmap.compat.grouped_gemm on the GPU, with results of the caller's, and without waits."""
import unittest

import support

torch = support.need_torch_gpu()
from grouped_gemm_cases import M, N, K, SIZES, TOKENS, GroupedGemmCases, loop  # noqa: E402

from tmap.compat import grouped_gemm  # noqa: E402


class Calls(GroupedGemmCases, unittest.TestCase):
    device = "cuda"

    def test_results_of_the_callers(self):
        a, b, x = self.random(TOKENS + 3, K), self.random(len(SIZES), K, N), self.random(TOKENS + 3, M)
        for sizes in self.sizes():
            c = torch.full((TOKENS + 3, N), 7, device="cuda", dtype=self.dtype)
            self.assertIs(grouped_gemm.backend.gmm(a, b, sizes, c=c), c)
            self.assertNear(c[:TOKENS], loop(a, b).detach())
            self.assertEqual(c[TOKENS:].unique().tolist(), [7])
            sums = torch.full((len(SIZES), K, M), 7, device="cuda", dtype=self.dtype)
            grouped_gemm.backend.gmm(a, x, sizes, trans_a=True, c=sums)
            self.assertTrue(torch.equal(sums, grouped_gemm.backend.gmm(a, x, sizes, trans_a=True)))
            self.assertEqual(sums[1].count_nonzero(), 0)

    def test_sizes_on_the_device_are_not_read(self):
        a, b = self.random(TOKENS, K), self.random(len(SIZES), K, N)
        sizes = torch.tensor(SIZES, device="cuda")
        grouped_gemm.ops.gmm(a, b, sizes)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        self.addCleanup(torch.cuda.set_sync_debug_mode, "default")
        product = grouped_gemm.ops.gmm(a, b, sizes)
        product.backward(product.detach())


class Halves(Calls):
    dtype = torch.float16


if __name__ == "__main__":
    unittest.main()
