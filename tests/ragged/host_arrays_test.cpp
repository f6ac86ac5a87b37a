// SPDX-License-Identifier: Apache-2.0
// Arrays of the host in a captured operation: each is asked where it lies, and pageable ones are refused. Runs
// anywhere, over captures and kinds of memory that are made up.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "lib/ragged/operation.hpp"
#include "lib/ragged/upload.hpp"

namespace tmap::ragged::testing {
namespace {

/// What CUDA says. Addresses that `kinds` does not have are pinned.
struct fake_memory {
  cudaStreamCaptureStatus status{cudaStreamCaptureStatusActive};
  cudaError_t status_code{cudaSuccess};
  cudaError_t attributes_code{cudaSuccess};
  std::map<std::uint64_t, cudaMemoryType> kinds;
  int status_asked{};
  std::vector<std::uint64_t> arrays_asked;
};
fake_memory* current{};

const memory_calls fake_calls{
    [](cudaStream_t, cudaStreamCaptureStatus* status) {
      ++current->status_asked;
      *status = current->status;
      return current->status_code;
    },
    [](cudaPointerAttributes* attributes, const void* data) {
      const auto address = reinterpret_cast<std::uint64_t>(data);
      current->arrays_asked.push_back(address);
      const auto kind = current->kinds.find(address);
      attributes->type = kind == current->kinds.end() ? cudaMemoryTypeHost : kind->second;
      return current->attributes_code;
    },
};

template <class T>
const T* at(std::uint64_t address) {
  return reinterpret_cast<const T*>(address);
}

tensor_batch batch_of(const tensor_source& tensors, array_side side, std::uint32_t rank = 3) {
  tensor_batch batch;
  batch.tensors = tensors;
  batch.count = 2;
  batch.element_bytes = 4;
  batch.rank = rank;
  batch.side = side;
  return batch;
}

kernels::side patches_at(std::uint64_t address, array_side side = array_side::host) {
  return tensors_of(batch_of(patch_array{at<map_patch>(address)}, side));
}

patch_columns columns_at(std::uint64_t first) {
  patch_columns columns{};
  columns.global_address = at<std::uint64_t>(first);
  for (std::uint64_t axis = 0; axis < max_rank; ++axis) {
    columns.global_dim[axis] = at<std::uint64_t>(first + 0x100 * (1 + axis));
    if (axis > 0) columns.global_stride_bytes[axis - 1] = at<std::uint64_t>(first + 0x1000 * axis);
  }
  return columns;
}

class host_arrays_in_a_capture : public ::testing::Test {
 protected:
  host_arrays_in_a_capture() { current = &memory; }
  ~host_arrays_in_a_capture() override { current = nullptr; }

  result<void> check(const kernels::side& source, const kernels::side& destination) const {
    return check_host_arrays(source, destination, cudaStream_t{}, fake_calls);
  }
  void expect_refused(const kernels::side& source, const kernels::side& destination, const char* argument,
                      std::uint64_t address) const {
    const result<void> answer = check(source, destination);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, status::pageable_memory_in_capture) << to_string(answer.error());
    EXPECT_STREQ(answer.error().argument, argument);
    EXPECT_EQ(answer.error().found, address);
  }

  fake_memory memory;
};

TEST_F(host_arrays_in_a_capture, pageable_ones_are_refused_on_either_side) {
  memory.kinds = {{0x1000, cudaMemoryTypeUnregistered}};
  expect_refused(patches_at(0x1000), patches_at(0x2000), "source", 0x1000);
  expect_refused(patches_at(0x2000), patches_at(0x1000), "destination", 0x1000);
  expect_refused(patches_at(0x9000, array_side::device), patches_at(0x1000), "destination", 0x1000);
}

TEST_F(host_arrays_in_a_capture, pinned_and_managed_ones_are_legal) {
  memory.kinds = {{0x1000, cudaMemoryTypeHost}, {0x2000, cudaMemoryTypeManaged}, {0x3000, cudaMemoryTypeDevice}};
  EXPECT_TRUE(check(patches_at(0x1000), patches_at(0x2000)));
  EXPECT_TRUE(check(patches_at(0x3000), patches_at(0x1000)));
}

TEST_F(host_arrays_in_a_capture, each_array_of_the_rank_is_asked) {
  const tensor_batch batch = batch_of(columns_at(0x10000), array_side::host);
  ASSERT_TRUE(check(tensors_of(batch), patches_at(0x9000, array_side::device)));
  EXPECT_EQ(memory.arrays_asked, (std::vector<std::uint64_t>{0x10000, 0x10100, 0x10200, 0x11000, 0x10300, 0x12000}));
  for (const std::uint64_t array : memory.arrays_asked) {
    memory.kinds = {{array, cudaMemoryTypeUnregistered}};
    expect_refused(tensors_of(batch), patches_at(0x9000), "source", array);
  }
}

TEST_F(host_arrays_in_a_capture, offsets_and_compact_columns_are_asked) {
  memory.kinds = {{0x1000, cudaMemoryTypeUnregistered}};
  const ragged_rows<std::int32_t> narrow{0x20000, 64, at<std::int32_t>(0x1000), offset_format::prefix, nullptr, 0};
  const ragged_rows<std::int64_t> wide{0x20000, 64, at<std::int64_t>(0x1000), offset_format::sizes, nullptr, 0};
  compact_columns compact{};
  compact.address_units = at<std::uint32_t>(0x2000);
  compact.global_dim[0] = at<std::uint32_t>(0x3000);
  compact.global_dim[1] = at<std::uint32_t>(0x1000);  // its strides are null: packed
  for (const tensor_source& tensors : {tensor_source{narrow}, tensor_source{wide}, tensor_source{compact}}) {
    const tensor_batch batch = batch_of(tensors, array_side::host, 2);
    expect_refused(tensors_of(batch), patches_at(0x9000), "source", 0x1000);
  }
}

TEST_F(host_arrays_in_a_capture, outside_a_capture_nothing_is_refused) {
  memory.kinds = {{0x1000, cudaMemoryTypeUnregistered}};
  for (const auto status : {cudaStreamCaptureStatusNone, cudaStreamCaptureStatusInvalidated}) {
    memory.status = status;
    EXPECT_TRUE(check(patches_at(0x1000), patches_at(0x1000)));
  }
  EXPECT_TRUE(memory.arrays_asked.empty());
}

TEST_F(host_arrays_in_a_capture, cuda_is_not_asked_where_all_arrays_are_the_devices) {
  const tensor_batch host = batch_of(patch_array{at<map_patch>(0x1000)}, array_side::host);
  const kernels::side device = patches_at(0x1000, array_side::device);
  EXPECT_TRUE(check(device, device));
  EXPECT_TRUE(check(device, dense_of(dense_batch{}, host))) << "a dense side has no arrays";
  EXPECT_EQ(memory.status_asked, 0);
}

TEST_F(host_arrays_in_a_capture, a_call_that_fails_is_handed_on) {
  memory.attributes_code = cudaErrorInvalidValue;
  EXPECT_EQ(check(patches_at(0x1000), patches_at(0x1000)).error().cuda_code, cudaErrorInvalidValue);
  EXPECT_EQ(memory.arrays_asked.size(), 1u);
  memory.status_code = cudaErrorStreamCaptureImplicit;
  EXPECT_EQ(check(patches_at(0x1000), patches_at(0x1000)).error().cuda_code, cudaErrorStreamCaptureImplicit);
}

}  // namespace
}  // namespace tmap::ragged::testing
