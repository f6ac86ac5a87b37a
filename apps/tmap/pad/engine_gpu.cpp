// SPDX-License-Identifier: Apache-2.0
#include <tmap/copy_tiles.hpp>
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>

#include "apps/tmap/pad/device_memory.hpp"
#include "apps/tmap/pad/engine.hpp"
#include "apps/tmap/pad/stopwatch.hpp"

#include <algorithm>
#include <fstream>

namespace tmap::tool {
namespace {

outcome<void> copy_bytes(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind) {
  return check(cudaMemcpy(to, from, bytes, kind), "copying between host and GPU");
}

/// One side of the copy, all sources or all destinations, in device memory.
struct gpu_side {
  device_memory bytes;
  device_memory patches;
  device_memory maps;

  outcome<void> allocate(std::uint64_t buffer_bytes, std::size_t count) {
    const std::pair<device_memory*, std::uint64_t> wanted[] = {
        {&bytes, buffer_bytes}, {&patches, count * sizeof(map_patch)}, {&maps, count * sizeof(tensor_map)}};
    for (const auto& [memory, size] : wanted) {
      auto allocated = device_memory::allocate(size);
      if (!allocated) return refusal{allocated.error()};
      *memory = std::move(*allocated);
    }
    return {};
  }

  outcome<void> upload_patches(const std::vector<tensor_spec>& specs) {
    std::vector<map_patch> host(specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      host[i].global_address = bytes.address() + specs[i].global_address;
      std::copy_n(specs[i].global_dim, max_rank, host[i].global_dim);
      std::copy_n(specs[i].global_stride_bytes, max_rank - 1, host[i].global_stride_bytes);
    }
    return copy_bytes(patches.as<void>(), host.data(), host.size() * sizeof(map_patch), cudaMemcpyHostToDevice);
  }
};

/// The steps of one batch, in this order. Each may fail; the destructors free what the earlier ones took.
class gpu_batch {
 public:
  gpu_batch(const copy_job& job, const timed_stream& stream) : job_{job}, stream_{stream} {}

  outcome<void> allocate() {
    const std::size_t count = job_.plan.members.size();
    if (const auto done = sources_.allocate(job_.plan.source_bytes, count); !done) return done;
    if (const auto done = destinations_.allocate(job_.plan.destination_bytes, count); !done) return done;
    const auto bytes = copy_tiles_workspace_bytes(count);
    if (!bytes) return refuse("{}", to_string(bytes.error()));
    workspace_bytes_ = *bytes;
    auto allocated = device_memory::allocate(workspace_bytes_);
    if (!allocated) return refusal{allocated.error()};
    workspace_ = std::move(*allocated);
    return {};
  }

  outcome<void> upload() {
    stopwatch watch;
    const auto done =
        copy_bytes(sources_.bytes.as<void>(), job_.sources.data(), job_.sources.size(), cudaMemcpyHostToDevice);
    if (!done) return done;
    if (const auto patched = sources_.upload_patches(job_.plan.sources); !patched) return patched;
    if (const auto patched = destinations_.upload_patches(job_.plan.destinations); !patched) return patched;
    times.upload = watch.lap();
    return check(cudaMemset(destinations_.bytes.as<void>(), poison, job_.plan.destination_bytes), "poisoning");
  }

  outcome<void> encode() {
    const auto base = make_template(job_.plan.tile, patch_extents(job_.plan.tile.rank));
    if (!base) return refuse("{}", to_string(base.error()));
    return measure("encoding the maps", times.encode, [&] {
      const auto first = encode_side(*base, sources_);
      return first ? encode_side(*base, destinations_) : first;
    });
  }

  outcome<void> copy() {
    const tile_copy_batch batch{job_.plan.tile, sources_.maps.as<tensor_map>(), destinations_.maps.as<tensor_map>(),
                                destinations_.patches.as<map_patch>(), job_.plan.members.size()};
    return measure("copying the tiles", times.copy, [&] {
      return copy_tiles_async(batch, workspace_.as<void>(), workspace_bytes_, cuda::stream_ref{stream_.get()});
    });
  }

  outcome<void> download() {
    stopwatch watch;
    const auto done = copy_bytes(job_.destinations.data(), destinations_.bytes.as<void>(), job_.destinations.size(),
                                 cudaMemcpyDeviceToHost);
    times.download = watch.lap();
    return done;
  }

  copy_times times;

 private:
  result<void> encode_side(const map_template& base, const gpu_side& side) const {
    return encode_batch_async(base, patch_array{side.patches.as<map_patch>()}, side.maps.as<tensor_map>(),
                              job_.plan.members.size(), cuda::stream_ref{stream_.get()});
  }

  /// The seconds of a second run: the first also loads the kernel.
  template <class Enqueue>
  outcome<void> measure(const char* action, double& seconds, Enqueue enqueue) const {
    for (int run = 0; run < 2; ++run) {
      const auto timed = stream_.time(action, enqueue);
      if (!timed) return refusal{timed.error()};
      seconds = *timed;
    }
    return {};
  }

  const copy_job& job_;
  const timed_stream& stream_;
  gpu_side sources_;
  gpu_side destinations_;
  device_memory workspace_;
  std::uint64_t workspace_bytes_{};
};

/// Encodes one map, which fails where tmap has no code for the GPU.
outcome<void> try_encoding() {
  const auto slot = device_memory::allocate(sizeof(tensor_map) + sizeof(map_patch));
  if (!slot) return refusal{slot.error()};
  tensor_spec spec;
  spec.global_address = slot->address();
  spec.rank = 1;
  spec.global_dim[0] = 16;
  spec.box_dim[0] = 16;
  const auto base = make_template(spec, patch_address);
  if (!base) return refuse("{}", to_string(base.error()));
  const map_patch* patches = reinterpret_cast<const map_patch*>(slot->as<std::byte>() + sizeof(tensor_map));
  if (const auto zeroed = check(cudaMemset(slot->as<void>(), 0, sizeof(tensor_map) + sizeof(map_patch)), "a trial");
      !zeroed) {
    return zeroed;
  }
  const auto encoded = encode_batch_async(*base, patch_array{patches}, slot->as<tensor_map>(), 1,
                                          cuda::stream_ref{cudaStream_t{nullptr}});
  if (!encoded) return refuse("{}", to_string(encoded.error()));
  return check(cudaDeviceSynchronize(), "encoding a first map");
}

std::string driver_version() {
  std::string version;
  std::getline(std::ifstream{"/sys/module/nvidia/version"}, version);
  return version.empty() ? version : ", driver " + version;
}

}  // namespace

outcome<std::string> usable_gpu() {
  const auto limits = query_device_limits();
  if (!limits) return refuse("{}", to_string(limits.error()));
  if (limits->compute_capability < 90) {
    return refuse("its compute capability {}.{} is below 9.0, where the copy engine begins",
                  limits->compute_capability / 10, limits->compute_capability % 10);
  }
  if (const auto encoded = try_encoding(); !encoded) return refusal{encoded.error()};
  int device = 0;
  cudaDeviceProp properties{};
  if (const auto current = check(cudaGetDevice(&device), "asking for it"); !current) return refusal{current.error()};
  const auto known = check(cudaGetDeviceProperties(&properties, device), "asking for its name");
  if (!known) return refusal{known.error()};
  return std::string{properties.name} + driver_version();
}

outcome<copy_times> copy_on_gpu(const copy_job& job) {
  if (!job.plan.by_maps) return pad_on_gpu(job);
  const auto stream = timed_stream::create();
  if (!stream) return refusal{stream.error()};
  gpu_batch batch{job, *stream};
  for (const auto step :
       {&gpu_batch::allocate, &gpu_batch::upload, &gpu_batch::encode, &gpu_batch::copy, &gpu_batch::download}) {
    if (const auto done = (batch.*step)(); !done) return refusal{done.error()};
  }
  return batch.times;
}

}  // namespace tmap::tool
