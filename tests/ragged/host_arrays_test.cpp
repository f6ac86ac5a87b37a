// SPDX-License-Identifier: Apache-2.0
// Tests host arrays in a captured operation. The operation asks where each lies and refuses
// pageable ones. Captures and kinds of memory are fakes, so the test needs no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "lib/batch/workspace.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/ragged/upload.hpp"
#include "lib/ragged/workspace.hpp"

namespace tmap::ragged::testing {
namespace {

/// Stands for CUDA's replies. Addresses that are not in `kinds` are pinned.
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
    [](void* to, const void* from, std::size_t bytes, cudaStream_t) {
      std::memcpy(to, from, bytes);
      return cudaSuccess;
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
    const named_side sides[] = {{source, "source"}, {destination, "destination"}};
    return check_host_arrays(sides, cudaStream_t{}, fake_calls);
  }
  void expect_refused(const kernels::side& source, const kernels::side& destination, const char* argument,
                      std::uint64_t address) const {
    const result<void> answer = check(source, destination);
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, status::pageable_memory_in_capture) << to_string(answer.error());
    EXPECT_STREQ(answer.error().argument.c_str(), argument);
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

TEST_F(host_arrays_in_a_capture, pageable_ones_are_refused_on_a_third_side) {
  memory.kinds = {{0x1000, cudaMemoryTypeUnregistered}};
  const kernels::side pinned = patches_at(0x2000, array_side::device);
  const kernels::side pageable = patches_at(0x1000);
  const named_side sides[] = {{pinned, "source"}, {pinned, "destination"}, {pageable, "scales"}};
  const result<void> answer = check_host_arrays(sides, cudaStream_t{}, fake_calls);
  ASSERT_FALSE(answer.has_value());
  EXPECT_STREQ(answer.error().argument.c_str(), "scales");
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
  const std::vector<std::uint64_t> arrays = memory.arrays_asked;  // the checks below add to it
  for (const std::uint64_t array : arrays) {
    memory.kinds = {{array, cudaMemoryTypeUnregistered}};
    expect_refused(tensors_of(batch), patches_at(0x9000), "source", array);
  }
}

TEST_F(host_arrays_in_a_capture, offsets_and_compact_columns_are_asked) {
  memory.kinds = {{0x1000, cudaMemoryTypeUnregistered}};
  const ragged_rows narrow{0x20000, 64, {at<std::int32_t>(0x1000), offset_format::prefix, 4}};
  const ragged_rows wide{0x20000, 64, {at<std::int64_t>(0x1000), offset_format::sizes, 8}};
  compact_columns compact{};
  compact.address_units = at<std::uint32_t>(0x2000);
  compact.global_dim[0] = at<std::uint32_t>(0x3000);
  compact.global_dim[1] = at<std::uint32_t>(0x1000);  // packed, because its strides are null
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

/// The place of arrays in a workspace, with room for the arrays of `count` tensors and a canary
/// after them.
class upload_place {
 public:
  explicit upload_place(std::uint64_t count) {
    const workspace_layout layout = lay_out_workspace(count, 1);
    room_ = layout.arrays[1] - layout.arrays[0];
    bytes_.assign(room_ + 2 * workspace_alignment, canary);
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    begin_ = bytes_.data() + (workspace_alignment - address % workspace_alignment);
  }
  tensor_batch upload(tensor_batch batch) {
    batch.side = array_side::host;
    return upload_arrays(batch, begin_, {}, fake_calls).value();
  }
  /// Returns whether an array of `count` elements lies here, is aligned, and equals `expected`.
  template <class T>
  bool holds(const T* array, const std::vector<T>& expected) const {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(array);
    const bool is_here = bytes >= begin_ && bytes + expected.size() * sizeof(T) <= begin_ + room_;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(array) % workspace_alignment == 0;
    return is_here && is_aligned && std::equal(expected.begin(), expected.end(), array);
  }
  bool is_untouched_behind() const {
    const unsigned char* const behind = begin_ + room_;
    return std::all_of(behind, bytes_.data() + bytes_.size(), [](unsigned char b) { return b == canary; });
  }

 private:
  static constexpr unsigned char canary = 0xa5;
  std::vector<unsigned char> bytes_;
  unsigned char* begin_{};
  std::uint64_t room_{};
};

template <class Offset>
void expect_rows_with_all_offsets() {
  const std::vector<Offset> offsets{0, 3, 7};
  for (const auto format : {offset_format::ends, offset_format::prefix, offset_format::sizes}) {
    upload_place place{2};
    const ragged_rows rows{4096, 4, {offsets.data(), format, sizeof(Offset)}};
    const tensor_batch moved = place.upload(batch_of(rows, array_side::host, 1));
    const std::size_t values = format == offset_format::prefix ? 3 : 2;
    const std::vector<Offset> expected(offsets.begin(), offsets.begin() + static_cast<std::ptrdiff_t>(values));
    const void* const copied = std::get<ragged_rows>(moved.tensors).offsets.values;
    EXPECT_TRUE(place.holds(static_cast<const Offset*>(copied), expected));
    EXPECT_EQ(moved.side, array_side::device);
  }
}

TEST(uploads, rows_come_with_all_their_offsets) {
  expect_rows_with_all_offsets<std::int32_t>();
  expect_rows_with_all_offsets<std::int64_t>();
}

TEST(uploads, columns_follow_each_other_aligned) {
  constexpr std::uint64_t count = 3;
  std::vector<std::vector<std::uint32_t>> arrays;
  for (std::uint32_t i = 0; i < 2 * max_rank; ++i) arrays.push_back({10 * i, 10 * i + 1, 10 * i + 2});
  compact_columns columns{};
  columns.address_units = arrays[0].data();
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    columns.global_dim[axis] = arrays[1 + axis].data();
    if (axis > 0) columns.global_stride_units[axis - 1] = arrays[max_rank + axis].data();
  }
  tensor_batch batch = batch_of(columns, array_side::host, max_rank);
  batch.count = count;
  upload_place place{count};
  const compact_columns moved = std::get<compact_columns>(place.upload(batch).tensors);
  EXPECT_TRUE(place.holds(moved.address_units, arrays[0]));
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    EXPECT_TRUE(place.holds(moved.global_dim[axis], arrays[1 + axis])) << axis;
    if (axis == 0) continue;
    EXPECT_TRUE(place.holds(moved.global_stride_units[axis - 1], arrays[max_rank + axis])) << axis;
  }
  EXPECT_TRUE(place.is_untouched_behind());
  columns.global_stride_units[0] = nullptr;
  batch.tensors = columns;
  EXPECT_EQ(std::get<compact_columns>(place.upload(batch).tensors).global_stride_units[0], nullptr) << "packed";
}

TEST(uploads, arrays_of_the_device_stay_where_they_are) {
  const tensor_batch batch = batch_of(columns_at(0x10000), array_side::device);
  const tensor_batch same = upload_arrays(batch, nullptr, {}, fake_calls).value();
  EXPECT_EQ(std::get<patch_columns>(same.tensors).global_dim[2], columns_at(0x10000).global_dim[2]);
}

}  // namespace
}  // namespace tmap::ragged::testing
