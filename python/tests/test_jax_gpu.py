# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX are read, in stream order; results go to PyTorch's and come back to JAX by
DLPack."""
import unittest

import support

jax = support.need_jax_gpu()
torch = support.need_torch_gpu()
import jax.numpy as jnp  # noqa: E402

import tmap  # noqa: E402
from tmap import ragged  # noqa: E402


class Arrays(unittest.TestCase):
    def test_what_jax_is_still_computing_is_waited_for(self):
        step = jax.jit(lambda x: jnp.tanh(x @ x) + 1)
        x = jnp.ones((2048, 2048), jnp.float32) * 0.01
        for _ in range(10):
            x = step(x)
        ends = jnp.array([1000, 2048], jnp.int32)
        out = torch.full((2, 1048, 2048), 3, device="cuda", dtype=torch.float32)
        ragged.pad(ragged.Rows(x, ends), out, fill=-1)
        back = jax.dlpack.from_dlpack(out)
        self.assertTrue(bool((back[0, :1000] == x[:1000]).all()))
        self.assertTrue(bool((back[1] == x[1000:]).all()))
        self.assertTrue(bool((back[0, 1000:] == -1).all()))

    def test_a_product_of_three_libraries(self):
        a = jnp.ones((64, 32), jnp.bfloat16)
        w = jnp.ones((2, 32, 16), jnp.bfloat16) * 2
        out = torch.zeros((64, 16), device="cuda", dtype=torch.bfloat16)
        tmap.grouped_mm(a, w, jnp.array([10, 64], jnp.int32), out=out)
        self.assertEqual(out.unique().tolist(), [64])

    def test_they_are_never_written(self):
        x = jnp.zeros((4, 4), jnp.float32)
        values, ends = torch.ones(4, 4, device="cuda"), torch.tensor([4], device="cuda")
        with self.assertRaises(ValueError):
            ragged.pad(ragged.Rows(values, ends), x[None])
        self.assertFalse(bool(x.any()))


if __name__ == "__main__":
    unittest.main()
