// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>
#include <tmap/ragged_host.hpp>

#include "apps/tmap/pad/device_memory.hpp"
#include "apps/tmap/pad/engine.hpp"
#include "apps/tmap/pad/stopwatch.hpp"

#include <algorithm>
#include <cstring>

namespace tmap::tool {
namespace {

/// The sources of a job as a batch, the first byte of them all being at `base`.
class source_batch {
 public:
  source_batch(const batch_plan& plan, std::uint64_t base) : patches_(plan.sources.size()) {
    for (std::size_t i = 0; i < patches_.size(); ++i) {
      const tensor_spec& spec = plan.sources[i];
      patches_[i].global_address = base + spec.global_address;
      std::copy_n(spec.global_dim, max_rank, patches_[i].global_dim);
      std::copy_n(spec.global_stride_bytes, max_rank - 1, patches_[i].global_stride_bytes);
    }
    described.tensors = patch_array{patches_.data()};
    described.count = patches_.size();
    described.element_bytes = static_cast<std::uint32_t>(bytes(plan.type));
    described.rank = plan.tile.rank;
    described.side = array_side::host;
  }

  tensor_batch described;

 private:
  std::vector<map_patch> patches_;
};

/// Strides and pitch of 0: packed.
dense_batch destination_batch(const batch_plan& plan, std::uint64_t base) {
  dense_batch dense;
  dense.address = base;
  std::copy_n(plan.destinations.front().global_dim, max_rank, dense.dim);
  return dense;
}

std::uint64_t address_of(const std::byte* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

struct gpu_memory {
  device_memory sources;
  device_memory destinations;
  device_memory workspace;
  std::uint64_t workspace_bytes{};
};

outcome<gpu_memory> allocate(const copy_job& job, const tensor_batch& batch) {
  gpu_memory memory;
  const auto needed = ragged::workspace_bytes(batch.count, batch.rank);
  if (!needed) return refuse("{}", to_string(needed.error()));
  memory.workspace_bytes = *needed;
  const std::pair<device_memory*, std::uint64_t> wanted[] = {{&memory.sources, job.plan.source_bytes},
                                                             {&memory.destinations, job.plan.destination_bytes},
                                                             {&memory.workspace, *needed}};
  for (const auto& [place, size] : wanted) {
    auto allocated = device_memory::allocate(size);
    if (!allocated) return refusal{allocated.error()};
    *place = std::move(*allocated);
  }
  return memory;
}

outcome<void> upload(const copy_job& job, const gpu_memory& memory) {
  const auto copied =
      check(cudaMemcpy(memory.sources.as<void>(), job.sources.data(), job.sources.size(), cudaMemcpyHostToDevice),
            "copying between host and GPU");
  if (!copied) return copied;
  return check(cudaMemset(memory.destinations.as<void>(), poison, job.plan.destination_bytes), "poisoning");
}

/// The seconds of a second run: the first also loads the kernels.
outcome<double> pad_twice(const copy_job& job, const gpu_memory& memory) {
  const auto stream = timed_stream::create();
  if (!stream) return refusal{stream.error()};
  const source_batch sources{job.plan, memory.sources.address()};
  const dense_batch dense = destination_batch(job.plan, memory.destinations.address());
  const auto enqueue = [&] {
    return ragged::pad_async(sources.described, dense, {}, {memory.workspace.as<void>(), memory.workspace_bytes},
                             cuda::stream_ref{stream->get()});
  };
  const auto first = stream->time("padding", enqueue);
  return first ? stream->time("padding", enqueue) : first;
}

}  // namespace

outcome<copy_times> pad_on_gpu(const copy_job& job) {
  const auto memory = allocate(job, source_batch{job.plan, 0}.described);
  if (!memory) return refusal{memory.error()};
  copy_times times;
  stopwatch watch;
  if (const auto uploaded = upload(job, *memory); !uploaded) return refusal{uploaded.error()};
  times.upload = watch.lap();
  const auto padded = pad_twice(job, *memory);
  if (!padded) return refusal{padded.error()};
  times.copy = *padded;
  watch.lap();
  const auto downloaded = check(cudaMemcpy(job.destinations.data(), memory->destinations.as<void>(),
                                           job.destinations.size(), cudaMemcpyDeviceToHost),
                                "copying between host and GPU");
  if (!downloaded) return refusal{downloaded.error()};
  times.download = watch.lap();
  return times;
}

outcome<copy_times> pad_on_host(const copy_job& job) {
  std::memset(job.destinations.data(), poison, job.destinations.size());
  const source_batch sources{job.plan, address_of(job.sources.data())};
  copy_times times;
  stopwatch watch;
  const auto padded =
      ragged::on_host::pad(sources.described, destination_batch(job.plan, address_of(job.destinations.data())), {});
  if (!padded) return refuse("{}", to_string(padded.error()));
  times.copy = watch.lap();
  return times;
}

}  // namespace tmap::tool
