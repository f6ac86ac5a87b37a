// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/outcome.hpp"
#include "apps/tmap/pad/plan.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace tmap::tool {

/// One batch to pad, from `sources` to `batch`: host memory, laid out by the plan.
struct copy_job {
  const batch_plan& plan;
  std::span<const std::byte> sources;
  std::span<std::byte> batch;
};

/// Seconds. Where nothing is uploaded or downloaded the two are 0.
struct copy_times {
  double upload{};
  double copy{};
  double download{};
};

enum class engine_request { automatic, gpu, simulator };

/// Moves the bytes by the ragged pad operation. Poisons the batch first, so that bytes which
/// nothing wrote show.
struct engine {
  std::string name;    ///< "gpu" or "simulator"
  std::string device;  ///< the GPU and its driver, or empty
  std::string reason;  ///< why this one, as the end of a sentence
  outcome<copy_times> (*run)(const copy_job&);
};

/// The value of every byte of a batch before the copy.
inline constexpr unsigned char poison = 0xA5;

outcome<copy_times> pad_on_gpu(const copy_job& job);
outcome<copy_times> pad_on_host(const copy_job& job);

/// Returns name and driver of the GPU that the current thread would use. Fails if there is none
/// that can run the job.
outcome<std::string> usable_gpu();

/// Chooses the engine. `automatic` takes the GPU if there is one.
outcome<engine> choose_engine(engine_request request);

}  // namespace tmap::tool
