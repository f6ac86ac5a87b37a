# SPDX-License-Identifier: Apache-2.0
"""tmap.jax on a GPU: values against float64, gradients, batches, replays with other sizes, and two
devices."""
import unittest

import numpy as np

import support

jax = support.need_jax_gpu()
if str(jax.devices()[0].compute_capability) != "9.0":
    raise unittest.SkipTest("no Hopper GPU")
import jax.numpy as jnp  # noqa: E402

import tmap.jax  # noqa: E402

F32 = jnp.float32
SIZES = np.array([0, 100, 7, 0, 300, 1, 64], np.int32)  # of 600 rows: 128 belong to no group
ROWS, K, N, GROUPS = 600, 256, 136, len(SIZES)
TURNED = jax.lax.RaggedDotDimensionNumbers((((1,), (2,)), ((), ())), (0,), (0,))
SUMS = jax.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())


def normal(*shape, dtype, seed):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


def groups_of(sizes):
    ends = np.cumsum(sizes)
    return [slice(end - size, end) for end, size in zip(ends, sizes)]


def rows_of(lhs, rhs, sizes, first=0):
    out = np.zeros((lhs.shape[0], rhs.shape[2]))
    for group, rows in enumerate(groups_of(sizes)):
        if 0 <= group - first < rhs.shape[0]:
            out[rows] = np.float64(lhs[rows]) @ np.float64(rhs[group - first])
    return out


def sums_of(lhs, rhs, sizes):
    return np.stack([np.float64(lhs[rows]).T @ np.float64(rhs[rows]) for rows in groups_of(sizes)])


class Products(unittest.TestCase):
    def expect_close(self, found, expected, k=K):
        # Sums of f32, rounded once to 16 bits.
        bits = {"bfloat16": 8, "float16": 11, "float32": 20}[str(found.dtype)]
        bound = 2.0**-bits * (np.abs(expected) + 4 * np.sqrt(k)) + 1e-4
        difference = np.abs(np.float64(found) - expected)
        self.assertTrue((difference <= bound).all(), f"off by {(difference / bound).max()} bounds")

    def operands(self, dtype=jnp.bfloat16):
        return normal(ROWS, K, dtype=dtype, seed=1), normal(GROUPS, K, N, dtype=dtype, seed=2)

    def poison(self):
        """Fills memory that XLA gives to the next results."""
        jax.block_until_ready([jnp.full((GROUPS, K, N), np.nan, jnp.bfloat16) + each for each in range(8)])

    def test_rows_and_zeros_past_the_last_group(self):
        for dtype in (jnp.bfloat16, jnp.float16):
            lhs, rhs = self.operands(dtype)
            for result in (None, F32):
                self.poison()
                out = tmap.jax.ragged_dot(lhs, rhs, SIZES, preferred_element_type=result)
                self.expect_close(out, rows_of(lhs, rhs, SIZES))
                self.assertFalse(np.float64(out[SIZES.sum():]).any())

    def test_gradients(self):
        lhs, rhs = self.operands()
        slope = normal(ROWS, N, dtype=jnp.bfloat16, seed=3)
        loss = lambda a, b, s: (tmap.jax.ragged_dot(a, b, s, preferred_element_type=F32) * slope.astype(F32)).sum()
        of_lhs, of_rhs = jax.jit(jax.grad(loss, (0, 1)))(lhs, rhs, SIZES)
        self.expect_close(of_lhs, rows_of(slope, np.swapaxes(rhs, 1, 2), SIZES), N)
        self.expect_close(of_rhs, sums_of(lhs, slope, SIZES), ROWS)
        self.assertFalse(np.float64(of_rhs[0]).any())

    def test_general_products(self):
        lhs, rhs = self.operands()
        right = normal(ROWS, N, dtype=jnp.bfloat16, seed=4)
        turned = jnp.swapaxes(rhs, 1, 2)
        self.expect_close(tmap.jax.ragged_dot_general(lhs, turned, SIZES, TURNED), rows_of(lhs, rhs, SIZES))
        self.expect_close(tmap.jax.ragged_dot_general(lhs, right, SIZES, SUMS, preferred_element_type=F32),
                          sums_of(lhs, right, SIZES), ROWS)

    def test_a_shard_s_groups(self):
        lhs, rhs = self.operands()
        call = jax.jit(lambda a, b, s, o: tmap.jax.ragged_dot(a, b, s, group_offset=o))
        for first in (0, 1, 4):
            self.expect_close(call(lhs, rhs[first:first + 3], SIZES, jnp.array([first])),
                              rows_of(lhs, rhs[first:first + 3], SIZES, first))

    def test_a_compiled_program_takes_other_sizes(self):
        """Six products in one program are enough for XLA to make a graph of them."""
        lhs = self.operands()[0]
        many = normal(6, GROUPS, K, N, dtype=jnp.bfloat16, seed=8)
        call = jax.jit(lambda a, b, s: [tmap.jax.ragged_dot(a, b[each], s) for each in range(6)])
        for seed in range(4):
            sizes = np.random.default_rng(seed).multinomial(ROWS - 60, np.ones(GROUPS) / GROUPS).astype(np.int32)
            for rhs, out in zip(many, call(lhs, many, sizes)):
                self.expect_close(out, rows_of(lhs, rhs, sizes))

    def test_vmap(self):
        lhs, rhs = normal(3, ROWS, K, dtype=jnp.bfloat16, seed=5), normal(3, GROUPS, K, N, dtype=jnp.bfloat16, seed=6)
        sizes = np.stack([SIZES, SIZES[::-1], 0 * SIZES])
        found = jax.jit(jax.vmap(tmap.jax.ragged_dot))(lhs, rhs, sizes)
        shared = jax.vmap(tmap.jax.ragged_dot, (0, None, 0))(lhs, rhs[0], sizes)
        for each in range(3):
            self.expect_close(found[each], rows_of(lhs[each], rhs[each], sizes[each]))
            self.expect_close(shared[each], rows_of(lhs[each], rhs[0], sizes[each]))

    def test_sizes_past_the_last_row_leave_zeros(self):
        lhs, rhs = self.operands()
        sizes = SIZES.copy()
        sizes[4] = 900
        self.poison()
        out = tmap.jax.ragged_dot(lhs, rhs, sizes)
        self.expect_close(out[:107], rows_of(lhs, rhs, SIZES)[:107])
        self.assertFalse(np.float64(out[107:]).any())
        self.poison()
        of_rhs = jax.grad(lambda b: tmap.jax.ragged_dot(lhs, b, sizes).astype(F32).sum())(rhs)
        self.expect_close(of_rhs[:3], sums_of(lhs, np.ones((ROWS, N)), SIZES)[:3], ROWS)
        self.assertFalse(np.float64(of_rhs[3:]).any())

    def test_shard_map(self):
        devices = jax.devices()[:2]
        mesh = jax.make_mesh((len(devices),), ("x",), axis_types=(jax.sharding.AxisType.Auto,), devices=devices)
        P = jax.sharding.PartitionSpec
        lhs = normal(len(devices) * ROWS, K, dtype=jnp.bfloat16, seed=7)
        rhs, sizes = self.operands()[1], np.concatenate([SIZES, SIZES[::-1]][:len(devices)])
        call = jax.jit(jax.shard_map(tmap.jax.ragged_dot, mesh=mesh, in_specs=(P("x"), P(), P("x")), out_specs=P("x")))
        out = call(lhs, rhs, sizes)
        for each in range(len(devices)):
            rows = slice(each * ROWS, (each + 1) * ROWS)
            self.expect_close(out[rows], rows_of(lhs[rows], rhs, sizes[each * GROUPS:][:GROUPS]))

    def test_a_workspace_that_is_too_small_is_an_error_and_no_crash(self):
        lhs, rhs = self.operands()
        tmap.jax.register()
        call = jax.ffi.ffi_call("tmap_xla_rows", (jax.ShapeDtypeStruct((ROWS, N), lhs.dtype),
                                                  jax.ShapeDtypeStruct((8,), jnp.uint8)))
        with self.assertRaisesRegex(Exception, "workspace_bytes"):
            jax.block_until_ready(call(lhs, rhs, SIZES, turned=np.int32(0)))


if __name__ == "__main__":
    unittest.main()
