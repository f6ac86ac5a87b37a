# SPDX-License-Identifier: Apache-2.0
"""No call reads or writes outside the arrays it was given: on memory of the host, and what is
refused for it."""
import unittest

import support

np = support.need("numpy")
import tmap  # noqa: E402
from bounds_cases import Arena, BoundsCases  # noqa: E402
from tmap import ragged  # noqa: E402


class Operations(BoundsCases, unittest.TestCase):
    pass


class Dense(unittest.TestCase):
    """Dense arrays whose strides are not those of their shape."""

    def setUp(self):
        self.values, self.ends = np.ones((6, 4), np.float32), np.array((2, 6))

    def test_one_that_repeats_its_elements(self):
        # The library takes strides of 0 for ones that it works out itself.
        arena = Arena()
        one, step = arena.array(5, 4, value=1), np.lib.stride_tricks.as_strided
        for strides in ((0, 16, 4), (0, 0, 4), (80, 0, 4)):
            self.values[...] = 7
            with self.assertRaisesRegex(ValueError, "copy it first"):
                ragged.unpad(step(one, (2, 5, 4), strides), ragged.Rows(self.values, self.ends))
            self.assertTrue((self.values == 7).all())
            with self.assertRaises((ValueError, tmap.Error)):
                ragged.pad(ragged.Rows(self.values, self.ends), step(one, (2, 5, 4), strides))
            self.assertTrue(arena.canaries_live())

    def test_gaps_in_the_last_dim(self):
        wide = np.full((2, 5, 8), 9, np.float32)
        rows_of = ragged.Rows(self.values, self.ends)
        for call in (lambda: ragged.pad(rows_of, wide[..., ::2]), lambda: ragged.unpad(wide[..., ::2], rows_of)):
            with self.assertRaisesRegex(ValueError, "gaps"):
                call()
        self.assertTrue((wide == 9).all() and (self.values == 1).all())

    def test_strides_of_no_elements_are_of_no_account(self):
        step, values = np.lib.stride_tricks.as_strided, np.ones((0, 4), np.float32)
        for shape in ((0, 5, 4), (2, 0, 4), (2, 5, 0)):
            dense, ends = step(np.ones(40, np.float32), shape, (0, 0, 0)), np.zeros(shape[0], np.int64)
            tensors = values[:, :shape[2]]
            ragged.pad(ragged.Rows(tensors, ends), dense)
            ragged.unpad(dense, ragged.Rows(tensors, ends))

    def test_strides_that_lead_back(self):
        back = np.ones((6, 4), np.float32)[::-1]
        out = np.zeros((2, 5, 4), np.float32)
        for call in (lambda: ragged.pad(ragged.Rows(back, self.ends), out), lambda: ragged.pad(
                ragged.Rows(self.values, self.ends), out[::-1]), lambda: ragged.gather_rows(back, self.ends, self.values),
                lambda: ragged.copy(ragged.Tensors([back]), ragged.Tensors([self.values])),
                lambda: tmap.TensorSpec.of(back, (1, 4))):
            with self.assertRaisesRegex(ValueError, "negative strides"):
                call()


class Gaps(unittest.TestCase):
    """In the last dim, of every kind of side; and what is one element wide has none."""

    def test_every_kind_of_side_refuses_them(self):
        wide, whole, ends = np.ones((6, 8), np.float32), np.ones((6, 4), np.float32), np.array((2, 6))
        gaps, rows_of = wide[:, ::2], ragged.Rows(whole, ends)
        for call in (lambda: ragged.copy(ragged.Rows(gaps, ends), rows_of),
                     lambda: ragged.copy(rows_of, ragged.Rows(gaps, ends)),
                     lambda: ragged.copy(ragged.Tensors([gaps]), ragged.Tensors([whole])),
                     lambda: ragged.copy(ragged.Tensors([whole]), ragged.Tensors([gaps])),
                     lambda: ragged.gather_rows(whole, np.array((0, 9, 1))[::2], whole.copy()),
                     lambda: ragged.gather_rows(gaps, ends[:1], whole), lambda: ragged.gather_rows(whole, ends[:1], gaps),
                     lambda: ragged.pack(rows_of, wide.view(np.uint8).ravel()[::2]),
                     lambda: ragged.pad(rows_of, np.ones((2, 6, 8), np.float32)[..., ::2]),
                     lambda: ragged.pad(ragged.Rows(whole, np.array((2, 0, 6, 0))[::2]), np.ones((2, 6, 4), np.float32)),
                     lambda: ragged.cast(rows_of, ragged.Rows(whole.copy(), ends), scales=np.ones(4, np.float32)[::2])):
            with self.assertRaisesRegex(ValueError, "gaps"):
                call()
        self.assertTrue((wide == 1).all() and (whole == 1).all())

    def test_one_element_has_none(self):
        wide, out = np.arange(12, dtype=np.float32).reshape(6, 2), np.zeros((2, 4, 1), np.float32)
        narrow = wide[:, 1::2]
        self.assertNotEqual(narrow.strides[1], 4)
        ragged.pad(ragged.Rows(narrow, np.array((2, 6))), out)
        self.assertEqual(out[1, :, 0].tolist(), [5, 7, 9, 11])
        ragged.copy(ragged.Tensors([narrow]), ragged.Tensors([out[0, :, ::1].repeat(2, 0)[:6]]))


class Short(unittest.TestCase):
    def test_arrays_with_an_element_for_each_tensor(self):
        values, ends = np.ones((6, 4), np.float32), np.array((2, 6))
        rows_of, other = ragged.Rows(values, ends), ragged.Rows(np.zeros((6, 4), np.float32), ends)
        packed = np.zeros(96, np.uint8)
        for call in (lambda: ragged.pack(rows_of, packed, begins=np.zeros(2, np.int64)),
                     lambda: ragged.unpack(packed, rows_of, begins=np.zeros(2, np.int64)),
                     lambda: ragged.cast(rows_of, other, scales=np.ones(1, np.float32)),
                     lambda: ragged.cast(rows_of, other, shifts=np.ones(1, np.float32)),
                     lambda: ragged.copy(rows_of, other, statuses=np.zeros(1, np.uint32)),
                     lambda: ragged.copy(rows_of, other, header=np.zeros(3, np.uint32)),
                     lambda: ragged.gather_rows(values, ends[:1], values.copy(), statuses=np.zeros(0, np.uint32)),
                     lambda: ragged.copy(rows_of, other, windows=np.zeros((2, 3), np.uint64)),
                     lambda: ragged.copy(rows_of, other, windows=np.zeros((4, 2), np.uint64)[::2])):
            with self.assertRaises(ValueError):
                call()


if __name__ == "__main__":
    unittest.main()
