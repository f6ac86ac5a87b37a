# SPDX-License-Identifier: Apache-2.0
"""Integers that no member holds are refused, never cut. Errors name the argument that is no number
or no array."""
import unittest

import support

np = support.need("numpy")
import tmap  # noqa: E402
from tmap import _arrays, _batch, _gemm_problem, ragged  # noqa: E402

SPEC = tmap.TensorSpec("f32", (8, 8), (8, 8), 4096)


class Calls:
    """Every public integer, as a function of it that is good for the value named."""

    def __init__(self):
        self.values, self.ends = np.ones((4, 8), np.float32), np.array((1, 4))
        self.out, self.tile, self.map = np.zeros((4, 8), np.float32), bytearray(256), tmap.encode_bits(SPEC)
        self.memory = {4096: bytearray(256)}

    def rows(self, array):
        return ragged.Rows(array, self.ends)

    def every(self):
        """(name, call, a good value, bits, signed)"""
        memory, tile, rows = self.memory, self.tile, self.rows
        bytes_out = self.out.view(np.uint8).ravel()

        def spec(**changes):
            tmap.validate(tmap.TensorSpec("f32", **{"dims": (8, 8), "box": (8, 8), **changes}))

        def load(*corner, **more):
            tmap.simulate_load(self.map, memory, corner, tile, **more)

        return (
            ("radius", lambda n: ragged.max_pool_1d(rows(self.values), rows(self.out), radius=n), 1, 32, False),
            ("alignment", lambda n: ragged.pack(rows(self.values), bytes_out, alignment=n), 16, 64, False),
            ("alignment", lambda n: ragged.unpack(bytes_out, rows(self.values), alignment=n), 16, 64, False),
            ("coordinates[0]", lambda n: load(n, 0), -4, 32, True),
            ("coordinates[1]", lambda n: load(0, n), 1, 32, True),
            ("coordinates[1]", lambda n: tmap.simulate_store(self.map, memory, (0, n), tile), 1, 32, True),
            ("coordinates[0]", lambda n: tmap.simulate_reduce("add", self.map, memory, (n, 0), tile), 0, 32, True),
            ("shared_address", lambda n: load(0, 0, shared_address=n), 1024, 32, False),
            ("address of memory", lambda n: tmap.simulate_load(self.map, {n: memory[4096]}, (0, 0), tile), 4096, 64, False),
            ("dims[1]", lambda n: spec(dims=(8, n)), 8, 64, False), ("box[0]", lambda n: spec(box=(n, 8)), 8, 32, False),
            ("address", lambda n: spec(address=n), 4096, 64, False),
            ("strides[0]", lambda n: spec(strides=(n,)), 32, 64, False),
            ("element_strides[1]", lambda n: spec(element_strides=(1, n)), 1, 32, False),
            ("box[0]", lambda n: tmap.TensorSpec.of(self.values, (n, 8)), 4, 32, False),
            ("number", tmap.rule, 3, 32, False),
            ("stream", lambda n: _arrays.stream_handle(n), 7, 64, False),
            ("plan", lambda n: _batch.reports_of(_arrays.Site(None, self.values), 1, plan=n), 3, 31, False))


class Integers(unittest.TestCase):
    def setUp(self):
        self.calls = Calls()

    def test_those_that_fit_are_taken_also_of_numpy(self):
        for name, call, good, bits, signed in self.calls.every():
            for number in (good, np.int64(good), np.int8(good) if -128 <= good < 128 else np.uint16(good)):
                with self.subTest(name, number=number):
                    call(number)

    def test_those_that_do_not_are_refused(self):
        for name, call, good, bits, signed in self.calls.every():
            most = (1 << bits - signed) - 1
            for number in (most + 1, -most - 2 if signed else -1, (1 << bits) + good, (1 << 64) + good, 1 << 200):
                with self.subTest(name, number=number), self.assertRaises(ValueError) as caught:
                    call(number)
                self.assertIn(name, str(caught.exception))
                self.assertIn(str(number), str(caught.exception))

    def test_what_is_no_integer(self):
        for name, call, good, bits, signed in self.calls.every():
            for odd in (1.0, 1.5, "1", None, (1,), np.float32(1)):
                if (name, odd) in (("plan", None), ("address", None), ("number", "1")) or name == "stream":
                    continue
                with self.subTest(name, odd=odd), self.assertRaises(TypeError) as caught:
                    call(odd)
                self.assertIn(name, str(caught.exception))

    def test_a_service_is_asked_for_no_other_number_of_slots(self):
        for name in ("capacity", "max_capacity"):
            for error, number in ((ValueError, -1), (ValueError, 1 << 64), (TypeError, 1.5)):
                with self.assertRaisesRegex(error, f"^{name} is "):
                    tmap.MapService(**{name: number})

    def test_the_most_groups(self):
        with self.assertRaisesRegex(ValueError, "number of groups"):
            _gemm_problem.prepare((8, 8), (8, 1), (1 << 32, 8, 8), (64, 8, 1), "bf16", 1 << 32, 4, 0)

    def test_bits_of_statuses(self):
        self.assertEqual(tmap.rules_of(-1), tmap.rules_of(2**64 - 1))
        self.assertEqual(tmap.rules_of(np.int64(-1 << 63)), ())
        self.assertEqual(ragged.faults_of(np.int32(-1 << 31)), ragged.Fault.EMPTY)
        self.assertEqual(ragged.faults_of(1 << 31), ragged.Fault.EMPTY)
        self.assertEqual(tmap.group_faults_of(np.int32(-1 << 31)), tmap.GroupFault.EMPTY)
        self.assertEqual(tmap.group_faults_of(5), tmap.GroupFault.ROWS | tmap.GroupFault.ADDRESS)
        self.assertEqual(ragged.faults_of(np.uint32(72)), ragged.Fault.WINDOW | ragged.Fault.TRUNCATED)
        for wrong in (1 << 64, -1 << 64):
            with self.assertRaises(ValueError):
                tmap.rules_of(wrong)
            with self.assertRaises(ValueError):
                ragged.faults_of(wrong)


class Fills(unittest.TestCase):
    def test_what_no_element_holds(self):
        ends = np.array((1, 2))
        for dtype, fill in ((np.uint8, 256), (np.uint8, -1), (np.int8, -129), (np.int64, 1 << 63),
                            (np.float16, 1e6), (np.float32, 1e300), (np.float32, b"\0\0"), (np.uint16, b"\0\0\0")):
            values, out = np.ones((2, 3), dtype), np.ones((2, 2, 3), dtype)
            with self.subTest(dtype=dtype, fill=fill), self.assertRaisesRegex(ValueError, "^fill "):
                ragged.pad(ragged.Rows(values, ends), out, fill=fill)
            self.assertTrue((out == 1).all())
        for dtype, fill in ((np.float32, "a"), (np.uint8, "a"), (np.uint8, 1.5), (np.float64, None), (np.int32, [1])):
            values, out = np.ones((2, 3), dtype), np.ones((2, 2, 3), dtype)
            with self.subTest(dtype=dtype, fill=fill), self.assertRaisesRegex(TypeError, "^fill "):
                ragged.pad(ragged.Rows(values, ends), out, fill=fill)

    def test_whole_floats_are_integers(self):
        out = np.ones((2, 2), np.int16)
        ragged.pad(ragged.Rows(np.ones(2, np.int16), np.array((1, 2))), out, fill=-3.0)
        self.assertEqual(out.tolist(), [[1, -3], [1, -3]])


class Words(unittest.TestCase):
    """Errors say which argument, and what to give instead."""

    def refused(self, error, words, call):
        with self.assertRaisesRegex(error, words):
            call()

    def test_what_is_no_spec(self):
        for call in (tmap.explain, tmap.validate, tmap.encode, tmap.encode_bits, tmap.tile_sizes):
            self.refused(TypeError, "spec is 'f32': it must be a TensorSpec", lambda: call("f32"))
        self.refused(TypeError, "dims is 64: it must be a sequence", lambda: tmap.TensorSpec("f32", 64, 32))
        self.refused(ValueError, "there is no rule '1'", lambda: tmap.rule("1"))
        self.refused(TypeError, "box is 32", lambda: tmap.TensorSpec.of(np.ones((8, 8)), 32))

    def test_what_is_no_map_and_no_memory(self):
        calls = Calls()
        self.refused(TypeError, "data is a str", lambda: tmap.decode("x"))
        self.refused(TypeError, "memory is a list", lambda: tmap.simulate_load(calls.map, [b""], (0, 0), calls.tile))
        self.refused(TypeError, "memory is a str", lambda: tmap.simulate_load(calls.map, {4096: "x"}, (0, 0), calls.tile))
        self.refused(TypeError, "tile is a list", lambda: tmap.simulate_load(calls.map, calls.memory, (0, 0), [0]))
        self.refused(ValueError, "tile would be written",
                  lambda: tmap.simulate_load(calls.map, calls.memory, (0, 0), bytes(256)))
        self.refused(TypeError, "coordinates is 0", lambda: tmap.simulate_load(calls.map, calls.memory, 0, calls.tile))

    def test_what_is_no_array(self):
        calls = Calls()
        out = np.zeros((2, 4, 8), np.float32)
        self.refused(TypeError, "windows: a list is no array: give one of NumPy", lambda: ragged.pad(
            calls.rows(calls.values), out, windows=[(0, 1)]))
        self.refused(TypeError, "offsets: a list is no array", lambda: ragged.pad(ragged.Rows(calls.values, [1, 4]), out))
        self.refused(TypeError, "a list is no array", lambda: ragged.pad(ragged.Rows([1.0], calls.ends), out))
        self.refused(TypeError, "arrays is 3", lambda: ragged.Tensors(3))
        self.refused(TypeError, "dims is 3", lambda: ragged.Columns(calls.ends, 3, dtype="f32"))

    def test_what_is_no_number(self):
        calls = Calls()
        pair = calls.rows(calls.values), calls.rows(calls.out)
        for name, call in (("a", lambda: ragged.saxpy("x", *pair)), ("scale", lambda: ragged.cast(*pair, scale=None)),
                           ("shift", lambda: ragged.cast(*pair, shift=[1]))):
            self.refused(TypeError, f"^{name} is .*: it must be a number", call)


if __name__ == "__main__":
    unittest.main()
