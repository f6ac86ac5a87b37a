// SPDX-License-Identifier: Apache-2.0
// Replays one captured graph with other groups each time, and with invalid groups.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "device/recorded_call.hpp"
#include "gemm/on_device.hpp"
#include "support/run_seed.hpp"

namespace tmap::gemm::testing {
namespace {

row_settings eight_groups(offset_format format, std::uint32_t bytes) {
  row_settings with;
  with.kind = input_kind::integers;
  with.sizes = {50, 50, 50, 50, 50, 50, 50, 50};
  with.spare_rows = 0;
  with.n = 136;
  with.k = 72;
  with.format = format;
  with.offset_bytes = bytes;
  with.fills_gaps = true;
  return with;
}

tmap::testing::recorded_call recorded(const rows_on_device& device, std::uint32_t plan) {
  return tmap::testing::recorded_call([&](cudaStream_t stream) { return device.enqueue(stream, plan); });
}

/// Cuts `rows` rows into `groups` groups at random. Some groups are empty.
std::vector<std::int64_t> random_sizes(std::mt19937_64& random, std::int64_t rows, std::size_t groups) {
  std::vector<std::int64_t> cuts{0};
  for (std::size_t g = 0; g < groups; ++g) {
    const bool repeats = random() % 4 == 0;
    cuts.push_back(repeats ? cuts.back() : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(rows + 1)));
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::int64_t> sizes;
  for (std::size_t g = 0; g < groups; ++g) sizes.push_back(cuts[g + 1] - cuts[g]);
  return sizes;
}

/// Returns random values of formats in which groups may lie anywhere. Some are bad.
std::vector<std::int64_t> scattered(std::mt19937_64& random, const row_case& of) {
  const row_settings& with = of.settings();
  const auto below = [&](std::uint64_t limit) { return static_cast<std::int64_t>(random() % limit); };
  std::vector<std::int64_t> values;
  if (with.format == offset_format::labels) {
    while (values.size() < of.rows()) {
      const std::uint64_t run = 1 + random() % 90;
      values.insert(values.end(), std::min<std::uint64_t>(run, of.rows() - values.size()),
                    below(with.groups() + 4) - 2);
    }
    return values;
  }
  if (with.format == offset_format::begins_and_counts) {
    for (std::uint32_t g = 0; g < with.groups(); ++g) values.push_back(below(of.rows() + 10) - 3);
  }
  for (std::uint32_t g = 0; g < with.groups(); ++g) values.push_back(below(70) - 3);
  return values;
}

class grouped_replay : public gemm_test,
                       public ::testing::WithParamInterface<std::tuple<offset_format, std::uint32_t>> {};

TEST_P(grouped_replay, a_hundred_times_with_other_groups) {
  const row_settings with = eight_groups(std::get<0>(GetParam()), 4);
  row_case made(with);
  const rows_on_device device(made);
  const auto graph = recorded(device, std::get<1>(GetParam()));
  std::mt19937_64 random = tmap::testing::run_random(3);
  for (int i = 0; i < 100; ++i) {
    device.set_offsets(made, offsets_of(random_sizes(random, 400, with.sizes.size()), with.format));
    graph.replay();
    device.expect(made, "replay " + std::to_string(i));
  }
}

TEST_P(grouped_replay, hostile_offsets_touch_nothing) {
  const row_settings with = eight_groups(std::get<0>(GetParam()), 8);
  row_case made(with);
  const rows_on_device device(made);
  const auto graph = recorded(device, std::get<1>(GetParam()));
  std::mt19937_64 random = tmap::testing::run_random(5);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 100; ++i) {
    std::vector<std::int64_t> values = offsets_of(random_sizes(random, 400, with.sizes.size()), with.format);
    const std::int64_t wild[] = {-1, -400, 401, most, -most - 1, std::int64_t{1} << 32, 0, 200};
    const int spoiled = 1 + static_cast<int>(random() % 3);
    for (int j = 0; j < spoiled; ++j) values[random() % values.size()] = wild[random() % std::size(wild)];
    device.set_offsets(made, values);
    graph.replay();
    device.expect(made, "replay " + std::to_string(i));
  }
}

class scattered_replay : public grouped_replay {};

TEST_P(scattered_replay, with_other_groups_and_bad_ones) {
  const row_settings with = eight_groups(std::get<0>(GetParam()), 4);
  row_case made(with);
  const rows_on_device device(made);
  const auto graph = recorded(device, std::get<1>(GetParam()));
  std::mt19937_64 random = tmap::testing::run_random(6);
  for (int i = 0; i < 100; ++i) {
    device.set_offsets(made, scattered(random, made));
    graph.replay();
    device.expect(made, "replay " + std::to_string(i));
  }
}

INSTANTIATE_TEST_SUITE_P(formats_and_plans, scattered_replay,
                         ::testing::Combine(::testing::Values(offset_format::begins_and_counts, offset_format::slots,
                                                              offset_format::labels),
                                            ::testing::Range(0u, plan_count())));
INSTANTIATE_TEST_SUITE_P(formats_and_plans, grouped_replay,
                         ::testing::Combine(::testing::Values(offset_format::ends, offset_format::prefix,
                                                              offset_format::sizes),
                                            ::testing::Range(0u, plan_count())));

class grouped_streams : public gemm_test {};

TEST_F(grouped_streams, two_at_a_time_with_workspaces_of_their_own) {
  row_settings with = eight_groups(offset_format::ends, 4);
  const row_case first(with);
  with.number = 9;
  const row_case second(with);
  const rows_on_device devices[] = {rows_on_device{first}, rows_on_device{second}};
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) TMAP_ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  for (int i = 0; i < 50; ++i) {
    for (int side = 0; side < 2; ++side) TMAP_ASSERT_OK(devices[side].enqueue(streams[side]));
  }
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  devices[0].expect(first, "first stream");
  devices[1].expect(second, "second stream");
  for (const cudaStream_t stream : streams) TMAP_ASSERT_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace tmap::gemm::testing
