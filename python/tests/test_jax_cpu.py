# SPDX-License-Identifier: Apache-2.0
"""tmap.jax without a GPU: which calls it takes, what programs for CUDA call, and that all other
platforms get JAX's own products."""
import ctypes
import os
import unittest

import support

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
jax = support.need("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax import lax  # noqa: E402

import tmap.jax  # noqa: E402
from tmap._library import lib  # noqa: E402

BF16, F32 = jnp.bfloat16, jnp.float32
SIZES = np.array([3, 0, 5, 2], np.int32)  # of 13 rows: three belong to no group
TURNED = lax.RaggedDotDimensionNumbers((((1,), (2,)), ((), ())), (0,), (0,))
SUMS = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())


def whole(*shape, dtype=BF16, seed=1):
    """Small whole numbers: their products and sums are exact in every type."""
    return jnp.asarray(np.random.default_rng(seed).integers(-3, 4, shape), dtype)


def by_definition(lhs, rhs, sizes, first=0):
    out, begin = np.zeros((lhs.shape[0], rhs.shape[2])), 0
    for group, size in enumerate(sizes):
        if 0 <= group - first < rhs.shape[0]:
            rows = slice(begin, begin + size)
            out[rows] = np.float64(lhs[rows]) @ np.float64(rhs[group - first])
        begin += size
    return out


class TakenOnCuda(unittest.TestCase):
    """Values on the CPU, where JAX multiplies, and the calls in a program for CUDA."""
    lhs, rhs = whole(13, 16), whole(4, 16, 24, seed=2)

    def text_for_cuda(self, function, *arguments):
        exported = jax.export.export(jax.jit(function), platforms=["cuda"], disabled_checks=[
            jax.export.DisabledSafetyCheck.custom_call(name) for name in ("tmap_xla_rows", "tmap_xla_weights")])
        return exported(*arguments).mlir_module().split("func.func private")[0]

    def expect_equal(self, found, expected):
        np.testing.assert_array_equal(np.float64(found), np.float64(expected))

    def test_rows_have_their_groups_products_and_the_rest_is_zero(self):
        for result in (None, F32):
            out = jax.jit(lambda *given: tmap.jax.ragged_dot(*given, preferred_element_type=result))(
                self.lhs, self.rhs, SIZES)
            self.assertEqual(out.dtype, result or BF16)
            self.expect_equal(out, by_definition(self.lhs, self.rhs, SIZES))

    def test_a_program_for_cuda_calls_tmap_alone(self):
        text = self.text_for_cuda(tmap.jax.ragged_dot, self.lhs, self.rhs, SIZES)
        self.assertEqual(text.count("@tmap_xla_rows"), 1)
        self.assertNotIn("chlo.ragged_dot", text)
        self.assertIn("turned = 0 : i32", text)

    def test_a_program_for_the_cpu_does_not_call_tmap(self):
        text = jax.jit(tmap.jax.ragged_dot).lower(self.lhs, self.rhs, SIZES).as_text()
        self.assertNotIn("tmap_xla", text)

    def test_gradients_are_jax_s_and_call_both_handlers(self):
        def loss(function):
            return lambda a, b: (function(a, b, SIZES, preferred_element_type=F32) * self.slope).sum()
        self.slope = whole(13, 24, dtype=F32, seed=3)
        found = jax.grad(loss(tmap.jax.ragged_dot), (0, 1))(self.lhs, self.rhs)
        expected = jax.grad(loss(lax.ragged_dot), (0, 1))(self.lhs, self.rhs)
        for mine, theirs in zip(found, expected):
            self.assertEqual(mine.dtype, theirs.dtype)
            self.assertTrue(np.float64(mine).any())
            self.expect_equal(mine, theirs)
        text = self.text_for_cuda(jax.grad(loss(tmap.jax.ragged_dot), (0, 1)), self.lhs, self.rhs)
        self.assertEqual(text.count("@tmap_xla_weights"), 1)
        self.assertIn("turned = 1 : i32", text)

    def test_rows_by_turned_weights_and_their_gradients(self):
        turned = self.rhs.swapaxes(1, 2)
        call = lambda a, b: tmap.jax.ragged_dot_general(a, b, SIZES, TURNED, preferred_element_type=F32)
        self.expect_equal(call(self.lhs, turned), by_definition(self.lhs, self.rhs, SIZES))
        slope = whole(13, 24, dtype=F32, seed=3)
        found = jax.grad(lambda a, b: (call(a, b) * slope).sum(), (0, 1))(self.lhs, turned)
        expected = jax.grad(lambda a, b: (lax.ragged_dot(a, b, SIZES, preferred_element_type=F32) * slope).sum(),
                            (0, 1))(self.lhs, self.rhs)
        self.expect_equal(found[0], expected[0])
        self.expect_equal(found[1], expected[1].swapaxes(1, 2))
        self.assertIn("turned = 1 : i32", self.text_for_cuda(call, self.lhs, turned))

    def test_sums_over_rows_and_their_gradients(self):
        right, slope = whole(13, 24, seed=5), whole(4, 16, 24, dtype=F32, seed=6)
        call = lambda a, b: tmap.jax.ragged_dot_general(a, b, SIZES, SUMS, preferred_element_type=F32)
        groups = np.repeat(np.arange(5), [*SIZES, 3])
        one_hot = np.float64(groups[:, None] == np.arange(4))
        left, lines = np.float64(self.lhs), np.float64(right)
        self.expect_equal(call(self.lhs, right), np.einsum("rg,rm,rn->gmn", one_hot, left, lines))
        found = jax.grad(lambda a, b: (call(a, b) * slope).sum(), (0, 1))(self.lhs, right)
        self.expect_equal(found[0], np.einsum("rg,gmn,rn->rm", one_hot, np.float64(slope), lines))
        self.expect_equal(found[1], np.einsum("rg,gmn,rm->rn", one_hot, np.float64(slope), left))
        self.assertIn("@tmap_xla_weights", self.text_for_cuda(call, self.lhs, right))

    def test_a_shard_s_groups_by_group_offset(self):
        for first in (0, 1, 2):
            shard = self.rhs[first:first + 2]
            call = lambda a, b, o: tmap.jax.ragged_dot(a, b, SIZES, group_offset=o)
            offset = jnp.array([first], jnp.int32)
            self.expect_equal(jax.jit(call)(self.lhs, shard, offset),
                              by_definition(self.lhs, shard, SIZES, first))
            slopes = jax.grad(lambda b: call(self.lhs, b, offset).astype(F32).sum())(shard)
            theirs = jax.grad(lambda b: lax.ragged_dot(self.lhs, b, SIZES).astype(F32).sum())(self.rhs)
            self.expect_equal(slopes, theirs[first:first + 2])
        text = self.text_for_cuda(call, self.lhs, shard, offset)
        self.assertEqual(text.count("@tmap_xla_rows"), 1)

    def test_vmap_makes_one_call_with_more_groups(self):
        lhs, rhs = whole(3, 13, 16), whole(3, 4, 16, 24, seed=2)
        sizes = jnp.asarray(np.stack([SIZES, SIZES[::-1], 0 * SIZES]))
        call = jax.vmap(tmap.jax.ragged_dot)
        expected = np.stack([by_definition(*each) for each in zip(lhs, rhs, np.asarray(sizes))])
        self.expect_equal(call(lhs, rhs, sizes), expected)
        text = self.text_for_cuda(call, lhs, rhs, sizes)
        self.assertEqual(text.count("@tmap_xla_rows"), 1)
        self.assertIn("tensor<39x16xbf16>", text)
        self.assertNotIn("stablehlo.while", text)
        grad = jax.vmap(jax.grad(lambda a, b, s: tmap.jax.ragged_dot(a, b, s).astype(F32).sum(), (0, 1)))
        self.assertNotIn("stablehlo.while", self.text_for_cuda(grad, lhs, rhs, sizes))

    def test_vmap_over_shared_weights_is_a_loop(self):
        lhs, call = whole(3, 13, 16), jax.vmap(tmap.jax.ragged_dot, (0, None, None))
        self.expect_equal(call(lhs, self.rhs, SIZES),
                          np.stack([by_definition(each, self.rhs, SIZES) for each in lhs]))
        self.assertIn("stablehlo.while", self.text_for_cuda(call, lhs, self.rhs, SIZES))

    def test_vmap_over_sizes_of_numpy_and_shared_weights(self):
        lhs, sizes = whole(2, 13, 16), np.stack([SIZES, SIZES[::-1]])
        self.expect_equal(jax.vmap(tmap.jax.ragged_dot, (0, None, 0))(lhs, self.rhs, sizes),
                          np.stack([by_definition(a, self.rhs, s) for a, s in zip(lhs, sizes)]))

    def test_shard_map_over_two_devices(self):
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        P = jax.sharding.PartitionSpec
        lhs, sizes = whole(26, 16), np.concatenate([SIZES, SIZES[::-1]])
        call = jax.shard_map(tmap.jax.ragged_dot, mesh=mesh, in_specs=(P("x"), P(), P("x")), out_specs=P("x"))
        self.expect_equal(jax.jit(call)(lhs, self.rhs, sizes), np.concatenate(
            [by_definition(lhs[:13], self.rhs, sizes[:4]), by_definition(lhs[13:], self.rhs, sizes[4:])]))
        # The gradient of weights that both devices have is the sum of both.
        found = jax.jit(jax.grad(lambda b: call(lhs, b, sizes).astype(F32).sum()))(self.rhs)
        halves = [jax.grad(lambda b: lax.ragged_dot(half, b, cut).astype(F32).sum())(self.rhs)
                  for half, cut in ((lhs[:13], SIZES), (lhs[13:], SIZES[::-1]))]
        self.expect_equal(found, np.float64(halves[0]) + np.float64(halves[1]))


class Passed(unittest.TestCase):
    """Calls that go on to JAX, with the reason counted."""

    def expect_passed(self, reason, *arguments, **options):
        before = tmap.jax.calls()["ragged_dot"]
        out = tmap.jax.ragged_dot(*arguments, **options)
        after = tmap.jax.calls()["ragged_dot"]
        self.assertEqual(after.taken, before.taken)
        self.assertEqual(after.passed[reason], before.passed.get(reason, 0) + 1)
        np.testing.assert_array_equal(np.float64(out), np.float64(lax.ragged_dot(*arguments, **options)))

    def test_what_tmap_does_not_multiply(self):
        self.expect_passed(tmap.jax.TYPES, whole(13, 16, dtype=F32), whole(4, 16, 24, dtype=F32), SIZES)
        self.expect_passed(tmap.jax.UNITS, whole(13, 12), whole(4, 12, 24), SIZES)
        self.expect_passed(tmap.jax.UNITS, whole(13, 16), whole(4, 16, 20), SIZES)
        self.expect_passed(tmap.jax.RESULT, whole(13, 16), whole(4, 16, 24), SIZES,
                           preferred_element_type=jnp.float16)
        self.expect_passed(tmap.jax.SHAPES, whole(0, 16), whole(4, 16, 24), 0 * SIZES)

    def test_jax_judges_shapes_that_do_not_fit(self):
        with self.assertRaisesRegex((TypeError, ValueError), "contracting dim"):
            tmap.jax.ragged_dot(whole(13, 16), whole(4, 8, 24), SIZES)

    def test_what_is_no_array_is_named(self):
        with self.assertRaisesRegex(TypeError, "rhs is no array"):
            tmap.jax.ragged_dot(whole(13, 16), "weights", SIZES)

    def test_a_taken_call_is_counted_once(self):
        before = tmap.jax.calls()["ragged_dot"].taken
        call = jax.jit(lambda a: tmap.jax.ragged_dot(a, whole(4, 16, 24), SIZES))
        call(whole(13, 16)), call(whole(13, 16))
        self.assertEqual(tmap.jax.calls()["ragged_dot"].taken, before + 1)


class Handlers(unittest.TestCase):
    def test_xla_takes_the_handlers_and_gets_their_errors(self):
        """XLA of the CPU has no stream of CUDA. Its refusal is the error of the call."""
        function = lib.tmap_xla_rows
        function.argtypes, function.restype = (ctypes.c_void_p,), ctypes.c_void_p
        jax.ffi.register_ffi_target("tmap_rows_on_cpu", jax.ffi.pycapsule(function), platform="cpu")
        shapes = jax.ShapeDtypeStruct((13, 24), BF16), jax.ShapeDtypeStruct((1024,), jnp.uint8)
        call = jax.ffi.ffi_call("tmap_rows_on_cpu", shapes)
        with self.assertRaisesRegex(Exception, "GPU context|[Ss]tream"):
            jax.block_until_ready(call(whole(13, 16), whole(4, 16, 24), SIZES, turned=np.int32(0)))


if __name__ == "__main__":
    unittest.main()
