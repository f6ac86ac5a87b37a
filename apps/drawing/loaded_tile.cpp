// SPDX-License-Identifier: Apache-2.0
#include "apps/drawing/loaded_tile.hpp"

#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>
#include <tmap/tile_layout.hpp>

#include <algorithm>
#include <limits>

namespace tmap::drawing {
namespace {

/// Types that the copy engine rounds arrive as they are where their bytes are moved as f32.
tensor_spec without_rounding(tensor_spec spec) {
  const element_type rounded[] = {element_type::f32_ftz, element_type::tf32, element_type::tf32_ftz};
  if (std::find(std::begin(rounded), std::end(rounded), spec.type) != std::end(rounded)) spec.type = element_type::f32;
  return spec;
}

/// Describes one row of a box as it lies in the tensor: bytes [first, end) of it exist.
struct source_row {
  std::uint64_t address{};  ///< of byte 0, which need not exist
  std::int64_t first{};
  std::int64_t end{};
};

/// Holds the rows of a box, and the memory that stands for them.
class box_source {
 public:
  box_source(const tensor_spec& spec, const coordinates& at) : spec_(spec), at_(at) {
    unit_ = spec.interleave == interleave::none ? static_cast<std::int64_t>(element_bytes(spec.type))
                                                : (spec.interleave == interleave::bytes_16 ? 16 : 32);
    step_ = spec.interleave == interleave::none ? 1 : spec.element_stride[0];
    std::uint64_t count = 1;
    for (std::uint32_t axis = 1; axis < spec.rank; ++axis) count *= tile_dim(spec, axis);
    for (std::uint64_t row = 0; row < count; ++row) rows_.push_back(find_row(row));
    row_bytes_ = static_cast<std::int64_t>(spec.box_dim[0]) * unit_;
    memory_.resize(rows_.size() * static_cast<std::size_t>(row_bytes_));
    for (std::size_t row = 0; row < rows_.size(); ++row) add_window(row);
    // The copy engine also touches the first bytes of a tensor where a box lies outside it.
    windows_.push_back({spec.global_address, {begin_.data(), begin_.size()}});
  }

  std::uint32_t rows() const { return static_cast<std::uint32_t>(rows_.size()); }

  /// Fills the memory: byte_of(row, byte of the tile's row).
  template <class ByteOf>
  void fill(const ByteOf& byte_of) {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      for (std::int64_t byte = 0; byte < row_bytes_; ++byte) {
        const std::int64_t in_tile = byte / unit_ / step_ * unit_ + byte % unit_;
        memory_[row * static_cast<std::size_t>(row_bytes_) + static_cast<std::size_t>(byte)] =
            static_cast<std::byte>(byte_of(row, in_tile));
      }
    }
  }

  result<std::vector<std::byte>> load(const tensor_map& map, std::uint64_t& barrier_bytes) const {
    std::vector<std::byte> tile(tile_footprint_bytes(spec_));
    const simulator::copy_engine engine{{windows_.data(), windows_.size()}};
    const auto loaded = engine.load(map, {at_.data(), spec_.rank}, {tile.data(), tile.size()});
    if (!loaded) return failure{loaded.error()};
    barrier_bytes = *loaded;
    return tile;
  }

 private:
  /// `index` counts the rows of the tile, innermost axis first.
  source_row find_row(std::uint64_t index) const {
    source_row row{.address = spec_.global_address + static_cast<std::uint64_t>(std::int64_t{at_[0]} * unit_)};
    bool exists = true;
    for (std::uint32_t axis = 1; axis < spec_.rank; ++axis) {
      const std::uint32_t extent = tile_dim(spec_, axis);
      const auto inside = static_cast<std::int64_t>(index % extent * spec_.element_stride[axis]);
      const std::int64_t coordinate = at_[axis] + inside;
      index /= extent;
      exists = exists && coordinate >= 0 && static_cast<std::uint64_t>(coordinate) < spec_.global_dim[axis];
      row.address += static_cast<std::uint64_t>(coordinate) * spec_.global_stride_bytes[axis - 1];
    }
    if (!exists) return row;
    const std::int64_t last = static_cast<std::int64_t>(std::min<std::uint64_t>(spec_.global_dim[0], 1ull << 40));
    row.first = std::max<std::int64_t>(-std::int64_t{at_[0]}, 0) * unit_;
    row.end = std::clamp<std::int64_t>(last - at_[0], 0, spec_.box_dim[0]) * unit_;
    return row;
  }
  void add_window(std::size_t row) {
    const source_row& source = rows_[row];
    if (source.first >= source.end) return;
    std::byte* data = memory_.data() + row * static_cast<std::size_t>(row_bytes_) + source.first;
    windows_.push_back({source.address + static_cast<std::uint64_t>(source.first),
                        {data, static_cast<std::size_t>(source.end - source.first)}});
  }

  tensor_spec spec_;
  coordinates at_;
  std::int64_t unit_{};
  std::int64_t step_{};
  std::int64_t row_bytes_{};
  std::vector<source_row> rows_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> begin_ = std::vector<std::byte>(chunk_bytes);
  std::vector<simulator::memory_window> windows_;
};

/// Notes where each chunk of the box lies; the simulated copy confirms it and counts the bytes that
/// come from the tensor.
loaded_tile empty_tile(const tensor_spec& spec, std::uint32_t rows) {
  const tile_layout layout = layout_of(spec);
  loaded_tile tile;
  tile.rows = rows;
  tile.row_chunks = static_cast<std::uint32_t>(tile_row_bytes(spec) / chunk_bytes);
  tile.in_shared.resize(tile_footprint_bytes(spec) / chunk_bytes);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t column = 0; column < tile.row_chunks; ++column) {
      const std::uint32_t place = swizzled(row * layout.row_pitch_bytes + column * chunk_bytes, layout.swizzle);
      tile.in_shared[place / chunk_bytes] = {true, row, column, 0};
    }
  }
  return tile;
}

/// Two loads of the same box, from memory of zeros and of ones, differ where the tensor is.
result<void> count_bytes(box_source& source, const tensor_map& map, loaded_tile& tile) {
  source.fill([](auto, auto) { return 0; });
  const auto zeros = source.load(map, tile.barrier_bytes);
  if (!zeros) return failure{zeros.error()};
  source.fill([](auto, auto) { return 0xff; });
  const auto ones = source.load(map, tile.barrier_bytes);
  if (!ones) return failure{ones.error()};
  for (std::size_t i = 0; i < zeros->size(); ++i) {
    if ((*zeros)[i] != (*ones)[i]) ++tile.in_shared[i / chunk_bytes].bytes_of_tensor;
  }
  return {};
}

/// Each load brings one byte of every chunk's number.
result<bool> is_confirmed(box_source& source, const tensor_map& map, loaded_tile& tile) {
  for (const std::uint32_t shift : {0u, 8u}) {
    const auto digit = [&](std::uint64_t row, std::uint64_t column) {
      return (row * tile.row_chunks + column) >> shift & 0xff;
    };
    source.fill(
        [&](std::size_t row, std::int64_t byte) { return digit(row, static_cast<std::uint64_t>(byte) / chunk_bytes); });
    const auto loaded = source.load(map, tile.barrier_bytes);
    if (!loaded) return failure{loaded.error()};
    for (std::size_t i = 0; i < tile.in_shared.size(); ++i) {
      const arrived_chunk& chunk = tile.in_shared[i];
      const auto first = std::to_integer<std::uint64_t>((*loaded)[i * chunk_bytes]);
      if (chunk.bytes_of_tensor == chunk_bytes && first != digit(chunk.row, chunk.column)) return false;
    }
  }
  return true;
}

}  // namespace

const arrived_chunk& loaded_tile::of_box(std::uint32_t row, std::uint32_t column) const {
  return *std::find_if(in_shared.begin(), in_shared.end(), [&](const arrived_chunk& chunk) {
    return chunk.is_of_the_box && chunk.row == row && chunk.column == column;
  });
}

result<loaded_tile> load_tile(const tensor_spec& spec, const coordinates& at) {
  const tensor_spec moved = without_rounding(spec);
  const auto map = encode_bits(moved);
  if (!map) return failure{map.error()};
  box_source source{moved, at};
  loaded_tile tile = empty_tile(moved, source.rows());
  if (const auto counted = count_bytes(source, *map, tile); !counted) return failure{counted.error()};
  const auto confirmed = is_confirmed(source, *map, tile);
  if (!confirmed) return failure{confirmed.error()};
  if (!*confirmed) return failure{error{.code = status::unsupported}};
  return tile;
}

std::array<std::uint64_t, max_rank> box_grid(const tensor_spec& spec) {
  std::array<std::uint64_t, max_rank> boxes{};
  for (std::uint32_t axis = 0; axis < std::min(spec.rank, max_rank); ++axis) {
    const std::uint64_t box = spec.box_dim[axis];
    boxes.at(axis) = box == 0 ? 0 : spec.global_dim[axis] / box + (spec.global_dim[axis] % box == 0 ? 0 : 1);
  }
  return boxes;
}

coordinates last_box(const tensor_spec& spec) {
  coordinates at{};
  const auto boxes = box_grid(spec);
  for (std::uint32_t axis = 0; axis < std::min(spec.rank, max_rank); ++axis) {
    const std::uint64_t first = boxes.at(axis) == 0 ? 0 : (boxes.at(axis) - 1) * spec.box_dim[axis];
    const bool fits = first <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
    at.at(axis) = fits ? static_cast<std::int32_t>(first) : 0;
  }
  return at;
}

}  // namespace tmap::drawing
