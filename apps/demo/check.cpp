// SPDX-License-Identifier: Apache-2.0
#include "apps/demo/check.hpp"

#include <fmt/format.h>
#include <tmap/tile_layout.hpp>

#include <cmath>
#include <cstring>

#include "apps/support/stopwatch.hpp"

namespace tmap::demo {
namespace {

/// Checks one tile.
class tile_check {
 public:
  tile_check(const demo_batch& batch, const engine_run& run, const demo_tile& tile)
      : batch_(batch), spec_(batch.tensors[tile.tensor].spec), tile_(tile), data_(run.tiles.data() + tile.offset) {
    rows_ = 1;
    for (std::uint32_t axis = 1; axis < spec_.rank; ++axis) rows_ *= tile_dim(spec_, axis);
  }

  void run(check_result& total) const {
    for (std::uint32_t row = 0; row < rows_; ++row) check_row(row, total);
  }

 private:
  /// Returns where the first element of a row of the tile lies in memory, or no place where the row
  /// is outside the tensor.
  std::int64_t source_of(std::uint32_t row) const {
    auto place = static_cast<std::int64_t>(spec_.global_address.value());
    for (std::uint32_t axis = 1; axis < spec_.rank; ++axis) {
      const std::uint32_t extent = tile_dim(spec_, axis);
      const std::int64_t at = tile_.at.at(axis) + std::int64_t{row % extent} * spec_.element_stride[axis];
      row /= extent;
      if (at < 0 || static_cast<std::uint64_t>(at) >= spec_.global_dim[axis]) return outside;
      place += at * static_cast<std::int64_t>(spec_.global_stride_bytes[axis - 1]);
    }
    return place;
  }

  void check_row(std::uint32_t row, check_result& total) const {
    const std::uint64_t bytes = element_bytes(spec_.type);
    const auto pitch = static_cast<std::uint32_t>(tile_row_pitch_bytes(spec_));
    const std::int64_t source = source_of(row);
    for (std::uint32_t i = 0; i < spec_.box_dim[0]; ++i, ++total.elements) {
      const std::int64_t column = std::int64_t{tile_.at[0]} + i;
      const auto place = static_cast<std::uint32_t>(row * pitch + i * bytes);
      const std::byte* found = data_ + swizzled(place, spec_.swizzle);
      const bool exists = source != outside && static_cast<std::uint64_t>(column) < spec_.global_dim[0];
      const bool is_right =
          exists ? std::memcmp(found, batch_.memory.data() + source + column * static_cast<std::int64_t>(bytes),
                               bytes) == 0
                 : is_fill(found, bytes);
      total.wrong += is_right ? 0 : 1;
      total.filled += exists ? 0 : 1;
    }
  }

  bool is_fill(const std::byte* found, std::uint64_t bytes) const {
    if (spec_.oob_fill == oob_fill::nan) {
      float value = 0;  // the batch has no other type with this fill
      std::memcpy(&value, found, sizeof value);
      return std::isnan(value);
    }
    for (std::uint64_t i = 0; i < bytes; ++i) {
      if (found[i] != std::byte{0}) return false;
    }
    return true;
  }

  static constexpr std::int64_t outside = -1;

  const demo_batch& batch_;
  const tensor_spec& spec_;
  const demo_tile& tile_;
  const std::byte* data_;
  std::uint32_t rows_{};
};

}  // namespace

check_result check_tiles(const demo_batch& batch, const engine_run& run) {
  check_result total;
  apps::stopwatch watch;
  for (const demo_tile& tile : batch.tiles) tile_check{batch, run, tile}.run(total);
  total.seconds = watch.lap();
  return total;
}

std::string checksum_of(const std::vector<std::byte>& tiles) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (const std::byte byte : tiles) sum = (sum ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  return fmt::format("{:016x}", sum);
}

}  // namespace tmap::demo
