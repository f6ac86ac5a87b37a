// SPDX-License-Identifier: Apache-2.0
// Runs the library over kernels/left_out.cpp, as in a build without nvcc.
#include <tmap/encode_batch.hpp>
#include <tmap/environment.hpp>
#include <tmap/faults.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/map_service.hpp>
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "gemm/api_arguments.hpp"
#include "ragged/api_arguments.hpp"

namespace tmap::testing {
namespace {

const cuda::stream_ref no_stream{cudaStream_t{}};

// Returns an address that is checked but never read.
template <class T>
T* somewhere() {
  return reinterpret_cast<T*>(0x10000);
}

template <class T>
void expect_left_out(const result<T>& done, const std::string& call) {
  ASSERT_FALSE(done.has_value()) << call;
  EXPECT_EQ(done.error().code, status::no_kernel_image) << call;
  EXPECT_EQ(to_string(done.error()),
            "this build of tmap has no kernels: it was built without nvcc, or with TMAP_BUILD_KERNELS=OFF")
      << call;
}

TEST(left_out_kernels, calls_that_need_one_name_the_reason) {
  map_template base{};
  base.spec.rank = 2;
  base.fields = patch_address;
  const patch_array patches{somewhere<const map_patch>()};
  expect_left_out(encode_batch(base, patches, somewhere<tensor_map>(), 1, {no_stream}), "encode_batch");
  expect_left_out(map_service::create({}), "map_service::create");
  expect_left_out(faults(), "faults");
  expect_left_out(reset_faults(), "reset_faults");
  const gemm::run with{{no_stream, {somewhere<void>(), gemm::workspace_bytes(10).value()}}};
  expect_left_out(gemm::multiply(gemm::testing::rows(), with), "gemm::multiply");
}

TEST(left_out_kernels, ragged_operations_on_the_gpu_name_the_reason) {
  using namespace ragged::testing;
  const tensor_batch batch = columns_batch();
  const ragged::run with = on_a_stream(enough());
  expect_left_out(ragged::copy(batch, batch, with), "copy");
  expect_left_out(ragged::transpose(batch, batch, with), "transpose");
  expect_left_out(ragged::saxpy(1, batch, batch, with), "saxpy");
  expect_left_out(ragged::max_pool_1d(batch, batch, 1, with), "max_pool_1d");
}

TEST(left_out_kernels, ragged_operations_on_the_host_run) {
  std::array<std::uint32_t, 4> from{1, 2, 3, 4};
  std::array<std::uint32_t, 4> to{};
  const std::uint64_t source_address = reinterpret_cast<std::uintptr_t>(from.data());
  const std::uint64_t destination_address = reinterpret_cast<std::uintptr_t>(to.data());
  const std::uint64_t extent = from.size();
  const auto batch_at = [&](const std::uint64_t* address) {
    patch_columns columns{};
    columns.global_address = address;
    columns.global_dim[0] = &extent;
    tensor_batch batch;
    batch.tensors = columns;
    batch.count = 1;
    batch.element_bytes = sizeof(from[0]);
    batch.rank = 1;
    return batch;
  };
  const result<void> done = ragged::copy(batch_at(&source_address), batch_at(&destination_address), {on_host{}});
  ASSERT_TRUE(done.has_value()) << to_string(done.error());
  EXPECT_EQ(to, from);
}

TEST(left_out_kernels, the_environment_names_the_reason) {
  int kernels = 0;
  for (const environment_item& item : query_environment()) {
    if (item.name.find("kernel") == std::string::npos) continue;
    expect_left_out(item.state, item.name);
    ++kernels;
  }
  EXPECT_EQ(kernels, 2);
}

}  // namespace
}  // namespace tmap::testing
