// SPDX-License-Identifier: Apache-2.0
#include "lib/ragged/workspace.hpp"

#include <tmap/encode_batch.hpp>

#include <algorithm>

#include "kernels/launch.hpp"
#include "kernels/ragged_launch.hpp"
#include "lib/batch/run_arguments.hpp"
#include "lib/batch/workspace.hpp"
#include "lib/support/arguments.hpp"

namespace tmap::ragged {
namespace {

/// A source has at most this many arrays. Each is copied to a multiple of the alignment.
constexpr std::uint64_t most_arrays = 2 * max_rank;

constexpr std::uint64_t array_bytes(std::uint64_t count) {
  static_assert(sizeof(map_patch) >= most_arrays * sizeof(std::uint64_t));
  return count * sizeof(map_patch) + most_arrays * workspace_alignment;
}

/// Hands out one part after another.
class part_counter {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    const std::uint64_t begin = end_;
    end_ = round_up(end_ + bytes, workspace_alignment);
    return begin;
  }
  std::uint64_t end() const { return end_; }

 private:
  std::uint64_t end_{};
};

}  // namespace

workspace_layout lay_out_workspace(std::uint64_t count, std::uint32_t rank) {
  const std::uint64_t planned = count * (1 + rank);
  part_counter parts;
  workspace_layout layout{};
  layout.tensors = parts.take(planned * sizeof(kernels::planned_tensor));
  layout.ends = parts.take(planned * sizeof(std::uint64_t));
  layout.maps = parts.take(2 * count * sizeof(tensor_map));
  layout.begins = parts.take((count + 1) * sizeof(std::int64_t));
  for (std::uint64_t& begins : layout.row_begins) begins = parts.take(count * sizeof(std::int64_t));
  for (std::uint64_t& arrays : layout.arrays) arrays = parts.take(array_bytes(count));
  layout.scales = parts.take(count * sizeof(kernels::planned_scales));
  layout.partials = parts.take(std::max(kernels::reduce_partials, kernels::column_partials) * sizeof(float));
  layout.queue = parts.take(kernels::queue_counter_bytes);
  layout.scratch_bytes = std::max(kernels::plan_scratch_bytes(planned), kernels::inclusive_sum_scratch(count));
  layout.scratch = parts.take(layout.scratch_bytes);
  layout.bytes = parts.end();
  return layout;
}

result<void> check_workspace_of(const tensor_batch& batch, const workspace& scratch) {
  if (batch.count == 0) return {};
  support::arguments given;
  check_scratch(given, scratch, lay_out_workspace(batch.count, batch.rank).bytes);
  return given.outcome();
}

result<std::uint64_t> workspace_bytes(std::uint64_t count, std::uint32_t rank) {
  support::arguments given;
  given.at_most(count, max_batch, "count");
  given.range(rank, 1, max_rank, "rank");
  if (!given) return failure{given.complaint()};
  return count == 0 ? 0 : lay_out_workspace(count, rank).bytes;
}

}  // namespace tmap::ragged
