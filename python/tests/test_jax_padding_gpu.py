# SPDX-License-Identifier: Apache-2.0
"""Padding of tmap.jax on a GPU, byte for byte: types, sizes that do not fit, gradients, batches and
replays with other sizes."""
import unittest

import numpy as np

import support

jax = support.need_jax_gpu()
if str(jax.devices()[0].compute_capability) != "9.0":
    raise unittest.SkipTest("no Hopper GPU")
import jax.numpy as jnp  # noqa: E402

import tmap.jax  # noqa: E402
from jax_padding_cases import padded_by_definition, unpadded_by_definition  # noqa: E402

SIZES = np.array([0, 100, 7, 0, 300, 1, 64], np.int32)  # of 600 rows: 128 belong to no group
ROWS, SLOT = 600, 128


def some(*shape, dtype, seed=1):
    return jnp.asarray(np.random.default_rng(seed).integers(0, 2 if dtype == jnp.bool_ else 100, shape)).astype(dtype)


class Padding(unittest.TestCase):
    def setUp(self):
        """Fills memory that XLA gives to the next results."""
        jax.block_until_ready([jnp.full((len(SIZES), SLOT, 33), 0x5a5a5a5a, jnp.int32) + each for each in range(4)])

    def expect_same(self, found, expected):
        self.assertEqual(np.asarray(found).tobytes(), expected.tobytes())

    def test_every_type_and_row(self):
        """Rows of 1 to 132 bytes, which the kernels move in units of 1, 2, 4 and 16 bytes."""
        for dtype, columns, fill in ((jnp.bool_, (), True), (jnp.int8, (3,), -1), (jnp.uint16, (5,), 9),
                                     (jnp.bfloat16, (8,), -2.5), (jnp.float32, (33,), np.nan),
                                     (jnp.complex64, (3, 1), 1 + 2j), (jnp.float8_e4m3fn, (16,), 0.5)):
            with self.subTest(dtype=dtype, columns=columns):
                values = some(ROWS, *columns, dtype=dtype)
                padded = tmap.jax.pad_ragged(values, SIZES, SLOT, fill=fill)
                self.expect_same(padded, padded_by_definition(values, SIZES, SLOT, fill))
                self.expect_same(tmap.jax.unpad_ragged(padded, SIZES, ROWS),
                                 unpadded_by_definition(padded, SIZES, ROWS))

    def test_sizes_past_the_last_row_and_no_rows(self):
        values, sizes = some(ROWS, 8, dtype=jnp.float32), np.array([500, 200, 5], np.int32)
        self.expect_same(tmap.jax.pad_ragged(values, sizes, 256, fill=3), padded_by_definition(values, sizes, 256, 3))
        self.expect_same(tmap.jax.pad_ragged(values[:0], SIZES, 4, fill=2), np.full((7, 4, 8), 2, np.float32))
        nothing = jnp.zeros((0, 4, 8), jnp.float32)
        self.expect_same(tmap.jax.unpad_ragged(nothing, SIZES[:0], 3), np.zeros((3, 8), np.float32))

    def test_gradients(self):
        values = some(ROWS, 8, dtype=jnp.float32)
        slope = jax.jit(jax.grad(lambda v, s: (tmap.jax.pad_ragged(v, s, SLOT, fill=9)**2).sum()))(values, SIZES)
        padded = padded_by_definition(values, SIZES, SLOT, 0)
        self.expect_same(slope, 2 * unpadded_by_definition(padded, SIZES, ROWS))
        loss = lambda d, s: (tmap.jax.unpad_ragged(d, s, ROWS) * values).sum()
        self.expect_same(jax.jit(jax.grad(loss))(jnp.asarray(padded), SIZES), padded)

    def test_a_batch_has_the_values_of_single_calls(self):
        values, sizes = some(3, ROWS, 6, dtype=jnp.bfloat16), np.stack([SIZES, SIZES[::-1], 0 * SIZES])
        padded = jax.jit(jax.vmap(lambda v, s: tmap.jax.pad_ragged(v, s, SLOT, fill=-1)))(values, sizes)
        back = jax.vmap(lambda d, s: tmap.jax.unpad_ragged(d, s, ROWS))(padded, sizes)
        shared = jax.vmap(lambda v: tmap.jax.pad_ragged(v, SIZES, SLOT))(values)
        for each in range(3):
            self.expect_same(padded[each], padded_by_definition(values[each], sizes[each], SLOT, -1))
            self.expect_same(back[each], unpadded_by_definition(padded[each], sizes[each], ROWS))
            self.expect_same(shared[each], padded_by_definition(values[each], SIZES, SLOT, 0))

    def test_a_compiled_program_takes_other_sizes(self):
        """Six paddings in one program are enough for XLA to make a graph of them."""
        values = some(6, ROWS, 8, dtype=jnp.bfloat16)
        call = jax.jit(lambda v, s: [tmap.jax.pad_ragged(v[each], s, SLOT) for each in range(6)])
        for seed in range(4):
            sizes = np.random.default_rng(seed).multinomial(ROWS - 60, np.ones(7) / 7).astype(np.int32)
            for given, padded in zip(values, call(values, sizes)):
                self.expect_same(padded, padded_by_definition(given, sizes, SLOT, 0))

    def test_shard_map(self):
        devices = jax.devices()[:2]
        mesh = jax.make_mesh((len(devices),), ("x",), axis_types=(jax.sharding.AxisType.Auto,), devices=devices)
        P = jax.sharding.PartitionSpec
        values = some(len(devices) * ROWS, 8, dtype=jnp.float32)
        sizes = np.concatenate([SIZES, SIZES[::-1]][:len(devices)])
        padded = jax.jit(jax.shard_map(lambda v, s: tmap.jax.pad_ragged(v, s, SLOT), mesh=mesh,
                                       in_specs=(P("x"), P("x")), out_specs=P("x")))(values, sizes)
        for each in range(len(devices)):
            groups = slice(each * len(SIZES), (each + 1) * len(SIZES))
            self.expect_same(padded[groups], padded_by_definition(values[each * ROWS:(each + 1) * ROWS],
                                                                  sizes[groups], SLOT, 0))


if __name__ == "__main__":
    unittest.main()
