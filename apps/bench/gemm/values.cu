// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/gemm/values.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstring>

#include "apps/support/device_array.hpp"
#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

using gemm::operand_type;

constexpr unsigned threads = 256;
constexpr unsigned fill_blocks = 2048;
constexpr std::uint32_t samples_per_product = 512;

__device__ std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

__device__ float normal(std::uint64_t bits) {
  const float radius = sqrtf(-2 * __logf((static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f));
  return radius * __cosf((static_cast<float>(bits & 0xffffff) + 0.5f) * 0x1p-24f * 6.2831853f);
}

__device__ void put(__nv_bfloat16& to, float value) {
  to = __float2bfloat16(value);
}
__device__ void put(__half& to, float value) {
  to = __float2half(value);
}
__device__ void put(__nv_fp8_e4m3& to, float value) {
  to = __nv_fp8_e4m3(value);
}

template <class T>
__global__ void fill_normal_kernel(T* to, std::size_t count, std::uint64_t seed) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    put(to[i], normal(mixed(seed + i * 0x9e3779b97f4a7c15)));
  }
}

__global__ void fill_scales_kernel(float* to, std::size_t count, std::uint64_t seed) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = 0.5f + static_cast<float>(mixed(seed + i * 0x9e3779b97f4a7c15) >> 40) * 0x1p-24f;
}

template <class T>
void fill(void* to, std::size_t count, std::uint64_t seed) {
  fill_normal_kernel<<<fill_blocks, threads>>>(static_cast<T*>(to), count, seed);
}

/// The first samples are in the last row and column of a product; others may be anywhere.
__device__ std::int64_t sample_place(std::uint32_t sample, std::uint64_t bits, std::int64_t extent) {
  return sample == 0 ? extent - 1 : static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(extent));
}

/// Adds up one element over the block: its sum and its sum of magnitudes.
__device__ double2 block_sum(double2 mine) {
  __shared__ double2 parts[threads];
  parts[threadIdx.x] = mine;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    parts[threadIdx.x].x += parts[threadIdx.x + half].x;
    parts[threadIdx.x].y += parts[threadIdx.x + half].y;
  }
  __syncthreads();
  const double2 all = parts[0];
  __syncthreads();
  return all;
}

template <class T>
__device__ double2 product_of(const checked_product& of, bool sums_rows, std::int64_t row, std::int64_t column) {
  const T* const a = static_cast<const T*>(of.a) + row * (sums_rows ? 1 : of.a_pitch);
  const T* const b = static_cast<const T*>(of.b) + column * (sums_rows ? 1 : of.b_pitch);
  const std::int64_t a_step = sums_rows ? of.a_pitch : 1;
  const std::int64_t b_step = sums_rows ? of.b_pitch : 1;
  double2 sum{0, 0};
  for (std::int64_t i = threadIdx.x; i < of.k; i += threads) {
    const double product = static_cast<double>(static_cast<float>(a[i * a_step])) * static_cast<float>(b[i * b_step]);
    sum.x += product;
    sum.y += fabs(product);
  }
  return sum;
}

/// Sums grow with the root of K. Each step of K may cut off a last bit: sums have 24 bits, or about
/// 14 for 8-bit products. The products accumulate over all of K, or over 128 elements if sums are
/// in f32. An element of K contributes far more than the allowed error.
template <class T>
double sum_rounding_of(bool fast_accumulation) {
  if (sizeof(T) != 1) return 0x1p-15;
  return fast_accumulation ? 0x1p-7 : 0x1p-9;
}

__device__ double allowed_error(double want, double magnitude, std::int64_t k, double sum_rounding) {
  return 0x1p-8 * fabs(want) + sum_rounding * magnitude / sqrt(fmax(static_cast<double>(k), 1.0)) * 4 + 1e-6;
}

/// Runs one block per sample. `worst` holds the bits of a non-negative float, which are ordered as
/// the floats are; NaN exceeds all others.
template <class T>
__global__ void check_kernel(const checked_product* products, bool sums_rows, double sum_rounding, unsigned* worst) {
  const checked_product of = products[blockIdx.y];
  if (of.m == 0 || of.n == 0) return;
  const std::uint64_t bits = mixed(blockIdx.y * 0x9e3779b97f4a7c15 + blockIdx.x);
  const std::int64_t row = sample_place(blockIdx.x, bits >> 32, of.m);
  const std::int64_t column = sample_place(blockIdx.x, bits & 0xffffffff, of.n);
  double2 sum = block_sum(product_of<T>(of, sums_rows, row, column));
  if (threadIdx.x != 0) return;
  const double scale = (of.row_scales != nullptr ? of.row_scales[row] : 1.0) *
                       (of.column_scales != nullptr ? of.column_scales[column] : 1.0);
  sum.x *= scale;
  sum.y *= scale;
  const double got = __bfloat162float(static_cast<const __nv_bfloat16*>(of.c)[row * of.c_pitch + column]);
  const auto ratio = static_cast<float>(fabs(got - sum.x) / allowed_error(sum.x, sum.y, of.k, sum_rounding));
  atomicMax(worst, __float_as_uint(ratio) & 0x7fffffffu);
}

template <class T>
void check(const device_array<checked_product>& products, const checked_sums& sums, unsigned* worst) {
  const dim3 grid(samples_per_product, static_cast<unsigned>(products.size()));
  check_kernel<T><<<grid, threads>>>(products.get(), sums.sums_rows, sum_rounding_of<T>(sums.fast_accumulation), worst);
}

__global__ void count_poison_kernel(const std::uint16_t* words, std::size_t count, unsigned long long* found) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    mine += words[i] == 0xffff ? 1 : 0;
  }
  if (mine != 0) atomicAdd(found, mine);
}

}  // namespace

void fill_normal(operand_type type, void* to, std::size_t count, std::uint64_t seed) {
  switch (type) {
    case operand_type::bf16: fill<__nv_bfloat16>(to, count, seed); break;
    case operand_type::f16: fill<__half>(to, count, seed); break;
    default: fill<__nv_fp8_e4m3>(to, count, seed); break;
  }
  require(cudaGetLastError());
  require(cudaDeviceSynchronize());
}

void fill_scales(float* to, std::size_t count, std::uint64_t seed) {
  const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
  fill_scales_kernel<<<blocks, threads>>>(to, count, seed);
  require(cudaGetLastError());
  require(cudaDeviceSynchronize());
}

check_answer check_products(const checked_sums& sums, const std::vector<checked_product>& products) {
  const device_array<checked_product> list(products);
  const device_array<unsigned> worst(std::vector<unsigned>{0});
  switch (sums.type) {
    case operand_type::bf16: check<__nv_bfloat16>(list, sums, worst.get()); break;
    case operand_type::f16: check<__half>(list, sums, worst.get()); break;
    default: check<__nv_fp8_e4m3>(list, sums, worst.get()); break;
  }
  require(cudaGetLastError());
  const unsigned bits = worst.read()[0];
  float ratio = 0;
  std::memcpy(&ratio, &bits, sizeof(ratio));
  const auto filled =
      std::count_if(products.begin(), products.end(), [](const checked_product& p) { return p.m != 0; });
  return {ratio, samples_per_product * static_cast<std::uint64_t>(filled)};
}

std::uint64_t count_poison(const void* words, std::size_t count) {
  const device_array<unsigned long long> found(std::vector<unsigned long long>{0});
  count_poison_kernel<<<fill_blocks, threads>>>(static_cast<const std::uint16_t*>(words), count, found.get());
  require(cudaGetLastError());
  return found.read()[0];
}

}  // namespace tmap::apps::bench
