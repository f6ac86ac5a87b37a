# SPDX-License-Identifier: Apache-2.0
"""No call reads or writes outside the arrays it was given, whatever offsets and indices hold: every operation on memory
of the host, its arrays between canaries."""
import itertools
import unittest

import support

np = support.need("numpy")
import tmap  # noqa: E402
from tmap import ragged  # noqa: E402

CANARY = 0x7E  # as f32 8.4e37, as f16 and what is computed of it far beyond all values
ROWS, WIDTH = 10, 4
FORMATS = ("ends", "prefix", "sizes")


class Arena:
    """Arrays with canaries around each."""

    def __init__(self):
        self.bytes = np.full(1 << 16, CANARY, np.uint8)
        self.used, self.end = np.zeros(1 << 16, bool), 4096

    def array(self, *shape, value=None, dtype=np.float32):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        made = self.bytes[self.end:self.end + size].view(dtype).reshape(shape)
        self.used[self.end:self.end + size] = True
        self.end += -(-size // 64) * 64 + 4096
        made[...] = np.arange(made.size).reshape(shape) % 90 + 1 if value is None else value
        return made

    def canaries_live(self):
        return bool((self.bytes[~self.used] == CANARY).all())


def offsets_that_lead_out(dtype):
    """Three tensors, some of them good."""
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    cuts = ((4, 11, 10), (-3, 2, 10), (4, 10, 14), (most, 4, 10), (least, 10, 11), (0, 200, 10), (-1, 0, 1), (most, least, -1),
            (4, most, 12), (11, 12, 13), (10, 10, 11), (12, 8, 10))
    return [np.array(cut, dtype) for cut in cuts] + [np.array((ROWS, -ROWS, 3), dtype), np.array((3, 3, 5), dtype)]


def rows(values, cut, form):
    return ragged.Rows(values, np.concatenate((cut[:1], cut)) if form == "prefix" else cut, form)


class Operations(unittest.TestCase):
    """Each with lying offsets at the source, at the destination, and at both."""

    def setUp(self):
        self.arena = Arena()
        self.good = np.array((4, 5, 10))

    def each(self):
        for dtype, form in itertools.product((np.int32, np.int64), FORMATS):
            for cut in offsets_that_lead_out(dtype):
                yield cut, form

    def pairs(self, width=WIDTH, dtype=np.float32):
        """Source, destination, and the destination's array, the offsets lying on one side or both."""
        for cut, form in self.each():
            for lies in ((True, False), (False, True), (True, True)):
                self.arena = Arena()
                values, out = self.arena.array(ROWS, WIDTH), self.arena.array(ROWS, width, value=1, dtype=dtype)
                sides = [rows(array, cut, form) if lie else ragged.Rows(array, self.good)
                         for array, lie in zip((values, out), lies)]
                with self.subTest(cut=cut.tolist(), form=form, width=cut.dtype.itemsize, lies=lies):
                    yield sides[0], sides[1], out
                    self.check(out, values)

    def check(self, out, values=None):
        self.assertTrue(self.arena.canaries_live())
        self.assertTrue((np.abs(out.astype(np.float64)) < 1e6).all(), out)
        if values is not None:
            np.testing.assert_array_equal(values, np.arange(values.size).reshape(values.shape) % 90 + 1)

    def test_copy(self):
        for source, destination, _ in self.pairs():
            ragged.copy(source, destination)

    def test_cast(self):
        for source, destination, _ in self.pairs(dtype=np.float16):
            ragged.cast(source, destination, scale=2)

    def test_saxpy(self):
        for x, y, _ in self.pairs():
            ragged.saxpy(2, x, y)

    def test_max_pool_1d(self):
        for source, destination, _ in self.pairs():
            ragged.max_pool_1d(source, destination, radius=2**32 - 1)

    def test_reduce_rows(self):
        for source, destination, _ in self.pairs(width=1):
            ragged.reduce_rows(source, destination)

    def test_transpose(self):
        for cut, form in self.each():
            arena = self.arena = Arena()
            values, out = arena.array(ROWS, WIDTH), [arena.array(WIDTH, n, value=1) for n in (4, 1, 5)]
            ragged.transpose(rows(values, cut, form), ragged.Tensors(out))
            ragged.transpose(ragged.Tensors(out), rows(values, cut, form))
            self.check(np.concatenate([array.ravel() for array in (values, *out)]))

    def test_pad(self):
        for cut, form in self.each():
            values, out = self.arena.array(ROWS, WIDTH), self.arena.array(3, 8, WIDTH, value=1)
            statuses, header = self.arena.array(3, dtype=np.uint32), self.arena.array(4, dtype=np.uint32)
            ragged.pad(rows(values, cut, form), out, fill=3, statuses=statuses, header=header)
            self.check(out, values)
            self.assertLess(statuses.max(), 1 << 31 | 1)
            self.arena = Arena()

    def test_unpad(self):
        for cut, form in self.each():
            out, dense = self.arena.array(ROWS, WIDTH, value=1), self.arena.array(3, 300, WIDTH)
            ragged.unpad(dense, rows(out, cut, form))
            self.check(out, dense)
            self.arena = Arena()

    def test_pack_and_unpack(self):
        for cut, form in self.each():
            values, packed = self.arena.array(ROWS, WIDTH), self.arena.array(ROWS * WIDTH * 4 - 8, value=0, dtype=np.uint8)
            begins = self.arena.array(4, value=0, dtype=np.int64)
            ragged.pack(rows(values, cut, form), packed, alignment=4, begins=begins)
            self.check(packed.view(np.float32), values)
            ragged.unpack(packed, rows(values, cut, form), alignment=4, begins=begins)
            self.check(values)
            self.arena = Arena()

    def test_rows_by_index(self):
        for dtype in (np.int32, np.int64):
            most = np.iinfo(dtype)
            index = np.array((0, ROWS, -1, most.max, most.min, ROWS - 1, 1 << 30), dtype)
            values, out = self.arena.array(ROWS, WIDTH), self.arena.array(7, WIDTH, value=1)
            ragged.gather_rows(values, index, out)
            self.check(out, values)
            ragged.scatter_rows(out, index, values)
            self.check(values)
            for short in ((values, index, out[:6]), (values, index[:0], out[:, :3])):
                with self.assertRaises(tmap.Error):
                    ragged.gather_rows(*short)
            with self.assertRaises(tmap.Error):
                ragged.scatter_rows(out[:6], index, values)

    def test_arrays_of_no_rows(self):
        for dtype, width in itertools.product((np.int32, np.int64), (1, WIDTH)):
            shape = () if width == 1 else (width,)
            for cut in offsets_that_lead_out(dtype):
                arena = self.arena = Arena()
                none, out = arena.array(0, *shape), arena.array(3, 8, *shape, value=1)
                ragged.pad(ragged.Rows(none, cut), out)
                ragged.unpad(out, ragged.Rows(none, cut))
                self.check(out)

    def test_what_lies_is_told_and_the_rest_is_done(self):
        values, out, statuses = self.arena.array(ROWS, WIDTH), np.zeros((3, 8, WIDTH), np.float32), np.zeros(3, np.int32)
        ragged.pad(ragged.Rows(values, np.array((4, 11, 10))), out, statuses=statuses, fill=9)
        np.testing.assert_array_equal(out[0, :4], values[:4])
        self.assertEqual(out[1:].min(), 9)
        good, out_of_rows, decreasing = (ragged.faults_of(status) for status in statuses)
        self.assertEqual((good, out_of_rows), (ragged.Fault(0), ragged.Fault.ADDRESS))
        self.assertIn(ragged.Fault.DIM, decreasing)

    def test_a_part_of_an_array_ends_with_its_own_rows(self):
        """Rows with gaps between them, of an array whose other columns and rows are not the operation's."""
        whole = self.arena.array(ROWS + 6, WIDTH + 3, value=3e30)
        part, out = whole[2:2 + ROWS, 1:1 + WIDTH], self.arena.array(ROWS + 1, WIDTH, value=0)
        part[...] = 5
        statuses = np.zeros(2, np.uint32)
        cut = np.array((ROWS, ROWS + 1))
        ragged.copy(ragged.Rows(part, cut), ragged.Rows(out, cut), statuses=statuses)
        self.check(out)
        self.assertEqual(statuses.tolist(), [0, ragged.Fault.ADDRESS])
        before = whole.copy()
        ragged.copy(ragged.Rows(out, cut), ragged.Rows(part, cut), statuses=statuses)
        self.assertEqual(statuses.tolist(), [0, ragged.Fault.ADDRESS])
        np.testing.assert_array_equal(whole, before)

    def test_windows_widen(self):
        whole, out = self.arena.array(ROWS, WIDTH), self.arena.array(ROWS, WIDTH, value=0)
        part, cut = whole[:6], np.array((6, ROWS))
        every, statuses = np.array([[0, 1 << 62]]), np.zeros(2, np.uint32)
        ragged.copy(ragged.Rows(part, cut), ragged.Rows(out, cut), windows=every, statuses=statuses)
        np.testing.assert_array_equal(out, whole)
        self.assertEqual(statuses.tolist(), [0, 0])


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
        for call in (lambda: ragged.copy(ragged.Rows(gaps, ends), rows_of), lambda: ragged.copy(rows_of, ragged.Rows(gaps, ends)),
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
