# SPDX-License-Identifier: Apache-2.0
"""Experts without a GPU: the problems that the library gets, and refusals."""
import ctypes
import unittest

import support
import tmap
from tmap import _routing, _structs, moe
from tmap._arrays import Site
from tmap._errors import check
from tmap._library import lib

np = support.need("numpy")
TOKENS, EXPERTS, K = 1000, 64, 4


def error_of(problem, results=None):
    """What the library has against it. A good one needs memory, of which there is none."""
    made = results or _structs.RouteResults()
    try:
        check(lib.tmap_moe_route(ctypes.byref(problem), ctypes.byref(made), None))
    except tmap.Error as error:
        return error.argument
    return ""


def from_logits(logits, k=K, scoring="sigmoid", bias=None, groups=None, renormalise=True, scale=2.5):
    problem = _structs.RouteProblem(alignment=1)
    _routing.set_logits(Site(None, logits), problem, logits, k, scoring, bias, groups, renormalise, scale)
    return problem


def from_ids(ids, weights=None, experts=EXPERTS):
    problem = _structs.RouteProblem(alignment=1)
    _routing.set_given(Site(None, ids), problem, ids, weights, experts)
    return problem


class Problems(unittest.TestCase):
    def test_logits_come_to_their_places(self):
        logits, bias = np.zeros((TOKENS, EXPERTS), np.float32), np.zeros(EXPERTS, np.float32)
        problem = from_logits(logits, bias=bias, groups=moe.Groups(8, 4, "sum_of_two_largest"))
        made = problem.choices
        self.assertEqual((problem.tokens, problem.experts, problem.k), (TOKENS, EXPERTS, K))
        self.assertEqual((made.kind, made.type, made.values.address, made.values.pitch_bytes),
                         (0, 0, logits.ctypes.data, 4 * EXPERTS))
        self.assertEqual((made.scoring, made.renormalise, made.scale, made.bias), (2, 1, 2.5, bias.ctypes.data))
        self.assertEqual((made.groups.count, made.groups.chosen, made.groups.score), (8, 4, 1))
        self.assertEqual(error_of(problem), "call.workspace_bytes")
        half = from_logits(np.zeros((TOKENS, 2 * EXPERTS), np.float16)[:, :EXPERTS], scoring="top_k_then_softmax")
        self.assertEqual((half.choices.type, half.choices.values.pitch_bytes, half.choices.scoring),
                         (2, 4 * EXPERTS, 1))

    def test_given_choices_come_to_their_places(self):
        for kind, size in ((np.int32, 4), (np.int64, 8)):
            ids, weights = np.zeros((20000, K), kind), np.zeros((20000, K), np.float32)
            problem = from_ids(ids, weights)
            made = problem.choices
            self.assertEqual((problem.tokens, problem.k, problem.experts), (20000, K, EXPERTS))
            self.assertEqual((made.kind, made.bytes, made.ids, made.weights),
                             (1, size, ids.ctypes.data, weights.ctypes.data))
            self.assertEqual(error_of(problem), "call.workspace_bytes")

    def test_limits_are_those_of_the_library(self):
        def argument(tokens, k, experts):
            problem = from_ids(np.zeros((1, 1), np.int32), experts=experts)
            problem.tokens, problem.k = tokens, k  # its arrays are not read
            return error_of(problem)

        tokens = _routing.MAX_CHOICES // _routing.MAX_K
        self.assertEqual(argument(tokens, _routing.MAX_K, _routing.MAX_EXPERTS), "call.workspace_bytes")
        self.assertEqual(argument(tokens + 1, _routing.MAX_K, EXPERTS), "problem.tokens")
        self.assertEqual(argument(1, _routing.MAX_K + 1, EXPERTS), "problem.k")
        self.assertEqual(argument(1, 1, _routing.MAX_EXPERTS + 1), "problem.experts")

    def test_results_come_to_their_places(self):
        problem = from_ids(np.zeros((20000, K), np.int32))
        sizes = (EXPERTS, EXPERTS + 1, EXPERTS, 20000 * K, 20000 * K)
        arrays = [np.zeros(size, np.int32) for size in sizes] + [np.zeros(20000 * K, np.float32)]
        made = _routing.results_of(Site(None, *arrays), problem, (None, None), arrays)
        names = ("counts", "begins", "ends", "row_of_choice", "token_of_row", "weight_of_row")
        self.assertEqual([getattr(made, name) for name in names], [array.ctypes.data for array in arrays])
        self.assertEqual((made.ids, made.weights), (None, None))
        self.assertEqual(error_of(problem, made), "call.workspace_bytes")
        for place, name in enumerate(names):
            short = list(arrays)
            short[place] = short[place][:-1]
            with self.assertRaisesRegex(ValueError, name):
                _routing.results_of(Site(None, *short), problem, (None, None), short)

    def test_arrays_that_do_not_fit(self):
        with self.assertRaisesRegex(TypeError, "logits"):
            from_logits(np.zeros((TOKENS, EXPERTS), np.float64))
        with self.assertRaisesRegex(ValueError, "logits has gaps"):
            from_logits(np.zeros((EXPERTS, TOKENS), np.float32).T)
        with self.assertRaisesRegex(ValueError, "scoring"):
            from_logits(np.zeros((TOKENS, EXPERTS), np.float32), scoring="softmax")
        with self.assertRaisesRegex(ValueError, "bias"):
            from_logits(np.zeros((TOKENS, EXPERTS), np.float32), bias=np.zeros(3, np.float32))
        with self.assertRaisesRegex(TypeError, "ids"):
            from_ids(np.zeros((TOKENS, K), np.int16))
        with self.assertRaisesRegex(ValueError, "ids has gaps"):
            from_ids(np.zeros((TOKENS, 2 * K), np.int32)[:, ::2])

    def test_numbers_that_the_library_refuses(self):
        logits = np.zeros((TOKENS, EXPERTS), np.float32)
        self.assertEqual(error_of(from_logits(logits, k=EXPERTS + 1)), "problem.k")
        self.assertEqual(error_of(from_logits(logits, groups=(7, 2))), "problem.choices.groups.count")
        self.assertEqual(error_of(from_logits(logits, K, "softmax_then_top_k",
                                              np.zeros(EXPERTS, np.float32))), "problem.choices.bias")
        self.assertEqual(error_of(from_ids(np.zeros((TOKENS, K), np.int32), experts=0)), "problem.experts")


class Calls(unittest.TestCase):
    def test_are_for_device_memory(self):
        ids = np.zeros((TOKENS, K), np.int32)
        with self.assertRaisesRegex(ValueError, "device memory"):
            moe.route(ids=ids, experts=EXPERTS)
        values = np.zeros((TOKENS * K, 8), np.float32)
        with self.assertRaisesRegex(ValueError, "device memory"):
            moe.combine(values, ids, out=np.zeros((TOKENS, 8), np.float32))

    def test_gradients_need_something_to_write(self):
        ids, d_out = np.zeros((TOKENS, K), np.int32), np.zeros((TOKENS, 8), np.float32)
        with self.assertRaisesRegex(ValueError, "neither"):
            moe.combine_backward(d_out, ids)
        with self.assertRaisesRegex(ValueError, "needs values"):
            moe.combine_backward(d_out, ids, d_weights=np.zeros((TOKENS, K), np.float32))
        with self.assertRaisesRegex(ValueError, "device memory"):
            moe.combine_backward(d_out, ids, d_values=np.zeros((TOKENS * K, 8), np.float32))

    def test_need_choices(self):
        with self.assertRaisesRegex(ValueError, "neither"):
            moe.route()
        with self.assertRaisesRegex(ValueError, "neither"):
            moe.route(ids=np.zeros((TOKENS, K), np.int32))


class Rows(unittest.TestCase):
    def test_are_enough(self):
        self.assertEqual(moe.most_rows(100, 64, 4), 400)
        self.assertEqual(moe.most_rows(18, 2, 1, 16), 48)
        with self.assertRaisesRegex(ValueError, "alignment"):
            moe.most_rows(18, 2, 1, 0)


class Faults(unittest.TestCase):
    def test_have_names_and_words(self):
        self.assertEqual(moe.faults_of(1 << 8), moe.Fault.EXPERT)
        self.assertEqual(moe.faults_of(-(1 << 31)), moe.Fault.EMPTY)
        self.assertEqual(moe.faults_of(0), moe.Fault(0))
        self.assertIn("expert", tmap.describe_status("row", moe.Fault.EXPERT))
        self.assertIn("capacity", tmap.describe_status("row", moe.Fault.CAPACITY))


if __name__ == "__main__":
    unittest.main()
