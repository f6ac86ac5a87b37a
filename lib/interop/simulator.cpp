// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/simulator.h>
#include <tmap/simulator.hpp>

#include <cstddef>
#include <vector>

#include "lib/interop/call.hpp"
#include "lib/interop/convert_spec.hpp"

namespace tmap::interop {
namespace {

static_assert(TMAP_REDUCE_ADD == static_cast<int>(reduction::add));
static_assert(TMAP_REDUCE_XOR == static_cast<int>(reduction::bit_xor));

/// `act(engine, map, coordinates, tile)` once all is checked; `given` may have checked more.
template <class Act>
answer with_engine(const tmap_tensor_map* map, const tmap_memory_window* windows, uint32_t window_count,
                   const tmap_tile* tile, arguments given, const Act& act) {
  given.pointer(map, "map");
  given.buffer(windows, window_count, "windows");
  given.structure(tile, "tile");
  if (given) given.at_most(tile->rank, TMAP_MAX_RANK, "tile.rank");
  if (given) given.buffer(static_cast<const std::byte*>(tile->data), tile->bytes, "tile.data");
  for (uint32_t i = 0; given && i < window_count; ++i) {
    given.buffer(static_cast<const std::byte*>(windows[i].data), windows[i].bytes,
                 support::argument{"windows"}[i].member("data"));
  }
  if (!given) return given.complaint();
  std::vector<simulator::memory_window> memory;
  for (uint32_t i = 0; i < window_count; ++i) {
    memory.push_back({windows[i].base, {static_cast<std::byte*>(windows[i].data), windows[i].bytes}});
  }
  const cuda::std::span<const std::int32_t> coordinates{tile->coordinates, tile->rank};
  const cuda::std::span<std::byte> bytes{static_cast<std::byte*>(tile->data), tile->bytes};
  return act(simulator::copy_engine{memory}, map_of(*map), coordinates, bytes);
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_tile_sizes(const tmap_tensor_spec* spec, uint64_t* bytes, uint64_t* footprint) {
  return call(__func__, [&]() -> answer {
    arguments given;
    given.structure(spec, "spec");
    given.pointer(bytes, "bytes");
    given.pointer(footprint, "footprint");
    if (!given) return given.complaint();
    const tmap::tensor_spec of = spec_of(*spec);
    *bytes = tmap::tile_bytes(of);
    *footprint = tmap::tile_footprint_bytes(of);
    return {};
  });
}

tmap_status tmap_simulate_load(const tmap_tensor_map* map, const tmap_memory_window* windows, uint32_t window_count,
                               const tmap_tile* tile, uint64_t* received) {
  return call(__func__, [&] {
    arguments given;
    given.optional_pointer(received, "received");
    return with_engine(map, windows, window_count, tile, given,
                       [&](const auto& engine, const auto& of, auto coordinates, auto bytes) -> answer {
                         const auto loaded = engine.load(of, coordinates, bytes, tile->shared_address);
                         if (!loaded) return loaded.error();
                         if (received != nullptr) *received = *loaded;
                         return {};
                       });
  });
}

tmap_status tmap_simulate_store(const tmap_tensor_map* map, const tmap_memory_window* windows, uint32_t window_count,
                                const tmap_tile* tile) {
  return call(__func__, [&] {
    return with_engine(map, windows, window_count, tile, {},
                       [&](const auto& engine, const auto& of, auto coordinates, auto bytes) {
                         return answer_of(engine.store(of, coordinates, bytes, tile->shared_address));
                       });
  });
}

tmap_status tmap_simulate_reduce(uint32_t operation, const tmap_tensor_map* map, const tmap_memory_window* windows,
                                 uint32_t window_count, const tmap_tile* tile) {
  return call(__func__, [&] {
    arguments given;
    given.enumerator(operation, TMAP_REDUCE_XOR, "operation");
    const auto named = static_cast<tmap::reduction>(operation);
    return with_engine(map, windows, window_count, tile, given,
                       [&](const auto& engine, const auto& of, auto coordinates, auto bytes) {
                         return answer_of(engine.reduce(named, of, coordinates, bytes, tile->shared_address));
                       });
  });
}
