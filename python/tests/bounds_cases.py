# SPDX-License-Identifier: Apache-2.0
"""No call reads or writes outside the arrays it was given, for any offsets and indices. Every
operation runs with canaries around its arrays. A test file chooses the memory: `Arena` has the
arrays there, `put` brings one there, and `get` brings it back."""
import itertools

import numpy as np

import tmap
from tmap import ragged

CANARY = 0x7E  # as f32 8.4e37, as f16 and what is computed of it far beyond all values
ROWS, WIDTH = 10, 4
FORMATS = ("ends", "prefix", "sizes")


class Arena:
    """Arrays with canaries around each."""

    def __init__(self):
        self.bytes = np.full(1 << 17, CANARY, np.uint8)
        self.used, self.end = np.zeros(1 << 17, bool), 4096

    def array(self, *shape, value=None, dtype=np.float32):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        begin, end = self.end, self.end + size
        self.used[begin:end] = True
        self.end += -(-size // 64) * 64 + 4096
        count = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        self.fill(begin, end, (count % 90 + 1 if value is None else count * 0 + value).astype(dtype))
        return self.view(begin, end, shape, dtype)

    def fill(self, begin, end, values):
        self.bytes[begin:end] = values.ravel().view(np.uint8)

    def view(self, begin, end, shape, dtype):
        return self.bytes[begin:end].view(dtype).reshape(shape)

    def canaries_live(self):
        return bool((self.get()[~self.used] == CANARY).all())

    def get(self):
        return self.bytes


def offsets_that_lead_out(dtype):
    """Three tensors, some of them good."""
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    cuts = ((4, 11, 10), (-3, 2, 10), (4, 10, 14), (most, 4, 10), (least, 10, 11), (0, 200, 10), (-1, 0, 1),
            (most, least, -1), (4, most, 12), (11, 12, 13), (10, 10, 11), (12, 8, 10))
    return [np.array(cut, dtype) for cut in cuts] + [np.array((ROWS, -ROWS, 3), dtype), np.array((3, 3, 5), dtype)]


class BoundsCases:
    """Each operation with lying offsets at the source, at the destination, and at both."""
    Arena = Arena

    def put(self, array):
        return array

    def get(self, array):
        return array

    def setUp(self):
        self.arena = self.Arena()
        self.good = self.put(np.array((4, 5, 10)))

    def rows(self, values, cut, form="ends"):
        return ragged.Rows(values, self.put(np.concatenate((cut[:1], cut)) if form == "prefix" else cut), form)

    def each(self):
        for dtype, form in itertools.product((np.int32, np.int64), FORMATS):
            for cut in offsets_that_lead_out(dtype):
                yield cut, form

    def pairs(self, width=WIDTH, dtype=np.float32):
        """Source, destination, and the destination's array, the offsets lying on one side or
        both."""
        for cut, form in self.each():
            for lies in ((True, False), (False, True), (True, True)):
                self.arena = self.Arena()
                values, out = self.arena.array(ROWS, WIDTH), self.arena.array(ROWS, width, value=1, dtype=dtype)
                sides = [self.rows(array, cut, form) if lie else ragged.Rows(array, self.good)
                         for array, lie in zip((values, out), lies)]
                with self.subTest(cut=cut.tolist(), form=form, width=cut.dtype.itemsize, lies=lies):
                    yield sides[0], sides[1], out
                    self.check(out, values)

    def check(self, out, values=None):
        self.assertTrue(self.arena.canaries_live())
        out = self.get(out)
        self.assertTrue((np.abs(out.astype(np.float64)) < 1e6).all(), out)
        if values is not None:
            values = self.get(values)
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

    def test_column_sums(self):
        for cut, form in self.each():
            arena = self.arena = self.Arena()
            values, out = arena.array(ROWS, WIDTH), arena.array(3, WIDTH, value=1)
            ragged.column_sums(self.rows(values, cut, form), ragged.Rows(out, self.put(np.array((1, 2, 3)))))
            self.check(out, values)

    def test_transpose(self):
        for cut, form in self.each():
            arena = self.arena = self.Arena()
            values, out = arena.array(ROWS, WIDTH), [arena.array(WIDTH, n, value=1) for n in (4, 1, 5)]
            ragged.transpose(self.rows(values, cut, form), ragged.Tensors(out))
            ragged.transpose(ragged.Tensors(out), self.rows(values, cut, form))
            for array in (values, *out):
                self.check(array)

    def test_pad(self):
        for cut, form in self.each():
            values, out = self.arena.array(ROWS, WIDTH), self.arena.array(3, 8, WIDTH, value=1)
            statuses, header = self.arena.array(3, dtype=np.uint32), self.arena.array(4, dtype=np.uint32)
            ragged.pad(self.rows(values, cut, form), out, fill=3, statuses=statuses, header=header)
            self.check(out, values)
            self.arena = self.Arena()

    def test_unpad(self):
        for cut, form in self.each():
            out, dense = self.arena.array(ROWS, WIDTH, value=1), self.arena.array(3, 300, WIDTH)
            ragged.unpad(dense, self.rows(out, cut, form))
            self.check(out, dense)
            self.arena = self.Arena()

    def test_pack_and_unpack(self):
        for cut, form in self.each():
            values, packed = self.arena.array(ROWS, WIDTH), self.arena.array(ROWS * WIDTH * 4 - 8, value=0, dtype=np.uint8)
            begins = self.arena.array(4, value=0, dtype=np.int64)
            ragged.pack(self.rows(values, cut, form), packed, alignment=4, begins=begins)
            self.check(self.put(self.get(packed).view(np.float32)), values)
            ragged.unpack(packed, self.rows(values, cut, form), alignment=4, begins=begins)
            self.check(values)
            self.arena = self.Arena()

    def test_rows_by_index(self):
        for dtype in (np.int32, np.int64):
            most = np.iinfo(dtype)
            index = self.put(np.array((0, ROWS, -1, most.max, most.min, ROWS - 1, 1 << 30), dtype))
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
                arena = self.arena = self.Arena()
                none, out = arena.array(0, *shape), arena.array(3, 8, *shape, value=1)
                ragged.pad(self.rows(none, cut), out)
                ragged.unpad(out, self.rows(none, cut))
                self.check(out)

    def test_what_lies_is_told_and_the_rest_is_done(self):
        values, out = self.arena.array(ROWS, WIDTH), self.arena.array(3, 8, WIDTH, value=1)
        statuses = self.arena.array(3, dtype=np.int32)
        ragged.pad(self.rows(values, np.array((4, 11, 10))), out, statuses=statuses, fill=9)
        found = self.get(out)
        np.testing.assert_array_equal(found[0, :4], self.get(values)[:4])
        self.assertEqual(found[1:].min(), 9)
        good, out_of_rows, decreasing = (ragged.faults_of(int(status)) for status in self.get(statuses))
        self.assertEqual((good, out_of_rows), (ragged.Fault(0), ragged.Fault.ADDRESS))
        self.assertIn(ragged.Fault.DIM, decreasing)

    def test_a_part_of_an_array_ends_with_its_own_rows(self):
        """Rows with gaps between them, of an array whose other columns and rows are not the
        operation's."""
        whole = self.arena.array(ROWS + 6, WIDTH + 3, value=3e30)
        part, out = whole[2:2 + ROWS, 1:1 + WIDTH], self.arena.array(ROWS + 1, WIDTH, value=0)
        part[...] = 5
        statuses, cut = self.arena.array(2, dtype=np.int32), np.array((ROWS, ROWS + 1))
        before = self.get(whole).copy()
        for source, destination in ((part, out), (out, part)):
            ragged.copy(self.rows(source, cut), self.rows(destination, cut), statuses=statuses)
            self.assertEqual(self.get(statuses).tolist(), [0, ragged.Fault.ADDRESS])
        self.check(out)
        np.testing.assert_array_equal(self.get(whole), before)

    def test_windows_widen(self):
        whole, out = self.arena.array(ROWS, WIDTH), self.arena.array(ROWS, WIDTH, value=0)
        every, statuses = self.put(np.array([[0, 1 << 62]])), self.arena.array(2, dtype=np.int32)
        cut = np.array((6, ROWS))
        ragged.copy(self.rows(whole[:6], cut), self.rows(out, cut), windows=every, statuses=statuses)
        np.testing.assert_array_equal(self.get(out), self.get(whole))
        self.assertEqual(self.get(statuses).tolist(), [0, 0])
