// SPDX-License-Identifier: Apache-2.0
// Tests the service in a build that checks hazards. It must count the mistakes that a program makes
// with its batches, and nothing else.
#include <tmap/map_service.hpp>

#include <functional>
#include <optional>

#include "hazards/map_users.cuh"

namespace tmap::testing {
namespace {

static_assert(checks_hazards);

constexpr std::uint32_t maps = 32;
constexpr std::uint32_t most_maps = 16 * maps;

class service_hazards : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    world_ = std::make_unique<lent_slots>(most_maps);
    seen_ = std::make_unique<device_array<int>>(maps);
    first_ = std::make_unique<cuda_stream>();
    second_ = std::make_unique<cuda_stream>();
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }
  void TearDown() override {
    if (IsSkipped()) return;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    service_.reset();
    gpu_test::TearDown();
  }

  void serve(std::uint64_t capacity, std::uint64_t max_capacity = 0) {
    service_options options;
    options.capacity = capacity;
    options.max_capacity = max_capacity;
    result<map_service> made = map_service::create(options);
    ASSERT_TRUE(made.has_value()) << to_string(made.error());
    service_.emplace(std::move(*made));
  }
  /// Lends all slots once, so that the next batch gets used ones.
  void serve_used(std::uint64_t capacity) {
    serve(capacity);
    use(encode(0, *first_, static_cast<std::uint32_t>(capacity)).ref(), *first_);
    first_->finish();
  }

  map_batch encode(std::uint32_t line, cudaStream_t stream, std::uint32_t count = maps) {
    result<map_batch> batch = service_->encode(world_->base(), patch_array{world_->patches() + line}, count, {stream});
    EXPECT_TRUE(batch.has_value());
    return batch ? std::move(*batch) : map_batch{};
  }

  void use(const map_batch_ref& ref, cudaStream_t stream, bool loads = true) const {
    use_maps<<<maps, 1, 0, stream>>>(ref, loads, seen_->data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  }
  /// Acquires the maps of the batch from `make` on the first stream, before that batch is encoded.
  /// It does not copy, because a copy through unwritten slots would not end. All kernels must have
  /// run before, since loading one may wait for the device.
  void use_too_early(const std::function<map_batch()>& make) const {
    const flag gate;
    hold_back<<<1, 1, 0, *first_>>>(gate.word());
    const map_batch batch = make();
    use(batch.ref(), *second_, false);
    second_->finish();
    gate.set(1);
    EXPECT_EQ(hazards(), maps);
    use(batch.ref(), *first_);
    EXPECT_EQ(hazards(), maps);
  }

  void expect_lines(std::uint32_t line) const {
    const std::vector<int> found = seen_->download();
    for (std::uint32_t i = 0; i < maps; ++i) {
      ASSERT_EQ(found[i], static_cast<int>((line + i) % lent_slots::lines)) << i;
    }
  }

  std::uint64_t hazards() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return service_->statistics().hazards;
  }

  std::unique_ptr<lent_slots> world_;
  std::unique_ptr<device_array<int>> seen_;
  std::unique_ptr<cuda_stream> first_;
  std::unique_ptr<cuda_stream> second_;
  std::optional<map_service> service_;
};

TEST_F(service_hazards, batches_lent_over_and_over_are_silent) {
  serve_used(most_maps);
  for (std::uint64_t number = 0; number < scaled(20'000); ++number) {
    const cuda_stream& home = number % 2 == 0 ? *first_ : *second_;
    const cuda_stream& user = number % 3 == 0 ? *first_ : *second_;
    map_batch batch = encode(static_cast<std::uint32_t>(number % lent_slots::lines), home);
    ASSERT_TRUE(batch);
    TMAP_ASSERT_OK(batch.use_on(cuda::stream_ref{user}));
    use(batch.ref(), user);
  }
  EXPECT_EQ(hazards(), 0u);
}

TEST_F(service_hazards, a_reserved_batch_and_an_updated_one_are_silent) {
  serve_used(8 * maps);
  result<map_batch> reserved = service_->reserve(maps, cuda::stream_ref{*first_});
  ASSERT_TRUE(reserved.has_value());
  write_maps<<<1, maps, 0, *first_>>>(world_->base(), world_->patches() + 7, reserved->writer());
  TMAP_ASSERT_CUDA(cudaGetLastError());
  use(reserved->ref(), *first_);
  expect_lines(7);

  const device_array<std::uint32_t> changed(std::vector<std::uint32_t>{3});
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const map_batch before = encode(0, *first_);
  const result<map_batch> after = service_->update(before, {changed.data(), 1}, world_->base(),
                                                   patch_array{world_->patches() + 20}, {cuda::stream_ref{*first_}});
  ASSERT_TRUE(after.has_value());
  ASSERT_NE(after->ref().indices, nullptr) << "it shares";
  use(before.ref(), *first_);
  expect_lines(0);
  use(after->ref(), *first_);
  const std::vector<int> found = seen_->download();
  for (std::uint32_t i = 0; i < maps; ++i) ASSERT_EQ(found[i], static_cast<int>(i == 3 ? 23 : i)) << i;
  EXPECT_EQ(hazards(), 0u);
}

TEST_F(service_hazards, replays_of_a_graph_are_silent) {
  serve(4 * maps);
  cudaGraph_t graph{};
  cudaGraphExec_t replay{};
  TMAP_ASSERT_CUDA(cudaStreamBeginCapture(*first_, cudaStreamCaptureModeThreadLocal));
  map_batch batch = encode(11, *first_);
  use(batch.ref(), *first_);
  TMAP_ASSERT_CUDA(cudaStreamEndCapture(*first_, &graph));
  TMAP_ASSERT_CUDA(cudaGraphInstantiate(&replay, graph));
  TMAP_ASSERT_OK(batch.release());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(cudaGraphLaunch(replay, *first_), cudaSuccess);
  expect_lines(11);
  EXPECT_EQ(hazards(), 0u);
  TMAP_ASSERT_CUDA(cudaGraphExecDestroy(replay));
  TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
}

TEST_F(service_hazards, a_ref_kept_after_its_batch_is_counted) {
  serve_used(maps);
  const map_batch_ref kept = encode(1, *first_).ref();
  const map_batch next = encode(2, *first_);
  use(next.ref(), *first_);
  EXPECT_EQ(hazards(), 0u);
  use(kept, *first_);
  EXPECT_EQ(hazards(), maps);
}

TEST_F(service_hazards, a_stream_that_the_batch_does_not_know_is_counted) {
  serve_used(maps);
  const flag gate;
  hold_back<<<1, 1, 0, *first_>>>(gate.word());
  map_batch batch = encode(1, *first_);
  use(batch.ref(), *second_);
  second_->finish();
  gate.set(1);
  EXPECT_EQ(hazards(), maps);
  TMAP_ASSERT_OK(batch.use_on(cuda::stream_ref{*second_}));
  use(batch.ref(), *second_);
  expect_lines(1);
  EXPECT_EQ(hazards(), maps);
}

TEST_F(service_hazards, slots_that_were_never_lent_are_counted) {
  serve_used(maps);
  serve(maps);
  use_too_early([&] { return encode(1, *first_); });
}

TEST_F(service_hazards, slots_of_a_grown_pool_that_were_never_lent_are_counted) {
  serve_used(maps);
  serve(2 * maps, 4 * maps);
  const map_batch whole_slab = encode(0, *first_, 2 * maps);
  const map_batch grown = encode(0, *first_, 1);
  first_->finish();
  use_too_early([&] { return encode(1, *first_); });
}

TEST_F(service_hazards, an_update_that_is_overtaken_is_counted) {
  serve_used(4 * maps);
  const device_array<std::uint32_t> changed(std::vector<std::uint32_t>{3});
  const map_batch before = encode(0, *first_);
  const auto update = [&] {
    result<map_batch> after = service_->update(before, {changed.data(), 1}, world_->base(),
                                               patch_array{world_->patches() + 20}, {cuda::stream_ref{*first_}});
    EXPECT_TRUE(after.has_value());
    return after ? std::move(*after) : map_batch{};
  };
  const map_batch in_time = update();
  use(in_time.ref(), *first_);
  EXPECT_EQ(hazards(), 0u);
  use_too_early(update);
}

TEST_F(service_hazards, a_reserved_batch_encoded_twice_is_counted) {
  serve_used(maps);
  const result<map_batch> batch = service_->reserve(maps, cuda::stream_ref{*first_});
  ASSERT_TRUE(batch.has_value());
  for (int i = 0; i < 2; ++i) {
    write_maps<<<1, maps, 0, *first_>>>(world_->base(), world_->patches(), batch->writer());
    TMAP_ASSERT_CUDA(cudaGetLastError());
  }
  use(batch->ref(), *first_);
  EXPECT_EQ(hazards(), maps);
}

}  // namespace
}  // namespace tmap::testing
