# SPDX-License-Identifier: Apache-2.0
"""Padding of tmap.jax without a GPU: values, gradients, batches and devices of the CPU, and what
programs for CUDA call."""
import os
import unittest

import support

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
jax = support.need("jax")
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

import tmap.jax  # noqa: E402
from jax_padding_cases import SIZES, padded_by_definition, unpadded_by_definition  # noqa: E402

VALUES = jnp.arange(1, 27, dtype=jnp.float32).reshape(13, 2)
LOST = [7, 10, 11, 12]  # the fifth row of its group, and the rows of no group


def text_for_cuda(function, *arguments):
    exported = jax.export.export(jax.jit(function), platforms=["cuda"], disabled_checks=[
        jax.export.DisabledSafetyCheck.custom_call(name) for name in ("tmap_xla_pad_rows", "tmap_xla_unpad_rows")])
    return exported(*arguments).mlir_module().split("func.func private")[0]


class Values(unittest.TestCase):
    def test_rows_go_to_slots_and_back(self):
        padded = jax.jit(lambda v, s: tmap.jax.pad_ragged(v, s, 4, fill=-1))(VALUES, SIZES)
        np.testing.assert_array_equal(padded, padded_by_definition(VALUES, SIZES, 4, -1))
        back = np.array(VALUES)
        back[LOST] = 0
        np.testing.assert_array_equal(tmap.jax.unpad_ragged(padded, SIZES, 13), back)

    def test_sizes_past_the_last_row_are_cut(self):
        sizes = np.array([3, 20, 2], np.int32)
        np.testing.assert_array_equal(tmap.jax.pad_ragged(VALUES, sizes, 12, fill=7),
                                      padded_by_definition(VALUES, sizes, 12, 7))

    def test_no_groups(self):
        nothing = np.zeros(0, np.int32)
        self.assertEqual(tmap.jax.pad_ragged(VALUES, nothing, 4).shape, (0, 4, 2))
        self.assertFalse(tmap.jax.unpad_ragged(jnp.ones((0, 4, 2)), nothing, 3).any())

    def test_no_rows(self):
        padded = tmap.jax.pad_ragged(VALUES[:0], SIZES, 4, fill=2)
        np.testing.assert_array_equal(padded, np.full((4, 4, 2), 2))

    def test_shard_map_over_two_devices(self):
        mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
        P = jax.sharding.PartitionSpec
        call = jax.jit(jax.shard_map(lambda v, s: tmap.jax.unpad_ragged(tmap.jax.pad_ragged(v, s, 4), s, 13) ** 2,
                                     mesh=mesh, in_specs=(P(), P("x")), out_specs=P("x")))
        sizes = np.concatenate([SIZES, SIZES[::-1]])
        halves = [unpadded_by_definition(padded_by_definition(VALUES, each, 4, 0), each, 13)
                  for each in (SIZES, SIZES[::-1])]
        np.testing.assert_array_equal(call(VALUES, sizes), np.concatenate(halves) ** 2)
        # The gradient of values that both devices have is the sum of both.
        np.testing.assert_array_equal(jax.jit(jax.grad(lambda v: call(v, sizes).sum()))(VALUES), 2 * sum(halves))

    def test_errors_name_the_argument(self):
        with self.assertRaisesRegex(TypeError, "group_sizes"):
            tmap.jax.pad_ragged(VALUES, jnp.ones(3), 4)
        with self.assertRaisesRegex(ValueError, "padded"):
            tmap.jax.unpad_ragged(VALUES, SIZES)


class Gradients(unittest.TestCase):
    def test_they_come_from_the_places_of_rows(self):
        slope = jax.grad(lambda v: (tmap.jax.pad_ragged(v, SIZES, 4, fill=9)**2).sum())(VALUES)
        expected = 2 * np.array(VALUES)
        expected[LOST] = 0
        np.testing.assert_array_equal(slope, expected)

    def test_of_the_inverse_they_go_to_the_places_of_rows(self):
        padded, weights = jnp.ones((4, 4, 2)), VALUES
        slope = jax.grad(lambda d: (tmap.jax.unpad_ragged(d, SIZES, 13) * weights).sum())(padded)
        np.testing.assert_array_equal(slope, padded_by_definition(VALUES, SIZES, 4, 0))

    def test_second_gradients(self):
        loss = lambda v: (tmap.jax.pad_ragged(v, SIZES, 4)**3).sum()
        found = jax.grad(lambda v: jax.grad(loss)(v).sum())(VALUES)
        expected = 6 * np.array(VALUES)
        expected[LOST] = 0
        np.testing.assert_array_equal(found, expected)

    def test_numbers_without_a_gradient_may_be_padded_next_to_others(self):
        ids = jnp.arange(13)
        slope = jax.grad(lambda v: (tmap.jax.pad_ragged(v[:, 0], SIZES, 4) * tmap.jax.pad_ragged(ids, SIZES, 4)).sum())
        expected = np.zeros((13, 2))
        expected[:, 0] = ids
        expected[LOST] = 0
        np.testing.assert_array_equal(slope(VALUES), expected)


class Batches(unittest.TestCase):
    def test_values_are_those_of_single_calls(self):
        values, sizes = jnp.stack([VALUES, VALUES + 50]), np.stack([SIZES, SIZES[::-1]])
        pad = lambda v, s: tmap.jax.pad_ragged(v, s, 4, fill=-1)
        for axes in ((0, 0), (None, 0), (0, None)):
            given = values if axes[0] == 0 else VALUES, sizes if axes[1] == 0 else SIZES
            found = jax.vmap(pad, axes)(*given)
            for each in range(2):
                one = [array[each] if axis == 0 else array for array, axis in zip(given, axes)]
                np.testing.assert_array_equal(found[each], padded_by_definition(*one, 4, -1))


class OnCuda(unittest.TestCase):
    def test_a_program_calls_one_handler(self):
        text = text_for_cuda(lambda v, s: tmap.jax.pad_ragged(v, s, 4, fill=1.5), VALUES, SIZES)
        self.assertEqual(text.count("@tmap_xla_pad_rows"), 1)
        self.assertIn(f"fill = {0x3fc00000} : i64", text)
        self.assertNotIn("gather", text)
        text = text_for_cuda(lambda d, s: tmap.jax.unpad_ragged(d, s), jnp.ones((4, 4, 2)), SIZES)
        self.assertEqual(text.count("@tmap_xla_unpad_rows"), 1)
        self.assertNotIn("gather", text)

    def test_the_fill_has_the_element_s_bytes(self):
        for dtype, fill, bits in ((jnp.int8, -1, 0xff), (jnp.bfloat16, -2, 0xc000), (jnp.bool_, True, 1)):
            values = jnp.zeros((13, 2), dtype)
            text = text_for_cuda(lambda v, s: tmap.jax.pad_ragged(v, s, 4, fill=fill), values, SIZES)
            self.assertIn(f"fill = {bits} : i64", text)

    def test_gradients_call_the_other_handler(self):
        slope = jax.grad(lambda v: (tmap.jax.pad_ragged(v, SIZES, 4)**2).sum())
        self.assertEqual(text_for_cuda(slope, VALUES).count("@tmap_xla_unpad_rows"), 1)
        slope = jax.grad(lambda d: (tmap.jax.unpad_ragged(d, SIZES)**2).sum())
        self.assertEqual(text_for_cuda(slope, jnp.ones((4, 4, 2))).count("@tmap_xla_pad_rows"), 1)

    def test_a_batch_is_one_call(self):
        text = text_for_cuda(jax.vmap(lambda v, s: tmap.jax.pad_ragged(v, s, 4)), jnp.stack([VALUES] * 3),
                             np.stack([SIZES] * 3))
        self.assertEqual(text.count("@tmap_xla_pad_rows"), 1)
        self.assertNotIn("stablehlo.while", text)

    def test_elements_that_no_handler_takes_are_gathered(self):
        text = text_for_cuda(lambda v, s: tmap.jax.pad_ragged(v, s, 4), VALUES.astype(jnp.int4), SIZES)
        self.assertIn("gather", text)
        self.assertNotIn("tmap_xla", text)


if __name__ == "__main__":
    unittest.main()
