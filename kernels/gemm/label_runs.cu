// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/label_runs.cuh"

#include <tmap/detail/row_offsets.hpp>
#include <tmap/device/report_bad.cuh>
#include <tmap/grouped_gemm.hpp>

#include <algorithm>

#include "kernels/launch_behind.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t label_threads = 256;
/// All bits of a run's words are set before its first row is seen.
constexpr int fill_byte = 0xff;

__device__ bool is_group(std::int64_t label, std::uint32_t groups) {
  return label >= 0 && label < std::int64_t{groups};
}

/// Only the first and the last row of a run write, so runs may be long. The results do not depend
/// on the order of the writes.
__global__ void __launch_bounds__(label_threads) label_runs_kernel(const __grid_constant__ label_runs_request request) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const tmap::detail::integer_array<void> labels{request.labels.values, request.labels.bytes};
  const std::uint64_t step = std::uint64_t{gridDim.x} * label_threads;
  // All lanes of a warp stay in the loop, because they report together.
  const std::uint64_t rounds = (request.rows + step - 1) / step;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t row = round * step + std::uint64_t{blockIdx.x} * label_threads + threadIdx.x;
    const bool has_row = row < request.rows;
    const std::int64_t label = has_row ? labels[row] : -1;
    const bool is_bad = label != -1 && !is_group(label, request.groups);
    device::report_bad(request.faults, item_kind::group, row,
                       is_bad ? static_cast<std::uint32_t>(gemm::fault::label) : 0);
    if (!is_group(label, request.groups)) continue;
    label_run& run = request.runs[label];
    if (row == 0 || labels[row - 1] != label) {
      atomicMin(&run.first, static_cast<std::uint32_t>(row));
      atomicAdd(&run.runs, 1u);
    }
    if (row + 1 == request.rows || labels[row + 1] != label) {
      atomicMin(&run.not_last, ~static_cast<std::uint32_t>(row));
    }
  }
}

}  // namespace

cudaError_t launch_label_runs(const label_runs_request& request, std::uint32_t multiprocessors, cudaStream_t stream) {
  const cudaError_t code = cudaMemsetAsync(request.runs, fill_byte, request.groups * sizeof(label_run), stream);
  if (code != cudaSuccess || request.rows == 0) return code;
  const std::uint64_t blocks = (request.rows + label_threads - 1) / label_threads;
  const auto most = std::uint64_t{multiprocessors} * 4;
  return launch_behind(label_runs_kernel, {static_cast<std::uint32_t>(std::min(blocks, most)), label_threads}, stream,
                       request);
}

}  // namespace tmap::kernels
