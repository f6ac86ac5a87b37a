// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs products while the dispatch brings their rows, and compares every bit with the same product
// after the dispatch.

#include <tmap/expert_parallel.hpp>
#include <tmap/grouped_gemm.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "peer/ranks_with_products.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing::pending {

using expert_parallel::dispatch_problem;
using expert_parallel::shape;

inline constexpr std::uint64_t window_bytes = 64 << 20;
inline constexpr std::uint64_t x_begin = 0, out_begin = 9 << 20, scratch_begin = 28 << 20;
inline constexpr std::uint32_t width = 512, columns = 256, experts_of_rank = 8;
inline constexpr std::uint32_t poison = 0x7fc07fc0;  // two NaNs of bf16
// The host enqueues a product while the rows of many tokens come.
inline constexpr std::uint64_t few_tokens = 160, many_tokens = 8192;
inline constexpr std::uint32_t scales_of_row = width / gemm::scaled_elements;
inline constexpr std::uint64_t scales_of_b = columns / gemm::scaled_columns * scales_of_row;  ///< of a group

/// An event that is not timed.
class own_event {
 public:
  own_event() { EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess); }
  ~own_event() { cudaEventDestroy(event_); }
  own_event(const own_event&) = delete;
  own_event& operator=(const own_event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_{};
};

/// Holds what one rank needs outside its window.
struct rank_memory {
  rank_memory(const shape& sizes, std::uint32_t ranks)
      : ids(sizes.tokens * sizes.k),
        begins(experts_of_rank + 1),
        pending(experts_of_rank + 1),
        b(std::uint64_t{experts_of_rank} * columns * sizes.row_bytes / 4),
        c(row_count(sizes, ranks) * columns / 2),
        x_scales(sizes.tokens * sizes.scales),
        a_scales(row_count(sizes, ranks) * sizes.scales),
        b_scales(experts_of_rank * scales_of_b),
        scratch(gemm::workspace_bytes(experts_of_rank).value()) {}
  device_array<std::int32_t> ids, begins;
  device_array<std::uint32_t> pending, b, c;
  device_array<float> x_scales, a_scales, b_scales;
  device_array<unsigned char> scratch;
  own_stream side;
  own_event ready, done;
};

class products_of_dispatches : public ranks_with_products {
 protected:
  products_of_dispatches() : ranks_with_products(window_bytes) {}

  void TearDown() override {
    memory_.clear();
    ranks_on_gpus::TearDown();
  }

  bool share_a_gpu() const { return count() > 1 && GetParam().gpus[0] == GetParam().gpus[1]; }

  /// Allocates for `tokens` of all ranks together.
  void prepare(std::uint64_t tokens) {
    sizes_.experts = experts_of_rank * count();
    sizes_.tokens = tokens / count();
    sizes_.arrivals = sizes_.tokens * count();
    memory_.clear();
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      memory_.push_back(std::make_unique<rank_memory>(sizes_, count()));
      memory_[rank]->b.upload(draw_words(memory_[rank]->b.size()));
      memory_[rank]->b_scales.upload(draw_scales(memory_[rank]->b_scales.size()));
    }
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }
  std::uint64_t rows() const { return row_count(sizes_, count()); }

  /// Multiplies no rows, both ways. CUDA may wait for the GPU when it loads a kernel, and ranks of
  /// one GPU wait for each other in a dispatch.
  void load_products() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      const rank_memory& at = *memory_[rank];
      at.begins.upload(std::vector<std::int32_t>(experts_of_rank + 1, 0));
      at.pending.upload(words(experts_of_rank + 1, 0));
      gemm::row_problem made = product(rank);
      for (const std::uint32_t* pending : std::initializer_list<const std::uint32_t*>{nullptr, at.pending.data()}) {
        made.pending = pending;
        TMAP_ASSERT_OK(gemm::multiply(made, run_on(rank, on(rank).stream->ref())));
        TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
      }
    }
  }

  /// Draws tokens and choices. All results become poison.
  void draw() {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      std::vector<std::int32_t> ids(sizes_.tokens * sizes_.k);
      for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random_() % sizes_.experts);
      static_cast<void>(on(rank));
      memory_[rank]->ids.upload(ids);
      memory_[rank]->x_scales.upload(draw_scales(memory_[rank]->x_scales.size()));
      upload(rank, x_begin, draw_words(sizes_.tokens * sizes_.row_bytes / 4));
    }
    poison_results();
  }
  void poison_results() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      upload(rank, out_begin, words(rows() * sizes_.row_bytes / 4, poison));
      memory_[rank]->c.upload(words(memory_[rank]->c.size(), poison));
      TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
    }
  }

  gemm::matrix rows_at(std::uint32_t rank, std::uint64_t offset) const {
    return {on(rank).window.ref().address(rank, offset), sizes_.row_bytes};
  }
  dispatch_problem dispatched(std::uint32_t rank) const {
    dispatch_problem made;
    made.sizes = sizes_;
    made.x = rows_at(rank, x_begin);
    made.x_scales = memory_[rank]->x_scales.data();
    made.x_scale_pitch = sizes_.scales;
    made.out_scales = memory_[rank]->a_scales.data();
    made.ids = memory_[rank]->ids.data();
    made.out = rows_at(rank, out_begin);
    made.begins = memory_[rank]->begins.data();
    return made;
  }
  expert_parallel::run run_of(std::uint32_t rank) const {
    void* const memory = reinterpret_cast<void*>(on(rank).window.ref().address(rank, scratch_begin));
    return {.stream = on(rank).stream->ref(),
            .scratch = {memory, window_bytes - scratch_begin},
            .blocks = blocks_,
            .patience = patience};
  }
  gemm::row_problem product(std::uint32_t rank) const {
    const rank_memory& at = *memory_[rank];
    gemm::row_problem made;
    made.type = type_;
    made.groups = experts_of_rank;
    made.rows = rows();
    made.n = columns;
    made.k = width;
    made.offsets = {at.begins.data(), offset_format::prefix, 4};
    made.a = rows_at(rank, out_begin);
    made.b = {at.b.address(), sizes_.row_bytes};
    made.b_group_pitch_bytes = std::uint64_t{columns} * sizes_.row_bytes;
    made.c = {at.c.address(), columns * result_size};
    if (sizes_.scales != 0) {
      made.a_scales = {at.a_scales.data(), scales_of_row, 1};
      made.b_scales = {at.b_scales.data(), scales_of_row, 1, scales_of_b, gemm::scaled_columns};
    }
    if (change_) change_(rank, made);
    return made;
  }
  /// Ranks of one GPU must not take all multiprocessors from each other.
  gemm::run run_on(std::uint32_t rank, cuda::stream_ref stream) const {
    gemm::run made{{stream, {memory_[rank]->scratch.data(), memory_[rank]->scratch.size()}}};
    if (share_a_gpu()) made.choices.blocks = 8;
    return made;
  }

  void enqueue_after(std::uint32_t rank) const {
    TMAP_ASSERT_OK(dispatch_async(on(rank).window, dispatched(rank), run_of(rank)));
    TMAP_ASSERT_OK(gemm::multiply(product(rank), run_on(rank, on(rank).stream->ref())));
  }
  /// Enqueues the product on a second stream, which joins that of the dispatch.
  void enqueue_meanwhile(std::uint32_t rank) const {
    const rank_memory& at = *memory_[rank];
    dispatch_problem sent = dispatched(rank);
    sent.pending = at.pending.data();
    sent.ready = at.ready.get();
    TMAP_ASSERT_OK(dispatch_async(on(rank).window, sent, run_of(rank)));
    TMAP_ASSERT_CUDA(cudaStreamWaitEvent(at.side.get(), at.ready.get(), 0));
    gemm::row_problem multiplied = product(rank);
    multiplied.pending = at.pending.data();
    TMAP_ASSERT_OK(gemm::multiply(multiplied, run_on(rank, at.side.ref())));
    TMAP_ASSERT_CUDA(cudaEventRecord(at.done.get(), at.side.get()));
    TMAP_ASSERT_CUDA(cudaStreamWaitEvent(on(rank).stream->get(), at.done.get(), 0));
  }
  template <class Enqueue>
  std::vector<words> results_of(const Enqueue& enqueue) const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) enqueue(rank);
    std::vector<words> results;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      expect_ok(rank);
      results.push_back(memory_[rank]->c.download());
    }
    return results;
  }
  void expect_words_are_0() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
      EXPECT_EQ(memory_[rank]->pending.download(), words(experts_of_rank + 1, 0)) << rank;
    }
  }

  /// Runs calls both ways, with other tokens in each.
  void compare(std::uint32_t calls) {
    load_products();
    for (std::uint32_t call = 0; call < calls; ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      draw();
      const auto wanted = results_of([&](std::uint32_t rank) { enqueue_after(rank); });
      EXPECT_NE(wanted[0], words(wanted[0].size(), poison));
      poison_results();
      const auto found = results_of([&](std::uint32_t rank) { enqueue_meanwhile(rank); });
      EXPECT_TRUE(found == wanted) << "the product read rows that were not there";
      expect_words_are_0();
    }
  }

  std::mt19937_64& random() { return random_; }

  shape sizes_{.k = 2, .row_bytes = 2 * width, .columns = width, .result_type = moe::float_type::bf16};
  gemm::operand_type type_{gemm::operand_type::bf16};
  std::function<void(std::uint32_t rank, gemm::row_problem&)> change_;  ///< of each product
  std::uint32_t blocks_{2};                                             ///< so few that rows take a while
  std::vector<std::unique_ptr<rank_memory>> memory_;

 private:
  static constexpr std::uint64_t result_size = 2;

  /// Returns words of finite operands of small magnitude.
  words draw_words(std::uint64_t count) {
    const std::uint32_t mask = type_ == gemm::operand_type::bf16 ? 0xbf7fbf7f : 0xb7b7b7b7;
    words made(count);
    for (std::uint32_t& each : made) each = static_cast<std::uint32_t>(random_()) & mask;
    return made;
  }
  std::vector<float> draw_scales(std::uint64_t count) {
    std::vector<float> made(count);
    for (float& each : made) each = static_cast<float>(1 + random_() % 15) / 8;
    return made;
  }

  std::mt19937_64 random_{run_random(37)};
};

}  // namespace tmap::testing::pending
