# SPDX-License-Identifier: Apache-2.0
"""Every ragged operation, compared with NumPy. A test file chooses the memory: `put` brings an
array there, and `get` brings it back."""
import numpy as np

import support
from tmap import ragged

SIZES = (3, 0, 17, 1, 40)


def e4m3(bits):
    """Returns the values of bits of f8_e4m3 without NaN."""
    exponent, mantissa = (bits >> 3 & 15).astype(int), bits & 7
    magnitude = np.where(exponent == 0, mantissa / 8 * 2.0**-6, (1 + mantissa / 8) * 2.0**(exponent - 7))
    return np.where(bits >> 7 == 1, -magnitude, magnitude)


class RaggedCases:
    def put(self, array):
        return array

    def get(self, array):
        return array

    def setUp(self):
        self.random = np.random.default_rng(7)
        self.ends = np.array(support.ends_of(SIZES), dtype=np.int32)

    def values(self, *inner, dtype=np.float32):
        return (self.random.random((sum(SIZES), *inner)) * 100 - 50).astype(dtype)

    def parts(self, values):
        return np.split(values, self.ends[:-1])

    def rows(self, values, dtype=np.int32):
        return ragged.Rows(self.put(values), self.put(self.ends.astype(dtype)))

    def lists(self, arrays):
        put = [self.put(array) for array in arrays]
        return ragged.Tensors(put), put

    def check(self, found, expected):
        np.testing.assert_array_equal(self.get(found), expected)

    def test_pad_and_unpad(self):
        for dtype, inner in ((np.float32, (12,)), (np.float16, (3, 5)), (np.uint8, ()), (np.int64, (2, 2, 3))):
            values = self.values(*inner, dtype=dtype)
            out = self.put(np.full((len(SIZES), 40, *inner), 99, dtype=dtype))
            statuses = self.put(np.full(len(SIZES), 77, dtype=np.uint32))
            header = self.put(np.full(4, 77, dtype=np.uint32))
            ragged.pad(self.rows(values, np.int64), out, fill=5, statuses=statuses, header=header)
            expected = np.full((len(SIZES), 40, *inner), 5, dtype=dtype)
            for i, part in enumerate(self.parts(values)):
                expected[i, :len(part)] = part
            self.check(out, expected)
            self.check(statuses, [0, 1 << 31, 0, 0, 0])
            self.check(header, [0, 0xffffffff, 1, 0])
            back = self.put(np.zeros_like(values))
            ragged.unpad(out, ragged.Rows(back, self.put(self.ends)))
            self.check(back, values)

    def test_a_tensor_too_long_is_cut_and_told(self):
        values = self.values(4)
        out, statuses = self.put(np.zeros((len(SIZES), 20, 4), np.float32)), self.put(np.zeros(len(SIZES), np.int32))
        ragged.pad(self.rows(values), out, statuses=statuses)
        self.check(statuses, np.array([0, 1 << 31, 0, 0, 1 << 6], np.uint32).view(np.int32))
        self.check(out[4], values[21:41])

    def test_windows_keep_tensors_in(self):
        values, out = self.put(self.values(4)), self.put(np.zeros((2, 70, 4), np.float32))
        statuses = self.put(np.zeros(2, np.uint32))
        reach = [[self.address(values), self.address(values) + 61 * 16], [self.address(out), self.address(out) + 140 * 16]]
        lying = self.put(np.array([5, 70]))
        ragged.pad(ragged.Rows(values, lying), out, statuses=statuses, fill=2, windows=self.put(np.array(reach, np.uint64)))
        self.check(statuses, [0, 1 << 3])
        self.check(out[1], np.full((70, 4), 2, np.float32))

    def address(self, array):
        return array.ctypes.data if hasattr(array, "ctypes") else array.data.ptr

    def test_copy_between_arrays_of_their_own(self):
        parts = self.parts(self.values(6, dtype=np.float64))
        to, arrays = self.lists([np.zeros_like(part) for part in parts])
        ragged.copy(self.lists(parts)[0], to)
        for found, expected in zip(arrays, parts):
            self.check(found, expected)

    def test_arrays_of_their_own_of_every_rank(self):
        for rank in range(1, 6):
            shapes = [(2, 3, 5, 4, 6)[-rank:], (1, 1, 1, 1, 2)[-rank:], (3, 1, 2, 7, 5)[-rank:]]
            sources = [self.random.random(shape).astype(np.float32) for shape in shapes]
            # Steps that differ along every dim, and order.
            wide = [self.put(np.zeros([*(extent + 1 for extent in shape[:-1]), shape[-1]], np.float32))
                    for shape in shapes]
            parts = [array[tuple(slice(extent) for extent in shape)] for array, shape in zip(wide, shapes)]
            for part, source in zip(parts, sources):
                part[...] = self.put(source)
            to, arrays = self.lists([np.zeros(shape, np.float32) for shape in shapes])
            ragged.copy(ragged.Tensors(parts), to)
            for found, expected in zip(arrays, sources):
                self.check(found, expected)
            for part in parts:
                part[...] = 0
            ragged.copy(to, ragged.Tensors(parts))
            for whole, part, expected in zip(wide, parts, sources):
                self.check(part, expected)
                self.assertEqual(float(self.get(whole).sum(dtype=np.float64)), float(expected.sum(dtype=np.float64)))

    def test_rows_and_dense_of_every_rank(self):
        for rank in range(1, 6):
            inner = (2, 3, 2, 5)[:rank - 1]
            values = self.values(*inner)
            gaps = [extent + 1 for extent in inner[:-1]]
            wide = self.put(np.zeros([len(SIZES), 41, *gaps, *inner[-1:]], np.float32))
            dense = wide[(slice(None), slice(40), *(slice(extent) for extent in inner))]
            ragged.pad(self.rows(values), dense, fill=0)
            for i, part in enumerate(self.parts(values)):
                self.check(dense[i, :len(part)], part)
            whole = self.get(wide).astype(np.float64)
            self.assertEqual(float(np.abs(whole).sum()), float(np.abs(values.astype(np.float64)).sum()))
            back = self.put(np.zeros_like(values))
            ragged.unpad(dense, ragged.Rows(back, self.put(self.ends)))
            self.check(back, values)

    def test_the_smallest_batches(self):
        for count in (1, 2):
            values, ends = self.values(3)[:count], self.put(np.arange(1, count + 1))
            out = self.put(np.full((count, 1, 3), 9, np.float32))
            ragged.pad(ragged.Rows(self.put(values), ends), out)
            self.check(out[:, 0], values)
        none, out = self.put(np.zeros((0, 3), np.float32)), self.put(np.full((0, 1, 3), 9, np.float32))
        ragged.pad(ragged.Rows(none, self.put(np.zeros(0, np.int64))), out)
        ragged.unpad(out, ragged.Rows(none, self.put(np.zeros(1, np.int64)), "prefix"))

    def test_pack_and_unpack(self):
        values = self.values(3)
        out, begins = self.put(np.zeros(2048, np.uint8)), self.put(np.zeros(len(SIZES) + 1, np.int64))
        ragged.pack(self.rows(values), out, alignment=64, begins=begins)
        begin, packed = 0, self.get(out)
        for i, part in enumerate(self.parts(values)):
            self.assertEqual(int(self.get(begins)[i]), begin)
            self.assertEqual(packed[begin:begin + part.nbytes].tobytes(), part.tobytes())
            begin += -(-part.nbytes // 64) * 64
        back = self.put(np.zeros_like(values))
        ragged.unpack(out, ragged.Rows(back, self.put(self.ends)), alignment=64)
        self.check(back, values)

    def test_rows_by_index(self):
        source, index = self.values(5), np.array([4, 0, 60, -1, 61, 7])
        out, statuses = self.put(np.full((6, 5), 9, np.float32)), self.put(np.zeros(6, np.uint32))
        ragged.gather_rows(self.put(source), self.put(index), out, statuses=statuses)
        expected = np.full((6, 5), 9, np.float32)
        expected[[0, 1, 2, 5]] = source[[4, 0, 60, 7]]
        self.check(out, expected)
        self.check(statuses, [0, 0, 0, 1 << 7, 1 << 7, 0])
        back = self.put(np.zeros_like(source))
        ragged.scatter_rows(self.put(source[:3]), self.put(np.array([9, 2, 5], np.int32)), back)
        scattered = np.zeros_like(source)
        scattered[[9, 2, 5]] = source[:3]
        self.check(back, scattered)

    def test_transpose(self):
        shapes = ((3, 7), (16, 4), (1, 9))
        sources = [self.random.random(shape).astype(np.float32) for shape in shapes]
        to, arrays = self.lists([np.zeros(shape[::-1], np.float32) for shape in shapes])
        ragged.transpose(self.lists(sources)[0], to)
        for found, source in zip(arrays, sources):
            self.check(found, source.T)

    def test_cast_with_factors(self):
        values = self.values(8)
        scales = (np.arange(len(SIZES)) + 1).astype(np.float32)
        out = self.put(np.zeros(values.shape, np.float16))
        ragged.cast(self.rows(values), ragged.Rows(out, self.put(self.ends)), scales=self.put(scales))
        expected = np.concatenate([(part * scale).astype(np.float16) for part, scale in zip(self.parts(values), scales)])
        self.check(out, expected)
        whole = self.put(np.zeros(values.shape, np.uint8))
        ragged.cast(self.rows(values), ragged.Rows(whole, self.put(self.ends)), scale=2, shift=100)
        self.check(whole, np.clip(np.rint(values.astype(np.float64) * 2 + 100), 0, 255).astype(np.uint8))

    def test_saxpy(self):
        x, y = np.rint(self.values(6)), np.rint(self.values(6))
        out = self.put(y.copy())
        ragged.saxpy(3, self.rows(x), ragged.Rows(out, self.put(self.ends)))
        self.check(out, 3 * x + y)

    def test_max_pool(self):
        values = self.values(20)
        out = self.put(np.zeros_like(values))
        ragged.max_pool_1d(self.rows(values), ragged.Rows(out, self.put(self.ends)), radius=2)
        self.check(out, np.stack([values[:, max(0, j - 2):j + 3].max(1) for j in range(20)], 1))

    def test_reduce_rows(self):
        values = np.rint(self.values(20))
        for reduction, expected in (("sum", values.sum(1)), ("max", values.max(1))):
            out = self.put(np.zeros((len(values), 1), np.float32))
            ragged.reduce_rows(self.rows(values), ragged.Rows(out, self.put(self.ends)), reduction=reduction)
            self.check(out, expected[:, None])

    def test_column_sums(self):
        values = np.rint(self.values(20))
        sums = np.stack([part.sum(0) for part in self.parts(values)])
        for ends in (np.arange(1, len(SIZES) + 1, dtype=np.int32), np.arange(len(SIZES) + 1)):
            out = self.put(np.full((len(SIZES), 20), 99, np.float32))
            ragged.column_sums(self.rows(values), ragged.Rows(out, self.put(ends), format=self.format_of(ends)))
            self.check(out, sums)

    def format_of(self, ends):
        return "ends" if len(ends) == len(SIZES) else "prefix"

    def test_quantize(self):
        parts = [part for part in self.parts(self.values(200)) if len(part)]
        for block, width, transposed in (("row", 200, False), ("1x128", 128, False), ("1x128", 128, True)):
            blocks = -(-200 // width)
            shapes = [(blocks, len(part)) if transposed else (len(part), blocks) for part in parts]
            scales, factors = self.lists([np.zeros(shape, np.float32) for shape in shapes])
            bits = [self.put(np.full(part.shape, 77, np.uint8)) for part in parts]
            addresses = self.put(np.array([self.address(array) for array in bits], np.uint64))
            dims = [self.put(np.array([part.shape[axis] for part in parts])) for axis in (1, 0)]
            ragged.quantize(self.lists(parts)[0], ragged.Columns(addresses, dims, dtype="f8_e4m3"), scales, block=block,
                            transposed_scales=transposed)
            for part, found, factor in zip(parts, bits, factors):
                tops = np.stack([abs(part[:, at:at + width]).max(1) for at in range(0, 200, width)], 1)
                self.check(factor, (tops.T if transposed else tops) / np.float32(448))
                scale = np.repeat(tops / 448, width, 1)[:, :200]
                self.assertLessEqual(float((abs(e4m3(self.get(found)) * scale - part) - abs(part) / 16 - scale / 512).max()),
                                     1e-5)

    def test_quantize_columns(self):
        parts = [part for part in self.parts(self.values(200)) if len(part)]
        for transposed in (False, True):
            shapes = [(200, 1) if transposed else (1, 200) for _ in parts]
            scales, factors = self.lists([np.zeros(shape, np.float32) for shape in shapes])
            wanted_scales, wanted_factors = self.lists([np.zeros(shape, np.float32) for shape in shapes])
            to, wanted = ([self.put(np.full((200, len(part)), 77, np.uint8)) for part in parts] for _ in range(2))
            turned, _ = self.lists([np.ascontiguousarray(part.T) for part in parts])
            dims = [self.put(np.array([shape(part) for part in parts])) for shape in (len, lambda part: 200)]

            def columns(arrays):
                addresses = self.put(np.array([self.address(array) for array in arrays], np.uint64))
                return ragged.Columns(addresses, dims, dtype="f8_e4m3")

            ragged.quantize(self.lists(parts)[0], columns(to), scales, block="128x1", transposed_scales=transposed)
            ragged.quantize(turned, columns(wanted), wanted_scales, transposed_scales=not transposed)
            for one, other in zip((*to, *factors), (*wanted, *wanted_factors)):
                self.check(one, self.get(other))

    def test_shapes_in_columns(self):
        parts = [self.put(part) for part in self.parts(self.values(4)) if len(part)]
        to, arrays = self.lists([np.zeros(part.shape, np.float32) for part in parts])
        addresses = self.put(np.array([self.address(part) for part in parts], np.uint64))
        widths, heights = (self.put(np.array([part.shape[axis] for part in parts])) for axis in (1, 0))
        ragged.copy(ragged.Columns(addresses, [widths, heights], dtype="f32"), to)
        for found, part in zip(arrays, parts):
            self.check(found, self.get(part))

    def test_strides_in_columns(self):
        wholes = [self.put(np.arange(3 * 4 * 8, dtype=np.float32).reshape(3, 4, 8) + 100 * i) for i in range(2)]
        parts = [whole[:2, :3, 1:6] for whole in wholes]
        to, arrays = self.lists([np.zeros((2, 3, 5), np.float32) for _ in parts])
        addresses = self.put(np.array([self.address(part) for part in parts], np.uint64))
        dims, strides = ([self.put(np.full(2, number)) for number in numbers] for numbers in ((5, 3, 2), (32, 128)))
        ragged.copy(ragged.Columns(addresses, dims, strides, dtype="f32"), to)
        for found, part in zip(arrays, parts):
            self.check(found, self.get(part))
