// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the benchmarks share: medians, device arrays, and the head of a report.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace tmap::bench {

inline void require(bool holds) {
  if (holds) return;
  std::fprintf(stderr, "benchmark failed: %s\n", cudaGetErrorString(cudaGetLastError()));
  std::exit(1);
}

inline double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

/// Median time of what `enqueue` puts on the default stream, by events around it.
template <class Enqueue>
double median_microseconds(const Enqueue& enqueue) {
  constexpr int warm_up = 5;
  constexpr int repeats = 51;
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  require(cudaEventCreate(&start) == cudaSuccess && cudaEventCreate(&stop) == cudaSuccess);
  std::vector<double> times;
  for (int i = -warm_up; i < repeats; ++i) {
    cudaEventRecord(start);
    enqueue();
    cudaEventRecord(stop);
    require(cudaEventSynchronize(stop) == cudaSuccess);
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, start, stop);
    if (i >= 0) times.push_back(milliseconds * 1000.0);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return median(times);
}

/// Median time of `work`, which waits for the device itself, by the host's clock.
template <class Work>
double median_host_microseconds(const Work& work) {
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return median(times);
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* data = nullptr;
  require(cudaMalloc(reinterpret_cast<void**>(&data), values.size() * sizeof(T)) == cudaSuccess);
  require(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  return data;
}

inline std::uint32_t multiprocessors() {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
  return static_cast<std::uint32_t>(value);
}

inline void print_device() {
  cudaDeviceProp properties{};
  int driver = 0;
  require(cudaGetDeviceProperties(&properties, 0) == cudaSuccess && cudaDriverGetVersion(&driver) == cudaSuccess);
  std::printf("%s, %u multiprocessors, CUDA %d.%d driver\n", properties.name, multiprocessors(), driver / 1000,
              driver % 1000 / 10);
}

}  // namespace tmap::bench
