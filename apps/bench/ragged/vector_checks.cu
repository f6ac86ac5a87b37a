// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>

#include "apps/bench/ragged/noise.cuh"
#include "apps/bench/ragged/vector_checks.hpp"

namespace tmap::apps::bench {
namespace {

/// Holds one two-dimensional tensor of both sides, as a check reads it.
struct tensor_pair {
  const unsigned char* source;
  const unsigned char* destination;
  std::uint64_t source_stride;
  std::uint64_t columns;  ///< in the source

  __device__ const float* source_row(std::uint64_t row) const {
    return reinterpret_cast<const float*>(source + row * source_stride);
  }
};

struct saxpy_check {
  float a;
  std::uint32_t y_series;
  const float* y_memory;

  __device__ bool is_wrong(const tensor_pair& pair, std::uint64_t i) const {
    const float* const y = reinterpret_cast<const float*>(pair.destination) + i;
    const float before = noise_float(static_cast<std::uint64_t>(y - y_memory), y_series);
    return *y != fmaf(a, pair.source_row(0)[i], before);
  }
};

struct max_pool_check {
  std::uint32_t radius;

  __device__ bool is_wrong(const tensor_pair& pair, std::uint64_t i) const {
    const float* const x = pair.source_row(0);
    const std::uint64_t last = i + radius < pair.columns ? i + radius : pair.columns - 1;
    float top = x[i];
    for (std::uint64_t k = i < radius ? 0 : i - radius; k <= last; ++k) top = fmaxf(top, x[k]);
    return reinterpret_cast<const float*>(pair.destination)[i] != top;
  }
};

struct bf16_check {
  __device__ bool is_wrong(const tensor_pair& pair, std::uint64_t i) const {
    const auto* const narrow = reinterpret_cast<const __nv_bfloat16_raw*>(pair.destination);
    return narrow[i].x != static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(pair.source_row(0)[i])).x;
  }
};

/// Each row is one element of the result. Sums follow each other without a gap.
struct sum_check {
  __device__ bool is_wrong(const tensor_pair& pair, std::uint64_t i) const {
    double sum = 0;
    double magnitudes = 0;
    for (std::uint64_t k = 0; k < pair.columns; ++k) {
      const double value = pair.source_row(i)[k];
      sum += value;
      magnitudes += fabs(value);
    }
    return !(fabs(reinterpret_cast<const float*>(pair.destination)[i] - sum) <= magnitudes * 0x1p-17);
  }
};

// The grid's y counts tensors; x counts the elements of one.
template <class Check>
__global__ void check_kernel(const __grid_constant__ tensor_columns source,
                             const __grid_constant__ tensor_columns destination, Check check,
                             unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (std::uint64_t tensor = blockIdx.y; tensor < source.count; tensor += gridDim.y) {
    const tensor_pair pair{reinterpret_cast<const unsigned char*>(source.address[tensor]),
                           reinterpret_cast<const unsigned char*>(destination.address[tensor]),
                           source.stride[0][tensor], source.dim[0][tensor]};
    const std::uint64_t elements = destination.dim[0][tensor] * destination.dim[1][tensor];
    for (std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x; i < elements;
         i += std::uint64_t{gridDim.x} * blockDim.x) {
      mine += check.is_wrong(pair, i);
    }
  }
  if (mine != 0) atomicAdd(wrong, mine);
}

template <class Check>
std::uint64_t count_wrong(const device_batch& source, const device_batch& destination, const Check& check) {
  const device_array<unsigned long long> wrong(1);
  wrong.fill(0);
  check_kernel<<<dim3(128, 64), 256>>>(source.columns(), destination.columns(), check, wrong.get());
  require(cudaGetLastError());
  return wrong.read().front();
}

}  // namespace

std::uint64_t count_wrong_saxpy(const device_batch& x, const device_batch& y, float a, std::uint32_t y_series) {
  return count_wrong(x, y, saxpy_check{a, y_series, reinterpret_cast<const float*>(y.memory().get())});
}

std::uint64_t count_wrong_max_pool(const device_batch& x, const device_batch& y, std::uint32_t radius) {
  return count_wrong(x, y, max_pool_check{radius});
}

std::uint64_t count_wrong_bf16(const device_batch& wide, const device_batch& narrow) {
  return count_wrong(wide, narrow, bf16_check{});
}

std::uint64_t count_wrong_sums(const device_batch& source, const device_batch& sums) {
  return count_wrong(source, sums, sum_check{});
}

}  // namespace tmap::apps::bench
