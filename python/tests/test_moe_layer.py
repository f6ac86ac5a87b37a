# SPDX-License-Identifier: Apache-2.0
"""Layers of experts without a GPU: the problems that the library gets, and refusals."""
import ctypes
import unittest
import unittest.mock

from lifetime_cases import StandIns
from stand_ins import OnDevice

from tmap import _moe_layer, _structs, moe

TOKENS, K, EXPERTS, WIDTH, INNER = 10, 2, 4, 256, 200
ROWS, WORKSPACE = TOKENS * K, 1 << 20


class Library:
    """Notes the structs of a layer."""

    def tmap_moe_layer_workspace_bytes(self, problem, needed):
        needed._obj.value = 4096
        return 0

    def tmap_moe_layer(self, problem, results, call):
        self.problem = _structs.LayerProblem.from_buffer_copy(problem._obj)
        self.results = _structs.LayerResults.from_buffer_copy(results._obj)
        return 0


class Layers(StandIns):
    def setUp(self):
        super().setUp()
        self.library = Library()
        for place, name, stand_in in ((_moe_layer, "lib", self.library),
                                      (_moe_layer.Site, "memory", lambda site, nbytes: (WORKSPACE, None))):
            patch = unittest.mock.patch.object(place, name, stand_in)
            patch.start()
            self.addCleanup(patch.stop)

    @staticmethod
    def operands(weights="bf16"):
        return {"x": OnDevice((TOKENS, WIDTH), "bf16"), "gate_up": OnDevice((EXPERTS, 2 * INNER, WIDTH), weights),
                "down": OnDevice((EXPERTS, WIDTH, INNER), weights), "ids": OnDevice((TOKENS, K), "i32"),
                "out": OnDevice((TOKENS, WIDTH), "bf16")}

    @staticmethod
    def rows(operand="bf16"):
        return {"sorted": OnDevice((ROWS, WIDTH), operand), "kept": OnDevice((ROWS, 2 * INNER), "bf16"),
                "activated": OnDevice((ROWS, INNER), operand), "outputs": OnDevice((ROWS, WIDTH), "bf16")}

    def layer(self, **arguments):
        self.assertIs(moe.layer(**arguments, stream=7), arguments["out"])
        return self.library.problem, self.library.results

    def expect(self, member, array, columns, item=2):
        self.assertEqual((member.address, member.pitch_bytes), (ctypes.addressof(array.data), columns * item))

    def test_operands_come_to_their_places(self):
        given, base = self.operands(), OnDevice((TOKENS, WIDTH), "bf16")
        problem, results = self.layer(**given, base=base)
        self.assertEqual((problem.operand, problem.width, problem.inner), (0, WIDTH, INNER))
        self.assertEqual((problem.routing.tokens, problem.routing.k, problem.routing.experts), (TOKENS, K, EXPERTS))
        for name, columns in (("x", WIDTH), ("out", WIDTH)):
            self.expect(getattr(problem, name), given[name], columns)
        self.expect(problem.base, base, WIDTH)
        self.expect(problem.gate_up.values, given["gate_up"], WIDTH)
        self.expect(problem.down.values, given["down"], INNER)
        self.assertEqual((problem.gate.kept.address, results.rows.address, results.activated.address,
                          results.outputs.address, results.row_scales), (0, 0, 0, 0, None))

    def test_rows_and_scales_come_to_their_places(self):
        rows = self.rows("f8_e4m3")
        scales = {"sorted_scales": OnDevice((ROWS, 2), "f32"), "activated_scales": OnDevice((ROWS, 2), "f32")}
        problem, results = self.layer(**self.operands("f8_e4m3"), **rows, **scales)
        self.assertEqual(problem.operand, 2)
        self.expect(results.rows, rows["sorted"], WIDTH, 1)
        self.expect(problem.gate.kept, rows["kept"], 2 * INNER)
        self.expect(results.activated, rows["activated"], INNER, 1)
        self.expect(results.outputs, rows["outputs"], WIDTH)
        self.assertEqual((results.row_scales, results.activated_scales),
                         tuple(ctypes.addressof(array.data) for array in scales.values()))

    def test_arrays_that_do_not_fit(self):
        for error, words, changes in (
                (ValueError, "they must be", {"down": OnDevice((EXPERTS, WIDTH, INNER + 8), "bf16")}),
                (TypeError, "down has elements of f16", {"down": OnDevice((EXPERTS, WIDTH, INNER), "f16")}),
                (ValueError, "choices are of 9 tokens", {"ids": OnDevice((9, K), "i32")}),
                (ValueError, r"out is \(9, 256\)", {"out": OnDevice((9, WIDTH), "bf16")}),
                (ValueError, r"kept is \(20, 200\): it must be \(20, 400\)", {"kept": OnDevice((ROWS, INNER), "bf16")}),
                (TypeError, "activated has elements of f8_e4m3", {"activated": OnDevice((ROWS, INNER), "f8_e4m3")}),
                (ValueError, "sorted_scales must hold 40", {"sorted_scales": OnDevice((ROWS, 1), "f32")})):
            with self.subTest(words), self.assertRaisesRegex(error, words):
                moe.layer(**{**self.operands(), **changes}, stream=7)


if __name__ == "__main__":
    unittest.main()
