# SPDX-License-Identifier: Apache-2.0
"""Specs, rules and bits, without a GPU and without any library of arrays."""
import ctypes
import re
import struct
import unittest
import unittest.mock
from pathlib import Path

import tmap
from tmap import _errors, _structs


def good(**changes):
    members = {"dims": (64, 100), "box": (32, 8), "swizzle": "128B", "address": 4096, **changes}
    return tmap.TensorSpec("f32", **members)


HEADERS = Path(__file__).resolve().parents[2] / "include" / "tmap" / "c"
C_NAMES = {"LastError": "error", "Spec": "tensor_spec", "Violation": "violation", "DecodedMap": "decoded_map",
           "MapPatch": "map_patch", "PatchColumns": "patch_columns", "CompactColumns": "compact_columns",
           "RaggedRows": "ragged_rows", "PatchSource": "patch_source", "ServiceOptions": "service_options",
           "Call": "call", "RowOffsets": "row_offsets", "BatchRef": "batch_ref",
           "BatchWriter": "batch_writer", "BatchInfo": "batch_info", "TensorBatch": "tensor_batch",
           "DenseBatch": "dense_batch", "PackedBuffer": "packed_buffer",
           "RowMatrix": "row_matrix", "RowIndex": "row_index", "PaddedRows": "padded_rows",
           "CastValues": "cast_values",
           "MemoryWindow": "memory_window", "Tile": "tile", "Matrix": "matrix", "Gate": "gate",
           "ResultScales": "result_scales",
           "RowProblem": "row_problem", "ColumnProblem": "column_problem",
           "WeightProblem": "weight_problem", "PointerProblem": "pointer_problem",
           "SlotCounts": "slot_counts", "BadItem": "bad_item",
           "FaultReport": "fault_report", "PeerId": "peer_id", "PeerStart": "peer_start",
           "PeerMemoryRef": "peer_memory_ref", "ExchangeProblem": "exchange_problem"}
TYPES = {"uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64, "uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32,
         "uint16_t": ctypes.c_uint16, "uint8_t": ctypes.c_uint8, "char": ctypes.c_char, "float": ctypes.c_float, "tmap_status": ctypes.c_int32}


def declared(name):
    """The members of a struct of C, as (name, type or None for a struct)."""
    text = "\n".join(path.read_text() for path in sorted(HEADERS.glob("*.h")))
    body = re.search(rf"typedef struct tmap_{name} {{(.*?)\n}} tmap_{name};", text, re.DOTALL)[1]
    body = re.sub(r"//[^\n]*", "", body)
    body = re.sub(r"union {.*?}", "tmap_union", body, flags=re.DOTALL)
    members = []
    for kind, member, extent in re.findall(r"([\w ]+[\w\s*]*?[\s*])(\w+)(?:\[([^\]]+)\])?;", body):
        base = ctypes.c_void_p if "*" in kind else TYPES.get(kind.split()[-1])
        count = extent and eval(extent, {"TMAP_MAX_RANK": 5, "TMAP_ARGUMENT_CAPACITY": 64, "TMAP_MAX_GROUP_RANKS": 32})
        members.append((member, base * count if base and count else base))
    return members


class Layouts(unittest.TestCase):
    def test_structs_have_the_members_that_the_c_interface_declares(self):
        for ours, theirs in C_NAMES.items():
            members = declared(theirs)
            fields = getattr(_structs, ours)._fields_
            self.assertEqual([re.sub("_type$", "", name) if ours == "CastValues" else name for name, _ in fields],
                             [name for name, _ in members], ours)
            for (name, kind), (_, expected) in zip(fields, members):
                if expected is not None:
                    self.assertIs(kind, expected, f"{ours}.{name}")

    def test_structs_have_the_sizes_that_the_c_interface_promises(self):
        sizes = {"LastError": 184, "Spec": 152, "Violation": 24, "DecodedMap": 216, "MapPatch": 112, "PatchSource": 96,
                 "ServiceOptions": 40, "Call": 104, "PeerStart": 168, "PeerMemoryRef": 272, "ExchangeProblem": 96, "RowOffsets": 32, "RaggedRows": 64, "BatchInfo": 80, "TensorBatch": 176, "DenseBatch": 96,
                 "PackedBuffer": 40, "RowMatrix": 40, "RowIndex": 24, "PaddedRows": 88, "CastValues": 40,
                 "RowProblem": 392, "ColumnProblem": 136, "WeightProblem": 232,
                 "Gate": 40, "ResultScales": 32, "PointerProblem": 104, "BatchRef": 40,
                 "ExpertWeights": 80, "LayerProblem": 392, "LayerResults": 160, "MemoryWindow": 24, "Tile": 48, "BadItem": 32, "FaultReport": 72}
        self.assertEqual({name: ctypes.sizeof(getattr(_structs, name)) for name in sizes}, sizes)

    def test_faults_have_the_names_and_bits_of_the_headers(self):
        item_status = (HEADERS.parent / "item_status.hpp").read_text()
        self.assertIn("empty_bit = word{1} << (8 * sizeof(word) - 1)", item_status)
        self.assertEqual(re.findall(r"using word = std::uint(\d+)_t;", item_status), ["32", "64"])
        for header, faults in (("ragged", tmap.ragged.Fault), ("grouped_gemm", tmap.GroupFault)):
            text = (HEADERS.parent / f"{header}.hpp").read_text()
            body = re.search(r"enum class fault : std::uint32_t {(.*?)\n};", text, re.DOTALL)[1]
            expected = {name.upper(): 1 << int(bit) for name, bit in re.findall(r"(\w+) = 1u << (\d+)", body)}
            expected["EMPTY"] = 1 << 31
            self.assertGreater(len(expected), 4)
            self.assertEqual(dict(faults.__members__), expected)

    def test_statuses_have_the_librarys_names(self):
        for status in tmap.Status:
            if status is not tmap.Status.UNKNOWN:
                self.assertEqual(_errors.lib.tmap_status_name(status).decode(), status.name.lower())
        self.assertIs(tmap.Status(12345), tmap.Status.UNKNOWN)


class Rules(unittest.TestCase):
    def test_a_good_spec(self):
        self.assertEqual(tmap.explain(good()), "no rule broken")
        self.assertEqual(tmap.validate(good()), [])

    def test_a_broken_one_says_which_rule_where_what_and_how_much(self):
        spec = good(box=(32, 257))
        violation, = tmap.validate(spec)
        self.assertEqual((violation.axis, violation.found, violation.allowed), (1, 257, 256))
        self.assertIn(violation.rule.name, tmap.explain(spec))
        for encode in (tmap.encode, tmap.encode_bits):
            with self.assertRaises(tmap.Error) as caught:
                encode(spec)
            error = caught.exception
            self.assertIs(error.status, tmap.Status.RULE_BROKEN)
            self.assertEqual((error.rule, error.axis, error.found, error.allowed), (violation.rule, 1, 257, 256))
            self.assertEqual(error.rules, (violation.rule,))
            self.assertIn("box_dim", str(error))

    def test_an_axis_may_be_the_innermost(self):
        spec = good(box=(257, 8), swizzle="none")
        violation = tmap.validate(spec)[0]
        self.assertEqual((violation.axis, violation.found), (0, 257))
        with self.assertRaises(tmap.Error) as caught:
            tmap.encode_bits(spec)
        self.assertEqual((caught.exception.rule, caught.exception.axis), (violation.rule, 0))

    def test_what_the_library_says_of_a_failure_comes_whole(self):
        class Failed:
            """The library after a call that failed like this."""

            def __init__(self, **members):
                self.members, self.real = members, _errors.lib

            def __getattr__(self, name):
                return getattr(self.real, name)

            def tmap_last_error(self, last):
                for name, value in self.members.items():
                    setattr(last._obj, name, value)
                return 0

        def failure(**members):
            with unittest.mock.patch.object(_errors, "lib", Failed(**members)):
                return _errors.last_error()

        slots = _structs.SlotCounts(16, 5, 4, 3, 2)
        exhausted = failure(code=tmap.Status.POOL_EXHAUSTED, slots=slots, axis=-1)
        self.assertEqual(exhausted.slots, {"capacity": 16, "free": 5, "leased": 4, "pending": 3, "captured": 2})
        self.assertIsNone(exhausted.rule)
        self.assertIsNone(exhausted.axis)
        first = failure(code=tmap.Status.RULE_BROKEN, rules=0b101, first_rule=0, axis=0, found=3, allowed=2, slots=slots)
        self.assertEqual((first.rule.number, [one.number for one in first.rules]), (0, [0, 2]))
        self.assertEqual((first.axis, first.found, first.allowed, first.slots), (0, 3, 2, None))
        captured = failure(code=tmap.Status.PAGEABLE_MEMORY_IN_CAPTURE)
        self.assertIs(captured.status, tmap.Status.PAGEABLE_MEMORY_IN_CAPTURE)
        self.assertRegex(str(captured), "tmap.ragged.Tensors.*take Rows or Columns")

    def test_every_rule_is_listed(self):
        spec = good(box=(0, 257), address=1, strides=(7,))
        names = [violation.rule.name for violation in tmap.validate(spec)]
        self.assertGreaterEqual(len(set(names)), 3)
        text = tmap.explain(spec)
        self.assertTrue(all(name in text for name in names))
        self.assertEqual(len(text.split("\n  ")), len(names) + 1, "each has a remedy")

    def test_rules_of_bits(self):
        self.assertEqual([rule.number for rule in tmap.rules_of(0b101)], [0, 2])
        self.assertEqual(tmap.rules_of(1 << 63), ())
        every = tmap.rules_of(2**64 - 1)
        self.assertEqual([rule.number for rule in every], list(range(_errors.lib.tmap_rule_count())))
        self.assertEqual(tmap.rules_of(1 << len(every) - 1), every[-1:])
        with self.assertRaises(ValueError):
            tmap.rule(1000)

    def test_what_no_struct_can_hold(self):
        for changes in ({"dims": (64, -1)}, {"dims": (64, 1 << 64)}, {"box": (32,)}, {"box": (32, 1 << 32)}, {"dims": ()},
                        {"dims": (1,) * 6, "box": (1,) * 6}, {"swizzle": "128"}, {"oob_fill": "one"}, {"address": -1},
                        {"interleave": "64B"}, {"l2_promotion": "8B"}, {"strides": (1, 2)}, {"element_strides": (1,)},
                        {"dims": (64, 1.5)}):
            with self.assertRaises((TypeError, ValueError), msg=changes):
                tmap.explain(good(**changes))
        with self.assertRaises(ValueError):
            tmap.explain(tmap.TensorSpec("f31", (64,), (32,)))


class Members(unittest.TestCase):
    def test_types_of_other_libraries(self):
        class Scalar:
            __name__ = "float16"

        class Torch:
            def __str__(self):
                return "torch.bfloat16"

        for dtype, name in (("float32", "f32"), (Scalar(), "f16"), (Torch(), "bf16"), ("int8", "u8"), ("u4_align8", "u4_align8")):
            self.assertEqual(tmap.TensorSpec(dtype, (64,), (32,)).element_type, name)
        with self.assertRaisesRegex(ValueError, "element_type is 'complex'"):
            tmap.TensorSpec(complex, (64,), (32,))

    def test_members_are_checked_when_they_are_set(self):
        spec = good()
        for name, value in (("swizzle", "128"), ("dims", 64), ("box", (32, -1)), ("address", "x"), ("strides", (1.5,))):
            with self.assertRaisesRegex((TypeError, ValueError), f"^{name}.* is "):
                setattr(spec, name, value)
        spec.box = [8, 8]
        self.assertEqual(spec, good(box=(8, 8)))

    def test_a_spec_without_an_address(self):
        spec = tmap.TensorSpec("f32", (64, 100), (32, 8))
        self.assertEqual(tmap.decode(tmap.encode_bits(spec)).spec.address, 0x100000)
        self.assertEqual(tmap.explain(spec), "no rule broken")
        with self.assertRaisesRegex(ValueError, "address is None"):
            tmap.encode(spec)
        self.assertIn("T05", tmap.explain(good(address=0)))

    def test_rules_by_name(self):
        self.assertEqual(tmap.rule("T17"), tmap.validate(good(box=(32, 257)))[0].rule)
        with self.assertRaisesRegex(ValueError, "there is no rule 'T99'"):
            tmap.rule("T99")


class Bits(unittest.TestCase):
    def test_bits_and_back(self):
        spec = tmap.TensorSpec("bf16", (64, 9, 5), (32, 3, 2), 1 << 20, (256, 4096), (1, 2, 1), "none", "64B", "256B", "nan")
        data = tmap.encode_bits(spec)
        self.assertEqual(len(data), 128)
        decoded = tmap.decode(data)
        self.assertEqual((decoded.kind, decoded.spec), ("tiled", spec))
        self.assertEqual(tmap.decode(bytearray(data)), decoded)
        self.assertIn("bf16", tmap.describe(data))
        self.assertEqual(tmap.describe_json(data)["element_type"], "bf16")

    def test_im2col_maps_of_the_driver(self):
        maps = [line.split() for line in im2col_lines()]
        self.assertGreater(len(maps), 50)
        for numbers in maps:
            rank, corners = int(numbers[2]), [int(number) for number in numbers[-24:-18]]
            decoded = tmap.decode(struct.pack("<16Q", *(int(word, 16) for word in numbers[-16:])))
            self.assertEqual((decoded.kind, decoded.channels_per_pixel, decoded.pixels_per_column),
                             ("im2col", int(numbers[-18]), int(numbers[-17])))
            self.assertEqual(decoded.lower_corner[:rank - 2], tuple(corners[:rank - 2]))
            self.assertEqual(decoded.upper_corner[:rank - 2], tuple(corners[3:rank + 1]))

    def test_bytes_that_are_no_map(self):
        for data in (bytes(128), b"\xff" * 128):
            with self.assertRaises(tmap.Error) as caught:
                tmap.decode(data)
            self.assertIs(caught.exception.status, tmap.Status.NOT_A_TENSOR_MAP)
            self.assertTrue(tmap.describe(data))
        for data in (bytes(127), bytes(129), b""):
            with self.assertRaises(ValueError):
                tmap.decode(data)
        with self.assertRaises(TypeError):
            tmap.decode("x" * 128)


def im2col_lines():
    """Returns the im2col maps of the driver, as text."""
    golden = HEADERS.parents[2] / "tests" / "golden" / "driver_maps.txt"
    return [line for line in golden.read_text().splitlines() if line.startswith("1 ")]


def im2col_map():
    words = im2col_lines()[0].split()[-16:]
    return struct.pack("<16Q", *(int(word, 16) for word in words))


class Simulator(unittest.TestCase):
    base = 1 << 30

    def setUp(self):
        self.spec = tmap.TensorSpec("u32", (6, 6), (4, 4), self.base, strides=(32,))
        self.map = tmap.encode_bits(self.spec)
        self.memory = bytearray(struct.pack("<48I", *range(48)))

    def test_a_load_fills_with_zero_beyond_the_tensor(self):
        self.assertEqual(tmap.tile_sizes(self.spec), (64, 64))
        tile = bytearray(64)
        tmap.simulate_load(self.map, {self.base: bytes(self.memory)}, (4, 4), tile)
        self.assertEqual(struct.unpack("<16I", tile), (36, 37, 0, 0, 44, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    def test_a_load_returns_the_tile(self):
        tile = tmap.simulate_load(self.map, {self.base: self.memory}, (4, 4))
        self.assertEqual((tile.shape, tile.tolist()), ((4, 4), [[36, 37, 0, 0], [44, 45, 0, 0], [0] * 4, [0] * 4]))
        mine = bytearray(100)
        tile = tmap.simulate_load(self.map, {self.base: self.memory}, (4, 4), mine)
        mine[:4] = b"\1\0\0\0"
        self.assertEqual(tile[0, 0], 1)

    def test_tiles_of_other_shapes(self):
        memory = {1 << 20: bytearray(struct.pack("<1024e", *range(1024)))}
        cases = (("f16", (16, 64), (8, 4), {}, (4, 8)), ("bf16", (16, 8, 8), (8, 4, 2), {}, (2, 4, 8)),
                 ("f16", (16, 64), (8, 4), {"swizzle": "32B"}, (4, 16)),
                 ("f16", (16, 64), (8, 4), {"element_strides": (1, 2)}, (2, 8)),
                 ("u8", (16, 8, 2), (16, 4, 1), {"interleave": "16B", "strides": (128, 1024)}, (256,)))
        for kind, dims, box, modes, shape in cases:
            with self.subTest(kind, **modes):
                given = tmap.TensorSpec(kind, dims, box, 1 << 20, **modes)
                tile = tmap.simulate_load(tmap.encode_bits(given), memory, (0,) * len(dims))
                self.assertEqual(tile.shape, shape)
        swizzled = tmap.simulate_load(tmap.encode_bits(tmap.TensorSpec("f16", (64, 16), (64, 8), 1 << 20, swizzle="128B")),
                                      memory, (0, 0))
        values = struct.unpack("<512e", bytes(memoryview(swizzled).cast("B")))  # without NumPy the tile is of bits
        self.assertEqual([values[64 * row + 8 * row] for row in range(8)], [64 * row for row in range(8)])

    def test_a_negative_coordinate_keeps_its_sign(self):
        for coordinates, words in (((-1, 0), "coordinate 0 is -1,"), ((-4, 0), "coordinate 0 is -4, must not be negative")):
            with self.assertRaisesRegex(tmap.Error, words):
                tmap.simulate_store(self.map, {self.base: self.memory}, coordinates, bytearray(64))

    def test_a_store_and_a_reduction(self):
        tile = struct.pack("<16I", *range(100, 116))
        tmap.simulate_store(self.map, {self.base: self.memory}, (0, 0), tile)
        self.assertEqual(struct.unpack("<10I", self.memory[:40]), (100, 101, 102, 103, 4, 5, 6, 7, 104, 105))
        tmap.simulate_reduce("add", self.map, {self.base: self.memory}, (0, 0), tile)
        self.assertEqual(struct.unpack("<5I", self.memory[:20]), (200, 202, 204, 206, 4))

    def test_what_would_end_a_context_is_an_error(self):
        tile, before = bytearray(64), bytes(self.memory)
        with self.assertRaisesRegex(tmap.Error, f"`memory` has no byte at {self.base + 64:#x}") as caught:
            tmap.simulate_load(self.map, {self.base: self.memory[:64]}, (0, 0), tile)
        self.assertIs(caught.exception.status, tmap.Status.ILLEGAL_MEMORY_ACCESS)
        self.assertEqual(caught.exception.argument, "memory")
        for error, act in (
                (tmap.Error, lambda: tmap.simulate_load(self.map, {self.base: self.memory}, (0, 0), bytearray(63))),
                (tmap.Error, lambda: tmap.simulate_load(bytes(128), {self.base: self.memory}, (0, 0), tile)),
                (ValueError, lambda: tmap.simulate_load(self.map, {self.base: self.memory}, (0,) * 6, tile)),
                (ValueError, lambda: tmap.simulate_load(self.map, {self.base: self.memory}, (0, 0), bytes(64))),
                (ValueError, lambda: tmap.simulate_store(self.map, {self.base: before}, (0, 0), tile)),
                (ValueError, lambda: tmap.simulate_reduce("mul", self.map, {self.base: self.memory}, (0, 0), tile)),
                (ValueError, lambda: tmap.simulate_load(im2col_map(), {}, (0, 0, 0), tile)),
                (tmap.Error, lambda: tmap.simulate_reduce("add", self.map, {}, (0, 0), tile))):
            with self.assertRaises(error):
                act()
        self.assertEqual(bytes(self.memory), before)


class WithoutAGpu(unittest.TestCase):
    """A handle that names nothing is refused before any device is asked for."""

    def test_handles_that_name_nothing(self):
        from tmap._library import lib
        for value in (0, 1, 1 << 60, (1 << 64) - 1):
            code = lib.tmap_batch_release(_structs.Handle(value))
            self.assertEqual(code, tmap.Status.INVALID_HANDLE)
            with self.assertRaises(tmap.Error) as caught:
                _errors.check(code)
            self.assertIn("tmap_batch_release", str(caught.exception))

    def test_the_version(self):
        self.assertEqual(tmap.__version__, ".".join(map(str, tmap.version())))


if __name__ == "__main__":
    unittest.main()
