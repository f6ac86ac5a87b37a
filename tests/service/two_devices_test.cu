// SPDX-License-Identifier: Apache-2.0
// Tests a service for each of two GPUs in one process. Is skipped if there is only one GPU.
#include <optional>
#include <thread>
#include <vector>

#include "service/device_maps.cuh"

namespace tmap::testing {
namespace {

/// Makes and ends a service while its own device is current; the device stays current.
class placed_service {
 public:
  placed_service(int device, map_service (*make)(std::uint64_t), std::uint64_t capacity) : device_(device) {
    EXPECT_EQ(cudaSetDevice(device_), cudaSuccess);
    service_.emplace(make(capacity));
  }
  placed_service(const placed_service&) = delete;
  placed_service& operator=(const placed_service&) = delete;
  ~placed_service() {
    EXPECT_EQ(cudaSetDevice(device_), cudaSuccess);
    service_.reset();
  }
  map_service& operator*() { return *service_; }

 private:
  int device_;
  std::optional<map_service> service_;
};

class two_devices : public service_device {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 2) GTEST_SKIP() << "no second GPU";
    TMAP_ASSERT_CUDA(cudaSetDevice(1));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    service_device::SetUp();
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
    service_device::TearDown();
  }

  /// Encodes and reads `rounds` batches on `device`. Returns the number of wrong maps.
  static std::uint64_t work_on(int device, map_service& service, const map_template& base, int rounds) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    const own_stream stream;
    std::uint64_t wrong = 0;
    for (int i = 0; i < rounds; ++i) {
      const std::vector<map_patch> patches = rows_patches(1 + 97 * static_cast<std::uint64_t>(i % 7) + device);
      const device_array<map_patch> source(patches);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      const auto batch = service.encode(base, patch_array{source.data()}, patches.size(), {stream.ref()});
      EXPECT_TRUE(batch.has_value()) << to_string(batch.error());
      wrong += batch ? count_wrong(read(*batch, stream.get()), base, patches) : 1;
    }
    return wrong;
  }
};

TEST_F(two_devices, each_has_a_service_of_its_own) {
  placed_service first(0, make, 1024);
  placed_service second(1, make, 1024);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(work_on(0, *first, base, 3), 0u);
    EXPECT_EQ(work_on(1, *second, base, 3), 0u);
  }
}

TEST_F(two_devices, a_thread_each_at_the_same_time) {
  placed_service first(0, make, 4096);
  placed_service second(1, make, 4096);
  std::uint64_t wrong[2]{~std::uint64_t{0}, ~std::uint64_t{0}};
  std::thread on_first{[&] { wrong[0] = work_on(0, *first, base, 50); }};
  std::thread on_second{[&] { wrong[1] = work_on(1, *second, base, 50); }};
  on_first.join();
  on_second.join();
  EXPECT_EQ(wrong[0], 0u);
  EXPECT_EQ(wrong[1], 0u);
}

TEST_F(two_devices, calls_with_the_other_one_current_are_refused_and_harm_nothing) {
  const std::vector<map_patch> patches = rows_patches(10);
  const device_array<map_patch> source(patches);
  map_service service = make(100);
  const cuda::stream_ref stream{cudaStream_t{}};
  auto batch = service.encode(base, patch_array{source.data()}, 10, {stream});
  ASSERT_TRUE(batch.has_value()) << to_string(batch.error());
  TMAP_ASSERT_CUDA(cudaSetDevice(1));
  const auto refused = service.encode(base, patch_array{source.data()}, 10, {stream});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, status::wrong_context);
  EXPECT_NE(refused.error().found, refused.error().allowed);
  EXPECT_EQ(batch->use_on(stream).error().code, status::wrong_context);
  EXPECT_EQ(batch->release().error().code, status::wrong_context);
  EXPECT_TRUE(*batch);
  TMAP_ASSERT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(count_wrong(read(*batch, nullptr), base, patches), 0u);
  TMAP_ASSERT_OK(batch->release());
}

}  // namespace
}  // namespace tmap::testing
