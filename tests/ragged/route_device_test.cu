// SPDX-License-Identifier: Apache-2.0
// Checks that the device chooses the same routes as the host.
#include <tmap/route.hpp>

#include "device/gpu_fixture.hpp"
#include "ragged/route_cases.hpp"

namespace tmap::testing::route_device_cases {
namespace {

__global__ void choose_kernel(const route_case* cases, route_choice* answers, std::uint32_t count) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) answers[i] = choose_route(cases[i].tensor, cases[i].options);
}

using choose_route_device = gpu_test;

TEST_F(choose_route_device, answers_as_the_host_for_random_layouts) {
  random_source random(32);
  std::vector<route_case> cases;
  for (int i = 0; i < 300000; ++i) cases.push_back(random_route_case(random));
  const device_array<route_case> given(cases);
  const device_array<route_choice> answers(cases.size());
  const auto count = static_cast<std::uint32_t>(cases.size());
  choose_kernel<<<(count + 127) / 128, 128>>>(given.data(), answers.data(), count);
  TMAP_ASSERT_CUDA(cudaGetLastError());
  const std::vector<route_choice> found = answers.download();
  for (std::uint32_t i = 0; i < count; ++i) {
    const route_choice expected = choose_route(cases[i].tensor, cases[i].options);
    ASSERT_EQ(found[i].way, expected.way) << "case " << i;
    ASSERT_EQ(found[i].why, expected.why) << "case " << i;
  }
}

}  // namespace
}  // namespace tmap::testing::route_device_cases
