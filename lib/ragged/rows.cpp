// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/encode/reported_call.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/simulator/ragged_operations.hpp"
#include "lib/support/check.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

/// The matrix whose row i goes with index i.
struct walked_matrix {
  const row_matrix& rows;
  const support::argument& name;
};

result<void> check_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                        const walked_matrix& walked, const run& with) {
  support::arguments given;
  check_call(given, with);
  check_matrix(given, source, false, "source");
  check_matrix(given, destination, true, "destination");
  given.equal(destination.row_bytes, source.row_bytes, support::argument{"destination"}.member("row_bytes"),
              unlike_other_side);
  if (walked.rows.rows < index.count) {
    given.refuse(walked.name.member("rows"), "is {found}; it must be at least {allowed}, one for each index",
                 walked.rows.rows, index.count);
  }
  given.integer_bytes(index.bytes, support::argument{"index"}.member("bytes"));
  if (given && index.count != 0) given.pointer(index.rows, index.bytes, support::argument{"index"}.member("rows"));
  return given.outcome();
}

result<void> enqueue_rows(kernels::row_move move, const on_stream& where, const run& with) {
  if (move.index.count == 0) return {};
  const cudaStream_t stream = where.stream.get();
  const result<route_policy> policy = policy_of(with.choices);
  if (!policy) return failure(policy.error());
  const result<kernels::device_shape> device = current_device_shape();
  if (!device) return failure(device.error());
  move.routes = {*policy, with.choices.allowed};
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

result<void> gather_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                         const run& with) {
  const support::trace_range range{"tmap gather rows"};
  const auto checked = check_rows(source, index, destination, {destination, "destination"}, with);
  if (!checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::gather_rows(source, index, destination, with);
  return enqueue_rows({source, destination, index, false, {}, nullptr, nullptr, {}}, *where, with);
}

result<void> scatter_rows(const row_matrix& source, const row_index& index, const row_matrix& destination,
                          const run& with) {
  const support::trace_range range{"tmap scatter rows"};
  const auto checked = check_rows(source, index, destination, {source, "source"}, with);
  if (!checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return simulated::scatter_rows(source, index, destination, with);
  return enqueue_rows({source, destination, index, true, {}, nullptr, nullptr, {}}, *where, with);
}

}  // namespace tmap::ragged
