# SPDX-License-Identifier: Apache-2.0
"""Ragged operations on arrays of NumPy, in memory of the host, and what they refuse."""
import types
import unittest
import unittest.mock

import support

np = support.need("numpy")
from ragged_cases import RaggedCases  # noqa: E402

import tmap  # noqa: E402
from tmap import _ragged, _structs, ragged  # noqa: E402


class Operations(RaggedCases, unittest.TestCase):
    pass


class Fills(unittest.TestCase):
    def test_the_bytes_of_a_number(self):
        from tmap._numbers import element_bytes

        def fill_bytes(value, dtype, item=2):
            return element_bytes(value, dtype, item, "fill")

        numbers = {0.1: 0x3DCD, 1.00390625: 0x3F80, 1.01171875: 0x3F82, 3.4e38: 0x7F80, -2.0: 0xC000, float("-inf"): 0xFF80}
        for number, bits in numbers.items():
            self.assertEqual(fill_bytes(number, "bf16"), bits.to_bytes(2, "little"), number)
        self.assertEqual(fill_bytes(float("nan"), "bf16")[1] & 0x7F, 0x7F)
        for number, dtype in ((1.5, "f16"), (-3, "i16"), (200, "u8"), (1e300, "f64"), (True, "bool")):
            name = {"f": "float", "i": "int", "u": "uint", "b": "bool"}[dtype[0]] + dtype.strip("fiubol")
            self.assertEqual(fill_bytes(number, dtype), np.dtype(name).type(number).tobytes())
        with self.assertRaises(TypeError):
            fill_bytes(1, "f8_e4m3", 1)
        self.assertEqual(fill_bytes(b"\x01", "f8_e4m3", 1), b"\x01")
        with self.assertRaises(ValueError):
            fill_bytes(2, "bool", 1)

    def test_the_step_of_a_single_element_may_be_anything(self):
        statuses = np.full(16, 7, np.uint32)
        one = statuses[::16]
        self.assertEqual(one.strides, (64,))
        ragged.copy(ragged.Tensors([np.ones(3, np.float32)]), ragged.Tensors([np.zeros(3, np.float32)]), statuses=one)
        self.assertEqual(statuses.tolist(), [0] + [7] * 15)

    def test_rows_by_index_may_have_pitches(self):
        wide, index = np.arange(40, dtype=np.float32).reshape(5, 8), np.array([3, 1])
        out = np.zeros((2, 6), np.float32)
        ragged.gather_rows(wide[:, 2:5], index, out[:, :3])
        np.testing.assert_array_equal(out, [[26, 27, 28, 0, 0, 0], [10, 11, 12, 0, 0, 0]])

    def test_rows_of_halves_are_reduced_as_halves(self):
        values, ends = np.arange(12, dtype=np.float16).reshape(4, 3), np.array([1, 4])
        out = np.zeros((4, 1), np.float32)
        ragged.reduce_rows(ragged.Rows(values, ends), ragged.Rows(out, ends))
        self.assertEqual(out[:, 0].tolist(), [3, 12, 21, 30])

    def test_a_dense_array_may_have_pitches(self):
        values, ends = np.arange(12, dtype=np.float32).reshape(6, 2), np.array([2, 6])
        whole = np.full((2, 6, 5), 9, np.float32)
        ragged.pad(ragged.Rows(values, ends), whole[:, 1:5, 1:3], fill=-1)
        expected = np.full((2, 6, 5), 9, np.float32)
        expected[:, 1:5, 1:3] = -1
        expected[0, 1:3, 1:3], expected[1, 1:5, 1:3] = values[:2], values[2:]
        np.testing.assert_array_equal(whole, expected)


class Options(unittest.TestCase):
    def call(self, **options):
        """What the library is given."""
        rows, taken = ragged.Rows(np.ones((4, 2), np.float32), np.array([1, 4])), []
        library = types.SimpleNamespace(tmap_ragged_copy=lambda *arguments: taken.append(arguments[-1]) or 0)
        with unittest.mock.patch.object(_ragged, "lib", library):
            ragged.copy(rows, rows, **options)
        return _structs.Call.from_buffer_copy(taken[0])

    def test_the_policy_reaches_the_library(self):
        for policy, number in (("default", 0), ("enable", 1), ("disable", 2), ("force", 3)):
            self.assertEqual(self.call(policy=policy, header=np.zeros(4, np.uint32)).policy, number)
            self.assertEqual(self.call(policy=policy).policy, number)
        self.assertEqual(bytes(self.call()), bytes(_structs.Call(engine=1)))

    def test_what_a_call_reports_reaches_the_library(self):
        statuses, header, windows = np.zeros(2, np.uint32), np.zeros(4, np.uint32), np.zeros((3, 2), np.uint64)
        call = self.call(statuses=statuses, header=header, windows=windows, check="sync")
        self.assertEqual((call.statuses, call.header, call.windows, call.window_count, call.check),
                         (statuses.ctypes.data, header.ctypes.data, windows.ctypes.data, 3, 2))


class Hostile(unittest.TestCase):
    def setUp(self):
        self.values, self.ends = np.ones((10, 4), np.float32), np.array([4, 10])
        self.out = np.full((2, 8, 4), 7, np.float32)

    def refused(self, kind, source, out=None, **options):
        out = self.out if out is None else out
        before = out.copy()
        with self.assertRaises(kind) as caught:
            ragged.pad(source, out, **options)
        np.testing.assert_array_equal(out, before)
        return caught.exception

    def test_sides_of_no_such_kind(self):
        self.refused(TypeError, self.values)
        self.refused(TypeError, ragged.Rows([1, 2], self.ends))
        self.refused(TypeError, ragged.Rows(self.values, self.ends.astype(np.float64)))

    def test_shapes_that_do_not_fit(self):
        rows = ragged.Rows(self.values, self.ends)
        self.refused(ValueError, rows, out=self.out[:1])
        self.refused(ValueError, rows, out=self.out[0])
        self.refused(ValueError, rows, out=self.out.astype(np.float64))
        self.refused(ValueError, ragged.Rows(self.values[:, ::2], self.ends))
        self.refused(ValueError, ragged.Rows(self.values, self.ends, "ends "))
        self.refused(ValueError, ragged.Rows(self.values, self.ends[:0], "prefix"))

    def test_options_of_no_such_kind(self):
        rows = ragged.Rows(self.values, self.ends)
        self.refused(ValueError, rows, policy="fastest")
        self.refused(ValueError, rows, stream=0)
        self.refused(TypeError, rows, statuses=np.zeros(2))
        self.refused(ValueError, rows, statuses=np.zeros(1, np.uint32))
        self.refused(ValueError, rows, header=np.zeros(3, np.uint32))
        self.refused(TypeError, rows, colour="red")
        self.refused(Exception, rows, fill="a")

    def test_prefix_offsets_without_a_value(self):
        refused = self.refused(ValueError, ragged.Rows(self.values, self.ends[:0], "prefix"))
        self.assertIn("one value at least", str(refused))

    def test_outputs_that_are_read_only(self):
        rows = ragged.Rows(self.values, self.ends)
        self.out.flags.writeable = False
        # NumPy before 2.1 cannot hand out what is read-only at all.
        self.refused((ValueError, BufferError), rows)

    def test_a_failure_of_the_library_is_an_error_with_its_reason(self):
        with self.assertRaises(tmap.Error) as caught:
            ragged.pack(ragged.Rows(self.values, self.ends), np.zeros(64, np.uint8), alignment=3)
        self.assertIs(caught.exception.status, tmap.Status.INVALID_ARGUMENT)
        self.assertEqual(caught.exception.argument, "destination.alignment")
        self.assertEqual(str(caught.exception), "tmap_ragged_pack: `destination.alignment` is 3; it must be a power of two, at "
                         "most 1048576")
        with self.assertRaises(ValueError):
            ragged.Tensors([])

    def test_tensors_of_two_kinds(self):
        for other in (np.zeros((2, 2), np.float64), np.zeros(2, np.float32)):
            with self.assertRaises(ValueError):
                ragged.copy(ragged.Tensors([np.zeros((2, 2), np.float32), other]), ragged.Tensors([self.values]))
        with self.assertRaises(tmap.Error):
            ragged.copy(ragged.Tensors([self.values]), ragged.Tensors([self.values.copy(), self.values.copy()]))

    def test_values_of_a_type_without_arithmetic(self):
        rows = ragged.Rows(self.values.astype(np.int32), self.ends)
        for operation in (lambda: ragged.saxpy(1, rows, rows), lambda: ragged.cast(rows, rows),
                          lambda: ragged.reduce_rows(rows, rows), lambda: ragged.max_pool_1d(rows, rows, radius=1)):
            with self.assertRaises(TypeError):
                operation()


if __name__ == "__main__":
    unittest.main()
