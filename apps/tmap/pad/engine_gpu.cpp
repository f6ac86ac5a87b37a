// SPDX-License-Identifier: Apache-2.0
#include <tmap/encode.hpp>
#include <tmap/ragged.hpp>

#include "apps/tmap/pad/device_memory.hpp"
#include "apps/tmap/pad/engine.hpp"
#include "apps/tmap/pad/stopwatch.hpp"

#include <fstream>
#include <utility>

namespace tmap::tool {
namespace {

struct gpu_memory {
  device_memory sources;
  device_memory patches;
  device_memory batch;
  device_memory workspace;
  std::uint64_t workspace_bytes{};
};

outcome<gpu_memory> allocate(const batch_plan& plan) {
  const auto needed = ragged::workspace_bytes(plan.sources.size(), plan.rank());
  if (!needed) return refuse("{}", to_string(needed.error()));
  gpu_memory memory;
  memory.workspace_bytes = *needed;
  const std::pair<device_memory*, std::uint64_t> wanted[] = {{&memory.sources, plan.source_bytes},
                                                             {&memory.patches, plan.sources.size() * sizeof(map_patch)},
                                                             {&memory.batch, plan.dense_bytes},
                                                             {&memory.workspace, *needed}};
  for (const auto& [place, size] : wanted) {
    auto allocated = device_memory::allocate(size);
    if (!allocated) return refusal{allocated.error()};
    *place = std::move(*allocated);
  }
  return memory;
}

outcome<void> copy_bytes(void* to, const void* from, std::uint64_t bytes) {
  return check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "copying between host and GPU");
}

outcome<void> upload(const copy_job& job, const gpu_memory& memory) {
  const std::vector<map_patch> patches = job.plan.sources_at(memory.sources.address());
  const auto described = copy_bytes(memory.patches.as<void>(), patches.data(), patches.size() * sizeof(map_patch));
  return described ? copy_bytes(memory.sources.as<void>(), job.sources.data(), job.sources.size()) : described;
}

/// The seconds of a second run: the first also loads the kernels.
outcome<double> pad_twice(const batch_plan& plan, const gpu_memory& memory) {
  if (const auto poisoned = check(cudaMemset(memory.batch.as<void>(), poison, plan.dense_bytes), "poisoning");
      !poisoned) {
    return refusal{poisoned.error()};
  }
  const auto stream = timed_stream::create();
  if (!stream) return refusal{stream.error()};
  const auto enqueue = [&] {
    return ragged::pad_async(plan.described(memory.patches.as<map_patch>(), array_side::device),
                             plan.batch_at(memory.batch.address()), {},
                             {memory.workspace.as<void>(), memory.workspace_bytes}, cuda::stream_ref{stream->get()});
  };
  const auto first = stream->time("padding", enqueue);
  return first ? stream->time("padding", enqueue) : first;
}

/// Pads one byte, which fails where tmap has no code for the GPU.
outcome<void> try_padding() {
  tensor byte;
  byte.type = dtype::u8;
  const auto plan = plan_batch({byte}, {0}, {.most_bytes = 1});
  if (!plan) return refusal{plan.error()};
  const std::vector<std::byte> sources(plan->source_bytes);
  std::vector<std::byte> batch(plan->dense_bytes);
  const auto padded = pad_on_gpu({*plan, sources, batch});
  return padded ? outcome<void>{} : refusal{padded.error()};
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
  if (const auto padded = try_padding(); !padded) return refusal{padded.error()};
  int device = 0;
  cudaDeviceProp properties{};
  if (const auto current = check(cudaGetDevice(&device), "asking for it"); !current) return refusal{current.error()};
  const auto known = check(cudaGetDeviceProperties(&properties, device), "asking for its name");
  if (!known) return refusal{known.error()};
  return std::string{properties.name} + driver_version();
}

outcome<copy_times> pad_on_gpu(const copy_job& job) {
  const auto memory = allocate(job.plan);
  if (!memory) return refusal{memory.error()};
  copy_times times;
  stopwatch watch;
  if (const auto uploaded = upload(job, *memory); !uploaded) return refusal{uploaded.error()};
  times.upload = watch.lap();
  const auto padded = pad_twice(job.plan, *memory);
  if (!padded) return refusal{padded.error()};
  times.copy = *padded;
  watch.lap();
  const auto downloaded = copy_bytes(job.batch.data(), memory->batch.as<void>(), job.batch.size());
  if (!downloaded) return refusal{downloaded.error()};
  times.download = watch.lap();
  return times;
}

}  // namespace tmap::tool
