// SPDX-License-Identifier: Apache-2.0
#include <tmap/device/encode_warp.cuh>
#include <tmap/device/patch_source.cuh>
#include <tmap/device/tile_copy.cuh>

#include <string>
#include <vector>

#include "apps/bench/common/table.hpp"
#include "apps/bench/encode/batches.hpp"
#include "apps/bench/encode/tables.hpp"
#include "apps/support/progress.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint64_t consumer_sizes[] = {1, 132, 4096};
constexpr std::uint32_t tile_columns = 32;
constexpr std::uint32_t tile_rows = 32;
constexpr std::uint32_t tile_words = tile_columns * tile_rows;
constexpr std::uint32_t tile_bytes = tile_words * sizeof(std::uint32_t);
static_assert(tile_bytes == 4096);

__device__ device::guard_page page;

/// The shared memory of one warp: its tile.
struct workspace {
  alignas(128) std::uint32_t tile[tile_words];
  device::tile_barrier barrier;
};

/// Loads the tile through the map in `slot` and writes its sum. Called by one warp.
__device__ void sum_tile(workspace& shared, const tensor_map* slot, std::uint32_t* sum) {
  const std::uint32_t lane = threadIdx.x;
  if (lane == 0) {
    const device::acquired_map map = device::acquire(slot);
    shared.barrier.init(1);
    device::fence_barrier_init();
    shared.barrier.arrive_expect(tile_bytes);
    device::load_tile<2>(shared.tile, map, {0, 0}, shared.barrier);
  }
  __syncwarp();
  shared.barrier.wait(0);
  std::uint32_t mine = 0;
  for (std::uint32_t at = lane; at < tile_words; at += device::warp_lanes) mine += shared.tile[at];
  const std::uint32_t all = __reduce_add_sync(~0u, mine);
  if (lane == 0) *sum = all;
}

/// Runs one block per map. An earlier kernel, which may still be running, writes the maps.
__global__ void __launch_bounds__(device::warp_lanes) sum_tiles(const tensor_map* slots, std::uint32_t* sums) {
  __shared__ workspace shared;
  cudaGridDependencySynchronize();
  sum_tile(shared, slots + blockIdx.x, sums + blockIdx.x);
}

/// The template's extents, known at compile time.
using tile_shape = device::fixed_shape<2, patch_extents(2)>;

/// Each block encodes its map itself.
template <class Shape>
__global__ void __launch_bounds__(device::warp_lanes)
    encode_and_sum_tiles(const __grid_constant__ map_template base,
                         const __grid_constant__ device::patch_array_reader source, tensor_map* slots,
                         std::uint32_t* sums) {
  __shared__ workspace shared;
  __shared__ device::warp_stage stage;
  const auto read = [&](std::uint64_t i) { return source.read(i, Shape::fields(base)); };
  device::encode_warp(base, read, slots, blockIdx.x, 1, stage, device::map_guard{.page = &page}, Shape{});
  __syncwarp();
  sum_tile(shared, slots + blockIdx.x, sums + blockIdx.x);
}

/// Owns one tile per map; every word of tile i has value i.
class consumer {
 public:
  explicit consumer(std::uint64_t count)
      : words_{make_words(count)},
        base_{make_tile_base()},
        patches_{make_tile_patches(words_.get(), count)},
        slots_{count},
        sums_{count} {}

  void encode(cudaStream_t stream) const {
    const patch_array source{patches_.get()};
    require(encode_batch(base_, source, slots_.get(), slots_.size(), {stream}));
  }

  void consume(cudaStream_t stream) const {
    sum_tiles<<<blocks(), device::warp_lanes, 0, stream>>>(slots_.get(), sums_.get());
    require(cudaGetLastError());
  }

  /// Lets the consumer start before the preceding kernel has ended.
  void consume_overlapped(cudaStream_t stream) const {
    cudaLaunchAttribute overlap{};
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks();
    config.blockDim = device::warp_lanes;
    config.stream = stream;
    config.attrs = &overlap;
    config.numAttrs = 1;
    require(cudaLaunchKernelEx(&config, sum_tiles, static_cast<const tensor_map*>(slots_.get()), sums_.get()));
  }

  template <class Shape>
  void encode_and_consume(cudaStream_t stream) const {
    const device::patch_array_reader source({patches_.get()}, base_.fields);
    encode_and_sum_tiles<Shape><<<blocks(), device::warp_lanes, 0, stream>>>(base_, source, slots_.get(), sums_.get());
    require(cudaGetLastError());
  }

  /// Clears the sums before a measurement.
  void forget() const {
    slots_.fill(0);
    sums_.fill(0xff);
  }
  /// Checks after a measurement that every tile was summed.
  void check() const {
    const std::vector<std::uint32_t> sums = sums_.read();
    for (std::uint32_t i = 0; i < sums.size(); ++i) require(sums[i] == i * tile_words);
  }

 private:
  static std::vector<std::uint32_t> make_words(std::uint64_t count) {
    std::vector<std::uint32_t> words(count * tile_words);
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i / tile_words;
    return words;
  }

  static map_template make_tile_base() {
    const std::uint64_t dims[] = {tile_columns, tile_rows};
    const std::uint32_t box[] = {tile_columns, tile_rows};
    const tensor_spec spec = packed_spec(element_type::u32, first_address, {dims, 2}, {box, 2});
    return value_of(make_template(spec, few.fields));
  }

  static std::vector<map_patch> make_tile_patches(const std::uint32_t* words, std::uint64_t count) {
    std::vector<map_patch> patches(count);
    for (std::uint64_t i = 0; i < count; ++i) {
      patches[i].global_address = reinterpret_cast<std::uint64_t>(words + i * tile_words);
      patches[i].global_dim[0] = tile_columns;
      patches[i].global_dim[1] = tile_rows;
      patches[i].global_stride_bytes[0] = tile_columns * sizeof(std::uint32_t);
    }
    return patches;
  }

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(slots_.size()); }

  device_array<std::uint32_t> words_;
  map_template base_;
  device_array<map_patch> patches_;
  device_array<tensor_map> slots_;
  device_array<std::uint32_t> sums_;
};

struct fused_figures {
  std::uint64_t count;
  ways made_earlier;
  ways launched_before;
  ways overlapped;
  ways own;
  ways own_of_known_shape;
};

fused_figures measure_fused(const timer& clock, std::uint64_t count) {
  const consumer c(count);
  const auto timed = [&](const auto& enqueue) {
    const ways times = clock.both(enqueue);
    c.check();
    return times;
  };
  const auto fresh = [&](const auto& enqueue) {
    c.forget();
    return timed(enqueue);
  };
  c.forget();
  c.encode(clock.stream());
  clock.drain();
  return {.count = count,
          .made_earlier = timed([&](cudaStream_t stream) { c.consume(stream); }),
          .launched_before = fresh([&](cudaStream_t stream) { c.encode(stream), c.consume(stream); }),
          .overlapped = fresh([&](cudaStream_t stream) { c.encode(stream), c.consume_overlapped(stream); }),
          .own = fresh([&](cudaStream_t stream) { c.encode_and_consume<device::any_shape>(stream); }),
          .own_of_known_shape = fresh([&](cudaStream_t stream) { c.encode_and_consume<tile_shape>(stream); })};
}

void print_way(const char* title, const std::vector<fused_figures>& all, double ways::*way) {
  table t(title, {"maps", "consumer alone, maps made earlier", "encode_batch before it adds",
                  "the same with programmatic dependent launch adds", "encode_warp in its prologue adds",
                  "with its shape known when compiled"});
  for (const fused_figures& f : all) {
    const auto added = [&](const ways& times) { return signed_text(times.*way - f.made_earlier.*way); };
    t.add({count_text(f.count), text(f.made_earlier.*way), added(f.launched_before), added(f.overlapped), added(f.own),
           added(f.own_of_known_shape)});
  }
  t.print();
}

}  // namespace

void print_fused(const timer& clock) {
  std::vector<fused_figures> all;
  {
    progress bar{"fused", std::size(consumer_sizes)};
    for (const std::uint64_t count : consumer_sizes) {
      all.push_back(measure_fused(clock, count));
      bar.advance(1);
    }
  }
  print_way(
      "What a consumer pays for its maps: microseconds on an idle stream. One block of one warp a map acquires it, "
      "loads "
      "a tile of 4 KiB and writes its sum.",
      all, &ways::stream);
  print_way("The same as one of a hundred in a graph.", all, &ways::graph);
}

}  // namespace tmap::apps::bench
