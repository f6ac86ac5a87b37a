// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "apps/support/stopwatch.hpp"
#include "apps/tmap/pad/engine.hpp"

#include <cstring>

namespace tmap::tool {
namespace {

std::uint64_t address_of(const std::byte* memory) {
  return reinterpret_cast<std::uint64_t>(memory);
}

}  // namespace

outcome<copy_times> pad_on_host(const copy_job& job) {
  std::memset(job.batch.data(), poison, job.batch.size());
  const std::vector<map_patch> sources = job.plan.sources_at(address_of(job.sources.data()));
  copy_times times;
  apps::stopwatch watch;
  const auto padded = ragged::pad(job.plan.described(sources.data(), array_side::host),
                                  job.plan.batch_at(address_of(job.batch.data())), {}, {on_host{}});
  if (!padded) return refuse("{}", to_string(padded.error()));
  times.copy = watch.lap();
  return times;
}

}  // namespace tmap::tool
