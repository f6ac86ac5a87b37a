// SPDX-License-Identifier: Apache-2.0
// Reproduces flashinfer-ai/flashinfer #4539: an arena of immutable maps has a hard limit and cannot
// grow during a capture. The call must then return an error that names the number of slots and
// where they went, and it must change nothing.
#include <tmap/map_service.hpp>

#include <memory>
#include <string>

#include "defects/captured_graph.hpp"
#include "defects/defect_fixture.hpp"
#include "defects/tagged_lines.hpp"

namespace tmap::testing {
namespace {

constexpr std::uint64_t capacity = 64;

class exhaustion : public defect_test {
 protected:
  void SetUp() override {
    defect_test::SetUp();
    if (IsSkipped()) return;
    result<map_service> made = map_service::create({.capacity = capacity});
    TMAP_ASSERT_OK(made);
    service_ = std::make_unique<map_service>(std::move(*made));
    const result<map_template> base = line_template();
    TMAP_ASSERT_OK(base);
    base_ = *base;
    lines_ = std::make_unique<tagged_lines>(capacity);
    patches_ = std::make_unique<device_array<map_patch>>(lines_->patches(0, capacity));
  }

  result<map_batch> encode(std::uint64_t count, cudaStream_t stream) {
    return service_->encode(base_, patch_array{patches_->data()}, count, {stream});
  }

  void expect_counts(const slot_counts& found, std::uint64_t free, std::uint64_t leased, std::uint64_t captured) {
    EXPECT_EQ(found.capacity, capacity);
    EXPECT_EQ(found.free, free);
    EXPECT_EQ(found.leased, leased);
    EXPECT_EQ(found.captured, captured);
    EXPECT_EQ(found.free + found.leased + found.pending + found.captured, capacity);
  }

  void expect_exhausted(const result<map_batch>& answer, std::uint64_t asked, std::uint64_t free,
                        std::uint64_t leased) {
    ASSERT_FALSE(answer.has_value());
    EXPECT_EQ(answer.error().code, status::pool_exhausted);
    EXPECT_EQ(answer.error().found, asked);
    expect_counts(answer.error().slots, free, leased, 0);
    EXPECT_EQ(to_string(answer.error()), "the service has too few free slots in one piece: " + std::to_string(asked) +
                                             " asked for; of " + std::to_string(capacity) + " slots " +
                                             std::to_string(free) + " are free, " + std::to_string(leased) +
                                             " leased, 0 pending, 0 captured");
  }

  std::unique_ptr<map_service> service_;
  map_template base_;
  std::unique_ptr<tagged_lines> lines_;
  std::unique_ptr<device_array<map_patch>> patches_;
};

TEST_F(exhaustion, flashinfer_4539_the_error_says_where_the_slots_are) {
  const own_stream stream;
  const result<map_batch> held = encode(40, stream.get());
  TMAP_ASSERT_OK(held);
  expect_exhausted(encode(40, stream.get()), 40, 24, 40);
  expect_counts(service_->statistics().slots, 24, 40, 0);
  EXPECT_EQ(service_->statistics().exhausted_calls, 1u);
  const result<map_batch> rest = encode(24, stream.get());
  TMAP_ASSERT_OK(rest);
  expect_counts(service_->statistics().slots, 0, 64, 0);
}

TEST_F(exhaustion, flashinfer_4539_under_capture_the_capture_goes_on) {
  const own_stream stream;
  const result<map_batch> held = encode(40, stream.get());
  TMAP_ASSERT_OK(held);
  stream.wait();
  const captured_graph graph(stream, [&](cudaStream_t capturing) {
    expect_exhausted(encode(40, capturing), 40, 24, 40);
    cudaStreamCaptureStatus state{};
    TMAP_ASSERT_CUDA(cudaStreamIsCapturing(capturing, &state));
    EXPECT_EQ(state, cudaStreamCaptureStatusActive);
    TMAP_ASSERT_OK(encode(20, capturing));
  });
  expect_counts(service_->statistics().slots, 4, 40, 20);
  graph.launch(stream);
  stream.wait();
}

// Does what an arena that grows during a capture would do.
TEST_F(exhaustion, flashinfer_4539_seeded_an_allocation_breaks_the_capture) {
  const own_stream stream;
  void* memory = nullptr;
  cudaGraph_t graph = nullptr;
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal));
  const cudaError_t allocated = cudaMalloc(&memory, 1 << 20);
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
  EXPECT_EQ(allocated, cudaErrorStreamCaptureUnsupported);
  EXPECT_NE(ended, cudaSuccess);
  cudaGetLastError();
}

}  // namespace
}  // namespace tmap::testing
