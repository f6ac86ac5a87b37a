// SPDX-License-Identifier: Apache-2.0
// Multiplies groups of matrices whose sizes only the GPU knows: a kernel counts the rows of each
// group, and tmap multiplies each group with its own weights. Nothing waits for the host. A graph
// records the work once and replays it with other rows.

#include <tmap/grouped_gemm.hpp>

#include <cuda_bf16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr std::uint32_t groups = 8;
constexpr std::uint64_t rows = 1000, n = 256, k = 128;

/// Stands for the router of a model, which determines how many rows each group gets.
__global__ void count_rows(const int* step, int* sizes) {
  if (threadIdx.x < groups) sizes[threadIdx.x] = (static_cast<int>(threadIdx.x) * 37 + *step * 11) % 125;
}

__global__ void fill(__nv_bfloat16* to, std::uint64_t count) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) to[i] = static_cast<float>(static_cast<int>(i * 2654435761u >> 7) % 5 - 2);
}

/// Multiplies with one thread per element and counts the elements that differ. The inputs are small
/// integers, so the sums are exact.
__global__ void compare(const __nv_bfloat16* a, const __nv_bfloat16* b, const __nv_bfloat16* c, const int* sizes,
                        unsigned* wrong) {
  const std::uint64_t row = blockIdx.x;
  std::uint64_t end = 0;
  std::uint32_t group = 0;
  while (group < groups && row >= (end += static_cast<std::uint64_t>(sizes[group]))) ++group;
  if (group == groups) return;
  for (std::uint64_t column = threadIdx.x; column < n; column += blockDim.x) {
    float sum = 0;
    for (std::uint64_t i = 0; i < k; ++i) {
      sum += __bfloat162float(a[row * k + i]) * __bfloat162float(b[(group * n + column) * k + i]);
    }
    if (__bfloat162float(c[row * n + column]) != __bfloat162float(__float2bfloat16(sum))) atomicAdd(wrong, 1);
  }
}

void require(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::printf("CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

template <class T>
T* device_memory(std::uint64_t count) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, count * sizeof(T)));
  require(cudaMemset(memory, 0, count * sizeof(T)));
  return static_cast<T*>(memory);
}

__nv_bfloat16* filled_matrix(std::uint64_t count) {
  auto* const matrix = device_memory<__nv_bfloat16>(count);
  fill<<<static_cast<unsigned>((count + 255) / 256), 256>>>(matrix, count);
  return matrix;
}

// [problem]
tmap::gemm::row_problem problem_of(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                                   const int* sizes_on_the_gpu) {
  tmap::gemm::row_problem problem;
  problem.groups = groups;
  problem.rows = rows;  // at most; only the GPU knows the number
  problem.n = n;
  problem.k = k;
  problem.offsets = {sizes_on_the_gpu, tmap::offset_format::sizes, sizeof(int)};
  problem.a = {a, k * sizeof(*a)};
  problem.b = {b, k * sizeof(*b)};
  problem.b_group_pitch_bytes = n * k * sizeof(*b);
  problem.c = {c, n * sizeof(*c)};
  return problem;
}
// [problem]

}  // namespace

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "grouped_gemm: needs a Hopper GPU\n");
    return 1;
  }
  const __nv_bfloat16* const a = filled_matrix(rows * k);
  const __nv_bfloat16* const b = filled_matrix(groups * n * k);
  auto* const c = device_memory<__nv_bfloat16>(rows * n);
  auto* const sizes = device_memory<int>(groups);
  auto* const step = device_memory<int>(1);
  auto* const wrong = device_memory<unsigned>(1);
  // [workspace]
  const auto bytes = tmap::gemm::workspace_bytes(groups);
  if (!bytes) return std::printf("%s\n", to_string(bytes.error()).c_str()), 1;
  const tmap::workspace scratch{device_memory<unsigned char>(*bytes), *bytes};
  // [workspace]
  require(cudaDeviceSynchronize());

  cudaStream_t stream{};
  cudaGraph_t graph{};
  cudaGraphExec_t executable{};
  require(cudaStreamCreate(&stream));
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  // [record]
  count_rows<<<1, groups, 0, stream>>>(step, sizes);
  const tmap::gemm::run run{{cuda::stream_ref{stream}, scratch}};
  const auto multiplied = tmap::gemm::multiply(problem_of(a, b, c, sizes), run);
  // [record]
  compare<<<rows, 128, 0, stream>>>(a, b, c, sizes, wrong);
  require(cudaStreamEndCapture(stream, &graph));
  if (!multiplied) return std::printf("%s\n", to_string(multiplied.error()).c_str()), 1;
  require(cudaGraphInstantiate(&executable, graph, 0));

  unsigned found = 0;
  constexpr int replays = 20;
  for (int i = 0; i < replays; ++i) {
    require(cudaMemcpyAsync(step, &i, sizeof(i), cudaMemcpyHostToDevice, stream));
    require(cudaGraphLaunch(executable, stream));
  }
  require(cudaMemcpyAsync(&found, wrong, sizeof(found), cudaMemcpyDeviceToHost, stream));
  require(cudaStreamSynchronize(stream));
  std::printf("%d replays with other sizes: %u wrong elements\n", replays, found);
  return found == 0 ? 0 : 1;
}
