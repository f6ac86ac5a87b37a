// SPDX-License-Identifier: Apache-2.0
// Tests for races that show only once in many runs. One case uses the shape in which other
// libraries rewrote maps while copies read them. Another replays one graph many times with other
// groups. The GPU compares the results.
#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "device/recorded_call.hpp"
#include "gemm/on_device.hpp"
#include "support/run_seed.hpp"
#include "support/scaled.hpp"

namespace tmap::gemm::testing {
namespace {

using tmap::testing::scaled;

__global__ void count_differences(const uint4* got, const uint4* want, std::uint64_t count, unsigned long long* found) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint4 a = got[i];
    const uint4 b = want[i];
    if (a.x != b.x || a.y != b.y || a.z != b.z || a.w != b.w) atomicAdd(found, 1);
  }
}

class grouped_race : public gemm_test {};

/// Runs all plans in turn. Sums of integers are exact.
TEST_F(grouped_race, ten_thousand_gradients_are_the_same_bits) {
  weight_settings with;
  with.kind = input_kind::integers;
  with.sizes = {128, 127, 129, 120, 136, 128, 100, 156};
  with.m = 768;
  with.n = 2048;
  const weight_case made(with);
  const weights_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  device.expect(made, "the first");
  const device_array<unsigned char> first(device.output().bytes());
  const device_array<unsigned long long> found(std::vector<unsigned long long>{0});
  const auto* const bytes = reinterpret_cast<const uint4*>(device.problem().c.address - margin_bytes);
  for (std::uint64_t i = scaled(10000); i > 0; --i) {
    TMAP_ASSERT_OK(device.enqueue(nullptr, static_cast<std::uint32_t>(i % plan_count())));
    count_differences<<<264, 256>>>(bytes, reinterpret_cast<const uint4*>(first.data()), first.size() / sizeof(uint4),
                                    found.data());
  }
  TMAP_ASSERT_CUDA(cudaGetLastError());
  EXPECT_EQ(found.download()[0], 0);
}

constexpr std::uint32_t replay_groups = 12;

__device__ std::uint32_t mixed(std::uint32_t x) {
  x = (x ^ (x >> 16)) * 0x45d9f3bu;
  x = (x ^ (x >> 16)) * 0x45d9f3bu;
  return x ^ (x >> 16);
}

/// Draws ends anywhere in `rows` rows, some of them equal, from the number of the replay. The
/// first number is arbitrary.
__global__ void draw_ends(std::uint32_t* replay, std::int32_t* ends, std::uint32_t rows) {
  const std::uint32_t number = (*replay)++;
  std::uint32_t end = 0;
  for (std::uint32_t g = 0; g < replay_groups; ++g) {
    const std::uint32_t random = mixed(number * replay_groups + g);
    const std::uint32_t most = (rows - end) / (1 + random % 4);
    if (random % 5 != 0) end += mixed(random) % (most + 1);
    ends[g] = static_cast<std::int32_t>(end);
  }
}

struct replayed {
  row_problem problem;
  unsigned long long* found;
};

/// Compares each element with its exact sum, then poisons it again. Each block takes one row.
__global__ void check_and_poison(replayed of) {
  const row_problem& problem = of.problem;
  const auto* const ends = static_cast<const std::int32_t*>(problem.offsets.values);
  const std::uint32_t row = blockIdx.x;
  std::uint32_t group = 0;
  while (group < replay_groups && row >= static_cast<std::uint32_t>(ends[group])) ++group;
  const auto* const a = reinterpret_cast<const __nv_bfloat16*>(problem.a.address + row * problem.a.pitch_bytes);
  auto* const c = reinterpret_cast<std::uint16_t*>(problem.c.address + row * problem.c.pitch_bytes);
  for (std::uint32_t column = threadIdx.x; column < problem.n; column += blockDim.x) {
    std::uint16_t want = poison_byte << 8 | poison_byte;
    if (group < replay_groups) {
      const auto* const b = reinterpret_cast<const __nv_bfloat16*>(
          problem.b.address + group * problem.b_group_pitch_bytes + column * problem.b.pitch_bytes);
      float sum = 0;
      for (std::uint32_t i = 0; i < problem.k; ++i) sum += __bfloat162float(a[i]) * __bfloat162float(b[i]);
      want = __bfloat16_as_ushort(__float2bfloat16(sum));
    }
    if (c[column] != want) atomicAdd(of.found, 1);
    c[column] = poison_byte << 8 | poison_byte;
  }
}

/// Each replay multiplies new groups with each plan.
TEST_F(grouped_race, a_hundred_thousand_replays_with_new_groups) {
  row_settings with;
  with.kind = input_kind::integers;
  with.sizes.assign(replay_groups, 30);
  with.spare_rows = 0;
  with.n = 136;
  with.k = 72;
  const row_case made(with);
  const rows_on_device device(made);
  const row_problem problem = device.problem();
  const auto first_replay = static_cast<std::uint32_t>(tmap::testing::run_random(2)());
  const device_array<std::uint32_t> replay(std::vector<std::uint32_t>{first_replay});
  const device_array<unsigned long long> found(std::vector<unsigned long long>{0});
  auto* const ends = static_cast<std::int32_t*>(const_cast<void*>(problem.offsets.values));
  const auto rows = static_cast<std::uint32_t>(problem.rows);

  const tmap::testing::recorded_call graph([&](cudaStream_t stream) -> result<void> {
    for (std::uint32_t plan = 0; plan < plan_count(); ++plan) {
      draw_ends<<<1, 1, 0, stream>>>(replay.data(), ends, rows);
      if (const result<void> enqueued = device.enqueue(stream, plan); !enqueued) return enqueued;
      check_and_poison<<<rows, 128, 0, stream>>>({problem, found.data()});
    }
    return {};
  });
  const std::uint64_t replays = scaled(100000);
  graph.replay(replays);
  EXPECT_EQ(found.download()[0], 0);
  EXPECT_EQ(replay.download()[0] - first_replay, replays * plan_count());
  EXPECT_EQ(device.output().bytes(), made.c().bytes()) << "a byte that belongs to no element was written";
}

}  // namespace
}  // namespace tmap::gemm::testing
