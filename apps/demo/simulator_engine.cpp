// SPDX-License-Identifier: Apache-2.0
#include <tmap/decode.hpp>
#include <tmap/simulator.hpp>
#include <tmap/validate.hpp>

#include "apps/demo/engine.hpp"
#include "apps/support/stopwatch.hpp"

namespace tmap::demo {
namespace {

verdict encode(const tensor_spec& spec) {
  if (is_empty(spec)) return {.broken = {}, .is_empty = true, .map = {}};
  verdict judged{.broken = broken_rules(spec), .is_empty = false, .map = {}};
  if (const auto map = encode_bits(spec)) judged.map = *map;
  return judged;
}

}  // namespace

tool::outcome<engine_run> run_in_simulator(const demo_batch& batch) {
  engine_run run{
      .engine = "simulator", .device = {}, .base = simulated_base, .verdicts = {}, .tiles = {}, .seconds = {}};
  std::vector<std::byte> memory = batch.memory;
  run.tiles.assign(batch.tile_bytes, std::byte{poison});
  apps::stopwatch watch;
  for (const demo_tensor& tensor : batch.tensors) run.verdicts.push_back(encode(tensor.at(run.base)));
  run.seconds.encode = watch.lap();

  const simulator::memory_window window{run.base, {memory.data(), memory.size()}};
  const simulator::copy_engine engine{{&window, 1}};
  for (const demo_tile& tile : batch.tiles) {
    const demo_tensor& tensor = batch.tensors[tile.tensor];
    const auto loaded = engine.load(*run.verdicts[tile.tensor].map, {tile.at.data(), tensor.spec.rank},
                                    {run.tiles.data() + tile.offset, tile.bytes});
    if (!loaded) return tool::refuse("{}: {}", tensor.name, to_string(loaded.error()));
  }
  run.seconds.copy = watch.lap();
  return run;
}

}  // namespace tmap::demo
