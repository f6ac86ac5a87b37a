// SPDX-License-Identifier: Apache-2.0
// Tests LDGSTS copies of every size, with and without L1, whole and filled up with zeros.
#include <tmap/device/async_copy.cuh>

#include "device/toolkit_maps.cuh"

namespace tmap::testing::toolkit_async_cases {
namespace {

using device::l1_use;

constexpr std::uint32_t threads = 96;
constexpr std::uint32_t room = 4096;
constexpr std::uint32_t offset = 32;  // of the copied bytes in both memories

enum class async_action { whole, zero_filled, arriving };

/// Copies piece t with thread t. If `zero_filled`, it copies only the first t % (Bytes + 1) bytes.
template <std::uint32_t Bytes, l1_use L1>
__global__ void copy_pieces(async_action action, const unsigned char* source, unsigned char* image) {
  alignas(16) __shared__ unsigned char shared[room];
  __shared__ device::tile_barrier barrier;
  for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) shared[i] = image[i];
  if (threadIdx.x == 0) barrier.init(threads);
  __syncthreads();
  const std::uint32_t at = offset + threadIdx.x * Bytes;
  if (action == async_action::zero_filled) {
    device::copy_async_zero_filled<Bytes, L1>(shared + at, source + at, threadIdx.x % (Bytes + 1));
  } else {
    device::copy_async<Bytes, L1>(shared + at, source + at);
  }
  if (action == async_action::arriving) {
    device::arrive_after_copies(barrier);
    barrier.wait(0);
  } else {
    device::commit_copies();
    device::wait_copies<0>();
    __syncthreads();
  }
  for (std::uint32_t i = threadIdx.x; i < room; i += blockDim.x) image[i] = shared[i];
}

template <std::uint32_t Bytes, l1_use L1>
void expect_right(async_action action) {
  const bytes source = random_bytes(room, Bytes);
  bytes expected = random_bytes(room, Bytes + 1);
  const device_array<unsigned char> there(source);
  const device_array<unsigned char> image(expected);
  copy_pieces<Bytes, L1><<<1, threads>>>(action, there.data(), image.data());
  TMAP_ASSERT_CUDA(cudaGetLastError());
  for (std::uint32_t i = 0; i < threads * Bytes; ++i) {
    const bool filled = action == async_action::zero_filled && i % Bytes >= i / Bytes % (Bytes + 1);
    expected[offset + i] = filled ? 0 : source[offset + i];
  }
  EXPECT_TRUE(same_bytes(image.download(), expected)) << Bytes << " bytes, L1 " << static_cast<std::uint32_t>(L1);
}

void expect_right_in_every_size(async_action action) {
  expect_right<4, l1_use::keep>(action);
  expect_right<8, l1_use::keep>(action);
  expect_right<16, l1_use::keep>(action);
  expect_right<16, l1_use::bypass>(action);
}

class toolkit_async : public gpu_test {};

TEST_F(toolkit_async, copies) {
  expect_right_in_every_size(async_action::whole);
}
TEST_F(toolkit_async, copies_filled_with_zeros) {
  expect_right_in_every_size(async_action::zero_filled);
}
TEST_F(toolkit_async, copies_that_arrive_on_a_barrier) {
  expect_right_in_every_size(async_action::arriving);
}

/// Copies nothing, so that the source may be any address.
__global__ void read_nothing(uint4* result) {
  alignas(16) __shared__ uint4 word;
  word = {1, 2, 3, 4};
  device::copy_async_zero_filled<16>(&word, nullptr, 0);
  device::commit_copies();
  device::wait_copies<0>();
  *result = word;
}

TEST_F(toolkit_async, nothing_is_read_for_zeros_alone) {
  const device_array<uint4> result(1);
  read_nothing<<<1, 1>>>(result.data());
  const uint4 word = result.download()[0];
  EXPECT_EQ(word.x | word.y | word.z | word.w, 0u);
}

}  // namespace
}  // namespace tmap::testing::toolkit_async_cases
