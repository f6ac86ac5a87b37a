// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/encode_batch.hpp"

#include <variant>

#include "kernels/launch.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/encode_arguments.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap {
namespace {

constexpr std::uint64_t begin_bytes = sizeof(std::int64_t);

/// The layout of a ragged workspace: the running sums, then their scratch.
struct ragged_workspace {
  std::uint64_t sum_bytes;
  std::size_t scratch_bytes;
  std::uint64_t bytes() const { return sum_bytes + scratch_bytes; }
};

ragged_workspace lay_out_workspace(std::uint64_t count) {
  return {round_up(count * begin_bytes, workspace_alignment), kernels::inclusive_sum_scratch(count)};
}

/// Enqueues the running sum that `sizes` need and returns it. Other sources get a null pointer.
result<const std::int64_t*> enqueue_begins(const tensor_source& source, std::uint64_t count, const on_stream& where) {
  if (!has_sizes(source)) return nullptr;
  const ragged_workspace layout = lay_out_workspace(count);
  auto* const begins = static_cast<std::int64_t*>(where.scratch.memory);
  void* const scratch = static_cast<unsigned char*>(where.scratch.memory) + layout.sum_bytes;
  TMAP_TRY_CUDA(kernels::launch_running_sum(std::get<ragged_rows>(source).offsets, begins, count, scratch,
                                            layout.scratch_bytes, where.stream.get()));
  return begins;
}

result<void> check_encode(const map_template& base, const tensor_source& source, const tensor_map* slots,
                          std::uint64_t count, const encode_run& run) {
  support::arguments given;
  given.at_most(count, max_batch, "count");
  check_template(given, base);
  given.pointer(slots, "slots");
  if (given) check_source(given, base, source);
  check_scratch(given, source, count, run);
  check_encode_run(given, run);
  check_owners(given, base, run);
  return given.outcome();
}

}  // namespace

result<void> encode_batch(batch_call which, const map_template& base, const tensor_source& source, tensor_map* slots,
                          std::uint64_t count, const encode_run& run, kernels::batch_totals* totals) {
  const support::trace_range range{"tmap encode"};
  if (count == 0) return {};
  if (const result<void> checked = check_encode(base, source, slots, count, run); !checked) return checked;
  if (const result<void> has_kernels = require_kernels(); !has_kernels) return has_kernels;
  if (const result<void> checked = require_start(base); !checked) return checked;
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  cudaStream_t const stream = run.where.stream.get();
  return report_call({which, count, run.check, stream}, [&](const fault_sink& faults) -> result<void> {
    if (run.header != nullptr) TMAP_TRY_CUDA(kernels::launch_header_reset(run.header, stream));
    const result<const std::int64_t*> begins = enqueue_begins(source, count, run.where);
    if (!begins) return failure(begins.error());
    TMAP_TRY_CUDA(kernels::launch_encode(plan_of(run, count, *multiprocessors), base, source, *begins, slots, count,
                                         stream, terms_of(run, totals), faults, run.choices.owners));
    return {};
  });
}

result<void> encode_batch(const map_template& base, const tensor_source& source, tensor_map* slots, std::uint64_t count,
                          const encode_run& run) {
  return encode_batch(batch_call::encode_batch, base, source, slots, count, run, nullptr);
}

result<std::uint64_t> ragged_workspace_bytes(std::uint64_t count, std::uint32_t offset_bytes) {
  support::arguments given;
  given.at_most(count, max_batch, "count");
  given.integer_bytes(offset_bytes, "offset_bytes");
  if (!given) return failure{given.complaint()};
  if (count == 0) return 0;
  return lay_out_workspace(count).bytes();
}

}  // namespace tmap
