// SPDX-License-Identifier: Apache-2.0
// Tests calls on GPUs other than Hopper, as far as the host can. The CUDA runtime of this program
// imitates any of them.
#include <tmap/tmap.h>
#include <tmap/encode.hpp>
#include <tmap/encode_batch.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/make_template.hpp>
#include <tmap/ragged.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "interop/no_stream.hpp"
#include "interop/sized.hpp"
#include "interop/wrapped_cuda.hpp"
#include "kernels/gemm_launch.hpp"
#include "service/rows_spec.hpp"
#include "support/rule_cases.hpp"

namespace tmap::testing {
namespace {

class other_gpus : public ::testing::Test {
 protected:
  ~other_gpus() override { use_gpu(wrapped_gpu::h200); }
};

void* device_memory() {
  return reinterpret_cast<void*>(0x10000);
}

result<void> multiply() {
  gemm::row_problem problem;
  problem.groups = 10;
  problem.rows = 100;
  problem.n = problem.k = 64;
  problem.offsets.values = device_memory();
  problem.a = problem.b = problem.c = {0x10000, 128};
  problem.b_group_pitch_bytes = 64 * 128;
  return gemm::multiply(problem, {{no_stream, {device_memory(), 1 << 20}}});
}

TEST_F(other_gpus, products_are_refused_by_compute_capability) {
  use_gpu(wrapped_gpu::h200);
  EXPECT_EQ(multiply().has_value(), kernels::has_gemm_kernels());
  for (const auto& [gpu, found] : {std::pair{wrapped_gpu::b200, 100u}, std::pair{wrapped_gpu::rtx_6000, 120u}}) {
    use_gpu(gpu);
    const auto refused = multiply();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, status::no_kernel_image);
    EXPECT_EQ(refused.error().found, found);
    EXPECT_EQ(refused.error().allowed, 90u);
    EXPECT_EQ(to_string(refused.error()),
              "this GPU has compute capability " + std::to_string(found) + "; grouped products run on 90 alone");
  }
  use_gpu(wrapped_gpu::a100);
  EXPECT_EQ(multiply().error().code, status::compute_capability_too_low);
  EXPECT_EQ(multiply().error().found, 80u);
}

TEST_F(other_gpus, products_are_refused_to_c) {
  use_gpu(wrapped_gpu::b200);
  tmap_row_problem problem{};
  problem.struct_size = sizeof problem;
  problem.groups = 10;
  problem.rows = 100;
  problem.n = problem.k = 64;
  problem.offsets = {device_memory(), TMAP_OFFSETS_PREFIX, 8, nullptr, 0};
  problem.a = problem.b = problem.c = {0x10000, 128};
  problem.b_group_pitch_bytes = 64 * 128;
  const tmap_call call = call_in(device_memory(), 1 << 20);
  EXPECT_EQ(tmap_gemm_rows(&problem, &call), TMAP_NO_KERNEL_IMAGE);
}

TEST_F(other_gpus, products_without_groups_need_none) {
  use_gpu(wrapped_gpu::b200);
  EXPECT_TRUE(gemm::multiply(gemm::pointer_problem{}, {{no_stream}}));
}

TEST_F(other_gpus, ragged_operations_are_refused_for_want_of_shared_memory) {
  const ragged::row_matrix matrix{0x10000, 100, 64, 64};
  const tensor_batch batch{patch_array{static_cast<const map_patch*>(device_memory())}, 3, 4, 2};
  const std::vector<std::function<result<void>()>> operations{
      [&] {
        return ragged::gather_rows(matrix, {device_memory(), 10, 4}, matrix, {on_stream{no_stream}});
      },
      [&] {
        return ragged::saxpy(2, batch, batch, {on_stream{no_stream, {device_memory(), 1 << 30}}});
      },
      [&] {
        return ragged::copy(batch, batch, {on_stream{no_stream, {device_memory(), 1 << 30}}});
      },
  };
  for (const auto& operation : operations) {
    for (const wrapped_gpu gpu : {wrapped_gpu::h200, wrapped_gpu::b200}) {
      use_gpu(gpu);
      const auto enqueued = operation();
      EXPECT_TRUE(enqueued) << to_string(enqueued.error());
    }
    use_gpu(wrapped_gpu::rtx_6000);
    const auto refused = operation();
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, status::unsupported);
    EXPECT_EQ(to_string(refused.error()),
              "a block on this GPU may have 101376 bytes of shared memory; ragged operations need 232448");
  }
}

TEST_F(other_gpus, forced_routes_need_a_copy_engine) {
  use_gpu(wrapped_gpu::a100);
  const ragged::row_matrix matrix{0x10000, 100, 64, 64};
  ragged::run with{on_stream{no_stream}};
  with.choices.policy = route_policy::force;
  const auto refused = ragged::gather_rows(matrix, {device_memory(), 10, 4}, matrix, with);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::compute_capability_too_low);
  EXPECT_EQ(refused.error().found, 80u);
  EXPECT_EQ(refused.error().allowed, 90u);
}

result<void> encode_from(const map_template& base) {
  return encode_batch(base, patch_array{static_cast<const map_patch*>(device_memory())},
                      static_cast<tensor_map*>(device_memory()), 1, {{no_stream}});
}

TEST_F(other_gpus, zeroed_templates_begin_maps_on_hopper_alone) {
  const map_template zeroed = make_zeroed_template(rows_spec(), patch_address).value();
  use_gpu(wrapped_gpu::h200);
  EXPECT_TRUE(encode_from(zeroed));
  for (const wrapped_gpu gpu : {wrapped_gpu::b200, wrapped_gpu::rtx_6000}) {
    use_gpu(gpu);
    const auto refused = encode_from(zeroed);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, status::unsupported);
    EXPECT_EQ(refused.error().argument.view(), "base.map");
    EXPECT_EQ(refused.error().found, gpu == wrapped_gpu::b200 ? 100u : 120u);
    EXPECT_EQ(refused.error().allowed, 90u);
    EXPECT_TRUE(encode_from(make_template(rows_spec(), patch_address).value()));
  }
}

/// The driver of this program always sets bit 21 of word 1 for GPUs other than Hopper.
TEST_F(other_gpus, templates_are_not_marked_as_large) {
  constexpr std::uint64_t mark = std::uint64_t{1} << 21;
  use_gpu(wrapped_gpu::b200);
  EXPECT_EQ(encode(rows_spec())->words[1], mark) << "the driver's word is kept";
  const auto made = make_template(rows_spec(), patch_address);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->map.words[1], 0u);
}

TEST_F(other_gpus, types_and_swizzles_are_refused_by_rule_before_blackwell) {
  tensor_spec atoms = plain_spec();
  atoms.swizzle = swizzle::bytes_128_atom_64;
  const tensor_spec packed = packed_type_spec(element_type::u6_align16);
  use_gpu(wrapped_gpu::h200);
  EXPECT_EQ(encode(packed).error().first, rule::t02_element_type);
  EXPECT_EQ(encode(atoms).error().first, rule::t28_swizzle_value);
  EXPECT_EQ(encode(plain_im2col_wide_spec()).error().first, rule::w01_compute_capability);
  EXPECT_EQ(make_template(packed, patch_address).error().first, rule::t02_element_type);
  for (const wrapped_gpu gpu : {wrapped_gpu::b200, wrapped_gpu::rtx_6000}) {
    use_gpu(gpu);
    EXPECT_TRUE(encode(packed));
    EXPECT_TRUE(encode(atoms));
    EXPECT_TRUE(encode(plain_im2col_wide_spec()));
    EXPECT_TRUE(make_template(packed, patch_address));
  }
}

}  // namespace
}  // namespace tmap::testing
