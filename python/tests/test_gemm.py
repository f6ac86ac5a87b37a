# SPDX-License-Identifier: Apache-2.0
"""Grouped products without arrays: the problems that the library gets, and refusals."""
import ctypes
import math
import unittest
import unittest.mock

import support
from lifetime_cases import StandIns
from stand_ins import CuPyArray

import tmap
from tmap import _epilogue, _gemm, _gemm_pointers, _gemm_problem, _libraries, _structs
from tmap._arrays import Site
from tmap._batch import call_on
from tmap._errors import check
from tmap._library import lib

ROWS, GROUPS, N, K = 32, 2, 64, 128


def problem_of(operand):
    """Legal but for its memory, of which there is none."""
    ready = _gemm_problem.prepare((ROWS, K), (K, 1), (GROUPS, K, N), (K * N, 1, K), operand, GROUPS, 4, 0)
    return ready.problem


def refused(problem):
    """What the library has against it: found, allowed."""
    try:
        check(lib.tmap_gemm_rows(ctypes.byref(problem), None))
    except tmap.Error as error:
        return str(error)
    return ""


class Preparing(unittest.TestCase):
    """What comes of shapes and strides alone."""

    def test_pitches_are_those_of_rows_in_memory(self):
        for layout, strides, pitch in (("n_by_k", (K * N, 1, K), K), ("k_by_n", (K * N, N, 1), N)):
            with self.subTest(layout):
                problem = _gemm_problem.prepare((ROWS, K), (K + 8, 1), (GROUPS, K, N), strides, "bf16", GROUPS, 4, 0).problem
                self.assertEqual((problem.a.pitch_bytes, problem.b.pitch_bytes, problem.c.pitch_bytes),
                                 (2 * (K + 8), 2 * pitch, 2 * N))
                self.assertEqual(problem.b_group_pitch_bytes, 2 * K * N)

    def test_the_step_of_a_single_row_may_be_anything(self):
        problem = _gemm_problem.prepare((1, K), (3, 1), (GROUPS, K, N), (K * N, 1, K), "bf16", GROUPS, 4, 0).problem
        self.assertEqual(problem.a.pitch_bytes, 2 * K)
        weights = _gemm_problem.prepare((N, 1), (1, 3), (1, K), (5, 1), "bf16", GROUPS, 4, 0).problem
        self.assertEqual((weights.a.pitch_bytes, weights.b.pitch_bytes), (2 * N, 2 * K))

    def test_rows_by_index_have_the_shape_of_the_index(self):
        self.assertEqual(_gemm._gathered((7, K), (K + 8, 1), (ROWS,)), ((ROWS, K), (K + 8, 1)))
        self.assertEqual(_gemm._gathered((1, K), (3, 1), (ROWS,)), ((ROWS, K), (K, 1)))
        self.assertEqual(_gemm._gathered((7, K), (K, 1), (GROUPS, ROWS)), ((GROUPS, ROWS, K), (ROWS * K, K, 1)))
        for shape, index in (((7, 2, K), (ROWS,)), ((7, K), ()), ((7, K), (1, 2, 3))):
            with self.subTest(shape=shape, index=index), self.assertRaises(ValueError):
                _gemm._gathered(shape, (K, 1), index)

    def test_every_order_of_both_operands(self):
        orders = {0: lambda rows, columns: (columns, 1), 1: lambda rows, columns: (1, rows)}
        for a_order, a_strides in orders.items():
            for b_order, b_strides in orders.items():
                with self.subTest(a=a_order, b=b_order):
                    def prepared(a, b):
                        strides = [(math.prod(shape[-2:]), *of(*shape[-2:]))[-len(shape):]
                                   for shape, of in ((a, a_strides), (b, b_strides))]
                        return _gemm_problem.prepare(a, strides[0], b, strides[1], "bf16", GROUPS, 4, 0)

                    layouts = a_order, 1 - b_order
                    rows = prepared((ROWS, K), (GROUPS, K, N))
                    self.assertEqual((rows.problem.a_layout, rows.problem.b_layout), layouts)
                    self.assertEqual((rows.out_shape, rows.out_strides), ((ROWS, N), (N, 1)))
                    columns = prepared((GROUPS, N, K), (K, 30))
                    self.assertIsInstance(columns.problem, _structs.ColumnProblem)
                    self.assertEqual((columns.problem.a_layout, columns.problem.b_layout), layouts)
                    self.assertEqual((columns.out_shape, columns.out_strides), ((N, 30), (32, 1)))
                    self.assertEqual(columns.problem.a_group_pitch_bytes, 2 * K * N)
                    weights = prepared((N, K), (K, N))
                    self.assertEqual((weights.problem.a_layout, weights.problem.b_layout), layouts)
                    self.assertEqual(weights.out_strides, (N * N, N, 1))
                    self.assertEqual([made.runs_along for made in (rows, columns, weights)],
                                     [a_order == 1, b_order == 0, a_order == 0 or b_order == 1])

    def test_slots_are_rows(self):
        ready = _gemm_problem.prepare((GROUPS, 40, K), (40 * K, K, 1), (GROUPS, K, N), (K * N, 1, K), "bf16", GROUPS, 4,
                              _gemm_problem.SLOTS)
        self.assertEqual((ready.problem.rows, ready.problem.offsets.slot_rows), (GROUPS * 40, 40))
        self.assertEqual(ready.out_shape, (GROUPS, 40, N))
        with self.assertRaisesRegex(ValueError, "slots of a follow each other"):
            _gemm_problem.prepare((GROUPS, 40, K), (50 * K, K, 1), (GROUPS, K, N), (K * N, 1, K), "bf16", GROUPS, 4,
                          _gemm_problem.SLOTS)
        with self.assertRaisesRegex(ValueError, "no dim is ragged"):
            _gemm_problem.prepare((GROUPS, 40, K), (40 * K, K, 1), (GROUPS, K, N), (K * N, 1, K), "bf16", GROUPS, 4, 0)

    def test_rows_of_the_output_have_no_gaps(self):
        def half(shape, strides):
            return _libraries.Form(shape, strides, "bf16", 2)

        left, right = half((ROWS, K), (2 * K, 2)), half((GROUPS, K, N), (2 * K * N, 2, 2 * K))
        ends = _libraries.Form((GROUPS,), (4,), "i32", 4)

        def pitch_of(out):
            return _gemm._judged(left, right, ends, out, "ends", None, False, False).problem.c.pitch_bytes

        self.assertEqual(pitch_of(half((ROWS, N), (2 * N, 2))), 2 * N)
        self.assertEqual(pitch_of(half((ROWS, N), (4 * N, 2))), 4 * N)
        for shape, strides in (((ROWS, N), (4 * N, 4)), ((ROWS, N), (2, 2 * ROWS)), ((ROWS, N // 2), (N, 2))):
            with self.assertRaisesRegex(ValueError, "out has the shape"):
                pitch_of(half(shape, strides))

    def test_an_output_whose_rows_are_named_has_any_number(self):
        def half(shape, strides):
            return _libraries.Form(shape, strides, "bf16", 2)

        left, right = half((ROWS, K), (2 * K, 2)), half((GROUPS, K, N), (2 * K * N, 2, 2 * K))
        ends = _libraries.Form((GROUPS,), (4,), "i32", 4)

        def prepared(targets, shape=(7, N), **others):
            out = half(shape, (2 * shape[-1] + 16, 2))
            return _gemm._judged(left, right, ends, out, "ends", None, False, False, targets=targets, **others).problem

        for rows in (7, ROWS + 9):
            made = prepared((ROWS,), (rows, N))
            self.assertEqual((made.c_row_count, made.rows, made.c.pitch_bytes), (rows, ROWS, 2 * N + 16))
        with self.assertRaisesRegex(ValueError, "out has the shape"):
            prepared((ROWS,), (7, N // 2))
        for targets in ((ROWS - 1,), (2, ROWS // 2)):
            with self.assertRaisesRegex(ValueError, "with out_rows"):
                prepared(targets)
        with self.assertRaisesRegex(ValueError, "with one out"):
            prepared((ROWS,), out_count=GROUPS)

    def test_offsets_and_groups_agree(self):
        for groups in (GROUPS - 1, GROUPS + 1):
            with self.assertRaisesRegex(ValueError, f"offs cuts {groups} groups"):
                _gemm_problem.prepare((ROWS, K), (K, 1), (GROUPS, K, N), (K * N, 1, K), "bf16", groups, 4, 0)

    def test_rows_follow_the_outputs_type(self):
        def prepared(n, c_item, strides=None):
            return _gemm_problem.prepare((ROWS, K), (K, 1), (GROUPS, K, n), strides or (K * n, 1, K), "bf16", GROUPS, 4, 0, c_item)

        self.assertEqual(prepared(4, 4).problem.c.pitch_bytes, 16)
        self.assertEqual(prepared(16, 1).problem.c.pitch_bytes, 16)
        for n, c_item, strides in ((4, 2, None), (8, 1, None), (4, 4, (4 * K, 4, 1))):
            with self.assertRaisesRegex(ValueError, f"n is {n}"):
                prepared(n, c_item, strides)


class Epilogues(unittest.TestCase):
    """The arrays of an epilogue, here on the host, come to their places in the problem."""

    def setUp(self):
        self.np = support.need("numpy")

    def form(self, shape, dtype, item, strides=None):
        return _libraries.Form(shape, strides or _libraries._dlpack.packed_strides(shape, item), dtype, item)

    def judged(self, out=(ROWS, N), dtype="f16", item=2, gate=None, accumulate=False):
        left = self.form((ROWS, K), "f16", 2)
        right = self.form((GROUPS, K, N), "f16", 2, (2 * K * N, 2, 2 * K))
        ends = self.form((GROUPS,), "i32", 4)
        return _gemm._judged(left, right, ends, self.form(out, dtype, item), "ends", _epilogue.gate_of(gate), accumulate,
                             False)

    def made(self, ready, **terms):
        arrays = [term for term in terms.values() if hasattr(term, "shape")]
        site = Site(None, *(arrays or [self.np.zeros(1)]))
        return _epilogue.with_terms(site, ready.problem, _epilogue.Terms(**terms), "f16")

    def test_a_bias_is_of_all_groups(self):
        bias = self.np.zeros((GROUPS, N), self.np.float16)
        self.assertEqual(self.made(self.judged(), bias=bias).bias, bias.ctypes.data)
        with self.assertRaisesRegex(ValueError, "bias must hold"):
            self.made(self.judged(), bias=bias[:1])
        with self.assertRaisesRegex(TypeError, "bias"):
            self.made(self.judged(), bias=bias.astype(self.np.float32))

    def test_factors_of_rows_may_have_gaps(self):
        wide = self.np.zeros((ROWS, 3), self.np.float32)
        made = self.made(self.judged(), row_scales=wide[:, 1])
        self.assertEqual((made.row_scales, made.row_scale_stride), (wide.ctypes.data + 4, 3))
        self.assertEqual(self.made(self.judged(), row_scales=wide[:, :1]).row_scale_stride, 3)
        for bad in (wide, wide[1:, 0]):
            with self.assertRaisesRegex(ValueError, "row_scales has"):
                self.made(self.judged(), row_scales=bad)
        with self.assertRaisesRegex(ValueError, "row_scales repeats"):
            self.made(self.judged(), row_scales=self.np.lib.stride_tricks.as_strided(wide, (ROWS,), (0,)))

    def test_a_gate_comes_to_its_place(self):
        gate = tmap.Gate("silu", "interleaved", alpha=1.5, limit=7, value_shift=1)
        made = self.judged((ROWS, N // 2), gate=gate).problem.gate
        self.assertEqual((made.function, made.columns, made.alpha, made.limit, made.value_shift, made.backward),
                         (1, 1, 1.5, 7, 1, 0))
        plain = self.judged((ROWS, N // 2), gate="gelu_tanh").problem.gate
        self.assertEqual((plain.function, plain.columns, plain.alpha, plain.limit), (3, 0, 1, float("inf")))
        backward = self.judged((ROWS, 2 * N), gate=gate._replace(backward=True))
        self.assertEqual(backward.problem.gate.backward, 1)
        with self.assertRaisesRegex(ValueError, "kept"):
            self.made(backward)
        for bad in ("relu", tmap.Gate("silu", "thirds"), tmap.Gate(limit=-1.0), tmap.Gate(limit=float("nan")),
                    tmap.Gate(alpha=0)):
            with self.assertRaises(ValueError, msg=bad):
                self.judged((ROWS, N // 2), gate=bad)
        with self.assertRaises(TypeError):
            self.judged((ROWS, N // 2), gate=1)

    def test_kept_sums_have_the_columns_of_b(self):
        ready = self.judged((ROWS, N // 2), gate="silu")
        kept = self.np.zeros((ROWS, N + 8), self.np.float16)[:, :N]
        place = self.made(ready, kept=kept).gate.kept
        self.assertEqual((place.address, place.pitch_bytes), (kept.ctypes.data, 2 * (N + 8)))
        for bad in (kept[1:], kept[:, 8:]):
            with self.assertRaisesRegex(ValueError, "kept has the shape"):
                self.made(ready, kept=bad)
        with self.assertRaisesRegex(ValueError, "goes with a gate"):
            self.made(self.judged(), kept=kept)

    def test_sums_over_rows_of_eight_bits_have_scales(self):
        rows = 256

        def ready(operand="f8_e5m2"):
            return _gemm_problem.prepare((N, rows), (rows, 1), (rows, N), (1, rows), operand, GROUPS, 4, 0)

        blocks = rows // 128 + GROUPS
        scales = {"a_scales": self.np.zeros((blocks, N + 1), self.np.float32)[:, :N].T,
                  "b_scales": self.np.zeros((blocks, N), self.np.float32)}
        made = self.made_of_eight_bits(ready(), **scales)
        of_a, of_b = made.a_scales, made.b_scales
        self.assertEqual((of_a.values, of_b.values), tuple(array.ctypes.data for array in scales.values()))
        self.assertEqual((of_a.line_stride, of_a.k_stride, of_a.group_stride, of_a.lines), (1, N + 1, N + 1, 1))
        self.assertEqual((of_b.line_stride, of_b.k_stride, of_b.group_stride, of_b.lines), (1, N, N, 1))
        joined = -(-rows // 128)
        few = {"a_scales": scales["a_scales"][:, :joined], "b_scales": scales["b_scales"][:joined]}
        made = self.made_of_eight_bits(ready(), **few)
        self.assertEqual((made.a_scales.k_stride, made.a_scales.group_stride, made.b_scales.group_stride), (N + 1, 0, 0))
        for bad, text in (({}, "need a_scales and b_scales"), ({**scales, "b_scales": None}, "need a_scales"),
                          ({**scales, "a_scales": scales["a_scales"][:, 1:]}, "a_scales has"),
                          ({**scales, "a_scales": scales["a_scales"][1:]}, "a_scales has the shape"),
                          ({**scales, "b_scales": scales["b_scales"][1:]}, "b_scales has the shape"),
                          ({**scales, "bias": scales["b_scales"]}, "bias, factors and kept")):
            with self.assertRaisesRegex(ValueError, text):
                self.made_of_eight_bits(ready(), **bad)
        with self.assertRaisesRegex(ValueError, "rows are ragged"):
            self.made_of_eight_bits(ready("bf16"), operand="bf16", **scales)

    def made_of_eight_bits(self, ready, operand="f8_e5m2", **terms):
        arrays = [term for term in terms.values() if term is not None]
        site = Site(None, *(arrays or [self.np.zeros(1)]))
        return _epilogue.with_terms(site, ready.problem, _epilogue.Terms(**terms), operand)

    def test_results_have_types_and_scales(self):
        wide = self.judged(dtype="f32", item=4, accumulate=True).problem
        self.assertEqual((wide.c_type, wide.accumulate, wide.c.pitch_bytes), (1, 1, 4 * N))
        self.assertEqual(self.judged().problem.accumulate, 0)
        narrow = self.judged(dtype="f8_e4m3", item=1)
        scales = self.np.zeros((1, ROWS), self.np.float32).T
        place = self.made(narrow, out_scales=scales, powers_of_two=True).c_scales
        self.assertEqual((place.values, place.row_stride, place.are_powers_of_two), (scales.ctypes.data, 1, 1))
        with self.assertRaisesRegex(ValueError, "out_scales has the shape"):
            self.made(narrow, out_scales=scales[1:])
        for ready, terms in ((narrow, {}), (self.judged(), {"out_scales": scales})):
            with self.assertRaisesRegex(ValueError, "out_scales or given_scales goes with"):
                self.made(ready, **terms)
        with self.assertRaisesRegex(TypeError, "out has elements of bf16"):
            self.judged(dtype="bf16")

    def test_scales_that_are_given_may_belong_to_a_row_or_to_all(self):
        narrow = self.judged(dtype="f8_e4m3", item=1)
        scales = self.np.ones((ROWS, 2), self.np.float32)
        for given, strides in ((scales[:, :1], (2, 0)), (scales[:1, :1], (0, 0))):
            with self.subTest(shape=given.shape):
                place = self.made(narrow, given_scales=given).c_scales
                self.assertEqual((place.values, place.row_stride, place.column_stride),
                                 (scales.ctypes.data, *strides))
                self.assertEqual((place.are_given, place.are_powers_of_two), (1, 0))
        one = scales[:1, :1]
        for terms, text in (({"given_scales": scales}, "given_scales has the shape"),
                            ({"given_scales": scales[::-1, :1]}, "negative strides"),
                            ({"given_scales": one, "out_scales": one}, "exclude each other"),
                            ({"given_scales": one, "powers_of_two": True}, "powers_of_two is for out_scales")):
            with self.subTest(text=text), self.assertRaisesRegex(ValueError, text):
                self.made(narrow, **terms)
        with self.assertRaisesRegex(ValueError, "goes with an output of f8_e4m3"):
            self.made(self.judged(), given_scales=one)


class FastAccumulation(unittest.TestCase):
    def test_sums_are_of_f32_unless_told_otherwise(self):
        self.assertEqual(problem_of("f8_e4m3").fast_accumulation, 0)

    def test_eight_bits_may_be_fast(self):
        problem = problem_of("f8_e4m3")
        _gemm.set_fast_accumulation(problem)
        self.assertEqual(problem.fast_accumulation, 1)

    def test_other_types_and_problems_may_not(self):
        weights = _structs.WeightProblem(operand=_gemm_problem.OPERANDS.index("bf16"))
        for problem in (problem_of("bf16"), problem_of("f16"), weights):
            with self.assertRaisesRegex(ValueError, "f8_e4m3"):
                _gemm.set_fast_accumulation(problem)

    def test_the_library_refuses_other_numbers(self):
        problem = problem_of("f8_e4m3")
        plain = refused(problem)
        problem.fast_accumulation = 1
        self.assertEqual(refused(problem), plain)
        problem.fast_accumulation = 2
        self.assertIn("fast_accumulation", refused(problem))


class Pointers(unittest.TestCase):
    def setUp(self):
        self.np = support.need("numpy")
        self.addresses = [self.np.full(5, 1 << 20, self.np.uint64) for _ in range(3)]
        self.sizes, self.pitches = ([self.np.full(5, 64) for _ in range(3)] for _ in range(2))

    def made(self, dtype="f16", layouts=("k_by_m", "k_by_n"), out_dtype="f32", accumulate=True):
        """Of arrays on the host, which hold no products but have addresses."""
        site = Site(None, *self.addresses)
        return _gemm_pointers.problem_of(site, *self.addresses, self.sizes, self.pitches, dtype, layouts, out_dtype,
                                         accumulate)

    def test_every_array_comes_to_its_place(self):
        problem = self.made()
        places = [getattr(problem, name) for name in ("a", "b", "c", "m", "n", "k", "a_pitch_bytes", "b_pitch_bytes",
                                                      "c_pitch_bytes")]
        self.assertEqual(places, [array.ctypes.data for array in (*self.addresses, *self.sizes, *self.pitches)])
        self.assertEqual((problem.struct_size, problem.operand, problem.groups, problem.a_layout, problem.b_layout,
                          problem.c_type, problem.accumulate), (ctypes.sizeof(problem), 1, 5, 1, 1, 1, 1))
        self.addresses[1] = self.addresses[1].view(self.np.int64)
        plain = self.made("bf16", ("m_by_k", "n_by_k"), None, False)
        self.assertEqual((plain.operand, plain.a_layout, plain.b_layout, plain.c_type, plain.accumulate),
                         (0, 0, 0, 0, 0))
        self.assertEqual(self.made("bf16", out_dtype="bf16").c_type, 0)

    def test_the_library_takes_it_and_asks_for_memory(self):
        with self.assertRaisesRegex(tmap.Error, "tmap_gemm_pointers") as caught:
            check(lib.tmap_gemm_pointers(ctypes.byref(self.made()), None))
        self.assertEqual(caught.exception.allowed, _gemm_problem.workspace_bytes(5))

    def test_what_is_no_such_problem(self):
        for words in ({"dtype": "f8_e4m3"}, {"dtype": "f32"}, {"layouts": ("m", "n_by_k")},
                      {"layouts": ("m_by_k", "n")}, {"out_dtype": "f8_e4m3"}, {"out_dtype": "bf16"}):
            with self.assertRaises(ValueError, msg=words):
                self.made(**words)
        for arrays, name in ((self.addresses, "b"), (self.addresses, "out"), (self.sizes, "n"), (self.pitches, "b_pitch")):
            place = 2 if name == "out" else 1
            good = arrays[place]
            for error, bad in ((ValueError, good[:4]), (ValueError, self.np.repeat(good, 2)[::2]),
                               (ValueError, good.reshape(5, 1)), (TypeError, good.astype(self.np.int32))):
                arrays[place] = bad
                with self.assertRaisesRegex(error, name):
                    self.made()
            arrays[place] = good
        with self.assertRaisesRegex(ValueError, "3 and 2"):
            self.pitches.pop()
            self.made()

    def test_products_are_of_device_memory(self):
        with self.assertRaisesRegex(ValueError, "device memory"):
            tmap.grouped_mm_by_pointers(*self.addresses, self.sizes, self.pitches, dtype="bf16")


class RowsThatStillCome(StandIns):
    """The problem and the call that the library gets."""

    def taken(self, b=CuPyArray((GROUPS, K, N), "bf16"), **changes):
        found = []

        def take(ready, a, b, out, offs, workspace, stream, reports, pieces):
            first, second, third, fourth, last = pieces or ready.pieces
            packed = ready.pack(first, offs, second, a, third, b, fourth, out, last)
            found.append((type(ready.problem).from_buffer_copy(packed), _structs.Call.from_buffer_copy(
                call_on(stream, workspace, ready.workspace_bytes, reports))))

        with unittest.mock.patch.object(_gemm, "enqueue", take):
            tmap.grouped_mm(CuPyArray((ROWS, K), "bf16"), b, CuPyArray((GROUPS,), "i32"),
                            out=CuPyArray((ROWS, N), "bf16"), stream=7, **changes)
        return found[0]

    def test_come_to_their_places(self):
        pending = CuPyArray((GROUPS + 1,), "u32")
        problem, call = self.taken(pending=pending, blocks=100)
        self.assertEqual((problem.pending, call.blocks), (ctypes.addressof(pending.data), 100))

    def test_are_null_and_0_if_they_are_left_out(self):
        problem, call = self.taken()
        self.assertEqual((problem.pending, call.blocks), (None, 0))

    def test_are_refused(self):
        for error, words, changes in (
                (ValueError, "pending", {"pending": CuPyArray((GROUPS,), "u32")}),
                (TypeError, "pending", {"pending": CuPyArray((GROUPS + 1,), "f32")}),
                (ValueError, "blocks", {"blocks": -1}), (ValueError, "blocks", {"blocks": 1 << 32})):
            with self.subTest(changes=changes), self.assertRaisesRegex(error, words):
                self.taken(**changes)


if __name__ == "__main__":
    unittest.main()
