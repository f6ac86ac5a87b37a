// SPDX-License-Identifier: Apache-2.0
// Tests the end of contexts and processes, and first calls, each in a child process: this program
// with a hidden argument. Also tests two contexts next to each other.
#include <cudaTypedefs.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include <sys/wait.h>
#include <unistd.h>

#include "device/child_process.hpp"
#include "service/device_maps.cuh"
#include "service/first_use.hpp"

namespace tmap::testing {
namespace {

constexpr const char* hidden_argument = "--service-child=";

/// Holds a service with a batch. Every child begins with one.
struct scene {
  map_template base = make_template(rows_spec(), patch_extents(2)).value();
  device_array<map_patch> source{rows_patches(10)};
  std::optional<map_service> service;
  map_batch batch;

  scene() {
    service.emplace(std::move(map_service::create({.capacity = 100}).value()));
    batch = encode().value();
  }
  result<map_batch> encode() {
    return service->encode(base, patch_array{source.data()}, source.size(), {cudaStream_t{}});
  }
  /// Returns whether every call returns this error.
  bool all_fail(status code, std::int32_t cuda_code) {
    const auto fails = [&](const auto& outcome) {
      if (!outcome && outcome.error().code == code && outcome.error().cuda_code == cuda_code) return true;
      std::fprintf(stderr, "%s\n", outcome ? "no error" : to_string(outcome.error()).c_str());
      return false;
    };
    const cuda::stream_ref stream{cudaStream_t{}};
    const bool encodes_fail = fails(encode()) && fails(service->reserve(1, stream));
    return encodes_fail && fails(batch.use_on(stream)) && fails(batch.release());
  }
};

__global__ void trap() {
  __trap();
}

int reset_child() {
  scene play;
  if (cudaDeviceReset() != cudaSuccess) return 2;
  if (!play.all_fail(status::service_dead, cudaErrorContextIsDestroyed)) return 3;
  if (cudaFree(nullptr) != cudaSuccess) return 4;
  if (play.encode().error().code != status::service_dead) return 5;
  const result<map_service> next = map_service::create({.capacity = 100});
  if (!next) return 6;
  play.service.reset();
  return 0;
}

int reset_and_made_anew_child() {
  scene play;
  if (cudaDeviceReset() != cudaSuccess || cudaFree(nullptr) != cudaSuccess) return 2;
  return play.all_fail(status::service_dead, cudaErrorContextIsDestroyed) ? 0 : 3;
}

int trap_child() {
  scene play;
  trap<<<1, 1>>>();
  const cudaError_t code = cudaDeviceSynchronize();
  if (code == cudaSuccess) return 2;
  if (play.encode().error().code != status::service_dead) return 3;
  if (!play.all_fail(status::service_dead, code)) return 4;
  play.service.reset();
  return 0;
}

int fork_child() {
  scene play;
  const pid_t child = fork();
  if (child == 0) {
    const bool fails = play.all_fail(status::forked, 0);
    play.service.reset();
    _exit(fails ? 0 : 3);
  }
  int outcome = -1;
  if (waitpid(child, &outcome, 0) != child || outcome != 0) return 2;
  return play.encode().has_value() && play.batch.release().has_value() ? 0 : 4;
}

/// Objects that are destroyed after the handler that `create` registers has run.
struct late_objects {
  std::optional<map_service> service;
  map_batch batch;
} late;

int exit_child() {
  scene play;
  late.service.emplace(std::move(*play.service));
  late.batch = std::move(play.batch);
  static scene early;  // destroyed before the handler runs
  return early.batch && late.batch ? 0 : 2;
}

struct child_case {
  const char* name;
  int (*run)();
};

constexpr child_case child_cases[] = {{"reset", reset_child},
                                      {"reset_and_made_anew", reset_and_made_anew_child},
                                      {"trap", trap_child},
                                      {"fork", fork_child},
                                      {"exit", exit_child},
                                      {"first_use_encode", first_encode_child},
                                      {"first_use_copy", first_copy_child},
                                      {"first_use_rows", first_rows_child},
                                      {"first_use_product", first_product_child}};

class service_end : public ::testing::TestWithParam<std::size_t> {};

TEST_P(service_end, ends_well) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
  EXPECT_EQ(run_self(std::string{hidden_argument} + child_cases[GetParam()].name), 0);
}

INSTANTIATE_TEST_SUITE_P(children, service_end, ::testing::Range(std::size_t{0}, std::size(child_cases)),
                         [](const auto& each) { return child_cases[each.param].name; });

template <class Function>
Function driver_function(const char* name, unsigned int version) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  EXPECT_EQ(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found), cudaSuccess);
  return reinterpret_cast<Function>(function);
}

/// A second context on device 0, which is current while it exists.
class second_context {
 public:
  second_context() {
    EXPECT_EQ(driver_function<PFN_cuCtxGetCurrent_v4000>("cuCtxGetCurrent", 4000)(&first_), CUDA_SUCCESS);
    EXPECT_EQ(driver_function<PFN_cuCtxCreate_v3020>("cuCtxCreate", 3020)(&context_, 0, 0), CUDA_SUCCESS);
  }
  second_context(const second_context&) = delete;
  second_context& operator=(const second_context&) = delete;
  ~second_context() {
    make_current(first_);
    EXPECT_EQ(driver_function<PFN_cuCtxDestroy_v4000>("cuCtxDestroy", 4000)(context_), CUDA_SUCCESS);
  }
  void leave() const { make_current(first_); }
  void enter() const { make_current(context_); }

 private:
  static void make_current(CUcontext context) {
    EXPECT_EQ(driver_function<PFN_cuCtxSetCurrent_v4000>("cuCtxSetCurrent", 4000)(context), CUDA_SUCCESS);
  }
  CUcontext first_{};
  CUcontext context_{};
};

using two_contexts = service_device;

TEST_F(two_contexts, a_service_works_in_its_own_only) {
  const std::vector<map_patch> patches = rows_patches(10);
  const device_array<map_patch> source(patches);
  map_service service = make(100);
  const cuda::stream_ref stream{cudaStream_t{}};
  auto batch = service.encode(base, patch_array{source.data()}, 10, {stream});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  {
    const second_context other;
    EXPECT_EQ(service.encode(base, patch_array{source.data()}, 10, {stream}).error().code, status::wrong_context);
    EXPECT_EQ(batch->use_on(stream).error().code, status::wrong_context);
    EXPECT_EQ(batch->release().error().code, status::wrong_context);
    EXPECT_TRUE(*batch);
  }
  EXPECT_EQ(count_wrong(read(*batch, nullptr), base, patches), 0u);
  TMAP_ASSERT_OK(batch->release());
}

TEST_F(two_contexts, one_from_cuCtxCreate_may_have_a_service) {
  const second_context other;
  const std::vector<map_patch> patches = rows_patches(33);
  const device_array<map_patch> source(patches);
  map_service service = make(100);
  auto batch = service.encode(base, patch_array{source.data()}, 33, {cudaStream_t{}});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  EXPECT_EQ(count_wrong(read(*batch, nullptr), base, patches), 0u);
  other.leave();
  EXPECT_EQ(batch->release().error().code, status::wrong_context);
  other.enter();
  TMAP_ASSERT_OK(batch->release());
}

TEST_F(two_contexts, a_thread_without_one_gets_the_primary) {
  map_service service = make(100);
  const device_array<map_patch> source(rows_patches(10));
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  std::thread{[&] {
    const auto batch = service.encode(base, patch_array{source.data()}, 10, {cudaStream_t{}});
    EXPECT_TRUE(batch.has_value()) << to_string(batch.error());
  }}.join();
}

}  // namespace
}  // namespace tmap::testing

int main(int argc, char** argv) {
  using namespace tmap::testing;
  for (const child_case& each : child_cases) {
    // Returns instead of exiting, so that static objects are destroyed as in any program.
    if (argc == 2 && std::string{hidden_argument} + each.name == argv[1]) return each.run();
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
