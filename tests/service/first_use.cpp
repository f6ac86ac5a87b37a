// SPDX-License-Identifier: Apache-2.0
#include "service/first_use.hpp"

#include <tmap/decode.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/make_template.hpp>
#include <tmap/ragged.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "service/rows_spec.hpp"

namespace tmap::testing {
namespace {

constexpr std::size_t row_bytes = 256;
constexpr std::size_t rows = 64;
constexpr std::size_t array_bytes = row_bytes * rows;
constexpr std::size_t work_bytes = std::size_t{8} << 20;
constexpr unsigned char poison = 0xa5;

/// Device memory that is freed at the end of the process.
template <class T>
T* device_copy(const std::vector<T>& values) {
  void* data{};
  const std::size_t bytes = values.size() * sizeof(T);
  const bool is_there = cudaMalloc(&data, bytes) == cudaSuccess &&
                        cudaMemcpy(data, values.data(), bytes, cudaMemcpyHostToDevice) == cudaSuccess;
  return is_there ? static_cast<T*>(data) : nullptr;
}

std::uint64_t address_of(const void* data) {
  return reinterpret_cast<std::uintptr_t>(data);
}

/// Two groups of rows whose bytes are the number of the row, and a poisoned place for results.
struct scene {
  unsigned char* from = device_copy(numbered_rows());
  unsigned char* to = device_copy(std::vector<unsigned char>(array_bytes, poison));
  unsigned char* work = device_copy(std::vector<unsigned char>(work_bytes));
  std::int32_t* ends = device_copy(std::vector<std::int32_t>{40, static_cast<std::int32_t>(rows)});

  static std::vector<unsigned char> numbered_rows() {
    std::vector<unsigned char> bytes(array_bytes);
    for (std::size_t i = 0; i < array_bytes; ++i) bytes[i] = static_cast<unsigned char>(i / row_bytes);
    return bytes;
  }
  ragged_rows groups_at(const void* data) const { return {address_of(data), row_bytes, {ends, offset_format::ends}}; }
  std::vector<unsigned char> results() const {
    std::vector<unsigned char> bytes(array_bytes);
    if (cudaMemcpy(bytes.data(), to, array_bytes, cudaMemcpyDeviceToHost) != cudaSuccess) bytes.clear();
    return bytes;
  }
};

/// Returns the exit code of a child, which names the step that failed.
template <class Call>
int replayed(const Call& call) {
  cudaStream_t stream{};
  cudaGraph_t graph{};
  cudaGraphExec_t exec{};
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return 2;
  if (cudaDeviceSynchronize() != cudaSuccess) return 3;
  if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) != cudaSuccess) return 4;
  const result<void> called = call(stream);
  if (!called) std::fprintf(stderr, "%s\n", to_string(called.error()).c_str());
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) return 5;
  if (!called) return 6;
  if (cudaGraphInstantiate(&exec, graph, 0) != cudaSuccess) return 7;
  if (cudaGraphLaunch(exec, stream) != cudaSuccess || cudaStreamSynchronize(stream) != cudaSuccess) return 8;
  return 0;
}

constexpr int wrong_bytes = 9;

}  // namespace

int first_encode_child() {
  const scene play;
  tensor_spec spec = rows_spec();
  spec.global_address = address_of(play.from);
  spec.global_stride_bytes[0] = row_bytes;
  const result<map_template> base = make_template(spec, patch_address | patch_dim(1));
  if (!base) return 1;
  auto* const maps = reinterpret_cast<tensor_map*>(play.to);
  const int code =
      replayed([&](cudaStream_t stream) { return encode_batch(*base, play.groups_at(play.from), maps, 2, {stream}); });
  if (code != 0) return code;
  tensor_map made[2];
  if (cudaMemcpy(made, maps, sizeof made, cudaMemcpyDeviceToHost) != cudaSuccess) return wrong_bytes;
  const result<decoded_map> second = decode(made[1]);
  const bool is_right = second && second->spec.global_address == address_of(play.from) + 40 * row_bytes &&
                        second->spec.global_dim[1] == rows - 40;
  return is_right ? 0 : wrong_bytes;
}

int first_copy_child() {
  const scene play;
  tensor_batch from;
  from.tensors = play.groups_at(play.from);
  from.count = 2;
  from.element_bytes = 4;
  from.rank = 2;
  from.inner.dim[0] = row_bytes / 4;
  tensor_batch to = from;
  to.tensors = play.groups_at(play.to);
  const int code = replayed([&](cudaStream_t stream) {
    return ragged::copy(from, to, {on_stream{cuda::stream_ref{stream}, {play.work, work_bytes}}});
  });
  return code != 0 || play.results() == scene::numbered_rows() ? code : wrong_bytes;
}

int first_rows_child() {
  const scene play;
  const std::int64_t* const index = device_copy(std::vector<std::int64_t>{7, 0, 63, 7});
  const int code = replayed([&](cudaStream_t stream) {
    return ragged::gather_rows({address_of(play.from), rows, row_bytes, row_bytes}, {index, 4, 8},
                               {address_of(play.to), 4, row_bytes, row_bytes}, {on_stream{cuda::stream_ref{stream}}});
  });
  const std::vector<unsigned char> results = play.results();
  if (code != 0 || results.empty()) return code != 0 ? code : wrong_bytes;
  const unsigned char expected[] = {7, 0, 63, 7, poison};
  for (std::size_t row = 0; row < std::size(expected); ++row) {
    const auto first = results.begin() + static_cast<std::ptrdiff_t>(row * row_bytes);
    if (std::count(first, first + row_bytes, expected[row]) != row_bytes) return wrong_bytes;
  }
  return 0;
}

int first_product_child() {
  const scene play;
  const auto* const zeros = device_copy(std::vector<unsigned char>(array_bytes));
  gemm::row_problem problem;
  problem.groups = 2;
  problem.rows = rows;
  problem.n = 64;
  problem.k = 64;
  problem.offsets.values = play.ends;
  problem.a = {address_of(zeros), 128};
  problem.b = {address_of(play.work), 128};
  problem.b_group_pitch_bytes = 64 * 128;
  problem.c = {address_of(play.to), 128};
  const int code = replayed([&](cudaStream_t stream) {
    return gemm::multiply(problem, {{cuda::stream_ref{stream}, {play.work + array_bytes, work_bytes - array_bytes}}});
  });
  std::vector<unsigned char> expected(array_bytes, poison);
  std::fill_n(expected.begin(), rows * 128, static_cast<unsigned char>(0));
  return code != 0 || play.results() == expected ? code : wrong_bytes;
}

}  // namespace tmap::testing
