// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/update_batch.hpp"

#include "lib/encode/device.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap {
namespace {

template <class Source>
result<void> enqueue_update(const map_template& base, const Source& source, const kernels::update_target& target,
                            cudaStream_t stream, const encode_options& options) {
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  const reported_call call{batch_call::service_update, target.map_count, options.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    if (options.header != nullptr) TMAP_TRY_CUDA(kernels::launch_header_reset(options.header, stream));
    if (target.change_count == 0) return {};
    const kernels::encode_plan plan = kernels::plan_encode(target.change_count, *multiprocessors);
    TMAP_TRY_CUDA(kernels::launch_update(plan, base, source, target, stream, options, faults));
    return {};
  });
}

}  // namespace

result<void> update_batch_async(const map_template& base, const patch_array& source,
                                const kernels::update_target& target, cudaStream_t stream,
                                const encode_options& options) {
  const support::trace_range range{"tmap encode changed maps"};
  return enqueue_update(base, source, target, stream, options);
}

result<void> update_batch_async(const map_template& base, const patch_columns& source,
                                const kernels::update_target& target, cudaStream_t stream,
                                const encode_options& options) {
  const support::trace_range range{"tmap encode changed maps"};
  return enqueue_update(base, source, target, stream, options);
}

result<void> update_batch_async(const map_template& base, const compact_columns& source,
                                const kernels::update_target& target, cudaStream_t stream,
                                const encode_options& options) {
  const support::trace_range range{"tmap encode changed maps"};
  return enqueue_update(base, source, target, stream, options);
}

}  // namespace tmap
