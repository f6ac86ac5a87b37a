# SPDX-License-Identifier: Apache-2.0
"""The structs of tmap.h, member for member."""
import struct
from ctypes import (Structure, Union, c_char, c_float, c_int32, c_uint8, c_uint16, c_uint32,
                    c_uint64, c_void_p, sizeof)

MAX_RANK = 5
MAX_GROUP_RANKS = 32


class Sized(Structure):
    """A struct that begins with its size."""

    def __init__(self, **members):
        super().__init__(struct_size=sizeof(type(self)), **members)


class SlotCounts(Structure):
    _fields_ = [(name, c_uint64) for name in ("capacity", "free", "leased", "pending", "captured")]


class BadItem(Structure):
    _fields_ = [("call", c_uint32), ("reserved", c_uint32), ("number", c_uint64),
                ("index", c_uint64), ("bits", c_uint64)]


class FaultReport(Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("maps", c_uint64),
                ("tensors", c_uint64), ("rows", c_uint64), ("groups", c_uint64), ("first", BadItem)]


class LastError(Sized):
    _fields_ = [("struct_size", c_uint32), ("code", c_int32), ("rules", c_uint64),
                ("first_rule", c_int32), ("axis", c_int32), ("found", c_uint64),
                ("allowed", c_uint64), ("cuda_code", c_int32), ("reserved", c_uint32),
                ("slots", SlotCounts), ("bad", BadItem), ("argument", c_char * 64)]


class Spec(Sized):
    _fields_ = [("struct_size", c_uint32), ("rank", c_uint32), ("global_address", c_uint64),
                ("global_dim", c_uint64 * MAX_RANK),
                ("global_stride_bytes", c_uint64 * (MAX_RANK - 1)),
                ("box_dim", c_uint32 * MAX_RANK), ("element_stride", c_uint32 * MAX_RANK),
                ("element_type", c_uint32), ("interleave", c_uint32), ("swizzle", c_uint32),
                ("l2_promotion", c_uint32), ("oob_fill", c_uint32), ("reserved", c_uint32)]


class Violation(Structure):
    _fields_ = [("rule", c_uint32), ("axis", c_int32), ("found", c_uint64), ("allowed", c_uint64)]


TensorMap = c_uint64 * 16


class DecodedMap(Sized):
    _fields_ = [("struct_size", c_uint32), ("kind", c_uint32), ("tensor", Spec),
                ("lower_corner", c_int32 * 3), ("upper_corner", c_int32 * 3),
                ("channels_per_pixel", c_uint32), ("pixels_per_column", c_uint32),
                ("noted_box_bytes", c_uint64), ("noted_shared_alignment", c_uint64),
                ("large_tensor", c_uint32), ("reserved", c_uint32)]


class Handle(Structure):
    _fields_ = [("value", c_uint64)]


class MapPatch(Structure):
    _fields_ = [("global_address", c_uint64), ("global_stride_bytes", c_uint64 * (MAX_RANK - 1)),
                ("global_dim", c_uint64 * MAX_RANK), ("box_dim", c_uint32 * MAX_RANK),
                ("element_stride", c_uint16 * MAX_RANK), ("padding", c_uint16)]


class PatchColumns(Structure):
    _fields_ = [("global_address", c_void_p), ("global_dim", c_void_p * MAX_RANK),
                ("global_stride_bytes", c_void_p * (MAX_RANK - 1))]


class CompactColumns(Structure):
    _fields_ = [("base_address", c_uint64), ("address_units", c_void_p),
                ("global_dim", c_void_p * MAX_RANK),
                ("global_stride_units", c_void_p * (MAX_RANK - 1))]


class RowOffsets(Structure):
    _fields_ = [("values", c_void_p), ("format", c_uint32), ("bytes", c_uint32),
                ("counts", c_void_p), ("slot_rows", c_uint64)]


class RaggedRows(Structure):
    _fields_ = [("base_address", c_uint64), ("row_pitch_bytes", c_uint64), ("offsets", RowOffsets),
                ("rows", c_uint64), ("is_bounded", c_uint32), ("reserved", c_uint32)]


class SourceMember(Union):
    _fields_ = [("patches", c_void_p), ("columns", PatchColumns), ("compact", CompactColumns),
                ("rows", RaggedRows)]


SOURCE_PATCHES, SOURCE_COLUMNS, SOURCE_COMPACT, SOURCE_ROWS = range(4)


class PatchSource(Sized):
    _fields_ = [("struct_size", c_uint32), ("kind", c_uint32), ("of", SourceMember)]


class ServiceOptions(Sized):
    _fields_ = [("struct_size", c_uint32), ("skip_self_test", c_uint32), ("capacity", c_uint64),
                ("max_capacity", c_uint64), ("memory", c_void_p), ("memory_bytes", c_uint64)]


class Call(Sized):
    _fields_ = [("struct_size", c_uint32), ("engine", c_uint32), ("stream", c_void_p),
                ("workspace", c_void_p), ("workspace_bytes", c_uint64), ("statuses", c_void_p),
                ("header", c_void_p), ("windows", c_void_p), ("window_count", c_uint32),
                ("check", c_uint32), ("policy", c_uint32), ("allowed", c_uint32),
                ("trusted", c_uint32), ("publish", c_uint32), ("plan", c_uint32),
                ("blocks", c_uint32), ("owners", c_void_p), ("owner_window", Handle)]


class BatchRef(Structure):
    _fields_ = [("slots", c_void_p), ("statuses", c_void_p), ("indices", c_void_p),
                ("count", c_uint32), ("generation", c_uint32), ("records", c_void_p)]


class BatchWriter(Structure):
    _fields_ = [("slots", c_void_p), ("statuses", c_void_p), ("count", c_uint32),
                ("generation", c_uint32), ("records", c_void_p)]


class BatchInfo(Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("ref", BatchRef),
                ("writer", BatchWriter)]


class TensorBatch(Sized):
    _fields_ = [("struct_size", c_uint32), ("element_bytes", c_uint32), ("rank", c_uint32),
                ("arrays_on_host", c_uint32), ("count", c_uint64), ("tensors", PatchSource),
                ("inner_dim", c_uint64 * (MAX_RANK - 1)),
                ("inner_stride_bytes", c_uint64 * (MAX_RANK - 2))]


class DenseBatch(Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("address", c_uint64),
                ("dim", c_uint64 * MAX_RANK), ("stride_bytes", c_uint64 * (MAX_RANK - 1)),
                ("tensor_pitch_bytes", c_uint64)]


class PackedBuffer(Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("memory", c_void_p),
                ("bytes", c_uint64), ("alignment", c_uint64), ("begins", c_void_p)]


class RowMatrix(Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("address", c_uint64),
                ("rows", c_uint64), ("row_bytes", c_uint64), ("pitch_bytes", c_uint64)]


class RowIndex(Sized):
    _fields_ = [("struct_size", c_uint32), ("bytes", c_uint32), ("rows", c_void_p),
                ("count", c_uint64)]


class PaddedRows(Sized):
    _fields_ = [("struct_size", c_uint32), ("element_bytes", c_uint32), ("values", c_uint64),
                ("rows", c_uint64), ("dense", c_uint64), ("count", c_uint64),
                ("longest", c_uint64), ("row_bytes", c_uint64), ("offsets", RowOffsets)]


class CastValues(Sized):
    _fields_ = [("struct_size", c_uint32), ("from_type", c_uint32), ("to_type", c_uint32),
                ("scale", c_float), ("shift", c_float), ("reserved", c_uint32),
                ("scales", c_void_p), ("shifts", c_void_p)]


class QuantizeValues(Sized):
    _fields_ = [("struct_size", c_uint32), ("from_type", c_uint32), ("to_type", c_uint32),
                ("block", c_uint32), ("powers_of_two", c_uint32), ("transposed_scales", c_uint32)]


class MemoryWindow(Structure):
    _fields_ = [("base", c_uint64), ("data", c_void_p), ("bytes", c_uint64)]


class Tile(Sized):
    _fields_ = [("struct_size", c_uint32), ("rank", c_uint32), ("coordinates", c_int32 * MAX_RANK),
                ("shared_address", c_uint32), ("data", c_void_p), ("bytes", c_uint64)]


class Matrix(Structure):
    _fields_ = [("address", c_uint64), ("pitch_bytes", c_uint64)]


class Gate(Structure):
    _fields_ = [("function", c_uint32), ("columns", c_uint32), ("alpha", c_float),
                ("limit", c_float), ("value_shift", c_float), ("backward", c_uint32),
                ("kept", Matrix)]


class ResultScales(Structure):
    _fields_ = [("values", c_void_p), ("row_stride", c_uint64), ("column_stride", c_uint64),
                ("are_powers_of_two", c_uint32), ("are_given", c_uint32)]


class BlockScales(Structure):
    _fields_ = [("values", c_void_p), ("line_stride", c_uint64), ("k_stride", c_uint64),
                ("group_stride", c_uint64), ("lines", c_uint32), ("reserved", c_uint32)]


class RowProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("operand", c_uint32), ("groups", c_uint32),
                ("a_layout", c_uint32), ("b_layout", c_uint32), ("c_type", c_uint32),
                ("accumulate", c_uint32), ("fast_accumulation", c_uint32), ("rows", c_uint64),
                ("n", c_uint64), ("k", c_uint64), ("offsets", RowOffsets), ("a", Matrix),
                ("b", Matrix), ("b_group_pitch_bytes", c_uint64), ("b_addresses", c_void_p),
                ("c", Matrix), ("c_addresses", c_void_p), ("c_scales", ResultScales),
                ("row_scales", c_void_p), ("row_scale_stride", c_uint64),
                ("column_scales", c_void_p), ("bias", c_void_p), ("gate", Gate),
                ("a_rows", c_void_p), ("a_row_count", c_uint64),
                ("c_rows", c_void_p), ("c_row_count", c_uint64),
                ("a_scales", BlockScales), ("b_scales", BlockScales), ("zero_rest", c_uint32),
                ("reserved", c_uint32), ("pending", c_void_p)]


class ColumnProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("operand", c_uint32), ("groups", c_uint32),
                ("a_layout", c_uint32), ("b_layout", c_uint32), ("reserved", c_uint32),
                ("columns", c_uint64), ("m", c_uint64), ("k", c_uint64), ("offsets", RowOffsets),
                ("a", Matrix), ("a_group_pitch_bytes", c_uint64), ("b", Matrix), ("c", Matrix)]


class WeightProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("operand", c_uint32), ("groups", c_uint32),
                ("a_layout", c_uint32), ("b_layout", c_uint32), ("c_type", c_uint32),
                ("accumulate", c_uint32), ("zero_rest", c_uint32), ("rows", c_uint64),
                ("m", c_uint64), ("n", c_uint64), ("offsets", RowOffsets), ("a", Matrix),
                ("b", Matrix), ("c", Matrix), ("c_group_pitch_bytes", c_uint64),
                ("c_addresses", c_void_p), ("a_scales", BlockScales), ("b_scales", BlockScales)]


class PointerProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("operand", c_uint32), ("groups", c_uint32),
                ("a_layout", c_uint32), ("b_layout", c_uint32), ("c_type", c_uint32),
                ("accumulate", c_uint32), ("reserved", c_uint32),
                ("a", c_void_p), ("b", c_void_p), ("c", c_void_p), ("a_pitch_bytes", c_void_p),
                ("b_pitch_bytes", c_void_p), ("c_pitch_bytes", c_void_p), ("m", c_void_p),
                ("n", c_void_p), ("k", c_void_p)]


class ExpertGroups(Structure):
    _fields_ = [("count", c_uint32), ("chosen", c_uint32), ("score", c_uint32),
                ("padding", c_uint32)]


CHOICES_FROM_LOGITS, CHOICES_GIVEN = range(2)


class Choices(Structure):
    _fields_ = [("kind", c_uint32), ("type", c_uint32), ("values", Matrix), ("scoring", c_uint32),
                ("scale", c_float), ("bias", c_void_p), ("groups", ExpertGroups),
                ("renormalise", c_uint32), ("bytes", c_uint32), ("ids", c_void_p),
                ("weights", c_void_p)]


class RouteProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("experts", c_uint32), ("tokens", c_uint64),
                ("k", c_uint32), ("alignment", c_uint32), ("rows", c_uint64), ("choices", Choices)]


class RouteResults(Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("ids", c_void_p),
                ("weights", c_void_p), ("counts", c_void_p), ("begins", c_void_p),
                ("ends", c_void_p), ("row_of_choice", c_void_p), ("token_of_row", c_void_p),
                ("weight_of_row", c_void_p)]


class CombineProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("k", c_uint32), ("tokens", c_uint64),
                ("columns", c_uint64), ("rows", c_uint64), ("row_type", c_uint32),
                ("reserved", c_uint32), ("values", Matrix), ("row_of_choice", c_void_p),
                ("weights", c_void_p), ("base", Matrix), ("out", Matrix)]


class ExpertWeights(Structure):
    _fields_ = [("values", Matrix), ("group_pitch_bytes", c_uint64), ("addresses", c_void_p),
                ("bias", c_void_p), ("scales", BlockScales)]


class LayerProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("operand", c_uint32), ("routing", RouteProblem),
                ("width", c_uint64), ("inner", c_uint64), ("x", Matrix),
                ("gate_up", ExpertWeights), ("gate", Gate), ("down", ExpertWeights),
                ("base", Matrix), ("out", Matrix), ("powers_of_two", c_uint32),
                ("reserved", c_uint32)]


class LayerResults(Sized):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("routed", RouteResults),
                ("rows", Matrix), ("activated", Matrix), ("row_scales", c_void_p),
                ("activated_scales", c_void_p), ("outputs", Matrix),
                ("gate_up_statuses", c_void_p), ("down_statuses", c_void_p)]


class CombineGradients(Sized):
    _fields_ = [("struct_size", c_uint32), ("k", c_uint32), ("tokens", c_uint64),
                ("columns", c_uint64), ("rows", c_uint64), ("row_type", c_uint32),
                ("reserved", c_uint32), ("values", Matrix), ("row_of_choice", c_void_p),
                ("weights", c_void_p), ("d_out", Matrix), ("d_values", Matrix),
                ("d_weights", c_void_p)]


class PeerId(Structure):
    _fields_ = [("bytes", c_uint8 * 128)]


class PeerStart(Sized):
    _fields_ = [("struct_size", c_uint32), ("rank", c_uint32), ("ranks", c_uint32),
                ("skip_self_test", c_uint32), ("id", PeerId), ("id_file", c_void_p), ("run", c_uint64),
                ("patience_ms", c_uint64)]


class PeerMemoryRef(Structure):
    _fields_ = [("windows", c_uint64 * MAX_GROUP_RANKS), ("bytes", c_uint64), ("rank", c_uint32),
                ("ranks", c_uint32)]


class ExchangeProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("row_bytes", c_uint32), ("rows", c_void_p),
                ("sent_rows", c_uint64), ("splits", c_void_p), ("out", c_void_p),
                ("capacity", c_uint64), ("out_splits", c_void_p), ("groups", c_uint32),
                ("placed", c_uint32), ("blocks", c_uint32), ("reserved", c_uint32),
                ("patience_ms", c_uint64), ("rows_pitch_bytes", c_uint64),
                ("out_pitch_bytes", c_uint64)]


class ExpertShape(Sized):
    _fields_ = [("struct_size", c_uint32), ("k", c_uint32), ("tokens", c_uint64),
                ("arrivals", c_uint64), ("rows", c_uint64), ("columns", c_uint64),
                ("experts", c_uint32), ("alignment", c_uint32), ("row_bytes", c_uint32),
                ("scales", c_uint32), ("result_type", c_uint32), ("returned", c_uint32)]


class PeerDispatchProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("blocks", c_uint32), ("sizes", ExpertShape),
                ("x", Matrix), ("x_scales", c_void_p), ("x_scale_pitch", c_uint64),
                ("ids", c_void_p), ("weights", c_void_p), ("out", Matrix), ("out_scales", c_void_p),
                ("counts", c_void_p), ("begins", c_void_p), ("ends", c_void_p),
                ("weight_of_row", c_void_p), ("workspace", c_void_p), ("workspace_bytes", c_uint64),
                ("patience_ms", c_uint64), ("pending", c_void_p), ("ready", c_void_p)]


class PeerCombineProblem(Sized):
    _fields_ = [("struct_size", c_uint32), ("blocks", c_uint32), ("sizes", ExpertShape),
                ("values", Matrix), ("weights", c_void_p), ("base", Matrix), ("out", Matrix),
                ("workspace", c_void_p), ("workspace_bytes", c_uint64), ("patience_ms", c_uint64)]


def place(*members) -> int:
    """Returns the byte at which a member begins: place((Outer, "inner"), (Inner, "member"))."""
    return sum(getattr(kind, name).offset for kind, name in members)


def packer(kind: type, first: str) -> struct.Struct:
    """Returns a `struct.Struct` that packs the members from this one on, numbers and addresses."""
    members = dict(kind._fields_)
    names = list(members)
    return struct.Struct("="
                         + "".join(_LETTERS[members[name]] for name in names[names.index(first):]))


_LETTERS = {c_uint32: "I", c_uint64: "Q", c_void_p: "Q", Handle: "Q"}


def in_pieces(made: Structure, *places: int) -> tuple:
    """Cuts a struct at the 64-bit members at these places, whose values are known last. Returns a
    function that joins the pieces and those members to the struct's bytes, and the pieces. This is
    faster than setting members of a struct in a struct."""
    whole, ends = bytes(made), [at + 8 for at in places]
    pieces = tuple(whole[begin:end] for begin, end in zip([0, *ends], [*places, len(whole)]))
    return struct.Struct("=" + "Q".join(f"{len(piece)}s" for piece in pieces)).pack, pieces
