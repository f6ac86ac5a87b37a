// SPDX-License-Identifier: Apache-2.0
#include <tmap/simulator.hpp>

#include "lib/simulator/checks.hpp"
#include "lib/simulator/float_formats.hpp"
#include "lib/simulator/memory_view.hpp"
#include "lib/simulator/reduction_kernels.hpp"
#include "lib/simulator/row_walk.hpp"
#include "lib/simulator/swizzle.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace tmap::simulator {
namespace {

/// The widest row: 256 units of 32 bytes.
using row_buffer = std::array<std::byte, 256 * 32>;

/// Out-of-bounds elements: zeros, or f7 7f repeated, which is a NaN in every floating type.
void fill(std::byte* to, std::uint64_t count, oob_fill mode) {
  if (mode == oob_fill::zero) {
    std::memset(to, 0, count);
    return;
  }
  for (std::uint64_t i = 0; i < count; i += 2) {
    to[i] = std::byte{0xf7};
    to[i + 1] = std::byte{0x7f};
  }
}

bool rounds_loads(element_type type) {
  return type == element_type::tf32 || type == element_type::tf32_ftz;
}

/// One load: builds each row in order, then lays it into the tile. False when memory is missing.
class loader {
 public:
  loader(const tensor_spec& spec, const box_geometry& box, memory_view& memory)
      : spec_{spec}, box_{box}, memory_{memory}, rounds_{rounds_loads(spec.type)} {}

  bool build(bool row_is_inside, std::uint64_t address, std::byte* row) const {
    const inside_range inside = row_is_inside ? box_.inside_units() : inside_range{0, 0};
    const std::uint64_t unit = box_.unit_bytes();
    if (inside.empty()) {
      fill(row, box_.row_bytes(), spec_.oob_fill);
      return true;
    }
    if (inside.first != 0) fill(row, inside.first * unit, spec_.oob_fill);
    if (inside.last != box_.units())
      fill(row + inside.last * unit, (box_.units() - inside.last) * unit, spec_.oob_fill);
    const bool read = copy_units(address, inside, row);
    if (rounds_) round_row_to_tf32(row + inside.first * unit, (inside.last - inside.first) * unit);
    return read;
  }

 private:
  bool copy_units(std::uint64_t address, inside_range inside, std::byte* row) const {
    const std::uint64_t unit = box_.unit_bytes();
    if (box_.unit_step() == 1) {
      return memory_.read(address + inside.first * unit, row + inside.first * unit,
                          (inside.last - inside.first) * unit);
    }
    for (std::uint32_t k = inside.first; k < inside.last; ++k) {
      if (!memory_.read(address + k * box_.unit_step() * unit, row + k * unit, unit)) return false;
    }
    return true;
  }

  const tensor_spec& spec_;
  const box_geometry& box_;
  memory_view& memory_;
  bool rounds_;
};

/// Hands the part of one row that a store writes to `write(address, bytes, count)`. Stores clip
/// dimension 0 at the next multiple of 16 bytes, not at the tensor's edge
/// (docs/measurements/copy_engine_semantics.md).
template <class Write>
bool write_row(const box_geometry& box, std::uint64_t address, const std::byte* row, Write&& write) {
  const inside_range inside = box.inside_units();
  const std::uint64_t unit = box.unit_bytes();
  if (inside.empty()) return true;
  if (box.unit_step() == 1) {
    const std::uint64_t reach = (inside.last * unit + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
    return write(address, row, std::min<std::uint64_t>(reach, box.row_bytes()));
  }
  for (std::uint32_t k = inside.first; k < inside.last; ++k) {
    if (!write(address + k * box.unit_step() * unit, row + k * unit, unit)) return false;
  }
  return true;
}

/// Walks the rows of a tile that goes to memory. `write` returns false when memory is missing.
template <class Write>
result<void> write_tile(const tensor_spec& spec, cuda::std::span<const std::int32_t> coordinates, const std::byte* tile,
                        std::uint32_t shared_address, const memory_view& memory, Write&& write) {
  row_buffer buffer;
  const box_geometry box{spec, coordinates};
  const std::uint64_t pitch = tile_row_pitch_bytes(spec);
  bool mapped = true;
  box.for_each_row([&](std::uint64_t index, bool inside, std::uint64_t address) {
    if (!inside) return true;
    const std::byte* row = tile + index * pitch;
    if (spec.swizzle != swizzle::none) {
      gather_row(tile, index * pitch, buffer.data(), box.row_bytes(), shared_address, spec.swizzle);
      row = buffer.data();
    }
    return mapped = write_row(box, address, row, write);
  });
  if (!mapped) return failure{unmapped(memory.missing())};
  return {};
}

}  // namespace

result<std::uint64_t> copy_engine::load(const tensor_map& map, cuda::std::span<const std::int32_t> coordinates,
                                        cuda::std::span<std::byte> tile, std::uint32_t shared_address) const {
  const auto spec = accept({map, coordinates, tile.size(), shared_address, false, nullptr});
  if (!spec) return failure{spec.error()};
  const box_geometry box{*spec, coordinates};
  memory_view memory{windows_};
  // A tile that leaves the tensor makes the engine look at the base address.
  if (box.leaves_tensor() && memory.at(box.base(), 1).empty()) return failure{unmapped(box.base())};

  const loader rows{*spec, box, memory};
  const std::uint64_t pitch = tile_row_pitch_bytes(*spec);
  const bool is_swizzled = spec->swizzle != swizzle::none;
  row_buffer buffer;  // not initialised: every row is written before it is read
  bool mapped = true;
  box.for_each_row([&](std::uint64_t index, bool inside, std::uint64_t address) {
    std::byte* row = is_swizzled ? buffer.data() : tile.data() + index * pitch;
    mapped = rows.build(inside, address, row);
    if (is_swizzled) scatter_row(row, box.row_bytes(), tile.data(), index * pitch, shared_address, spec->swizzle);
    return mapped;
  });
  if (!mapped) return failure{unmapped(memory.missing())};
  return tile_bytes(*spec);
}

result<void> copy_engine::store(const tensor_map& map, cuda::std::span<const std::int32_t> coordinates,
                                cuda::std::span<const std::byte> tile, std::uint32_t shared_address) const {
  const auto spec = accept({map, coordinates, tile.size(), shared_address, true, nullptr});
  if (!spec) return failure{spec.error()};
  memory_view memory{windows_};
  return write_tile(*spec, coordinates, tile.data(), shared_address, memory,
                    [&](std::uint64_t address, const std::byte* row, std::uint64_t count) {
                      return memory.write(address, row, count);
                    });
}

result<void> copy_engine::reduce(reduction operation, const tensor_map& map,
                                 cuda::std::span<const std::int32_t> coordinates, cuda::std::span<const std::byte> tile,
                                 std::uint32_t shared_address) const {
  const auto spec = accept({map, coordinates, tile.size(), shared_address, true, &operation});
  if (!spec) return failure{spec.error()};
  const reduction_kernel kernel = kernel_for(operation, spec->type);
  memory_view memory{windows_};
  return write_tile(*spec, coordinates, tile.data(), shared_address, memory,
                    [&](std::uint64_t address, const std::byte* row, std::uint64_t count) {
                      return memory.for_each_piece(address, count, chunk_bytes,
                                                   [&](std::byte* piece, std::uint64_t done, std::uint64_t bytes) {
                                                     kernel(piece, row + done, bytes);
                                                   });
                    });
}

}  // namespace tmap::simulator
