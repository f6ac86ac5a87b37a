// SPDX-License-Identifier: Apache-2.0
#include <tmap/encode_batch.hpp>
#include <tmap/validate.hpp>

#include <algorithm>

#include "apps/demo/copy_tiles.hpp"
#include "apps/demo/engine.hpp"
#include "apps/support/device_array.hpp"
#include "apps/support/timed_stream.hpp"

namespace tmap::demo {
namespace {

using apps::require;
using apps::value_of;

constexpr int timed_runs = 20;

/// Orders one map from the encode kernel: its template and the index of its tensor.
struct encode_order {
  map_template base;
  std::uint32_t tensor{};
};

map_patch patch_of(const tensor_spec& spec) {
  map_patch patch{};
  patch.global_address = spec.global_address;
  std::copy_n(spec.global_stride_bytes, max_rank - 1, patch.global_stride_bytes);
  std::copy_n(spec.global_dim, max_rank, patch.global_dim);
  std::copy_n(spec.box_dim, max_rank, patch.box_dim);
  return patch;
}

/// Holds all that one run has in device memory.
class gpu_batch {
 public:
  explicit gpu_batch(const demo_batch& batch)
      : batch_(batch),
        memory_(batch.memory),
        maps_(batch.tensors.size()),
        statuses_(batch.tensors.size()),
        tiles_(batch.tile_bytes),
        stream_(value_of(apps::timed_stream::create())) {}

  std::uint64_t base() const { return memory_.address(); }

  /// Makes a template for each tensor. One that its template's fields rule out has none.
  std::vector<encode_order> make_templates(std::vector<verdict>& verdicts) const {
    std::vector<encode_order> orders;
    for (std::uint32_t i = 0; i < batch_.tensors.size(); ++i) {
      const tensor_spec spec = batch_.tensors[i].at(base());
      const auto made = make_template(spec, patch_extents(spec.rank));
      if (made) {
        orders.push_back({*made, i});
      } else {
        verdicts[i].broken = made.error().rules;
      }
    }
    return orders;
  }

  /// Encodes all maps on the GPU; returns its seconds.
  double encode(const std::vector<encode_order>& orders) const {
    std::vector<map_patch> patches;
    for (const encode_order& order : orders) patches.push_back(patch_of(batch_.tensors[order.tensor].at(base())));
    const apps::device_array<map_patch> on_gpu(patches);
    const auto enqueue = [&]() -> result<void> {
      for (std::size_t i = 0; i < orders.size(); ++i) {
        const std::uint32_t tensor = orders[i].tensor;
        const auto encoded = encode_batch(orders[i].base, patch_array{on_gpu.get() + i}, maps_.get() + tensor, 1,
                                          {.where = {stream_.get()}, .statuses = statuses_.get() + tensor});
        if (!encoded) return failure{encoded.error()};
      }
      return {};
    };
    require(stream_.milliseconds(enqueue));  // loads the kernels
    return value_of(stream_.milliseconds(enqueue)) / 1e3;
  }

  void read_verdicts(const std::vector<encode_order>& orders, std::vector<verdict>& verdicts) const {
    const auto maps = maps_.read();
    const auto statuses = statuses_.read();
    for (const encode_order& order : orders) {
      verdict& judged = verdicts[order.tensor];
      const map_status status = statuses[order.tensor];
      judged.is_empty = status.is_empty();
      judged.broken = rules_of(status);
      if (status.is_good()) judged.map = maps[order.tensor];
    }
  }

  /// Moves all tiles many times; returns the seconds of one run.
  double copy() const {
    const apps::device_array<tile_order> orders(tile_orders());
    std::uint32_t most = 0;
    for (const demo_tile& tile : batch_.tiles) most = std::max(most, static_cast<std::uint32_t>(tile.bytes));
    return seconds_of_many([&] {
      require(copy_tiles(maps_.get(), orders.get(), static_cast<std::uint32_t>(orders.size()), most, tiles_.get(),
                         stream_.get()));
    });
  }

  std::vector<std::byte> tiles() const {
    std::vector<std::byte> bytes(batch_.tile_bytes);
    require(cudaDeviceSynchronize());
    require(apps::copy_bytes(bytes.data(), tiles_.get(), bytes.size()));
    return bytes;
  }

  /// Copies as many bytes within device memory by cudaMemcpyAsync; returns the seconds of one run.
  double plain_copy() const {
    const apps::device_array<unsigned char> from(batch_.tile_bytes), to(batch_.tile_bytes);
    from.fill(0);
    return seconds_of_many(
        [&] { require(cudaMemcpyAsync(to.get(), from.get(), from.bytes(), cudaMemcpyDeviceToDevice, stream_.get())); });
  }

 private:
  std::vector<tile_order> tile_orders() const {
    std::vector<tile_order> orders;
    for (const demo_tile& tile : batch_.tiles) {
      const tensor_spec& spec = batch_.tensors[tile.tensor].spec;
      tile_order order{};
      std::copy(tile.at.begin(), tile.at.end(), order.at);
      order.rank = spec.rank;
      order.map = tile.tensor;
      order.barrier_bytes = static_cast<std::uint32_t>(tile_bytes(spec));
      order.shared_bytes = static_cast<std::uint32_t>(tile.bytes);
      order.offset = tile.offset;
      orders.push_back(order);
    }
    return orders;
  }

  template <class Enqueue>
  double seconds_of_many(const Enqueue& enqueue) const {
    const auto run = [&](int times) {
      return value_of(stream_.milliseconds([&] {
        for (int i = 0; i < times; ++i) enqueue();
        return result<void>{};
      }));
    };
    run(timed_runs);  // wakes the GPU
    return run(timed_runs) / timed_runs / 1e3;
  }

  const demo_batch& batch_;
  apps::device_array<std::byte> memory_;
  apps::device_array<tensor_map> maps_;
  apps::device_array<map_status> statuses_;
  apps::device_array<unsigned char> tiles_;
  apps::timed_stream stream_;
};

}  // namespace

tool::outcome<engine_run> run_on_gpu(const demo_batch& batch) {
  const gpu_batch gpu{batch};
  engine_run run{.engine = "GPU",
                 .device = {},
                 .base = gpu.base(),
                 .verdicts = std::vector<verdict>(batch.tensors.size()),
                 .tiles = {},
                 .seconds = {}};
  const auto orders = gpu.make_templates(run.verdicts);
  run.seconds.encode = gpu.encode(orders);
  gpu.read_verdicts(orders, run.verdicts);
  run.seconds.copy = gpu.copy();
  run.tiles = gpu.tiles();
  run.seconds.ceiling = gpu.plain_copy();
  return run;
}

}  // namespace tmap::demo
