// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/simulator.h>
#include <tmap/simulator.hpp>

#include <cstddef>
#include <vector>

#include "lib/interop/convert.hpp"
#include "lib/interop/inputs.hpp"

namespace tmap::interop {
namespace {

static_assert(mirrors(TMAP_REDUCE_ADD, reduction::add) && mirrors(TMAP_REDUCE_XOR, reduction::bit_xor));

using pieces = std::vector<simulator::memory_window>;

/// Pieces of memory, as many as the call names.
struct memory_input {
  void check(arguments& all) const {
    const support::argument name{"memory"};
    all.buffer(windows, count, name);
    for (std::uint32_t i = 0; all && i < count; ++i) {
      all.buffer(static_cast<const std::byte*>(windows[i].data), windows[i].bytes, name[i].member("data"));
    }
  }
  pieces value() const {
    pieces memory;
    for (std::uint32_t i = 0; i < count; ++i) {
      memory.push_back({windows[i].base, {static_cast<std::byte*>(windows[i].data), windows[i].bytes}});
    }
    return memory;
  }

  const tmap_memory_window* windows;
  std::uint32_t count;
};

struct tile_input {
  void check(arguments& all) const {
    all.structure(tile, "tile");
    if (all) all.at_most(tile->rank, TMAP_MAX_RANK, "tile.rank");
    if (all) all.buffer(static_cast<const std::byte*>(tile->data), tile->bytes, "tile.data");
  }
  const tile_input& value() const { return *this; }

  cuda::std::span<const std::int32_t> coordinates() const { return {tile->coordinates, tile->rank}; }
  cuda::std::span<std::byte> bytes() const { return {static_cast<std::byte*>(tile->data), tile->bytes}; }

  const tmap_tile* tile;
};

struct reduction_input {
  void check(arguments& all) const { all.enumerator(operation, TMAP_REDUCE_XOR, "operation"); }
  reduction value() const { return static_cast<reduction>(operation); }

  std::uint32_t operation;
};

struct received_output {
  void check(arguments& all) const { all.optional_pointer(received, "received"); }
  std::uint64_t* value() const { return received; }

  std::uint64_t* received;
};

answer load(const tensor_map& map, const pieces& memory, const tile_input& to, std::uint64_t* received) {
  const auto loaded = simulator::copy_engine{memory}.load(map, to.coordinates(), to.bytes(), to.tile->shared_address);
  if (!loaded) return loaded.error();
  if (received != nullptr) *received = *loaded;
  return {};
}

result<void> store(const tensor_map& map, const pieces& memory, const tile_input& from) {
  return simulator::copy_engine{memory}.store(map, from.coordinates(), from.bytes(), from.tile->shared_address);
}

result<void> reduce(reduction how, const tensor_map& map, const pieces& memory, const tile_input& from) {
  return simulator::copy_engine{memory}.reduce(how, map, from.coordinates(), from.bytes(), from.tile->shared_address);
}

answer sizes(const tensor_spec& spec, std::uint64_t& bytes, std::uint64_t& footprint) {
  bytes = tile_bytes(spec);
  footprint = tile_footprint_bytes(spec);
  return {};
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_tile_sizes(const tmap_tensor_spec* spec, uint64_t* bytes, uint64_t* footprint) {
  return run(__func__, sizes, input{"spec", spec}, output{"bytes", bytes}, output{"footprint", footprint});
}

tmap_status tmap_simulate_load(const tmap_tensor_map* map, const tmap_memory_window* memory, uint32_t memory_count,
                               const tmap_tile* tile, uint64_t* received) {
  return run(__func__, load, input{"map", map}, memory_input{memory, memory_count}, tile_input{tile},
             received_output{received});
}

tmap_status tmap_simulate_store(const tmap_tensor_map* map, const tmap_memory_window* memory, uint32_t memory_count,
                                const tmap_tile* tile) {
  return run(__func__, store, input{"map", map}, memory_input{memory, memory_count}, tile_input{tile});
}

tmap_status tmap_simulate_reduce(uint32_t operation, const tmap_tensor_map* map, const tmap_memory_window* memory,
                                 uint32_t memory_count, const tmap_tile* tile) {
  return run(__func__, reduce, reduction_input{operation}, input{"map", map}, memory_input{memory, memory_count},
             tile_input{tile});
}
