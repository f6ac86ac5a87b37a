// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tmap/encode.hpp>

#include <algorithm>
#include <functional>
#include <iterator>

#include "lib/driver/context_id.hpp"
#include "lib/driver/large_mark.hpp"
#include "lib/driver/map_driver.hpp"
#include "support/fake_runtime.hpp"
#include "support/rule_cases.hpp"
#include "support/spec_text.hpp"

namespace tmap::testing {
namespace {

class map_driver_test : public ::testing::Test {
 protected:
  fake_cuda cuda;
  driver::map_driver driver{fake_runtime()};

  error error_of_encode() {
    const auto map = driver.encode(plain_spec());
    EXPECT_FALSE(map.has_value());
    return map ? error{} : map.error();
  }
};

TEST_F(map_driver_test, each_kind_reaches_its_function) {
  ASSERT_TRUE(driver.encode(plain_spec()));
  ASSERT_TRUE(driver.encode(plain_im2col_spec()));
  cuda.major = 10;
  driver::map_driver blackwell{fake_runtime()};
  ASSERT_TRUE(blackwell.encode(plain_im2col_wide_spec()));
  ASSERT_TRUE(driver.replace_address(tensor_map{}, 4096));
  std::vector<std::string> functions;
  for (const fake_call& call : cuda.calls) functions.push_back(call.function);
  EXPECT_EQ(functions, (std::vector<std::string>{"cuTensorMapEncodeTiled", "cuTensorMapEncodeIm2col",
                                                 "cuTensorMapEncodeIm2colWide", "cuTensorMapReplaceAddress"}));
}

/// Returns a legal im2col spec whose members all differ.
tensor_spec unlike_spec() {
  tensor_spec spec;
  spec.global_address = 0x12340;
  spec.type = element_type::bf16;
  spec.rank = 5;
  const std::uint64_t dims[] = {64, 50, 40, 30, 20};
  const std::uint64_t strides[] = {160, 8016, 320656, 9619696};
  const std::uint32_t box[] = {32, 5, 4, 3, 2};
  const std::uint32_t steps[] = {1, 2, 3, 4, 5};
  std::copy(std::begin(dims), std::end(dims), spec.global_dim);
  std::copy(std::begin(strides), std::end(strides), spec.global_stride_bytes);
  std::copy(std::begin(box), std::end(box), spec.box_dim);
  std::copy(std::begin(steps), std::end(steps), spec.element_stride);
  spec.swizzle = swizzle::bytes_64;
  spec.l2_promotion = l2_promotion::bytes_256;
  spec.oob_fill = oob_fill::nan;
  return spec;
}

TEST_F(map_driver_test, every_number_reaches_the_driver_in_its_place) {
  im2col_spec spec{.tensor = unlike_spec(),
                   .lower_corner = {-6, -5, -4},
                   .upper_corner = {-3, -2, -1},
                   .channels_per_pixel = 32,
                   .pixels_per_column = 7};
  ASSERT_TRUE(driver.encode(spec.tensor));
  EXPECT_EQ(to_text(cuda.calls.back().given.tensor), to_text(spec.tensor));
  std::fill(std::begin(spec.tensor.box_dim), std::end(spec.tensor.box_dim), 0u);  // im2col does not use them
  ASSERT_TRUE(driver.encode(spec));
  EXPECT_EQ(to_text(cuda.calls.back().given), to_text(spec));
  cuda.major = 10;
  driver::map_driver blackwell{fake_runtime()};
  ASSERT_TRUE(blackwell.encode(im2col_wide_spec{spec.tensor, -6, -3, 32, 7, im2col_wide_mode::w128}));
  for (std::uint32_t axis = 1; axis < 3; ++axis) spec.lower_corner[axis] = spec.upper_corner[axis] = 0;
  EXPECT_EQ(to_text(cuda.calls.back().given), to_text(spec));
  EXPECT_EQ(cuda.calls.back().wide_mode, im2col_wide_mode::w128);
}

int the_device{};

TEST_F(map_driver_test, each_device_has_limits_of_its_own) {
  driver::runtime_calls calls = fake_runtime();
  calls.current_device = [](int* device) {
    *device = the_device;
    return cudaSuccess;
  };
  calls.device_attribute = [](int* value, cudaDeviceAttr attribute, int device) {
    *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 + device : 1000 * device + 7;
    return cudaSuccess;
  };
  driver::map_driver two{calls};
  for (const int device : {0, 1, 0, 1, 70, 71}) {  // more devices than the cache holds
    the_device = device;
    const device_limits limits = two.query_limits().value();
    const auto number = static_cast<std::uint32_t>(device);
    EXPECT_EQ(limits.shared_memory_bytes, 1000 * number + 7);
    EXPECT_EQ(limits.compute_capability, 10 * (9 + number) + 1000 * number + 7);
  }
}

TEST_F(map_driver_test, the_map_is_what_the_driver_wrote_over_zeroes) {
  const auto map = driver.encode(plain_spec());
  ASSERT_TRUE(map);
  tensor_map expected{};
  expected.words[0] = plain_spec().global_address;
  EXPECT_EQ(*map, expected);
}

TEST_F(map_driver_test, replace_address_keeps_the_rest) {
  tensor_map map{};
  for (std::uint64_t word = 0; word < 16; ++word) map.words[word] = 1000 + word;
  const auto moved = driver.replace_address(map, 0x4000);
  ASSERT_TRUE(moved);
  map.words[0] = 0x4000;
  EXPECT_EQ(*moved, map);
}

TEST_F(map_driver_test, replace_address_keeps_the_address_rules) {
  for (const std::uint64_t address : {std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{1} << 57}) {
    const auto moved = driver.replace_address(tensor_map{}, address);
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().code, status::rule_broken);
  }
  EXPECT_TRUE(cuda.calls.empty());
}

TEST_F(map_driver_test, a_broken_rule_never_reaches_the_driver) {
  tensor_spec spec = plain_spec();
  spec.box_dim[1] = 300;
  const auto map = driver.encode(spec);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, status::rule_broken);
  EXPECT_EQ(map.error().first, rule::t17_box_dim_range);
  EXPECT_EQ(map.error().axis, 1);
  EXPECT_EQ(map.error().found, 300u);
  EXPECT_EQ(map.error().allowed, 256u);
  EXPECT_TRUE(cuda.calls.empty());
}

TEST_F(map_driver_test, a_warning_does_reach_it) {
  tensor_spec spec = plain_spec();
  spec.global_stride_bytes[0] = 0;
  EXPECT_TRUE(driver.encode(spec));
}

TEST_F(map_driver_test, no_driver) {
  remove_driver(cuda);
  EXPECT_EQ(error_of_encode().code, status::no_driver);
  EXPECT_EQ(driver.query_limits().error().code, status::no_driver);
  EXPECT_EQ(driver.replace_address(tensor_map{}, 4096).error().code, status::no_driver);
  EXPECT_TRUE(cuda.lookups.empty());
}

TEST_F(map_driver_test, no_driver_that_answers_success_everywhere) {
  cuda.version = 0;
  cuda.devices = 0;
  EXPECT_EQ(error_of_encode().code, status::no_driver);
}

TEST_F(map_driver_test, a_driver_older_than_the_runtime) {
  cuda.version = 11080;
  cuda.devices_code = cudaErrorInsufficientDriver;
  cuda.current_device_code = cudaErrorInsufficientDriver;
  EXPECT_EQ(error_of_encode().code, status::driver_too_old);
}

TEST_F(map_driver_test, no_device) {
  cuda.devices = 0;
  cuda.current_device_code = cudaErrorNoDevice;
  EXPECT_EQ(error_of_encode().code, status::no_device);
}

TEST_F(map_driver_test, no_device_by_code) {
  cuda.devices_code = cudaErrorNoDevice;
  EXPECT_EQ(error_of_encode().code, status::no_device);
}

TEST_F(map_driver_test, no_device_though_the_runtime_names_one) {
  cuda.devices = 0;
  EXPECT_EQ(error_of_encode().code, status::no_device);
}

TEST_F(map_driver_test, compute_capability_too_low) {
  cuda.major = 8;
  cuda.minor = 9;
  const error e = error_of_encode();
  EXPECT_EQ(e.code, status::compute_capability_too_low);
  EXPECT_EQ(e.found, 89u);
  EXPECT_EQ(e.allowed, 90u);
  EXPECT_TRUE(cuda.calls.empty());
}

TEST_F(map_driver_test, limits_of_a_gpu_without_tensor_maps_are_not_usable) {
  cuda.major = 8;
  cuda.minor = 9;
  EXPECT_EQ(driver.query_limits()->compute_capability, 89u);
  EXPECT_EQ(driver.usable_limits().error().code, status::compute_capability_too_low);
  cuda.devices = 0;
  cuda.current_device_code = cudaErrorNoDevice;
  EXPECT_EQ(driver.usable_limits().error().code, status::no_device);
}

TEST(large_mark, is_one_bit) {
  tensor_map map;
  for (auto& word : map.words) word = ~std::uint64_t{0};
  const tensor_map made = driver::without_large_mark(map);
  for (int word = 0; word < 16; ++word) {
    EXPECT_EQ(made.words[word], word == 1 ? ~(std::uint64_t{1} << 21) : ~std::uint64_t{0}) << word;
  }
}

TEST_F(map_driver_test, function_newer_than_the_driver) {
  cuda.version = 12040;
  cuda.major = 10;
  EXPECT_TRUE(driver.encode(plain_spec())) << "12.0 is enough for the tiled form";
  EXPECT_EQ(driver.encode(plain_im2col_wide_spec()).error().code, status::driver_too_old);
}

TEST_F(map_driver_test, success_with_version_not_sufficient) {
  cuda.symbol = {cudaSuccess, cudaDriverEntryPointVersionNotSufficent, false, true};
  EXPECT_EQ(error_of_encode().code, status::driver_too_old);
}

TEST_F(map_driver_test, success_with_symbol_not_found) {
  cuda.symbol = {cudaSuccess, cudaDriverEntryPointSymbolNotFound, false, true};
  EXPECT_EQ(error_of_encode().code, status::symbol_missing);
}

TEST_F(map_driver_test, success_with_a_null_pointer) {
  cuda.symbol = {cudaSuccess, cudaDriverEntryPointSuccess, false, true};
  EXPECT_EQ(error_of_encode().code, status::symbol_missing);
}

TEST_F(map_driver_test, success_without_touching_the_outputs) {
  cuda.symbol = {cudaSuccess, cudaDriverEntryPointSuccess, true, false};
  EXPECT_EQ(error_of_encode().code, status::symbol_missing);
}

TEST_F(map_driver_test, a_failed_look_up_of_a_function_that_the_driver_has) {
  cuda.symbol = {cudaErrorUnknown, cudaDriverEntryPointSuccess, false, false};
  for (const int version : {12000, 13000}) {
    cuda.version = version;
    EXPECT_EQ(error_of_encode().code, status::cuda_failure) << version;
  }
  cuda.version = 11999;
  EXPECT_EQ(error_of_encode().code, status::driver_too_old);
}

TEST_F(map_driver_test, a_failed_look_up_is_tried_again) {
  cuda.symbol = {cudaErrorUnknown, cudaDriverEntryPointSuccess, false, false};
  EXPECT_EQ(error_of_encode().code, status::cuda_failure);
  cuda.symbol = {};
  EXPECT_TRUE(driver.encode(plain_spec()));
}

TEST_F(map_driver_test, a_successful_look_up_is_kept) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(driver.encode(plain_spec()));
  EXPECT_EQ(cuda.lookups.size(), 1u);
}

TEST_F(map_driver_test, refusal_keeps_the_code_and_our_warnings) {
  tensor_spec spec = plain_spec();
  spec.global_stride_bytes[0] = 0;
  cuda.answers = {CUDA_ERROR_INVALID_VALUE};
  const auto map = driver.encode(spec);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, status::driver_refused);
  EXPECT_EQ(map.error().cuda_code, CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(map.error().rules.contains(rule::t16_stride_overlap));
}

TEST_F(map_driver_test, a_missing_context_is_made_once) {
  cuda.answers = {CUDA_ERROR_INVALID_CONTEXT, CUDA_SUCCESS};
  EXPECT_TRUE(driver.encode(plain_spec()));
  EXPECT_EQ(cuda.set_device_calls, 1);
}

TEST_F(map_driver_test, no_context_after_one_attempt) {
  for (const CUresult code : {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_INITIALIZED}) {
    cuda.answers = {code, code};
    cuda.set_device_calls = 0;
    const error e = error_of_encode();
    EXPECT_EQ(e.code, status::no_context);
    EXPECT_EQ(e.first, rule::t31_context_present);
    EXPECT_EQ(e.rules.bits, std::uint64_t{1} << static_cast<std::uint32_t>(e.first));
    EXPECT_EQ(cuda.set_device_calls, 1);
  }
}

TEST_F(map_driver_test, no_context_when_none_can_be_made) {
  cuda.answers = {CUDA_ERROR_INVALID_CONTEXT};
  cuda.set_device_code = cudaErrorDevicesUnavailable;
  EXPECT_EQ(error_of_encode().code, status::no_context);
  EXPECT_EQ(cuda.calls.size(), 1u);
}

TEST_F(map_driver_test, earlier_asynchronous_errors) {
  for (const int code : {214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719}) {
    cuda.answers = {static_cast<CUresult>(code)};
    const error e = error_of_encode();
    EXPECT_EQ(e.code, status::earlier_asynchronous_error) << code;
    EXPECT_EQ(e.cuda_code, code);
    EXPECT_EQ(e.first, rule::t32_no_earlier_error);
    EXPECT_EQ(e.rules.bits, std::uint64_t{1} << static_cast<std::uint32_t>(e.first));
  }
}

TEST_F(map_driver_test, any_other_code) {
  cuda.answers = {CUDA_ERROR_DEINITIALIZED};
  const error e = error_of_encode();
  EXPECT_EQ(e.code, status::cuda_failure);
  EXPECT_EQ(e.cuda_code, CUDA_ERROR_DEINITIALIZED);
}

TEST(context_id, is_zero_without_a_context_that_lives) {
  for (const CUresult code :
       {CUDA_ERROR_INVALID_CONTEXT, CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_CONTEXT_IS_DESTROYED}) {
    EXPECT_TRUE(driver::says_no_context(code)) << code;
  }
  for (const CUresult code : {CUDA_SUCCESS, CUDA_ERROR_UNKNOWN, CUDA_ERROR_DEINITIALIZED, CUDA_ERROR_LAUNCH_FAILED}) {
    EXPECT_FALSE(driver::says_no_context(code)) << code;
  }
}

/// Uses the process-wide driver of this machine. It returns a map, or the reason why it cannot.
TEST(this_machine, encodes_or_says_why) {
  int version = 0;
  cudaDriverGetVersion(&version);
  int devices = 0;
  const bool has_gpu = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  const auto map = encode(plain_spec());
  if (version == 0) {
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().code, status::no_driver);
    EXPECT_EQ(query_device_limits().error().code, status::no_driver);
    EXPECT_EQ(encode(plain_im2col_wide_spec()).error().code, status::no_driver);
  } else if (has_gpu && query_device_limits()->compute_capability >= 90) {
    ASSERT_TRUE(map) << to_string(map.error());
    EXPECT_EQ(map->words[0], plain_spec().global_address);
  } else {
    EXPECT_FALSE(map);
  }
}

}  // namespace
}  // namespace tmap::testing
