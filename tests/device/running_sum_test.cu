// SPDX-License-Identifier: Apache-2.0
// Tests running sums against a loop on the host, for every length around the limits of lanes, warps
// and tiles, and every bit of the sums.
#include "kernels/batch/running_sum.cuh"

#include <gtest/gtest.h>

#include "defects/captured_graph.hpp"
#include "device/gpu_fixture.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing::running_sum_cases {
namespace {

constexpr std::uint64_t most = std::uint64_t{1} << 24;
constexpr std::uint64_t canaries = 64;

struct from_array {
  const std::uint64_t* values;
  __device__ std::uint64_t operator()(std::uint64_t i) const { return values[i]; }
};

using counts = std::vector<std::uint64_t>;

counts random_counts(std::uint64_t n, std::uint32_t bits, random_source& random) {
  counts made(n);
  for (std::uint64_t& count : made) count = random.one_in(4) ? 0 : random.of_random_length(bits);
  return made;
}

counts expected_ends(const counts& values) {
  counts ends;
  std::uint64_t sum = 0;
  for (const std::uint64_t value : values) ends.push_back(sum += value);
  return ends;
}

/// Holds the arrays of one sum, each exactly as long as required, with poison before and after what
/// is written.
struct sum_arrays {
  explicit sum_arrays(const counts& from)
      : values(from), ends(from.size() + 2 * canaries), scratch(scratch_used() + canaries) {}

  std::uint64_t scratch_used() const { return kernels::inclusive_sum_scratch(values.size()) / sizeof(std::uint64_t); }
  cudaError_t sum(cudaStream_t stream = nullptr) const {
    return kernels::launch_inclusive_sum(from_array{values.data()}, ends.data() + canaries, values.size(),
                                         scratch.data(), scratch_used() * sizeof(std::uint64_t), stream);
  }
  void expect_sums_of(const counts& from) const {
    const counts got = ends.download();
    const counts expected = expected_ends(from);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < from.size(); ++i) wrong += got[canaries + i] != expected[i] ? 1 : 0;
    EXPECT_EQ(wrong, 0u) << "of " << from.size() << ", the last of which is " << got[canaries + from.size() - 1]
                         << " and should be " << expected.back();
    const counts used = scratch.download();
    for (std::uint64_t i = 0; i < canaries; ++i) {
      EXPECT_TRUE(is_poison(got[i]) && is_poison(got[canaries + from.size() + i])) << "canary " << i;
      EXPECT_TRUE(is_poison(used[scratch_used() + i])) << "canary of the scratch " << i;
    }
  }

  device_array<std::uint64_t> values;
  device_array<std::uint64_t> ends;
  device_array<std::uint64_t> scratch;
};

void check(const counts& values) {
  const sum_arrays arrays(values);
  TMAP_ASSERT_CUDA(arrays.sum());
  arrays.expect_sums_of(values);
}

class running_sum : public gpu_test {};

TEST_F(running_sum, lengths_around_every_edge) {
  random_source random(1);
  for (const std::uint64_t n : {1,    2,    31,   32,   33,   255,  256,   257,   511,   512,   513,   1023,
                                1024, 1025, 7936, 8191, 8192, 8193, 10239, 10240, 10241, 16384, 100000}) {
    check(random_counts(n, 41, random));
    ASSERT_FALSE(HasFailure()) << n << " counts";
  }
}

TEST_F(running_sum, long_ones) {
  random_source random(2);
  check(random_counts(1000007, 40, random));
  check(random_counts(std::max<std::uint64_t>(scaled(most), 3 * kernels::sum_block), 30, random));
}

TEST_F(running_sum, equal_counts) {
  for (const std::uint64_t n : {1, 33, 8193, 300001}) {
    check(counts(n, 0));
    check(counts(n, (std::uint64_t{1} << 40) - 1));
    check(counts(n, ~std::uint64_t{0}));
    ASSERT_FALSE(HasFailure()) << n << " counts";
  }
}

TEST_F(running_sum, one_count_among_zeros_reaches_all_behind_it) {
  constexpr std::uint64_t n = 12 * kernels::sum_tile + 5;
  for (const std::uint64_t at : {0u, 31u, 32u, 255u, 256u, 2047u, 2048u, 8191u, 8192u, 24576u, 24580u}) {
    counts values(n, 0);
    values[at] = std::uint64_t{1} << 40;
    check(values);
    ASSERT_FALSE(HasFailure()) << "at " << at;
  }
}

// The second launch starts while the first is still running, but never before the work that
// precedes both has ended.
TEST_F(running_sum, many_in_one_stream_each_behind_a_copy_of_its_counts) {
  random_source random(3);
  const own_stream stream;
  for (const std::uint64_t n : {100u, 300001u}) {
    const counts first = random_counts(n, 40, random);
    const counts second = random_counts(n, 40, random);
    const device_array<std::uint64_t> sources[] = {device_array<std::uint64_t>(first),
                                                   device_array<std::uint64_t>(second)};
    const sum_arrays arrays(first);
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    for (std::uint64_t round = 0; round < 2 * scaled(200) + 1; ++round) {
      TMAP_ASSERT_CUDA(cudaMemcpyAsync(arrays.values.data(), sources[round % 2 == 0 ? 1 : 0].data(), n * 8,
                                       cudaMemcpyDeviceToDevice, stream.get()));
      TMAP_ASSERT_CUDA(arrays.sum(stream.get()));
    }
    arrays.expect_sums_of(second);
  }
}

TEST_F(running_sum, a_captured_sum_replays_with_other_counts) {
  random_source random(4);
  const own_stream stream;
  for (const std::uint64_t n : {5u, 100003u}) {
    const sum_arrays arrays(random_counts(n, 40, random));
    const captured_graph graph(stream, [&](cudaStream_t to) { EXPECT_EQ(arrays.sum(to), cudaSuccess); });
    for (int replay = 0; replay < 5; ++replay) {
      const counts values = random_counts(n, 40, random);
      arrays.values.upload(values);
      graph.launch(stream);
      stream.wait();
      arrays.expect_sums_of(values);
    }
  }
}

TEST_F(running_sum, an_error_that_was_pending_before_stays_and_fails_nothing) {
  random_source random(5);
  for (const std::uint64_t n : {7u, 9001u}) {
    const counts values = random_counts(n, 40, random);
    const sum_arrays arrays(values);
    EXPECT_EQ(cudaSetDevice(-1), cudaErrorInvalidDevice);
    EXPECT_EQ(arrays.sum(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
    arrays.expect_sums_of(values);
  }
}

TEST_F(running_sum, too_little_scratch_is_refused) {
  const sum_arrays arrays(counts(8193, 1));
  EXPECT_EQ(kernels::launch_inclusive_sum(from_array{arrays.values.data()}, arrays.ends.data(), 8193,
                                          arrays.scratch.data(), kernels::inclusive_sum_scratch(8193) - 1, nullptr),
            cudaErrorInvalidValue);
  for (const std::uint64_t end : arrays.ends.download()) EXPECT_TRUE(is_poison(end));
}

TEST(running_sum_scratch, none_for_a_single_launch_then_eight_bytes_a_tile) {
  EXPECT_EQ(kernels::inclusive_sum_scratch(1), 0u);
  EXPECT_EQ(kernels::inclusive_sum_scratch(8192), 0u);
  EXPECT_EQ(kernels::inclusive_sum_scratch(8193), 5u * 8);
  EXPECT_EQ(kernels::inclusive_sum_scratch(most), most / kernels::sum_tile * 8);
}

}  // namespace
}  // namespace tmap::testing::running_sum_cases
