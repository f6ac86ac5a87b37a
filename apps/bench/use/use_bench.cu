// SPDX-License-Identifier: Apache-2.0
// Measures what it costs a kernel to use a tensor map, in cycles of its multiprocessor. Prints
// Markdown: medians over all multiprocessors and several launches, and the range that holds eight
// of ten values.
#include <tmap/encode_batch.hpp>

#include "apps/bench/common/table.hpp"
#include "apps/bench/use/use_kernels.cuh"
#include "apps/support/device.hpp"
#include "apps/support/device_array.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint32_t most_counts = 1 << 20;  // figures * blocks * samples per launch

/// Owns the data and its maps: every slot has a map of one tile, and one more map covers all tiles.
struct bench {
  bench();
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  patch_array source() const { return {patches.get()}; }

  std::uint32_t blocks;
  device_array<std::uint32_t> data;
  device_array<map_patch> patches;
  device_array<tensor_map> slots;
  device_array<std::uint32_t> cycles;
  map_template base;
  tensor_map all_tiles;
  map_set located;  // the maps of the first tiles
};

/// States how often a kernel measures each of its figures.
struct repeats {
  std::uint32_t figures;
  std::uint32_t samples;
  std::uint32_t launches;
};

/// The launch configuration of a kernel that runs on every multiprocessor.
struct shape {
  std::uint32_t blocks;
  std::uint32_t threads;
};
constexpr shape one_thread{1, 1};
constexpr shape one_warp{1, device::warp_lanes};
constexpr shape two_blocks{2, 1};

map_patch patch_of(const void* data, std::uint64_t rows) {
  map_patch patch{};
  patch.global_address = reinterpret_cast<std::uint64_t>(data);
  patch.global_dim[0] = tile_columns;
  patch.global_dim[1] = rows;
  patch.global_stride_bytes[0] = tile_columns * sizeof(std::uint32_t);
  return patch;
}

std::vector<std::uint32_t> make_words() {
  std::vector<std::uint32_t> words(tiles * tile_words);
  for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i / tile_words;
  return words;
}

std::vector<map_patch> make_tile_patches(const std::uint32_t* data, std::uint32_t blocks) {
  std::vector<map_patch> patches;
  for (std::uint32_t i = 0; i < blocks * tiles; ++i) {
    patches.push_back(patch_of(data + i % tiles * tile_words, tile_rows));
  }
  patches.push_back(patch_of(data, tiles * tile_rows));
  return patches;
}

map_template make_tile_base() {
  const std::uint64_t dims[] = {tile_columns, tile_rows};
  const std::uint32_t box[] = {tile_columns, tile_rows};
  return value_of(make_template(packed_spec(element_type::u32, 1 << 20, {dims, 2}, {box, 2}), patch_extents(2)));
}

void encode(const bench& b) {
  const cuda::stream_ref stream{cudaStream_t{}};
  require(encode_batch(b.base, b.source(), b.slots.get(), b.slots.size(), {stream}));
}

bench::bench()
    : blocks{multiprocessors()},
      data{make_words()},
      patches{make_tile_patches(data.get(), blocks)},
      slots{patches.size()},
      cycles{most_counts},
      base{make_tile_base()} {
  encode(*this);
  const tensor_map* const last = slots.get() + slots.size() - 1;
  require(cudaMemcpy(&all_tiles, last, sizeof(tensor_map), cudaMemcpyDeviceToHost));
  require(cudaMemcpy(&located, slots.get(), sizeof(map_set), cudaMemcpyDeviceToHost));
  require(cudaMemcpyToSymbol(constant_maps, &located, sizeof(map_set)));
}

/// Runs a kernel so often that each figure has its samples. Every launch follows a fresh encoding
/// of all slots and takes so much shared memory that just the blocks asked for fit on a
/// multiprocessor.
template <class... Parameters, class... Arguments>
std::vector<cycle_counts> measure(const bench& b, shape s, repeats r, void (*kernel)(inputs, Parameters...),
                                  const Arguments&... arguments) {
  const std::uint32_t filler = 160 * 1024 / s.blocks;
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, filler));
  const std::uint32_t per_figure = b.blocks * r.samples;
  std::vector<std::uint32_t> raw(r.figures * per_figure);
  require(raw.size() <= most_counts);
  std::vector<cycle_counts> counts(r.figures);
  for (std::uint32_t launch = 0; launch < r.launches; ++launch) {
    require(cudaMemset(b.cycles.get(), 0xff, raw.size() * sizeof(std::uint32_t)));
    encode(b);
    const inputs in{b.all_tiles, b.slots.get(), launch * (tiles / r.launches), {b.cycles.get(), b.blocks, r.samples}};
    kernel<<<b.blocks * s.blocks, s.threads, filler>>>(in, arguments...);
    require(cudaGetLastError());
    require(cudaMemcpy(raw.data(), b.cycles.get(), raw.size() * sizeof(std::uint32_t), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    for (std::uint32_t f = 0; f < r.figures; ++f) {
      counts[f].add(raw.data() + f * per_figure, raw.data() + (f + 1) * per_figure);
    }
  }
  return counts;
}

void print_touches(const bench& b) {
  const std::vector<cycle_counts> cold = measure(b, one_thread, {4, 1, 128}, cold_start);
  const std::vector<cycle_counts> first = measure(b, one_thread, {5, 32, 4}, first_touches);
  const std::vector<cycle_counts> again = measure(b, one_thread, {11, 32, 4}, touches_again);
  table t("1. The fence alone, and loads by what was done with the map before.", {"what", "cycles"});
  t.add({"acquire, first instruction of a block", cold[0].text()});
  t.add({"acquire, map never used here", first[1].text()});
  t.add({"acquire again", again[3].text()});
  t.add({"acquire again, system scope", again[8].text()});
  t.add({"prefetch", again[10].text()});
  t.add({"load: first of a block, all cold but the level-2 cache", cold[1].text()});
  t.add({"load: second of a block, another new map and cold data", cold[2].text()});
  t.add({"load: third of a block, another new map, data warm", cold[3].text()});
  t.print();
  table warm("Data warm:", {"load", "no prefetch", "prefetched early", "prefetch right before, included"});
  warm.add({"first touch, not acquired", first[0].text(), "-", "-"});
  warm.add({"first touch, acquired", first[2].text(), first[3].text(), first[4].text()});
  warm.add({"touched again", again[0].text(), again[1].text(), again[2].text()});
  warm.add({"touched again after acquire", again[4].text(), again[5].text(), again[6].text()});
  warm.add({"touched again after acquire, system scope", again[9].text(), "-", "-"});
  warm.add({"touched again after acquire of another map", again[7].text(), "-", "-"});
  warm.print();
}

void print_places(const bench& b) {
  table t("2. Where the map lies (a slot is acquired first).",
          {"map in", "first touch", "touched again", "first touch, prefetched early"});
  const auto row = [&](const char* name, map_place place) {
    const std::vector<cycle_counts> counts =
        measure(b, one_thread, {3, located_maps / 2, 16}, touches_by_place, b.located, place);
    t.add({name, counts[0].text(), counts[1].text(), counts[2].text()});
  };
  row("kernel parameter", map_place::parameter);
  row("constant memory", map_place::constant);
  row("slot in global memory", map_place::slot);
  t.print();
}

void print_capacity(const bench& b) {
  table t("3. Distinct maps used in turn, cycles a load.",
          {"maps", "all blocks the same", "one block alone", "each block its own, packed",
           "each block its own, 64 KiB apart"});
  for (const std::uint32_t count :
       {1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512}) {
    const auto cell = [&](map_share share) {
      return measure(b, one_thread, {1, tiles, 1}, round_robin, count, share)[0].text();
    };
    t.add({std::to_string(count), cell(map_share::all_the_same), cell(map_share::alone), cell(map_share::own_packed),
           cell(map_share::own_spread)});
  }
  t.print();
}

void print_pairs(const bench& b) {
  const device_array<uint2> counters{std::vector<uint2>(b.blocks)};
  const std::vector<cycle_counts> counts = measure(b, two_blocks, {6, 32, 4}, pair_of_blocks, counters.get());
  table t("4. Two blocks of one multiprocessor, in this order.", {"load", "cycles"});
  t.add({"first block, first touch", counts[0].text()});
  t.add({"second block, its first, not acquired", counts[1].text()});
  t.add({"first block again", counts[2].text()});
  t.add({"first block again, after the second block's acquire", counts[3].text()});
  t.add({"second block, after its acquire", counts[4].text()});
  t.add({"first block again, after the second block's acquire and load", counts[5].text()});
  t.print();
}

void print_warp(const bench& b) {
  const std::vector<cycle_counts> acquires = measure(b, one_warp, {3, 32, 4}, acquires_of_a_warp);
  table t("5. Many maps. The fence:", {"what", "cycles", "per map"});
  t.add({"one lane acquires one map", acquires[0].text(), acquires[0].text()});
  t.add({"one lane acquires 32 maps", acquires[1].text(), acquires[1].text(32)});
  t.add({"32 lanes acquire a map each", acquires[2].text(), acquires[2].text(32)});
  t.print();
  table flight("32 loads in flight, cycles a load, through so many maps in turn:",
               {"maps", "touched again", "after an acquire of each"});
  for (const std::uint32_t distinct : {1, 2, 4, 8, 12, 16, 32}) {
    const std::vector<cycle_counts> loads = measure(b, one_thread, {2, 32, 4}, loads_at_once, distinct);
    flight.add({std::to_string(distinct), loads[0].text(32), loads[1].text(32)});
  }
  const std::vector<cycle_counts> waits = measure(b, one_warp, {2, 32, 4}, waits_of_a_warp);
  flight.print();
  table wait("One load by lane 0 of a full warp, touched again:", {"who waits", "cycles"});
  wait.add({"lane 0 for the barrier, the others for lane 0", waits[0].text()});
  wait.add({"all lanes for the barrier", waits[1].text()});
  wait.print();
}

void print_fused(const bench& b) {
  table t("6. A warp that needs one map: encoded by itself or by an earlier launch.",
          {"map", "encode", "acquire", "load", "together", "load again"});
  const auto row = [&](const char* name, repeats r, auto kernel, bool encodes) {
    const device::patch_array_reader reader(b.source(), b.base.fields);
    const std::vector<cycle_counts> counts = measure(b, one_warp, r, kernel, b.base, reader, b.slots.get(), encodes);
    t.add({name, encodes ? counts[0].text() : "-", counts[1].text(), counts[2].text(), counts[3].text(),
           counts[4].text()});
  };
  constexpr repeats once{5, 1, 128};
  constexpr repeats often{5, 32, 4};
  const auto any = own_map<device::any_shape>;
  const auto known = own_map<device::fixed_shape<2, patch_extents(2)>>;
  row("by itself, once at the start of the block", once, any, true);
  row("the same, shape known when compiled", once, known, true);
  row("by an earlier launch, once at the start of the block", once, any, false);
  row("by itself, in a loop", often, any, true);
  row("the same, shape known when compiled", often, known, true);
  row("by an earlier launch, in a loop", often, any, false);
  t.print();
}

}  // namespace
}  // namespace tmap::apps::bench

int main() {
  using namespace tmap::apps::bench;
  if (!tmap::apps::has_hopper()) return tmap::apps::lack_of_hopper("use_bench");
  tmap::apps::print_device();
  const bench b;
  print_touches(b);
  print_places(b);
  print_capacity(b);
  print_pairs(b);
  print_warp(b);
  print_fused(b);
  return 0;
}
