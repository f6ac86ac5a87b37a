// SPDX-License-Identifier: Apache-2.0
// Tests the C interface on a GPU: bytes of maps, moved tensors and products, and the memory that
// bad ones must not change.
#include <cuda_bf16.h>
#include <gtest/gtest.h>
#include <tmap/tmap.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "interop/sized.hpp"

namespace tmap::testing {
namespace {

using c_device = gpu_test;

TEST_F(c_device, a_service_makes_the_maps_that_the_driver_makes) {
  constexpr std::uint64_t rows_of[]{7, 0, 300, 1};
  constexpr std::uint64_t pitch = 256;
  const device_array<unsigned char> tensor(308 * pitch);
  const device_array<std::int32_t> offsets(std::vector<std::int32_t>{0, 7, 7, 307, 308});
  const std::uint64_t dims[]{64, 308};
  const std::uint32_t box[]{64, 32};
  tmap_tensor_spec spec{};
  ASSERT_EQ(tmap_packed_spec(TMAP_F32, tensor.address(), 2, dims, box, &spec), TMAP_OK);
  tmap_template base{};
  ASSERT_EQ(tmap_template_create(&spec, TMAP_PATCH_ADDRESS | TMAP_PATCH_DIM(1), &base), TMAP_OK);
  tmap_service service{};
  ASSERT_EQ(tmap_service_create(nullptr, &service), TMAP_OK);

  tmap_patch_source source{sizeof source, TMAP_SOURCE_ROWS, {}};
  source.of.rows = {tensor.address(), pitch, {offsets.data(), TMAP_OFFSETS_PREFIX, 4, nullptr, 0}, 0, 0, 0};
  const device_array<tmap_batch_header> header(1);
  tmap_call call = sized<tmap_call>();
  call.header = header.data();
  tmap_batch batch{};
  ASSERT_EQ(tmap_service_encode(service, base, &source, 4, &batch, &call), TMAP_OK);
  EXPECT_EQ(header.download()[0].bad_count, 0u);
  EXPECT_EQ(header.download()[0].first_bad, ~0u);
  EXPECT_EQ(header.download()[0].empty_count, 1u);
  tmap_batch_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(tmap_batch_query(batch, &info), TMAP_OK);
  std::uint64_t row = 0;
  for (std::uint32_t i = 0; i < 4; row += rows_of[i++]) {
    std::uint64_t status = ~std::uint64_t{0};
    std::uint32_t slot = i;
    if (info.ref.indices != nullptr) {
      ASSERT_EQ(cudaMemcpy(&slot, info.ref.indices + i, sizeof slot, cudaMemcpyDefault), cudaSuccess);
    }
    ASSERT_EQ(cudaMemcpy(&status, info.ref.statuses + slot, sizeof status, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(status, rows_of[i] == 0 ? TMAP_EMPTY_MAP : 0u) << i;
    if (rows_of[i] == 0) continue;
    tmap_tensor_map found{};
    ASSERT_EQ(cudaMemcpy(&found, info.ref.slots + slot, sizeof found, cudaMemcpyDefault), cudaSuccess);
    spec.global_address = tensor.address() + row * pitch;
    spec.global_dim[1] = rows_of[i];
    tmap_tensor_map expected{};
    ASSERT_EQ(tmap_encode(&spec, &expected), TMAP_OK);
    EXPECT_EQ(std::memcmp(&found, &expected, sizeof found), 0) << i;
  }
  EXPECT_EQ(tmap_batch_release(batch), TMAP_OK);
  EXPECT_EQ(tmap_service_destroy(service), TMAP_OK);
  EXPECT_EQ(tmap_template_destroy(base), TMAP_OK);
}

tmap_tensor_batch batch_of(const device_array<tmap_map_patch>& patches, std::uint64_t count) {
  tmap_tensor_batch batch{};
  batch.struct_size = sizeof batch;
  batch.element_bytes = 1;
  batch.rank = 1;
  batch.count = count;
  batch.tensors = {sizeof batch.tensors, TMAP_SOURCE_PATCHES, {}};
  batch.tensors.of.patches = patches.data();
  return batch;
}

TEST_F(c_device, a_bad_tensor_is_told_and_left_out_of_a_copy) {
  std::vector<unsigned char> bytes(4096);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 37 + i / 256);
  const device_array<unsigned char> from(bytes);
  const device_array<unsigned char> to(4096);
  constexpr std::uint64_t begin[]{0, 1000, 2003};
  constexpr std::uint64_t size[]{1000, 1003, 2093};
  std::vector<tmap_map_patch> sources(3), destinations(3);
  for (int i = 0; i < 3; ++i) {
    sources[i].global_address = from.address() + begin[i];
    destinations[i].global_address = to.address() + begin[i];
    sources[i].global_dim[0] = destinations[i].global_dim[0] = size[i];
  }
  destinations[1].global_dim[0] = 1002;  // differs from its source
  const device_array<tmap_map_patch> source(sources), destination(destinations);
  const tmap_tensor_batch in = batch_of(source, 3), out = batch_of(destination, 3);
  std::uint64_t workspace_bytes = 0;
  ASSERT_EQ(tmap_ragged_workspace_bytes(3, 1, &workspace_bytes), TMAP_OK);
  const device_array<unsigned char> workspace(workspace_bytes);
  const device_array<std::uint32_t> statuses(3);
  tmap_call call = call_in(workspace.data(), workspace_bytes);
  call.statuses = statuses.data();
  ASSERT_EQ(tmap_ragged_copy(&in, &out, &call), TMAP_OK);

  const std::vector<std::uint32_t> status = statuses.download();
  EXPECT_EQ(status[0], 0u);
  EXPECT_NE(status[1], 0u);
  EXPECT_EQ(status[2], 0u);
  std::vector<unsigned char> expected = bytes;
  std::fill_n(expected.begin() + begin[1], size[1], static_cast<unsigned char>(to.poison));
  EXPECT_EQ(to.download(), expected);
}

TEST_F(c_device, products_of_small_integers_are_exact) {
  constexpr std::uint64_t rows = 200, n = 136, k = 72;
  constexpr std::int32_t ends[]{5, 5, 170};
  const auto small = [](std::uint64_t i) { return static_cast<float>(static_cast<int>(i * 7 % 5) - 2); };
  std::vector<__nv_bfloat16> a(rows * k), b(3 * n * k);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = __float2bfloat16(small(i));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = __float2bfloat16(small(i + 3));
  const device_array<__nv_bfloat16> device_a(a), device_b(b), device_c(rows * n);
  const device_array<std::int32_t> offsets(std::vector<std::int32_t>(ends, ends + 3));
  tmap_row_problem problem{};
  problem.struct_size = sizeof problem;
  problem.operand = TMAP_OPERAND_BF16;
  problem.groups = 3;
  problem.b_layout = TMAP_B_N_BY_K;
  problem.rows = rows;
  problem.n = n;
  problem.k = k;
  problem.offsets = {offsets.data(), TMAP_OFFSETS_ENDS, 4, nullptr, 0};
  problem.a = {device_a.address(), k * 2};
  problem.b = {device_b.address(), k * 2};
  problem.b_group_pitch_bytes = n * k * 2;
  problem.c = {device_c.address(), n * 2};
  std::uint64_t workspace_bytes = 0;
  ASSERT_EQ(tmap_gemm_workspace_bytes(3, &workspace_bytes), TMAP_OK);
  const device_array<unsigned char> workspace(workspace_bytes);
  const tmap_call call = call_in(workspace.data(), workspace_bytes);
  ASSERT_EQ(tmap_gemm_rows(&problem, &call), TMAP_OK);

  const std::vector<__nv_bfloat16> c = device_c.download();
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t group = row < 5 ? 0 : 2;
    for (std::uint64_t column = 0; column < n; ++column) {
      const __nv_bfloat16 found = c[row * n + column];
      if (row >= 170) {
        ASSERT_TRUE(is_poison(found)) << "row " << row << ", column " << column;
        continue;
      }
      float sum = 0;
      for (std::uint64_t i = 0; i < k; ++i) sum += small(row * k + i) * small((group * n + column) * k + i + 3);
      ASSERT_EQ(__bfloat162float(found), __bfloat162float(__float2bfloat16(sum)))
          << "row " << row << ", column " << column;
    }
  }
}

}  // namespace
}  // namespace tmap::testing
