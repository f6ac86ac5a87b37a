// SPDX-License-Identifier: Apache-2.0
#include <tmap/encode.hpp>
#include <tmap/ragged.hpp>

#include "apps/support/device_memory.hpp"
#include "apps/support/stopwatch.hpp"
#include "apps/support/timed_stream.hpp"
#include "apps/tmap/pad/engine.hpp"
#include "apps/tmap/pad/gpu_outcome.hpp"

#include <fstream>
#include <utility>

namespace tmap::tool {
namespace {

using apps::device_memory;

struct gpu_memory {
  device_memory sources;
  device_memory patches;
  device_memory batch;
  device_memory workspace;
};

outcome<gpu_memory> allocate(const batch_plan& plan) {
  const auto needed = ragged::workspace_bytes(plan.sources.size(), plan.rank());
  if (!needed) return refuse("{}", to_string(needed.error()));
  gpu_memory memory;
  const std::pair<device_memory*, std::uint64_t> wanted[] = {{&memory.sources, plan.source_bytes},
                                                             {&memory.patches, plan.sources.size() * sizeof(map_patch)},
                                                             {&memory.batch, plan.dense_bytes},
                                                             {&memory.workspace, *needed}};
  for (const auto& [place, size] : wanted) {
    auto allocated = told(fmt::format("taking {} bytes of its memory", size), device_memory::allocate(size));
    if (!allocated) return refusal{allocated.error()};
    *place = std::move(*allocated);
  }
  return memory;
}

outcome<void> copy_bytes(void* to, const void* from, std::uint64_t bytes) {
  return told("copying between host and GPU", apps::copy_bytes(to, from, bytes));
}

outcome<void> upload(const copy_job& job, const gpu_memory& memory) {
  const std::vector<map_patch> patches = job.plan.sources_at(memory.sources.address());
  const auto described = copy_bytes(memory.patches.as<void>(), patches.data(), memory.patches.bytes());
  return described ? copy_bytes(memory.sources.as<void>(), job.sources.data(), job.sources.size()) : described;
}

/// Returns the milliseconds of a second run. The first one also loads the kernels.
result<double> pad_twice(const batch_plan& plan, const gpu_memory& memory) {
  if (const auto poisoned = memory.batch.fill(poison); !poisoned) return failure(poisoned.error());
  const auto stream = apps::timed_stream::create();
  if (!stream) return failure(stream.error());
  const workspace scratch{memory.workspace.as<void>(), memory.workspace.bytes()};
  const ragged::run with{on_stream{cuda::stream_ref{stream->get()}, scratch}};
  const auto enqueue = [&] {
    return ragged::pad(plan.described(memory.patches.as<map_patch>(), array_side::device),
                       plan.batch_at(memory.batch.address()), {}, with);
  };
  const auto first = stream->milliseconds(enqueue);
  return first ? stream->milliseconds(enqueue) : first;
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
  if (limits->compute_capability < first_compute_capability) {
    return refuse("its compute capability {}.{} is below {}.{}, where the copy engine begins",
                  limits->compute_capability / 10, limits->compute_capability % 10, first_compute_capability / 10,
                  first_compute_capability % 10);
  }
  if (const auto padded = try_padding(); !padded) return refusal{padded.error()};
  int device = 0;
  cudaDeviceProp properties{};
  result<void> known = apps::as_result(cudaGetDevice(&device));
  if (known) known = apps::as_result(cudaGetDeviceProperties(&properties, device));
  if (const auto named = told("asking for its name", std::move(known)); !named) return refusal{named.error()};
  return std::string{properties.name} + driver_version();
}

outcome<copy_times> pad_on_gpu(const copy_job& job) {
  const auto memory = allocate(job.plan);
  if (!memory) return refusal{memory.error()};
  copy_times times;
  apps::stopwatch watch;
  if (const auto uploaded = upload(job, *memory); !uploaded) return refusal{uploaded.error()};
  times.upload = watch.lap();
  const auto padded = told("padding", pad_twice(job.plan, *memory));
  if (!padded) return refusal{padded.error()};
  times.copy = *padded / 1000;
  watch.lap();
  const auto downloaded = copy_bytes(job.batch.data(), memory->batch.as<void>(), job.batch.size());
  if (!downloaded) return refusal{downloaded.error()};
  times.download = watch.lap();
  return times;
}

}  // namespace tmap::tool
