// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/judge_tensors.hpp>
#include <tmap/ragged.hpp>

#include "lib/encode/batch_checks.hpp"
#include "lib/encode/device.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/ragged/checks.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

using tmap::detail::max_stride_reach;

result<void> check_matrix(const row_matrix& matrix, bool is_destination) {
  if (matrix.rows == 0 || matrix.row_bytes == 0) return {};
  if (matrix.address == 0) return invalid_argument(0, 1);
  if (matrix.row_bytes > max_stride_reach) return invalid_argument(matrix.row_bytes, max_stride_reach);
  const std::uint64_t pitches = matrix.rows - 1;
  if (pitches != 0 && matrix.pitch_bytes > max_stride_reach / pitches) {
    return invalid_argument(matrix.pitch_bytes, max_stride_reach / pitches);
  }
  if (is_destination && pitches != 0 && matrix.pitch_bytes < matrix.row_bytes) {
    return invalid_argument(matrix.pitch_bytes, matrix.row_bytes);
  }
  return {};
}

/// `walked` is the matrix whose row i goes with index i.
result<void> check_rows(const kernels::row_move& move, const row_matrix& walked) {
  if (const auto checked = check_matrix(move.source, false); !checked) return checked;
  if (const auto checked = check_matrix(move.destination, true); !checked) return checked;
  if (move.destination.row_bytes != move.source.row_bytes) {
    return invalid_argument(move.destination.row_bytes, move.source.row_bytes);
  }
  if (walked.rows < move.index.count) return invalid_argument(walked.rows, move.index.count);
  if (move.index.bytes != 4 && move.index.bytes != 8) return invalid_argument(move.index.bytes, 8);
  return move.index.count == 0 ? result<void>{} : check_device_array(move.index.rows, move.index.bytes);
}

result<void> enqueue_rows(kernels::row_move move, cudaStream_t stream, const options& with) {
  if (const auto checked = check_options(with); !checked) return checked;
  if (const auto checked = check_rows(move, move.scatters ? move.source : move.destination); !checked) return checked;
  if (move.index.count == 0) return {};
  const result<route_policy> policy = policy_of(with);
  if (!policy) return failure(policy.error());
  const result<kernels::device_shape> device = current_device_shape();
  if (!device) return failure(device.error());
  move.routes = {*policy, with.allowed};
  move.statuses = with.statuses;
  move.header = with.header;
  const batch_call which = move.scatters ? batch_call::ragged_scatter_rows : batch_call::ragged_gather_rows;
  const reported_call call{which, move.index.count, with.check, stream};
  return report_call(call, [&](const fault_sink& faults) -> result<void> {
    move.faults = faults;
    TMAP_TRY_CUDA(kernels::launch_move_rows(move, *device, stream));
    return {};
  });
}

}  // namespace

result<void> gather_rows_async(const row_matrix& source, const row_index& index, const row_matrix& destination,
                               cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap gather rows"};
  return enqueue_rows({source, destination, index, false, {}, nullptr, nullptr, {}}, stream.get(), with);
}

result<void> scatter_rows_async(const row_matrix& source, const row_index& index, const row_matrix& destination,
                                cuda::stream_ref stream, const options& with) {
  const support::trace_range range{"tmap scatter rows"};
  return enqueue_rows({source, destination, index, true, {}, nullptr, nullptr, {}}, stream.get(), with);
}

}  // namespace tmap::ragged
