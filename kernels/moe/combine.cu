// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "kernels/launch_behind.hpp"
#include "kernels/load_kernel.hpp"
#include "kernels/moe/add_rows.cuh"
#include "kernels/moe/report_choices.cuh"
#include "kernels/moe/row_units.cuh"
#include "kernels/moe_launch.hpp"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t most_threads = 128;
constexpr std::uint32_t least_threads = 32;
/// Blocks of a multiprocessor. To begin one takes as long as it needs for two rows, so each takes
/// several shares if there are many.
constexpr std::uint32_t blocks_at_once = 16;

struct combine_work {
  moe::combine_problem problem;
  choice_reports reports;
  std::uint32_t parts;  ///< blocks of a token
};

/// Finds the rows of choices in a matrix.
struct rows_of_problem {
  const moe::combine_problem& problem;

  __device__ std::int32_t row(std::uint64_t choice) const { return problem.row_of_choice[choice]; }
  __device__ float weight(std::uint64_t choice) const {
    return problem.weights == nullptr ? 1.0f : problem.weights[choice];
  }
  __device__ bool has(std::int32_t row) const { return has_row(row, problem.rows); }
  __device__ const uint4* at(std::int32_t row, std::uint64_t unit) const {
    return unit_at(problem.values, static_cast<std::uint64_t>(row), unit);
  }
};

/// Sums one unit of a token. `Rest` is what k leaves when divided by `rows_at_once`.
template <class Element, std::uint32_t Rest>
__device__ void combine_unit(const moe::combine_problem& problem, std::uint64_t token, std::uint64_t unit) {
  float sums[unit_of<Element>::count]{};
  if (problem.base.address != 0) unit_of<Element>::read(*unit_at(problem.base, token, unit), sums);
  const rows_of_problem rows{problem};
  const std::uint64_t first = token * problem.k;
  std::uint32_t j = 0;
  for (; j + rows_at_once <= problem.k; j += rows_at_once) {
    add_rows<Element, rows_at_once>(rows, first + j, unit, sums);
  }
  if constexpr (Rest != 0) add_rows<Element, Rest>(rows, first + j, unit, sums);
  *unit_at(problem.out, token, unit) = unit_of<Element>::write(sums);
}

/// Reports on the choices of a token. One warp calls it; a token has at most a choice for each
/// lane.
__device__ void report_token(const combine_work& work, std::uint64_t token) {
  static_assert(moe::max_k <= device::warp_lanes);
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  const auto choice = static_cast<std::uint32_t>(token * work.problem.k + lane);
  moe::choice_status status{};
  if (lane < work.problem.k) {
    const std::int32_t row = work.problem.row_of_choice[choice];
    status = judge_row(row, work.problem.rows);
    if (work.reports.statuses != nullptr) work.reports.statuses[choice] = status;
  }
  report_choices(work.reports, choice, status, work.reports.header);
}

template <class Element, std::uint32_t Rest>
__global__ void __launch_bounds__(most_threads) combine_kernel(const __grid_constant__ combine_work work) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const std::uint64_t units = work.problem.columns / unit_of<Element>::count;
  const std::uint64_t blocks = work.problem.tokens * work.parts;
  for (std::uint64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const std::uint64_t token = block / work.parts;
    const auto part = static_cast<std::uint32_t>(block % work.parts);
    if (part == 0 && threadIdx.x < device::warp_lanes) report_token(work, token);
    const std::uint64_t unit = std::uint64_t{part} * blockDim.x + threadIdx.x;
    if (unit < units) combine_unit<Element, Rest>(work.problem, token, unit);
  }
}

using combine_function = void (*)(combine_work);

template <class Element>
combine_function kernel_for(std::uint32_t k) {
  constexpr combine_function kernels[rows_at_once]{
      combine_kernel<Element, 0>, combine_kernel<Element, 1>, combine_kernel<Element, 2>, combine_kernel<Element, 3>,
      combine_kernel<Element, 4>, combine_kernel<Element, 5>, combine_kernel<Element, 6>, combine_kernel<Element, 7>};
  return kernels[k % rows_at_once];
}

combine_function kernel_for(moe::float_type type, std::uint32_t k) {
  switch (type) {
    case moe::float_type::f32: return kernel_for<float>(k);
    case moe::float_type::bf16: return kernel_for<__nv_bfloat16>(k);
    default: return kernel_for<__half>(k);
  }
}

std::uint64_t parts_of(std::uint64_t units, std::uint32_t threads) {
  return (units + threads - 1) / threads;
}

/// Returns the threads of a block: few if there are too few tokens to fill the GPU with large
/// blocks.
std::uint32_t threads_for(std::uint64_t tokens, std::uint64_t units, std::uint32_t multiprocessors) {
  std::uint32_t threads = most_threads;
  while (threads > least_threads && tokens * parts_of(units, threads) < multiprocessors) threads /= 2;
  return threads;
}

}  // namespace

cudaError_t launch_combine(const combine_call& call) {
  if (const cudaError_t reset = launch_reset(call.reports, call.stream); reset != cudaSuccess) return reset;
  const moe::combine_problem& problem = call.problem;
  const std::uint64_t units = problem.columns * moe::float_bytes(problem.row_type) / unit_bytes;
  const std::uint32_t threads = threads_for(problem.tokens, units, call.multiprocessors);
  const combine_work work{problem, call.reports, static_cast<std::uint32_t>(parts_of(units, threads))};
  const std::uint64_t most_blocks = std::uint64_t{call.multiprocessors} * blocks_at_once;
  const std::uint64_t blocks = std::min(problem.tokens * work.parts, most_blocks);
  const launch_size size{static_cast<std::uint32_t>(blocks), threads};
  return launch_behind(kernel_for(problem.row_type, problem.k), size, call.stream, work);
}

}  // namespace tmap::kernels
