// SPDX-License-Identifier: Apache-2.0
// Reproduces triton-lang/triton #7293: the compiler removed an instruction that the fence needs.
// The test therefore reads the emitted PTX and machine code, not the source. TMAP_CODE_PTX and
// TMAP_CODE_CUBIN are fence_probe.cu, compiled.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/machine_code.hpp"

namespace tmap::testing {
namespace {

std::string ptx_of(const std::string& kernel) {
  return testing::ptx_of(read_file(TMAP_CODE_PTX), kernel);
}

std::vector<std::string> acquire_and_load(const std::string& scope) {
  return {"fence.proxy.tensormap::generic.acquire." + scope + " [", "], 128;", "cp.async.bulk.commit_group;",
          "cp.async.bulk.wait_group.read 0;", "cp.async.bulk.tensor.1d."};
}

/// Returns whether machine code invalidates the map, flushes and waits before its first tensor
/// load.
bool invalidates_and_waits(const std::vector<instruction>& code) {
  auto at = code.begin();
  const auto find_next = [&](auto matches) {
    at = std::find_if(at, code.end(), matches);
    return at != code.end() && ++at != code.end();
  };
  const auto load = std::find_if(code.begin(), code.end(), [](auto& each) { return each.operation() == tensor_load; });
  return load != code.end() && find_next(is_invalidate) &&
         find_next([](auto& each) { return each.operation() == bulk_flush; }) &&
         find_next([](auto& each) { return each.operation() == wait_scoreboard; }) && at <= load;
}

/// Returns whether a release toward the copy engine, by a copy or a fence, follows every store to
/// the map.
bool releases(const std::string& ptx) {
  const std::size_t release = ptx.rfind("tensormap::generic.release.gpu");
  return release != std::string::npos && ptx.find("st.global.v4", release) == std::string::npos;
}

std::vector<instruction> code_of(const std::string& kernel) {
  return instructions_of(read_file(TMAP_CODE_CUBIN), kernel);
}

TEST(emitted_fences, triton_7293_acquire_in_ptx) {
  EXPECT_TRUE(has_in_order(ptx_of("acquire_gpu"), acquire_and_load("gpu")));
  EXPECT_TRUE(has_in_order(ptx_of("acquire_of_batch"), acquire_and_load("gpu")));
  EXPECT_TRUE(has_in_order(ptx_of("acquire_sys"), acquire_and_load("sys")));
}

TEST(emitted_fences, triton_7293_acquire_in_machine_code) {
  for (const char* const kernel : {"acquire_gpu", "acquire_of_batch", "acquire_sys"}) {
    EXPECT_TRUE(invalidates_and_waits(code_of(kernel))) << kernel;
  }
}

TEST(emitted_fences, triton_7293_publish_in_ptx) {
  EXPECT_TRUE(releases(ptx_of("publish_by_warp")));
  EXPECT_TRUE(releases(ptx_of("publish_by_stores")));
}

TEST(emitted_fences, maps_are_edited_by_replace_and_published_by_copies_where_asked) {
  const std::string ptx = ptx_of("publish_by_copies");
  EXPECT_TRUE(
      has_in_order(ptx, {"tensormap.replace.tile.global_address.shared::cta",
                         "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned"}));
  EXPECT_TRUE(releases(ptx));
  EXPECT_EQ(ptx_of("publish_by_stores").find("tensormap.cp_fenceproxy"), std::string::npos);
}

TEST(emitted_fences, triton_7293_seeded_code_without_fences_is_recognised) {
  EXPECT_FALSE(has_in_order(ptx_of("no_acquire"), acquire_and_load("gpu")));
  EXPECT_FALSE(has_in_order(ptx_of("fence_alone"), acquire_and_load("gpu")));
  EXPECT_FALSE(has_in_order(ptx_of("acquire_gpu"), acquire_and_load("sys")));
  EXPECT_FALSE(invalidates_and_waits(code_of("no_acquire")));
  EXPECT_FALSE(releases(ptx_of("stores_alone")));
}

// ptxas 13.0 compiles the fence alone to an invalidation that nothing waits for
// (docs/memory_ordering.md). A later version may do better.
TEST(emitted_fences, observed_triton_7293_what_becomes_of_the_fence_alone) {
  const std::vector<instruction> code = code_of("fence_alone");
  EXPECT_TRUE(std::any_of(code.begin(), code.end(), is_invalidate));
  RecordProperty("the_fence_alone_waits", invalidates_and_waits(code) ? "yes" : "no");
}

}  // namespace
}  // namespace tmap::testing
