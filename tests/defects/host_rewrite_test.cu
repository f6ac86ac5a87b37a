// SPDX-License-Identifier: Apache-2.0
// Tests the wrong scope: the host copies over a slot while a kernel that used it is still running.
// The kernel must acquire at system scope. Without an acquire it reads through the old map.
#include <tmap/device/acquire.cuh>

#include <chrono>
#include <memory>
#include <thread>

#include "defects/captured_graph.hpp"
#include "defects/defect_fixture.hpp"
#include "defects/handshake.cuh"
#include "defects/tagged_lines.hpp"
#include "defects/tagged_tile.cuh"

namespace tmap::testing {
namespace {

constexpr std::uint32_t blocks = 32;

enum class again : std::uint32_t { no_acquire, gpu_scope, sys_scope };

/// Holds the messages in pinned host memory, which kernels and the host both write.
struct mailbox {
  std::uint32_t used_old;
  device_count gave_up;
  device_count foreign;
};

/// Uses the old map, waits until the host has replaced it, and uses it again. Each block is one
/// warp.
__global__ void use_around_a_host_copy(const tensor_map* slot, std::uint32_t* replaced, again how, mailbox* mail) {
  __shared__ tagged_tile<line_elements> tile;
  tile_reader<line_elements> reader(tile);
  const std::int32_t at[] = {0};
  reader.load([&] { return device::acquire(slot, device::map_scope::sys); }, at);
  std::uint32_t count = reader.foreign([](std::uint32_t) { return tagged_lines::tag_of(0); });
  if (reader.lane() == 0) add_to_count(&mail->used_old);
  const bool came = __all_sync(~0u, await_count(replaced, 1)) != 0;
  if (how == again::no_acquire) {
    reader.load_unacquired(slot, at);
  } else {
    const auto scope = how == again::gpu_scope ? device::map_scope::gpu : device::map_scope::sys;
    reader.load([&] { return device::acquire(slot, scope); }, at);
  }
  count += reader.foreign([](std::uint32_t) { return tagged_lines::tag_of(1); });
  if (reader.lane() != 0) return;
  if (!came) atomicAdd_system(&mail->gave_up, 1);
  if (count != 0) atomicAdd_system(&mail->foreign, count);
}

class host_rewrite : public defect_test {
 protected:
  static constexpr int trials = 20;

  void SetUp() override {
    defect_test::SetUp();
    if (IsSkipped()) return;
    TMAP_ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&mail_), sizeof(mailbox)));
    TMAP_ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&maps_), 2 * sizeof(tensor_map)));
    TMAP_ASSERT_CUDA(cudaMallocHost(reinterpret_cast<void**>(&one_), sizeof(std::uint32_t)));
    kernel_stream_ = std::make_unique<own_stream>();
    copy_stream_ = std::make_unique<own_stream>();
    lines_ = std::make_unique<tagged_lines>(2);
    *one_ = 1;
    for (std::uint32_t i = 0; i < 2; ++i) maps_[i] = lines_->map(i);
  }
  void TearDown() override {
    cudaFreeHost(mail_);
    cudaFreeHost(maps_);
    cudaFreeHost(one_);
    defect_test::TearDown();
  }

  void await_first_use() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (*const_cast<volatile std::uint32_t*>(&mail_->used_old) < blocks && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  }

  void run_once(again how, const device_array<tensor_map>& slot, const device_array<std::uint32_t>& replaced) const {
    slot.upload({maps_[0]});
    replaced.upload({0});
    mail_->used_old = 0;
    use_around_a_host_copy<<<blocks, 32, 0, kernel_stream_->get()>>>(slot.data(), replaced.data(), how, mail_);
    TMAP_ASSERT_CUDA(cudaGetLastError());
    await_first_use();
    TMAP_ASSERT_CUDA(
        cudaMemcpyAsync(slot.data(), &maps_[1], sizeof(tensor_map), cudaMemcpyHostToDevice, copy_stream_->get()));
    TMAP_ASSERT_CUDA(
        cudaMemcpyAsync(replaced.data(), one_, sizeof(std::uint32_t), cudaMemcpyHostToDevice, copy_stream_->get()));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }

  /// Returns the number of foreign elements of all trials.
  std::uint64_t run(again how) const {
    const device_array<tensor_map> slot(1);
    const device_array<std::uint32_t> replaced(1);
    *mail_ = {};
    for (int trial = 0; trial < trials; ++trial) run_once(how, slot, replaced);
    EXPECT_EQ(mail_->gave_up, 0u) << "the copies did not pass the running kernel";
    return mail_->foreign;
  }

  std::unique_ptr<own_stream> kernel_stream_;
  std::unique_ptr<own_stream> copy_stream_;
  mailbox* mail_{};
  tensor_map* maps_{};
  std::uint32_t* one_{};
  std::unique_ptr<tagged_lines> lines_;
};

TEST_F(host_rewrite, a_map_copied_by_the_host_needs_the_scope_of_the_system) {
  expect_foreign_only_when_seeded(run(again::sys_scope), run(again::no_acquire));
}

// The count is 0 on an H200, as with the right scope.
TEST_F(host_rewrite, observed_a_map_copied_by_the_host_at_the_scope_of_the_gpu) {
  note("foreign_when_seeded", run(again::gpu_scope));
}

}  // namespace
}  // namespace tmap::testing
