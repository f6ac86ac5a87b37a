// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/ragged.h>
#include <tmap/c/xla.h>

#include <cstdint>
#include <iterator>

#include "lib/interop/xla_call.hpp"

namespace tmap::interop {
namespace {

using xla::element;

/// Returns the bytes of an element of XLA's types, or 0 for a type that is not padded.
std::uint32_t bytes_of(element type) {
  // By XLA's numbers: bool; s8 to s64; u8 to u64; f16 to f64; c64; bf16; formats of 8 bits.
  static constexpr std::uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 0, 8, 2,
                                           0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1};
  const auto index = static_cast<std::uint32_t>(type);
  return index < std::size(bytes) ? bytes[index] : 0;
}

/// The arrays of both directions. The dims of `ends` before its last one are a batch, which all
/// arrays have.
struct padding {
  padding(arguments& all, const xla::call_frame& frame, bool pads)
      : values{all, pads ? frame.arguments : frame.results, 0, "values"},
        dense{all, pads ? frame.results : frame.arguments, 0, "dense"},
        ends{all, frame.arguments, 1, "ends"} {
    if (!all) return;
    if (!ends.is_of(element::s32) && !ends.is_of(element::s64)) ends.refuse_type();
    if (bytes_of(values.type()) == 0) values.refuse_type();
    dense.expect(values.type());
    ends.expect_at_least_rank(1);
    values.expect_at_least_rank(ends.rank());
    dense.expect_rank(values.rank() + 1);
    if (!all) return;
    batch_rank = ends.rank() - 1;
    for (std::uint32_t i = 0; i < batch_rank; ++i) values.expect(i, ends.dim(i));
    for (std::uint32_t i = 0; i <= batch_rank; ++i) dense.expect(i, ends.dim(i));
    for (std::uint32_t i = batch_rank + 1; i < values.rank(); ++i) dense.expect(i + 1, values.dim(i));
  }

  /// Describes the first of the batch.
  tmap_padded_rows rows() const {
    tmap_padded_rows made{};
    made.struct_size = sizeof made;
    made.element_bytes = bytes_of(values.type());
    made.values = values.address();
    made.rows = values.dim(batch_rank);
    made.dense = dense.address();
    made.count = ends.dim(batch_rank);
    made.longest = dense.dim(batch_rank + 1);
    made.row_bytes = made.element_bytes;
    for (std::uint32_t i = batch_rank + 1; i < values.rank(); ++i) made.row_bytes *= values.dim(i);
    made.offsets.values = ends.data();
    made.offsets.format = TMAP_OFFSETS_ENDS;
    made.offsets.bytes = bytes_of(ends.type());
    return made;
  }
  std::uint64_t size_of_batch() const {
    std::uint64_t size = 1;
    for (std::uint32_t i = 0; i < batch_rank; ++i) size *= ends.dim(i);
    return size;
  }

  xla::operand values, dense, ends;
  std::uint32_t batch_rank{};
};

void go_to_next(tmap_padded_rows& rows) {
  rows.values += rows.rows * rows.row_bytes;
  rows.dense += rows.count * rows.longest * rows.row_bytes;
  rows.offsets.values = static_cast<const char*>(rows.offsets.values) + rows.count * rows.offsets.bytes;
}

answer pad(const xla::call_frame& frame, void* stream, tmap_status& done) {
  arguments given;
  const padding of{given, frame, true};
  const std::int64_t fill = xla::integer_of(given, frame.attributes, "fill", "fill", element::s64);
  if (!given) return given.complaint();
  const tmap_call call = xla::call_on(stream);
  tmap_padded_rows rows = of.rows();
  for (std::uint64_t left = of.size_of_batch(); left != 0 && done == TMAP_OK; --left, go_to_next(rows)) {
    done = tmap_ragged_pad_rows(&rows, &fill, &call);
  }
  return {};
}

answer unpad(const xla::call_frame& frame, void* stream, tmap_status& done) {
  arguments given;
  const padding of{given, frame, false};
  if (!given) return given.complaint();
  const tmap_call call = xla::call_on(stream);
  tmap_padded_rows rows = of.rows();
  for (std::uint64_t left = of.size_of_batch(); left != 0 && done == TMAP_OK; --left, go_to_next(rows)) {
    done = tmap_ragged_unpad_rows(&rows, &call);
  }
  return {};
}

}  // namespace
}  // namespace tmap::interop

void* tmap_xla_pad_rows(void* frame) {
  return tmap::interop::xla::handle(__func__, frame, tmap::interop::pad);
}

void* tmap_xla_unpad_rows(void* frame) {
  return tmap::interop::xla::handle(__func__, frame, tmap::interop::unpad);
}
