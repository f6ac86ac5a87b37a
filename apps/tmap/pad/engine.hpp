// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/outcome.hpp"
#include "apps/tmap/pad/plan.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace tmap::tool {

/// One batch to copy: where the plan says, from `sources` to `destinations` (host memory, laid out by the plan).
struct copy_job {
  const batch_plan& plan;
  std::span<const std::byte> sources;
  std::span<std::byte> destinations;
};

/// Seconds. Where nothing is uploaded or downloaded the two are 0.
struct copy_times {
  double upload{};
  double encode{};
  double copy{};
  double download{};
};

enum class engine_request { automatic, gpu, simulator };

/// What moves the bytes. By maps: one per tensor and side, then box after box through them; padding is what the copy
/// engine reads outside a source. Else by the ragged pad operation. The destination is poisoned beforehand, so bytes
/// that no store reached show.
struct engine {
  std::string name;    ///< "gpu" or "simulator"
  std::string device;  ///< the GPU and its driver, or empty
  std::string reason;  ///< why this one, as the end of a sentence
  outcome<copy_times> (*run)(const copy_job&);
};

/// What every byte of a destination is before the copy.
inline constexpr unsigned char poison = 0xA5;

outcome<copy_times> copy_on_gpu(const copy_job& job);
outcome<copy_times> copy_on_simulator(const copy_job& job);

/// The jobs that do not go by maps.
outcome<copy_times> pad_on_gpu(const copy_job& job);
outcome<copy_times> pad_on_host(const copy_job& job);

/// Name and driver of the GPU the current thread would use; fails when there is none that can run the job.
outcome<std::string> usable_gpu();

/// `automatic` takes the GPU where there is one.
outcome<engine> choose_engine(engine_request request);

}  // namespace tmap::tool
