// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/update_batch.hpp"

#include "lib/encode/device.hpp"
#include "lib/encode/encode_batch.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap {

result<void> update_batch(const map_template& base, const tensor_source& source, const kernels::update_target& target,
                          const encode_run& run, kernels::batch_totals* totals) {
  const support::trace_range range{"tmap encode changed maps"};
  if (const result<void> has_kernels = require_kernels(); !has_kernels) return has_kernels;
  if (const result<void> checked = require_start(base); !checked) return checked;
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  cudaStream_t const stream = run.where.stream.get();
  const reported_call call{batch_call::service_update, target.map_count, run.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    if (run.header != nullptr) TMAP_TRY_CUDA(kernels::launch_header_reset(run.header, stream));
    if (target.change_count == 0) return {};
    TMAP_TRY_CUDA(kernels::launch_update(plan_of(run, target.change_count, *multiprocessors), base, source, target,
                                         stream, terms_of(run, totals), faults, run.choices.owners));
    return {};
  });
}

}  // namespace tmap
