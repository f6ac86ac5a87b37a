# SPDX-License-Identifier: Apache-2.0
"""apps/bench/gemm/gemm_torch.py without a GPU: its arguments, its cases, and its calls of
cuBLAS."""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import support

np = support.need("numpy")
APP = Path(__file__).resolve().parents[2] / "apps" / "bench" / "gemm"
sys.path.append(str(APP))
import cublas_grouped  # noqa: E402
import gemm_cases  # noqa: E402

ROWS = {"groups": 3, "rows": 5, "n": 16, "k": 32, "in_8_bits": True, "sizes": [2, 0, 3]}
SHAPES = {"rows": [ROWS, {**ROWS, "n": 64, "in_8_bits": False}], "weights": ROWS, "pointers": [[1, 16, 32], [5, 8, 8]]}
NAMES = ["dense: 8192, 8192, 8192", "3, 5, 16, 32", "3, 5, 16, 32, f8", "3, 5, 16, 32, f8 fast", "3, 5, 64, 32",
         "gradient: 3, 5, 16, 32", "2 products by pointers"]


def columns_first(address, rows, columns, pitch, is_turned):
    """A matrix as cuBLAS reads it, of f32."""
    if is_turned:
        return columns_first(address, columns, rows, pitch, False).T
    elements = (ctypes.c_float * (pitch * (columns - 1) + rows)).from_address(address)
    return np.lib.stride_tricks.as_strided(np.frombuffer(elements, np.float32), (rows, columns), (4, 4 * pitch))


def multiply(of):
    """What cuBLAS documents: for each group of one product C = alpha * op(first) * op(second) +
    beta * C."""
    for i in range(len(of.sizes)):
        m, n, k = of.m[i], of.n[i], of.k[i]
        left = columns_first(of.first[i], m, k, of.first_pitches[i], of.first_operations[i] == 1)
        right = columns_first(of.second[i], k, n, of.second_pitches[i], of.second_operations[i] == 1)
        c = columns_first(of.c[i], m, n, of.c_pitches[i], False)
        c[:] = of.alpha[i] * (left @ right) + (of.beta[i] * c if of.beta[i] else 0)


class GroupedArguments(unittest.TestCase):
    SIZES = ((2, 4, 5), (0, 4, 5), (3, 6, 2), (1, 1, 1), (4, 3, 0))  # m, n, k

    def matrices(self, shapes, more):
        """Values within wider rows of NaN."""
        made = [np.full((rows + 1, columns + more), np.nan, np.float32) for rows, columns in shapes]
        for matrix, (rows, columns) in zip(made, shapes):
            matrix[:rows, :columns] = np.arange(rows * columns).reshape(rows, columns) - 3
        return made

    def check(self, sums_rows):
        a = self.matrices([(k, m) if sums_rows else (m, k) for m, n, k in self.SIZES], 2)
        b = self.matrices([(k, n) if sums_rows else (n, k) for m, n, k in self.SIZES], 1)
        c = [np.full((m + 1, n + 4), np.nan, np.float32) for m, n, k in self.SIZES]
        products = [cublas_grouped.Product(*size, *(matrix.ctypes.data for matrix in trio),
                                           *(matrix.shape[1] for matrix in trio))
                    for size, trio in zip(self.SIZES, zip(a, b, c))]
        arguments = cublas_grouped.arguments_of(products, sums_rows)
        multiply(arguments)
        for (m, n, k), left, right, found in zip(self.SIZES, a, b, c):
            expected = np.full_like(found, np.nan)
            if m and k:
                expected[:m, :n] = left[:k, :m].T @ right[:k, :n] if sums_rows else left[:m, :k] @ right[:n, :k].T
            np.testing.assert_array_equal(found, expected)
        return arguments

    def test_products_with_a_transposed_right_side(self):
        self.check(sums_rows=False)

    def test_sums_over_rows(self):
        self.check(sums_rows=True)

    def test_a_tiny_call_in_numbers(self):
        of = cublas_grouped.arguments_of([cublas_grouped.Product(2, 4, 5, 100, 200, 300, 7, 6, 9),
                                          cublas_grouped.Product(0, 4, 5, 1, 1, 1, 1, 1, 1)])
        self.assertEqual([list(column) for column in of],
                         [[1], [0], [4], [2], [5], [1.0], [6], [7], [0.0], [9], [1], [200], [100], [300]])
        self.assertEqual({type(of.m)._type_, type(of.first_operations)._type_, type(of.sizes)._type_}, {ctypes.c_int})
        self.assertEqual({type(of.alpha)._type_, type(of.beta)._type_}, {ctypes.c_float})

    def test_no_products(self):
        self.assertEqual([len(column) for column in cublas_grouped.arguments_of([])], [0] * 14)

    def test_the_librarys_function_takes_them(self):
        support.need("torch")  # with which a cuBLAS comes into the process
        with self.assertRaisesRegex(RuntimeError, "(?i)not.initialized|no libcublas"):
            cublas_grouped.enqueue(None, self.check(False), None, None, None)


class Cases(unittest.TestCase):
    def test_each_shape_is_a_case(self):
        self.assertEqual([name for name, _ in gemm_cases.cases_of(SHAPES, re.compile(""))], NAMES)
        self.assertEqual([name for name, _ in gemm_cases.cases_of(SHAPES, re.compile("f8|point"))], NAMES[2:4] + NAMES[6:])

    def test_groups_without_rows_have_no_part(self):
        self.assertEqual(gemm_cases.begins_of(ROWS["sizes"]), [0, 2, 2, 5])
        self.assertEqual(gemm_cases.parts_of(ROWS["sizes"]), [(0, slice(0, 2)), (2, slice(2, 5))])


class Program(unittest.TestCase):
    def run_with(self, *arguments, text=json.dumps(SHAPES)):
        """Sees no GPU, also where there is one."""
        with tempfile.TemporaryDirectory() as folder:
            shapes = Path(folder) / "shapes.json"
            shapes.write_text(text)
            return subprocess.run([sys.executable, APP / "gemm_torch.py", shapes, *arguments], capture_output=True, text=True,
                                  env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})

    def test_ends_well_without_a_gpu(self):
        for arguments in ((), ("--json", os.devnull, "--only", "f8$")):
            done = self.run_with(*arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, "^gemm_torch: (torch is not installed|no GPU)\n$")

    def test_refuses_what_it_cannot_read(self):
        lacks_pointers = json.dumps({key: SHAPES[key] for key in ("rows", "weights")})
        for done, words in ((self.run_with("--unknown"), "unrecognized arguments"), (self.run_with("--json"), "--json"),
                            (self.run_with(text="{"), "JSONDecodeError"), (self.run_with(text=lacks_pointers), "pointers")):
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
