// SPDX-License-Identifier: Apache-2.0
#include "device/gpu_fixture.hpp"

#include <tmap/validate.hpp>

#include "support/random_spec.hpp"
#include "support/spec_text.hpp"

// Compares `validate` and `broken_rules` on the GPU with the same functions on the host.

namespace tmap::testing {
namespace {

/// Holds the verdict on one spec: the rules, and a sum over every number of the list.
struct verdict {
  rule_set errors;
  rule_set all;
  std::uint64_t digest;

  friend bool operator==(const verdict& a, const verdict& b) {
    return a.errors == b.errors && a.all == b.all && a.digest == b.digest;
  }
};

template <class Spec>
TMAP_HOST_DEVICE verdict judge(const Spec& spec, const device_limits& limits) {
  const violations found = validate(spec, limits);
  std::uint64_t digest = found.size();
  for (const violation& v : found) {
    digest = digest * 31 + static_cast<std::uint64_t>(v.id);
    digest = digest * 31 + static_cast<std::uint64_t>(static_cast<std::int64_t>(v.axis));
    digest = digest * 31 + v.found;
    digest = digest * 31 + v.allowed;
  }
  return {broken_rules(spec, limits), found.rules(), digest};
}

template <class Spec>
__global__ void judge_all(const Spec* specs, std::uint64_t count, device_limits limits, verdict* verdicts) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) verdicts[i] = judge(specs[i], limits);
}

template <class Spec>
void compare_both_sides(const std::vector<Spec>& specs, const device_limits& limits) {
  const device_array<Spec> on_device{specs};
  const device_array<verdict> verdicts{specs.size()};
  const auto blocks = static_cast<unsigned int>((specs.size() + 127) / 128);
  judge_all<<<blocks, 128>>>(on_device.data(), specs.size(), limits, verdicts.data());
  TMAP_ASSERT_CUDA(cudaGetLastError());
  const std::vector<verdict> device_side = verdicts.download();
  std::uint64_t broken = 0;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const verdict host_side = judge(specs[i], limits);
    ASSERT_EQ(device_side[i], host_side) << to_text(specs[i]);
    broken += !host_side.errors.empty();
  }
  EXPECT_GT(broken, specs.size() / 10);
  EXPECT_LT(broken, specs.size());
}

class device_verdict : public gpu_test {};

TEST_F(device_verdict, tiled_specs) {
  for (const std::uint32_t compute_capability : {90u, 100u}) {
    random_spec_source source{compute_capability};
    std::vector<tensor_spec> specs(scaled(1'000'000));
    for (tensor_spec& spec : specs) spec = source.any();
    compare_both_sides(specs, {compute_capability, 232448});
  }
}

TEST_F(device_verdict, im2col_specs) {
  random_spec_source source{3};
  std::vector<im2col_spec> specs(scaled(1'000'000));
  for (im2col_spec& spec : specs) spec = source.any_im2col();
  compare_both_sides(specs, hopper_limits());
}

}  // namespace
}  // namespace tmap::testing
