// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>

#include "kernels/launch.hpp"

namespace tmap {

/// `encode_batch` for the public call `which`, whose bad maps are also counted in `totals` unless
/// it is null.
[[nodiscard]] result<void> encode_batch(batch_call which, const map_template& base, const tensor_source& source,
                                        tensor_map* slots, std::uint64_t count, const encode_run& run,
                                        kernels::batch_totals* totals);

/// Returns the kernel's terms for `run`.
inline kernels::encode_terms terms_of(const encode_run& run, kernels::batch_totals* totals) {
  return {.statuses = run.statuses,
          .header = run.header,
          .totals = run.choices.trusted ? nullptr : totals,
          .windows = run.windows.data(),
          .window_count = static_cast<std::uint32_t>(run.windows.size()),
          .trusted = run.choices.trusted};
}

/// Returns the launch plan for `count` maps.
inline kernels::encode_plan plan_of(const encode_run& run, std::uint64_t count, std::uint32_t multiprocessors) {
  kernels::encode_plan plan = kernels::plan_encode(count, multiprocessors);
  plan.published_by = run.choices.published_by;
  return plan;
}

}  // namespace tmap
