# SPDX-License-Identifier: Apache-2.0
"""Grouped products as far as they go without arrays: what a problem is told, and what is refused."""
import ctypes
import unittest

import tmap
from tmap import _gemm, _structs
from tmap._errors import check
from tmap._library import lib

ROWS, GROUPS, N, K = 32, 2, 64, 128


def problem_of(operand):
    """Legal but for its memory, of which there is none."""
    ready = _gemm.prepare((ROWS, K), (K, 1), (GROUPS, K, N), (K * N, 1, K), operand, GROUPS, 4, 0)
    return ready.problem


def refused(problem):
    """What the library has against it: found, allowed."""
    try:
        check(lib.tmap_gemm_rows(ctypes.byref(problem), None, 0, None, None))
    except tmap.Error as error:
        return str(error)
    return ""


class FastAccumulation(unittest.TestCase):
    def test_sums_are_of_f32_unless_told_otherwise(self):
        self.assertEqual(problem_of("f8_e4m3").fast_accumulation, 0)

    def test_eight_bits_may_be_fast(self):
        problem = problem_of("f8_e4m3")
        _gemm.set_fast_accumulation(problem)
        self.assertEqual(problem.fast_accumulation, 1)

    def test_other_types_and_problems_may_not(self):
        weights = _structs.WeightProblem(operand=_gemm.OPERANDS.index("bf16"))
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


if __name__ == "__main__":
    unittest.main()
