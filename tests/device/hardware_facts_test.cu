// SPDX-License-Identifier: Apache-2.0
#include "conformance/contents.hpp"
#include "conformance/fatal_cases.hpp"
#include "conformance/gpu_tiles.cuh"
#include "device/child_process.hpp"
#include "device/gpu_fixture.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

// Tests the facts of docs/measurements/copy_engine_semantics.md that end a CUDA context. Each runs
// in a child, which is this program with a hidden argument.

namespace tmap::conformance {
namespace {

constexpr std::uint64_t arena_alignment = 16 << 20;
constexpr const char* hidden_argument = "--fatal-case=";

/// The exit code of a child names its result.
enum exit_code : int { fine = 0, illegal_instruction = 15, misaligned_address = 16, illegal_address = 10, other = 99 };

int exit_code_of(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return fine;
    case cudaErrorIllegalInstruction: return illegal_instruction;
    case cudaErrorMisalignedAddress: return misaligned_address;
    case cudaErrorIllegalAddress: return illegal_address;
    default: return other;
  }
}

int exit_code_of(std::optional<status> raises) {
  if (!raises) return fine;
  switch (*raises) {
    case status::illegal_instruction: return illegal_instruction;
    case status::misaligned_address: return misaligned_address;
    case status::illegal_memory_access: return illegal_address;
    default: return other;
  }
}

tile_job job_of(const fatal_case& fatal) {
  tile_job job{.kind = fatal.tile.kind,
               .operation = fatal.tile.operation,
               .instruction_rank = fatal.rank(),
               .shared_offset = fatal.tile.shared_offset,
               .expected_bytes = static_cast<std::uint32_t>(tile_bytes(fatal.tile.spec))};
  std::memcpy(job.coordinates, fatal.tile.coordinates, sizeof job.coordinates);
  return job;
}

/// Does the copy in the child and returns its result.
int run_child(std::size_t index) {
  const fatal_case fatal = fatal_cases()[index];
  const testing::device_array<std::byte> memory{2 * arena_alignment + arena_bytes};
  const std::uint64_t arena = (memory.address() + arena_alignment - 1) / arena_alignment * arena_alignment;
  const testing::device_array<tensor_map> map{std::vector<tensor_map>{map_of(fatal, arena)}};
  const testing::device_array<tile_job> job{std::vector<tile_job>{job_of(fatal)}};
  const testing::device_array<std::byte> image{std::vector<std::byte>(shared_bytes, poison)};
  const testing::device_array<std::uint8_t> in_time{1};
  if (const cudaError_t early = cudaDeviceSynchronize(); early != cudaSuccess) return other;
  run_tiles<<<1, threads_of_tile_block, shared_bytes>>>(job.data(), map.data(), image.data(), in_time.data());
  const int code = exit_code_of(cudaDeviceSynchronize());
  if (code != fine) return code;
  return in_time.download()[0] == 1 ? fine : other;
}

class fatal_copy : public ::testing::TestWithParam<std::size_t> {};

TEST_P(fatal_copy, raises_what_the_record_says) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "skipped: no GPU";
  const fatal_case fatal = fatal_cases()[GetParam()];
  const int code = testing::run_self(hidden_argument + std::to_string(GetParam()));
  EXPECT_EQ(code, exit_code_of(fatal.raises)) << fatal.name << ": " << to_text(fatal.tile);
}

std::vector<std::size_t> all_indices() {
  std::vector<std::size_t> indices(fatal_cases().size());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  return indices;
}

INSTANTIATE_TEST_SUITE_P(hardware, fatal_copy, ::testing::ValuesIn(all_indices()),
                         [](const auto& each) { return fatal_cases()[each.param].name; });

}  // namespace
}  // namespace tmap::conformance

int main(int argc, char** argv) {
  using tmap::conformance::hidden_argument;
  const std::size_t length = std::strlen(hidden_argument);
  if (argc == 2 && std::strncmp(argv[1], hidden_argument, length) == 0) {
    std::_Exit(tmap::conformance::run_child(std::strtoull(argv[1] + length, nullptr, 10)));
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
