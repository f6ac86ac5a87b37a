# SPDX-License-Identifier: Apache-2.0
"""Experts on several ranks without a GPU: the problems that the library gets, and refusals."""
import ctypes
import types
import unittest
import unittest.mock

from lifetime_cases import StandIns
from stand_ins import OnDevice
from test_dlpack import Producer
from test_peer import group_of

import tmap
from tmap import Status, _experts, _structs, peer
from tmap._library import lib

# A group of three ranks; this one has experts 2 and 3 of 6.
SIZES = peer.ExpertShape(tokens=10, k=2, experts=6, columns=32, arrivals=20, alignment=16, scales=3, result_columns=64,
                         result_type="f32", returned="rows")
ROWS, SPACE = 64, 3000


def address_of(array):
    return ctypes.addressof(array.data)


class Shapes(unittest.TestCase):
    def test_come_to_their_places(self):
        made = SIZES._replace(rows=96, dtype="f8_e4m3").to_c()
        self.assertEqual((made.struct_size, made.k, made.tokens, made.arrivals, made.rows, made.columns, made.experts,
                          made.alignment, made.row_bytes, made.scales, made.result_type, made.returned),
                         (64, 2, 10, 20, 96, 64, 6, 16, 32, 3, 0, 1))
        plain = peer.ExpertShape(tokens=10, k=2, experts=6, columns=32, arrivals=20).to_c()
        self.assertEqual((plain.rows, plain.columns, plain.alignment, plain.row_bytes, plain.scales, plain.result_type,
                          plain.returned), (0, 32, 1, 64, 0, 1, 0))

    def test_need_what_the_library_needs(self):
        self.assertEqual(SIZES.row_count(3), tmap.moe.most_rows(20, 2, 2, 16))
        self.assertEqual(SIZES.row_count(3), ROWS)
        self.assertEqual(SIZES._replace(rows=96).row_count(3), 96)
        number = ctypes.c_uint64()
        sizes = SIZES.to_c()
        self.assertEqual(lib.tmap_peer_workspace_bytes(ctypes.byref(sizes), 3, ctypes.byref(number)), 0)
        self.assertEqual(SIZES.workspace_bytes(3), number.value)
        self.assertGreater(SIZES._replace(arrivals=40).workspace_bytes(3), number.value)

    def test_are_refused_by_name(self):
        for words, changes in (("returned", {"returned": "row"}), ("result_type", {"result_type": "f64"}),
                               ("tokens is -1", {"tokens": -1}), ("k is", {"k": 1 << 32})):
            with self.assertRaisesRegex(ValueError, words):
                SIZES._replace(**changes).to_c()
        with self.assertRaisesRegex(TypeError, "dtype"):
            SIZES._replace(dtype="f12").to_c()
        for argument, ranks, changes in (("sizes.experts", 3, {"experts": 7}), ("ranks", 0, {}),
                                         ("sizes.k", 3, {"k": 0}), ("sizes.row_bytes", 3, {"columns": 3}),
                                         ("sizes.scales", 3, {"scales": 5000}),
                                         ("sizes.columns", 3, {"result_columns": 3})):
            for function in (peer.ExpertShape.row_count, peer.ExpertShape.workspace_bytes):
                with self.subTest(argument), self.assertRaises(tmap.Error) as caught:
                    function(SIZES._replace(**changes), ranks)
                self.assertEqual((caught.exception.status, caught.exception.argument),
                                 (Status.INVALID_ARGUMENT, argument))


class Calls(StandIns):
    def setUp(self):
        super().setUp()
        self.window = group_of().allocate(4096)
        self.taken = []

    def with_library(self, function, kind):
        """The real library but for one function, whose problems it notes."""
        def take(window, problem, stream):
            self.taken.append((window.value, kind.from_buffer_copy(problem._obj), stream))
            return 0

        real = {name: getattr(lib, name) for name in ("tmap_peer_expert_rows", "tmap_peer_workspace_bytes",
                                                      "tmap_peer_dispatch", "tmap_peer_combine")}
        return unittest.mock.patch.object(_experts, "lib", types.SimpleNamespace(**{**real, function: take}))

    def refused(self, cases, call):
        for error, words, changes in cases:
            with self.subTest(words), self.assertRaisesRegex(error, words):
                call(**changes)
        self.assertEqual(self.taken, [])


class Dispatches(Calls):
    def arrays(self, **changes):
        made = {"x": OnDevice((10, 32), "bf16"), "ids": OnDevice((10, 2), "i32"), "out": OnDevice((ROWS, 32), "bf16"),
                "workspace": OnDevice((SPACE,), "u8")}
        return {**made, **changes}

    @staticmethod
    def others():
        return {"weights": OnDevice((10, 2), "f32"), "x_scales": OnDevice((10, 3), "f32"),
                "out_scales": OnDevice((ROWS, 3), "f32"), "counts": OnDevice((2,), "i32"),
                "begins": OnDevice((3,), "i32"), "ends": OnDevice((2,), "i32"),
                "weight_of_row": OnDevice((ROWS,), "f32"), "pending": OnDevice((3,), "u32")}

    def dispatch(self, sizes=SIZES, blocks=0, patience=None, stream=7, **changes):
        arrays = self.arrays(**changes)
        with self.with_library("tmap_peer_dispatch", _structs.PeerDispatchProblem):
            done = peer.dispatch(self.window, sizes, **arrays, blocks=blocks, patience=patience, stream=stream)
        self.assertIs(done, arrays["out"])
        return arrays

    def test_problems_come_to_their_places(self):
        arrays = self.dispatch(blocks=32, patience=2.5, **self.others())
        handle, problem, stream = self.taken[0]
        self.assertEqual((handle, stream), (self.window.handle.value, 7))
        self.assertEqual((problem.struct_size, problem.blocks, problem.patience_ms, problem.workspace_bytes,
                          problem.x_scale_pitch), (216, 32, 2500, SPACE, 3))
        self.assertEqual(bytes(problem.sizes), bytes(SIZES.to_c()))
        self.assertEqual((problem.x.pitch_bytes, problem.out.pitch_bytes), (64, 64))
        self.assertEqual((problem.x.address, problem.out.address), (address_of(arrays["x"]), address_of(arrays["out"])))
        for name in ("ids", "workspace", *self.others()):
            self.assertEqual(getattr(problem, name), address_of(arrays[name]), name)

    def test_what_is_left_out_is_null(self):
        self.dispatch()
        problem = self.taken[0][1]
        self.assertEqual((problem.blocks, problem.patience_ms, problem.x_scale_pitch), (0, 0, 0))
        self.assertEqual([getattr(problem, name) for name in self.others()], [None] * 8)
        self.assertIsNone(problem.ready)

    def test_events_come_as_handles(self):
        for event in (77, types.SimpleNamespace(cuda_event=77), types.SimpleNamespace(ptr=77)):
            self.dispatch(ready=event)
            self.assertEqual(self.taken.pop()[1].ready, 77)
        self.refused(((ValueError, "ready has no handle yet", {"ready": types.SimpleNamespace(cuda_event=0)}),),
                     self.dispatch)

    def test_arrays_that_do_not_fit(self):
        self.refused((
            (ValueError, r"x is \(9, 32\)", {"x": OnDevice((9, 32), "bf16")}),
            (TypeError, "x has elements of f16", {"x": OnDevice((10, 32), "f16")}),
            (ValueError, rf"out is \(63, 32\): it must be \({ROWS}, 32\)", {"out": OnDevice((63, 32), "bf16")}),
            (TypeError, "out", {"out": OnDevice((ROWS, 32), "f32")}),
            (ValueError, "ids is", {"ids": OnDevice((10, 3), "i32")}),
            (TypeError, "ids", {"ids": OnDevice((10, 2), "i64")}),
            (ValueError, "weights must hold 20", {"weights": OnDevice((19,), "f32")}),
            (ValueError, "x_scales is", {"x_scales": OnDevice((10, 4), "f32")}),
            (ValueError, "out_scales must hold 192", {"out_scales": OnDevice((ROWS, 2), "f32")}),
            (ValueError, "counts must hold 2", {"counts": OnDevice((1,), "i32")}),
            (ValueError, "begins must hold 3", {"begins": OnDevice((2,), "i32")}),
            (ValueError, "ends must hold 2", {"ends": OnDevice((1,), "i32")}),
            (ValueError, "weight_of_row must hold 64", {"weight_of_row": OnDevice((63,), "f32")}),
            (ValueError, "pending must hold 3", {"pending": OnDevice((2,), "u32")}),
            (ValueError, "elsewhere", {"ids": OnDevice((10, 2), "i32", device=1)}),
            (ValueError, "x is on device 1", {name: OnDevice((10, 32), "bf16", device=1) for name in
                                              ("x", "ids", "out", "workspace")}),
            (ValueError, "device memory", {"stream": None, "x": Producer(bytes(4096), (10, 32), "bf16")})),
            self.dispatch)

    def test_numbers_that_do_not_fit(self):
        self.refused(((ValueError, "blocks", {"blocks": -1}), (ValueError, "patience", {"patience": 0}),
                      (tmap.Error, "experts", {"sizes": SIZES._replace(experts=7)})), self.dispatch)

    def test_rows_outside_the_window_are_refused_by_the_library(self):
        sizes = SIZES._replace(scales=0)
        with self.assertRaises(tmap.Error) as caught:
            peer.dispatch(self.window, sizes, **self.arrays(), stream=7)
        self.assertEqual(caught.exception.argument, "problem.workspace_bytes")
        with self.assertRaises(tmap.Error) as caught:
            peer.dispatch(self.window, sizes, **self.arrays(workspace=OnDevice((1 << 20,), "u8")), stream=7)
        self.assertEqual(caught.exception.argument, "problem.workspace")


class Combines(Calls):
    def arrays(self, **changes):
        made = {"values": OnDevice((ROWS, 64), "f32"), "out": OnDevice((10, 64), "f32"),
                "workspace": OnDevice((SPACE,), "u8")}
        return {**made, **changes}

    def combine(self, sizes=SIZES, blocks=0, patience=None, stream=7, **changes):
        arrays = self.arrays(**changes)
        with self.with_library("tmap_peer_combine", _structs.PeerCombineProblem):
            done = peer.combine(self.window, sizes, **arrays, blocks=blocks, patience=patience, stream=stream)
        self.assertIs(done, arrays["out"])
        return arrays

    def test_problems_come_to_their_places(self):
        arrays = self.combine(blocks=32, patience=2.5, weights=OnDevice((10, 2), "f32"), base=OnDevice((10, 64), "f32"))
        handle, problem, stream = self.taken[0]
        self.assertEqual((handle, stream), (self.window.handle.value, 7))
        self.assertEqual((problem.struct_size, problem.blocks, problem.patience_ms, problem.workspace_bytes),
                         (152, 32, 2500, SPACE))
        self.assertEqual(bytes(problem.sizes), bytes(SIZES.to_c()))
        for name in ("values", "base", "out"):
            found = getattr(problem, name)
            self.assertEqual((found.address, found.pitch_bytes), (address_of(arrays[name]), 256), name)
        self.assertEqual((problem.weights, problem.workspace),
                         (address_of(arrays["weights"]), address_of(arrays["workspace"])))

    def test_what_is_left_out_is_zero(self):
        self.combine()
        problem = self.taken[0][1]
        self.assertEqual((problem.weights, problem.base.address, problem.blocks, problem.patience_ms), (None, 0, 0, 0))

    def test_arrays_that_do_not_fit(self):
        self.refused((
            (ValueError, rf"values is \(63, 64\): it must be \({ROWS}, 64\)", {"values": OnDevice((63, 64), "f32")}),
            (TypeError, "values", {"values": OnDevice((ROWS, 64), "bf16")}),
            (ValueError, r"out is \(10, 32\)", {"out": OnDevice((10, 32), "f32")}),
            (ValueError, r"base is \(1, 64\)", {"base": OnDevice((1, 64), "f32")}),
            (ValueError, "weights must hold 20", {"weights": OnDevice((19,), "f32")}),
            (ValueError, "go with the dispatch", {"weights": OnDevice((10, 2), "f32"),
                                                  "sizes": SIZES._replace(returned="sums")}),
            (ValueError, "device memory", {"stream": None, "values": Producer(bytes(4096), (ROWS, 64), "f32")})),
            self.combine)

    def test_workspaces_are_judged_by_the_library(self):
        with self.assertRaises(tmap.Error) as caught:
            peer.combine(self.window, SIZES, **self.arrays(), stream=7)
        self.assertEqual(caught.exception.argument, "problem.workspace_bytes")


if __name__ == "__main__":
    unittest.main()
