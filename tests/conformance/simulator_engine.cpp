// SPDX-License-Identifier: Apache-2.0
#include "conformance/contents.hpp"
#include "conformance/tile_engine.hpp"

#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>

#include <array>
#include <cstring>

namespace tmap::conformance {
namespace {

constexpr std::uint64_t arena_address = 0x7f0000000000;

class simulator_engine final : public tile_engine {
 public:
  simulator_engine() {
    for (std::uint32_t type = 0; type < hopper_element_type_count; ++type) {
      arenas_[type] = contents(static_cast<element_type>(type), arena_seed, arena_bytes);
      tiles_[type] = contents(static_cast<element_type>(type), tile_seed, shared_bytes);
    }
  }

  void run(cuda::std::span<const tile_case> cases,
           const std::function<void(std::size_t, const outcome&)>& report) override {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      prepare(cases[i]);
      outcome left = copy(cases[i]);
      left.arena = arena_;
      left.shared = shared_;
      report(i, left);
    }
  }

 private:
  void prepare(const tile_case& tile) {
    const auto type = static_cast<std::uint32_t>(tile.spec.type);
    arena_ = arenas_[type];
    shared_ = tiles_[type];
    if (tile.kind == copy_kind::load) std::memset(shared_.data(), static_cast<int>(poison), shared_.size());
  }

  outcome copy(const tile_case& tile) {
    tensor_spec spec = tile.spec;
    spec.global_address += arena_address;
    const auto map = encode_bits(spec);
    if (!map) return {.finished = failure{map.error()}};
    const simulator::memory_window window{arena_address, arena_};
    const simulator::copy_engine engine{{&window, 1}};
    const cuda::std::span<const std::int32_t> corner{tile.coordinates, spec.rank};
    const auto room = cuda::std::span<std::byte>{shared_}.subspan(tile.shared_offset);
    if (tile.kind == copy_kind::load) {
      const auto received = engine.load(*map, corner, room, tile.shared_offset);
      if (!received) return {.finished = failure{received.error()}};
      return {.barrier_bytes = *received};
    }
    if (tile.kind == copy_kind::store) return {.finished = engine.store(*map, corner, room, tile.shared_offset)};
    return {.finished = engine.reduce(tile.operation, *map, corner, room, tile.shared_offset)};
  }

  std::array<std::vector<std::byte>, hopper_element_type_count> arenas_;
  std::array<std::vector<std::byte>, hopper_element_type_count> tiles_;
  std::vector<std::byte> arena_;
  std::vector<std::byte> shared_;
};

}  // namespace

std::uint64_t digest(const outcome& left) {
  const std::uint64_t shared = digest(left.barrier_bytes, left.shared.data(), left.shared.size());
  return digest(shared, left.arena.data(), left.arena.size());
}

std::unique_ptr<tile_engine> make_simulator_engine() {
  return std::make_unique<simulator_engine>();
}

}  // namespace tmap::conformance
