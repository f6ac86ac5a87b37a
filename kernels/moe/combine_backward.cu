// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "kernels/batch/scan.cuh"
#include "kernels/launch_behind.hpp"
#include "kernels/moe/report_choices.cuh"
#include "kernels/moe/row_units.cuh"
#include "kernels/moe_launch.hpp"

namespace tmap::kernels {
namespace {

// A warp takes one choice. The choices of a token are in the same block, or in the next one, so its
// row of `d_out` comes from memory once.

constexpr std::uint32_t block_threads = 256;
constexpr std::uint32_t block_warps = block_threads / device::warp_lanes;
/// A lane loads so many units before it uses the first one.
constexpr std::uint32_t units_at_once = 4;

struct gradient_work {
  moe::combine_gradients problem;
  choice_reports reports;
};

/// Writes the gradient of some units of a row. Returns their part of the inner product.
template <class Element, std::uint32_t Count>
__device__ float take_units(const moe::combine_gradients& problem, std::uint64_t token, std::uint64_t row, float weight,
                            std::uint64_t first) {
  uint4 d_out[Count];
  uint4 values[Count];
  const bool wants_dot = problem.d_weights != nullptr;
#pragma unroll
  for (std::uint32_t i = 0; i < Count; ++i) {
    const std::uint64_t unit = first + i * device::warp_lanes;
    d_out[i] = *unit_at(problem.d_out, token, unit);
    if (wants_dot) values[i] = *unit_at(problem.values, row, unit);
  }
  float dot = 0;
#pragma unroll
  for (std::uint32_t i = 0; i < Count; ++i) {
    float gradient[unit_of<Element>::count];
    unit_of<Element>::read(d_out[i], gradient);
    if (wants_dot) {
      float value[unit_of<Element>::count];
      unit_of<Element>::read(values[i], value);
#pragma unroll
      for (std::uint32_t c = 0; c < unit_of<Element>::count; ++c) dot = fmaf(value[c], gradient[c], dot);
    }
    if (problem.d_values.address == 0) continue;
#pragma unroll
    for (std::uint32_t c = 0; c < unit_of<Element>::count; ++c) gradient[c] *= weight;
    *unit_at(problem.d_values, row, first + i * device::warp_lanes) = unit_of<Element>::write(gradient);
  }
  return dot;
}

/// Returns the d_weight of a choice whose row exists.
template <class Element>
__device__ float take_row(const moe::combine_gradients& problem, std::uint64_t choice, std::uint64_t row) {
  constexpr std::uint32_t step = units_at_once * device::warp_lanes;
  const std::uint64_t token = choice / problem.k;
  const float weight = problem.weights == nullptr ? 1.0f : problem.weights[choice];
  const std::uint64_t units = problem.columns / unit_of<Element>::count;
  std::uint64_t unit = threadIdx.x % device::warp_lanes;
  float dot = 0;
  for (; unit + step - device::warp_lanes < units; unit += step) {
    dot += take_units<Element, units_at_once>(problem, token, row, weight, unit);
  }
  for (; unit < units; unit += device::warp_lanes) dot += take_units<Element, 1>(problem, token, row, weight, unit);
  return join_lanes(dot, [](float a, float b) { return a + b; });
}

template <class Element>
__global__ void __launch_bounds__(block_threads) combine_backward_kernel(const __grid_constant__ gradient_work work) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const moe::combine_gradients& problem = work.problem;
  const std::uint32_t lane = threadIdx.x % device::warp_lanes;
  const std::uint64_t choice = std::uint64_t{blockIdx.x} * block_warps + threadIdx.x / device::warp_lanes;
  if (choice >= problem.tokens * problem.k) return;
  const std::int32_t row = problem.row_of_choice[choice];
  const moe::choice_status status = judge_row(row, problem.rows);
  if (lane == 0 && work.reports.statuses != nullptr) work.reports.statuses[choice] = status;
  report_choices(work.reports, static_cast<std::uint32_t>(choice), lane == 0 ? status : moe::choice_status{},
                 work.reports.header);
  const float d_weight = status.is_good() ? take_row<Element>(problem, choice, static_cast<std::uint64_t>(row)) : 0;
  if (lane == 0 && problem.d_weights != nullptr) problem.d_weights[choice] = d_weight;
}

using gradient_function = void (*)(gradient_work);

gradient_function kernel_for(moe::float_type type) {
  switch (type) {
    case moe::float_type::f32: return combine_backward_kernel<float>;
    case moe::float_type::bf16: return combine_backward_kernel<__nv_bfloat16>;
    default: return combine_backward_kernel<__half>;
  }
}

}  // namespace

cudaError_t launch_combine_backward(const combine_backward_call& call) {
  if (const cudaError_t reset = launch_reset(call.reports, call.stream); reset != cudaSuccess) return reset;
  const std::uint64_t choices = call.problem.tokens * call.problem.k;
  const auto blocks = static_cast<std::uint32_t>((choices + block_warps - 1) / block_warps);
  return launch_behind(kernel_for(call.problem.row_type), {blocks, block_threads}, call.stream,
                       gradient_work{call.problem, call.reports});
}

}  // namespace tmap::kernels
