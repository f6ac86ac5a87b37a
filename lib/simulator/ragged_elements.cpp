// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_elements.hpp"

#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>
#include <tmap/validate.hpp>

#include "lib/simulator/ragged_tensors.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tmap::simulator {
namespace {

constexpr std::uint64_t store_unit = 16;  ///< a stored row ends at the next multiple of this

/// Returns the unsigned type of this width, which no copy rounds.
element_type type_of_width(std::uint32_t bytes) {
  constexpr element_type types[] = {element_type::u8, element_type::u16, element_type::u32, element_type::u64};
  return types[std::countr_zero(bytes)];
}

/// Chooses boxes of at most 8 KiB that are no larger than the tensor needs.
tensor_spec spec_of(const tensor_layout& tensor) {
  tensor_spec spec;
  spec.global_address = tensor.address;
  spec.type = type_of_width(tensor.element_bytes);
  spec.rank = tensor.rank;
  std::copy_n(tensor.dim, tensor.rank, spec.global_dim);
  for (std::uint32_t axis = 1; axis < tensor.rank; ++axis) {  // nothing steps along an axis of one element
    spec.global_stride_bytes[axis - 1] = tensor.dim[axis] == 1 ? store_unit : tensor.stride_bytes[axis - 1];
  }
  const std::uint64_t unit = store_unit / tensor.element_bytes;
  std::uint64_t room = 8192 / tensor.element_bytes;
  for (std::uint32_t axis = 0; axis < tensor.rank; ++axis) {
    const std::uint64_t grain = axis == 0 ? unit : 1;
    const std::uint64_t wanted = (tensor.dim[axis] + grain - 1) / grain * grain;
    spec.box_dim[axis] = static_cast<std::uint32_t>(std::min({wanted, std::uint64_t{256}, room}));
    room = std::max<std::uint64_t>(room / spec.box_dim[axis], 1);
  }
  return spec;
}

bool takes_map(const tensor_layout& tensor, const route_options& routes) {
  return choose_route(tensor, routes).way == route::tensor_map && broken_rules(spec_of(tensor)).empty();
}

std::uint64_t row_bytes_of(const tensor_layout& tensor) {
  return tensor.dim[0] * tensor.element_bytes;
}

bool takes_map_as_destination(const tensor_layout& tensor, const route_options& routes) {
  return row_bytes_of(tensor) % store_unit == 0 && takes_map(tensor, routes);
}

/// Walks the tiles of a tensor, with the places of their rows among elements without gaps.
class tile_walk {
 public:
  explicit tile_walk(const tensor_spec& spec) : spec_{spec} {}

  cuda::std::span<const std::int32_t> corner() const { return {corner_.data(), spec_.rank}; }

  bool advance() {
    for (std::uint32_t axis = 0; axis < spec_.rank; ++axis) {
      const std::uint64_t next = at(axis) + spec_.box_dim[axis];
      corner_[axis] = next < spec_.global_dim[axis] ? static_cast<std::int32_t>(next) : 0;
      if (corner_[axis] != 0) return true;
    }
    return false;
  }

  /// Calls `row(offset in the tile, offset among the elements, bytes)` for the part of each row
  /// inside the tensor.
  template <class Row>
  void for_each_inner_row(Row&& row) const {
    const std::uint64_t width = element_bytes(spec_.type);
    const std::uint64_t inside = std::min<std::uint64_t>(spec_.box_dim[0], spec_.global_dim[0] - at(0)) * width;
    const std::uint64_t pitch = tile_row_pitch_bytes(spec_);
    for (std::uint64_t index = 0; index < tile_bytes(spec_) / pitch; ++index) {
      std::uint64_t rest = index;
      std::uint64_t place = 0;
      std::uint64_t step = spec_.global_dim[0];
      bool is_inside = true;
      for (std::uint32_t axis = 1; axis < spec_.rank; ++axis) {
        const std::uint64_t coordinate = at(axis) + rest % spec_.box_dim[axis];
        rest /= spec_.box_dim[axis];
        is_inside &= coordinate < spec_.global_dim[axis];
        place += coordinate * step;
        step *= spec_.global_dim[axis];
      }
      if (is_inside) row(index * pitch, (place + at(0)) * width, inside);
    }
  }

 private:
  std::uint64_t at(std::uint32_t axis) const { return static_cast<std::uint64_t>(corner_[axis]); }

  const tensor_spec& spec_;
  std::array<std::int32_t, max_rank> corner_{};
};

/// Calls `move(engine, map, walk, tile)` for each tile.
template <class Move>
result<void> for_each_tile(const tensor_layout& tensor, Move&& move) {
  const tensor_spec spec = spec_of(tensor);
  const auto map = encode_bits(spec);
  if (!map) return failure{map.error()};
  const std::uint64_t reach = (reach_bytes(tensor) + store_unit - 1) / store_unit * store_unit;
  const memory_window window{tensor.address, {reinterpret_cast<std::byte*>(tensor.address.value()), reach}};
  const copy_engine engine{{&window, 1}};
  element_bytes_t tile(tile_footprint_bytes(spec));
  tile_walk walk{spec};
  do {
    const result<void> moved = move(engine, *map, walk, tile);
    if (!moved) return moved;
  } while (walk.advance());
  return {};
}

result<void> load_tiles(const tensor_layout& tensor, element_bytes_t& elements) {
  return for_each_tile(tensor,
                       [&](const copy_engine& engine, const tensor_map& map, const tile_walk& walk,
                           element_bytes_t& tile) -> result<void> {
                         const auto loaded = engine.load(map, walk.corner(), {tile.data(), tile.size()});
                         if (!loaded) return failure{loaded.error()};
                         walk.for_each_inner_row([&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
                           std::memcpy(elements.data() + to, tile.data() + from, bytes);
                         });
                         return {};
                       });
}

result<void> store_tiles(const tensor_layout& tensor, std::span<const std::byte> elements) {
  return for_each_tile(
      tensor, [&](const copy_engine& engine, const tensor_map& map, const tile_walk& walk, element_bytes_t& tile) {
        walk.for_each_inner_row([&](std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
          std::memcpy(tile.data() + to, elements.data() + from, bytes);
        });
        return engine.store(map, walk.corner(), {tile.data(), tile.size()});
      });
}

}  // namespace

result<element_bytes_t> read_elements(const tensor_layout& tensor, const route_options& routes) {
  element_bytes_t elements(packed_bytes(tensor));
  if (takes_map(tensor, routes)) {
    const auto loaded = load_tiles(tensor, elements);
    if (!loaded) return failure{loaded.error()};
    return elements;
  }
  const std::uint64_t row_bytes = row_bytes_of(tensor);
  for_each_row(tensor, [&](std::uint64_t index, const std::byte* row) {
    std::memcpy(elements.data() + index * row_bytes, row, row_bytes);
  });
  return elements;
}

result<void> write_elements(const tensor_layout& tensor, std::span<const std::byte> elements,
                            const route_options& routes) {
  if (takes_map_as_destination(tensor, routes)) return store_tiles(tensor, elements);
  const std::uint64_t row_bytes = row_bytes_of(tensor);
  for_each_row(tensor, [&](std::uint64_t index, std::byte* row) {
    std::memcpy(row, elements.data() + index * row_bytes, row_bytes);
  });
  return {};
}

result<void> move_elements(const tensor_layout& source, const tensor_layout& destination, const route_options& routes) {
  if (takes_map(source, routes) || takes_map_as_destination(destination, routes)) {
    const auto elements = read_elements(source, routes);
    if (!elements) return failure{elements.error()};
    return write_elements(destination, *elements, routes);
  }
  row_cursor from{source};
  row_cursor to{destination};
  do std::memcpy(to.row(), from.row(), row_bytes_of(source));
  while (from.advance() && to.advance());
  return {};
}

}  // namespace tmap::simulator
