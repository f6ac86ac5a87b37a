// SPDX-License-Identifier: Apache-2.0
#include "lib/encode/encode_batch.hpp"

#include "kernels/launch.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/encode_arguments.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap {
namespace {

constexpr std::uint64_t begin_bytes = sizeof(std::int64_t);

/// Where the parts of a ragged workspace lie: the running sums, then their scratch.
struct ragged_workspace {
  std::uint64_t sum_bytes;
  std::size_t scratch_bytes;
  std::uint64_t bytes() const { return sum_bytes + scratch_bytes; }
};

ragged_workspace lay_out_workspace(std::uint64_t count) {
  return {round_up(count * begin_bytes, workspace_alignment), kernels::inclusive_sum_scratch(count)};
}

/// Enqueues the running sum that `sizes` need; the other formats need none and get a null pointer.
template <class Offset>
result<const std::int64_t*> enqueue_begins(const ragged_rows<Offset>& source, std::uint64_t count,
                                           cudaStream_t stream) {
  if (source.format != offset_format::sizes) return nullptr;
  const ragged_workspace layout = lay_out_workspace(count);
  auto* const begins = static_cast<std::int64_t*>(source.workspace);
  void* const scratch = static_cast<unsigned char*>(source.workspace) + layout.sum_bytes;
  TMAP_TRY_CUDA(kernels::launch_running_sum(source.offsets, begins, count, scratch, layout.scratch_bytes, stream));
  return begins;
}

/// Where a batch goes and what is asked beside it.
struct encode_target {
  tensor_map* slots;
  std::uint64_t count;
  cudaStream_t stream;
  encode_options options;
};

template <class Source>
result<void> enqueue(const kernels::encode_plan& plan, const map_template& base, const Source& source,
                     const encode_target& to, const fault_sink& faults) {
  TMAP_TRY_CUDA(kernels::launch_encode(plan, base, source, to.slots, to.count, to.stream, to.options, faults));
  return {};
}

template <class Offset>
result<void> enqueue(const kernels::encode_plan& plan, const map_template& base, const ragged_rows<Offset>& source,
                     const encode_target& to, const fault_sink& faults) {
  const result<const std::int64_t*> begins = enqueue_begins(source, to.count, to.stream);
  if (!begins) return failure(begins.error());
  TMAP_TRY_CUDA(kernels::launch_encode(plan, base, source, *begins, to.slots, to.count, to.stream, to.options, faults));
  return {};
}

template <class Source>
result<void> check_encode(const map_template& base, const Source& source, const encode_target& target) {
  support::arguments given;
  given.at_most(target.count, max_batch, "count");
  check_template(given, base);
  given.pointer(target.slots, "slots");
  if (given) check_source(given, base, source);
  if constexpr (requires { source.workspace; }) check_sums(given, source, target.count);
  check_options(given, target.options, "options");
  return given.outcome();
}

}  // namespace

template <class Source>
result<void> encode_batch(batch_call which, const map_template& base, const Source& source, tensor_map* slots,
                          std::uint64_t count, cudaStream_t stream, const encode_options& options) {
  const support::trace_range range{"tmap encode"};
  if (count == 0) return {};
  const encode_target target{slots, count, stream, options};
  if (const result<void> checked = check_encode(base, source, target); !checked) return checked;
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  return report_call({which, count, options.check, stream}, [&](const fault_sink& faults) -> result<void> {
    if (options.header != nullptr) TMAP_TRY_CUDA(kernels::launch_header_reset(options.header, stream));
    return enqueue(kernels::plan_encode(count, *multiprocessors), base, source, target, faults);
  });
}

template result<void> encode_batch(batch_call, const map_template&, const patch_array&, tensor_map*, std::uint64_t,
                                   cudaStream_t, const encode_options&);
template result<void> encode_batch(batch_call, const map_template&, const patch_columns&, tensor_map*, std::uint64_t,
                                   cudaStream_t, const encode_options&);
template result<void> encode_batch(batch_call, const map_template&, const compact_columns&, tensor_map*, std::uint64_t,
                                   cudaStream_t, const encode_options&);
template result<void> encode_batch(batch_call, const map_template&, const ragged_rows<std::int32_t>&, tensor_map*,
                                   std::uint64_t, cudaStream_t, const encode_options&);
template result<void> encode_batch(batch_call, const map_template&, const ragged_rows<std::int64_t>&, tensor_map*,
                                   std::uint64_t, cudaStream_t, const encode_options&);

result<void> encode_batch_async(const map_template& base, const patch_array& source, tensor_map* slots,
                                std::uint64_t count, cuda::stream_ref stream, const encode_options& options) {
  return encode_batch(batch_call::encode_batch, base, source, slots, count, stream.get(), options);
}

result<void> encode_batch_async(const map_template& base, const patch_columns& source, tensor_map* slots,
                                std::uint64_t count, cuda::stream_ref stream, const encode_options& options) {
  return encode_batch(batch_call::encode_batch, base, source, slots, count, stream.get(), options);
}

result<void> encode_batch_async(const map_template& base, const compact_columns& source, tensor_map* slots,
                                std::uint64_t count, cuda::stream_ref stream, const encode_options& options) {
  return encode_batch(batch_call::encode_batch, base, source, slots, count, stream.get(), options);
}

result<void> encode_batch_async(const map_template& base, const ragged_rows<std::int32_t>& source, tensor_map* slots,
                                std::uint64_t count, cuda::stream_ref stream, const encode_options& options) {
  return encode_batch(batch_call::encode_batch, base, source, slots, count, stream.get(), options);
}

result<void> encode_batch_async(const map_template& base, const ragged_rows<std::int64_t>& source, tensor_map* slots,
                                std::uint64_t count, cuda::stream_ref stream, const encode_options& options) {
  return encode_batch(batch_call::encode_batch, base, source, slots, count, stream.get(), options);
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
