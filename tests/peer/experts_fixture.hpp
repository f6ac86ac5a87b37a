// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes the arrays of dispatches and combines on every rank, and compares all that they bring with
// the definition.

#include <tmap/expert_parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "lib/peer/expert_places.hpp"
#include "moe/moe_reference.hpp"
#include "peer/ranks_on_gpus.hpp"
#include "support/run_seed.hpp"

namespace tmap::testing {

using expert_parallel::combine_problem;
using expert_parallel::dispatch_problem;
using expert_parallel::shape;
using moe::testing::sorted_choices;

inline constexpr std::uint64_t window_bytes = 24 << 20;
inline constexpr std::uint64_t x_begin = 0, out_begin = 2 << 20, scratch_begin = 14 << 20;
inline constexpr std::uint32_t untouched = 0x5a5a5a5a;

inline float bf16_as_float(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}
/// Rounds to the nearest, ties to even. The number is finite.
inline std::uint16_t as_bf16_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// Holds the inputs of one rank in a call.
struct sent {
  std::vector<std::int32_t> ids;
  std::vector<float> weights;
  std::vector<std::uint32_t> rows;
  std::vector<float> scales;
};

/// Holds the arrays of one rank outside its window.
struct arrays_of_rank {
  explicit arrays_of_rank(const shape& sizes, std::uint32_t ranks)
      : ids(sizes.tokens * sizes.k),
        weights(sizes.tokens * sizes.k),
        scales(sizes.tokens * sizes.scales),
        out_scales(row_count(sizes, ranks) * sizes.scales),
        counts(sizes.experts / ranks),
        begins(sizes.experts / ranks + 1),
        ends(sizes.experts / ranks),
        weight_of_row(row_count(sizes, ranks)),
        sums(sizes.tokens * sizes.columns) {}
  device_array<std::int32_t> ids;
  device_array<float> weights, scales, out_scales;
  device_array<std::int32_t> counts, begins, ends;
  device_array<float> weight_of_row;
  device_array<std::uint16_t> sums;
};

class experts_on_gpus : public ranks_on_gpus {
 protected:
  experts_on_gpus() : ranks_on_gpus(window_bytes) {}

  void TearDown() override {
    arrays_.clear();
    ranks_on_gpus::TearDown();
  }

  std::uint32_t local_experts() const { return sizes_.experts / count(); }
  shape shape_of(std::uint32_t rank) const {
    shape made = sizes_;
    made.tokens = tokens_[rank % tokens_.size()];
    if (rank % 2 == 1 && odd_ranks_have_room_) made.arrivals = expert_parallel::most_prepared_choices / made.k + 1;
    return made;
  }
  std::uint64_t all_tokens() const {
    std::uint64_t all = 0;
    for (std::uint32_t rank = 0; rank < count(); ++rank) all += shape_of(rank).tokens;
    return all;
  }
  /// Allocates for the sizes, with room for all tokens unless the test has chosen less.
  void prepare() {
    if (sizes_.experts == 0) sizes_.experts = 4 * count();
    if (sizes_.arrivals == 0) sizes_.arrivals = all_tokens();
    sizes_.columns = sizes_.row_bytes / 2;
    arrays_.clear();
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      arrays_.push_back(std::make_unique<arrays_of_rank>(shape_of(rank), count()));
    }
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }

  /// Prepares room for so many arrivals that a dispatch takes a kernel for each step. All results
  /// stay as they are.
  void prepare_for_many() {
    sizes_.arrivals = all_tokens();
    if (sizes_.experts == 0) sizes_.experts = 4 * count();
    if (sizes_.rows == 0) sizes_.rows = row_count(sizes_, count());
    sizes_.arrivals = std::max<std::uint64_t>(sizes_.arrivals, expert_parallel::most_prepared_choices / sizes_.k + 1);
    prepare();
  }

  gemm::matrix rows_at(std::uint32_t rank, std::uint64_t offset, std::uint64_t pitch) const {
    return {on(rank).window.ref().address(rank, offset), pitch};
  }
  dispatch_problem dispatched(std::uint32_t rank) const {
    const arrays_of_rank& at = *arrays_[rank];
    dispatch_problem made;
    made.sizes = shape_of(rank);
    made.x = rows_at(rank, x_begin, sizes_.row_bytes + x_gap_);
    made.x_scales = at.scales.data();
    made.x_scale_pitch = sizes_.scales;
    made.ids = at.ids.data();
    made.weights = at.weights.data();
    made.out = rows_at(rank, out_begin, sizes_.row_bytes);
    made.out_scales = at.out_scales.data();
    made.counts = at.counts.data();
    made.begins = at.begins.data();
    made.ends = at.ends.data();
    if (wants_weights_) made.weight_of_row = at.weight_of_row.data();
    return made;
  }
  combine_problem combined(std::uint32_t rank) const {
    combine_problem made;
    made.sizes = shape_of(rank);
    made.values = rows_at(rank, out_begin, sizes_.row_bytes);
    made.weights = arrays_[rank]->weights.data();
    made.out = {arrays_[rank]->sums.data(), sizes_.row_bytes};
    if (adds_to_x_) made.base = made.out = rows_at(rank, x_begin, sizes_.row_bytes + x_gap_);
    return made;
  }
  expert_parallel::run run_of(std::uint32_t rank) const {
    const rank_on_gpu& at = on(rank);
    void* const memory = reinterpret_cast<void*>(at.window.ref().address(rank, scratch_begin));
    return {.stream = at.stream->ref(),
            .scratch = {memory, window_bytes - scratch_begin},
            .blocks = blocks_,
            .patience = patience};
  }

  sent draw(std::uint32_t rank) {
    const shape sizes = shape_of(rank);
    sent made;
    for (std::uint64_t i = 0; i < sizes.tokens * sizes.k; ++i) {
      made.ids.push_back(choose_(static_cast<std::uint32_t>(random_())));
      made.weights.push_back(static_cast<float>(random_() % 1000) / 512);
    }
    const std::uint64_t row_words = (sizes.row_bytes + x_gap_) / 4;
    for (std::uint64_t i = 0; i < sizes.tokens * row_words; ++i) {
      made.rows.push_back(static_cast<std::uint32_t>(random_()) & 0xbf7fbf7f);  // finite in bf16, and not huge
    }
    for (std::uint64_t i = 0; i < sizes.tokens * sizes.scales; ++i) {
      made.scales.push_back(static_cast<float>(random_() % 4096));
    }
    return made;
  }
  void draw_all() {
    sent_.clear();
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      sent_.push_back(draw(rank));
      static_cast<void>(on(rank));
      arrays_[rank]->ids.upload(sent_[rank].ids);
      arrays_[rank]->weights.upload(sent_[rank].weights);
      arrays_[rank]->scales.upload(sent_[rank].scales);
      for (const auto* each : {&arrays_[rank]->out_scales, &arrays_[rank]->weight_of_row}) each->fill_poison();
      upload(rank, x_begin, sent_[rank].rows);
      upload(rank, out_begin, words(row_count(sizes_, count()) * sizes_.row_bytes / 4, untouched));
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    }
  }

  void dispatch_all() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      TMAP_ASSERT_OK(dispatch_async(on(rank).window, dispatched(rank), run_of(rank)));
    }
  }
  void enqueue(std::uint32_t rank) const {
    const auto there = dispatch_async(on(rank).window, dispatched(rank), run_of(rank));
    EXPECT_TRUE(there.has_value()) << to_string(there.error());
    const auto back = combine_async(on(rank).window, combined(rank), run_of(rank));
    EXPECT_TRUE(back.has_value()) << to_string(back.error());
  }

  /// Expects that the ranks before `late` end with a status that names it, or because one did.
  void expect_named(std::uint32_t late) const {
    for (std::uint32_t rank = 0; rank < late; ++rank) {
      const result<void> ended = outcome(rank);
      ASSERT_FALSE(ended.has_value()) << rank;
      const bool is_named = ended.error().code == status::peer_timeout && ended.error().found == late;
      EXPECT_TRUE(is_named || ended.error().code == status::group_broken) << to_string(ended.error());
    }
  }

  /// Returns the choices of all ranks that are experts of this one, in the order of one GPU.
  sorted_choices expected(std::uint32_t rank) const {
    std::vector<std::int64_t> ids;
    std::vector<float> weights;
    for (const sent& each : sent_) {
      for (const std::int32_t id : each.ids) {
        const bool is_mine = id >= 0 && static_cast<std::uint32_t>(id) / local_experts() == rank;
        ids.push_back(is_mine ? id % static_cast<std::int32_t>(local_experts()) : -1);
      }
      weights.insert(weights.end(), each.weights.begin(), each.weights.end());
    }
    return moe::testing::sort_by_expert(
        {all_tokens(), local_experts(), sizes_.k, sizes_.alignment, row_count(sizes_, count())}, ids, weights);
  }
  /// Returns the rank and the number there of a token of all ranks.
  std::pair<std::uint32_t, std::uint64_t> owner(std::uint64_t token) const {
    std::uint32_t rank = 0;
    for (; token >= shape_of(rank).tokens; ++rank) token -= shape_of(rank).tokens;
    return {rank, token};
  }

  void expect_rows(std::uint32_t rank) const {
    const sorted_choices want = expected(rank);
    const std::uint64_t row_words = sizes_.row_bytes / 4, pitch_words = (sizes_.row_bytes + x_gap_) / 4;
    words rows(want.token_of_row.size() * row_words, untouched);
    std::vector<float> scales = arrays_[rank]->out_scales.download();
    std::uint64_t wrong_scales = 0;
    for (std::size_t row = 0; row < want.token_of_row.size(); ++row) {
      if (want.token_of_row[row] < 0) continue;
      const auto [from, token] = owner(static_cast<std::uint64_t>(want.token_of_row[row]));
      std::copy_n(sent_[from].rows.begin() + static_cast<std::ptrdiff_t>(token * pitch_words), row_words,
                  rows.begin() + static_cast<std::ptrdiff_t>(row * row_words));
      for (std::uint32_t i = 0; i < sizes_.scales; ++i) {
        wrong_scales += scales[row * sizes_.scales + i] != sent_[from].scales[token * sizes_.scales + i];
      }
    }
    EXPECT_EQ(wrong_scales, 0u);
    EXPECT_EQ(arrays_[rank]->counts.download(), want.counts);
    EXPECT_EQ(arrays_[rank]->begins.download(), want.begins);
    EXPECT_EQ(arrays_[rank]->ends.download(), want.ends);
    if (wants_weights_) {
      EXPECT_EQ(arrays_[rank]->weight_of_row.download(), want.weight_of_row);
    }
    EXPECT_TRUE(download(rank, out_begin, rows.size()) == rows) << "wrong rows";
  }

  float element(std::uint32_t rank, std::uint64_t token, std::uint64_t column) const {
    const std::uint64_t half = token * (sizes_.row_bytes + x_gap_) / 2 + column;
    const std::uint32_t word = sent_[rank].rows[half / 2];
    return bf16_as_float(static_cast<std::uint16_t>(half % 2 == 0 ? word : word >> 16));
  }
  std::uint16_t sum_on_one_gpu(std::uint32_t rank, std::uint64_t token, std::uint64_t column) const {
    float sum = 0;
    for (std::uint64_t i = token * sizes_.k; i < (token + 1) * sizes_.k; ++i) {
      if (static_cast<std::uint32_t>(sent_[rank].ids[i]) >= sizes_.experts) continue;
      sum = std::fmaf(sent_[rank].weights[i], element(rank, token, column), sum);
    }
    return as_bf16_bits(sum);
  }
  /// Returns the result of a token by definition; its experts return their rows.
  std::uint16_t sum_of(std::uint32_t rank, std::uint64_t token, std::uint64_t column) const {
    const sent& given = sent_[rank];
    if (sizes_.returned == expert_parallel::return_kind::rows) return sum_on_one_gpu(rank, token, column);
    float all = adds_to_x_ ? element(rank, token, column) : 0;
    std::vector<bool> done(count());
    for (std::uint32_t j = 0; j < sizes_.k; ++j) {
      const auto home = static_cast<std::uint32_t>(given.ids[token * sizes_.k + j]) / local_experts();
      if (home >= count() || done[home]) continue;
      done[home] = true;
      float sum = 0;
      for (std::uint32_t i = j; i < sizes_.k; ++i) {
        if (static_cast<std::uint32_t>(given.ids[token * sizes_.k + i]) / local_experts() != home) continue;
        sum = std::fmaf(given.weights[token * sizes_.k + i], element(rank, token, column), sum);
      }
      all += bf16_as_float(as_bf16_bits(sum));
    }
    return as_bf16_bits(all);
  }
  std::vector<std::uint16_t> results(std::uint32_t rank) const {
    if (!adds_to_x_) return arrays_[rank]->sums.download();
    const std::uint64_t pitch = (sizes_.row_bytes + x_gap_) / 2, tokens = shape_of(rank).tokens;
    const words x = download(rank, x_begin, tokens * pitch / 2);
    std::vector<std::uint16_t> found;
    for (std::uint64_t i = 0; i < tokens * sizes_.columns; ++i) {
      const std::uint64_t half = i / sizes_.columns * pitch + i % sizes_.columns;
      found.push_back(static_cast<std::uint16_t>(half % 2 == 0 ? x[half / 2] : x[half / 2] >> 16));
    }
    return found;
  }
  void expect_sums(std::uint32_t rank) const {
    const std::vector<std::uint16_t> got = results(rank);
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < got.size(); ++i) {
      const std::uint16_t want = sum_of(rank, i / sizes_.columns, i % sizes_.columns);
      const bool are_zeros = ((got[i] | want) & 0x7fff) == 0;
      if (got[i] == want || are_zeros) continue;
      if (wrong++ == 0) ADD_FAILURE() << "token " << i / sizes_.columns << ": " << got[i] << ", not " << want;
    }
    EXPECT_EQ(wrong, 0u);
  }
  void expect_all() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      expect_rows(rank);
      expect_sums(rank);
    }
  }
  void run_calls(std::uint32_t calls) {
    for (std::uint32_t call = 0; call < calls; ++call) {
      SCOPED_TRACE("call " + std::to_string(call));
      draw_all();
      for (std::uint32_t rank = 0; rank < count(); ++rank) enqueue(rank);
      expect_all();
    }
  }
  /// Runs dispatches of few tokens and of many.
  void run_both_ways(std::uint32_t calls) {
    sizes_.arrivals = sizes_.rows = 0;
    prepare();
    run_calls(calls);
    SCOPED_TRACE("room for many");
    prepare_for_many();
    run_calls(calls);
  }
  /// Expects that a call ends with too little room at the last rank, and writes no row.
  void expect_overflow() {
    draw_all();
    for (std::uint32_t rank = 0; rank < count(); ++rank) enqueue(rank);
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      expect_status(rank, status::peer_overflow);
      EXPECT_EQ(outcome(rank).error().found, count() - 1);
      const words rows = download(rank, out_begin, row_count(sizes_, count()) * sizes_.row_bytes / 4);
      EXPECT_TRUE(rows == words(rows.size(), untouched)) << "rows were written";
    }
  }

  /// Captures both calls of each rank, and replays them with other routes.
  void replay_graphs() {
    draw_all();
    std::vector<cudaGraphExec_t> graphs(count());
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      cudaGraph_t graph{};
      TMAP_ASSERT_CUDA(cudaStreamBeginCapture(on(rank).stream->get(), cudaStreamCaptureModeGlobal));
      enqueue(rank);
      TMAP_ASSERT_CUDA(cudaStreamEndCapture(on(rank).stream->get(), &graph));
      TMAP_ASSERT_CUDA(cudaGraphInstantiate(&graphs[rank], graph, 0));
      TMAP_ASSERT_CUDA(cudaGraphUpload(graphs[rank], on(rank).stream->get()));
      TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
      TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
    }
    for (std::uint32_t call = 0; call < 10; ++call) {
      draw_all();
      for (std::uint32_t rank = 0; rank < count(); ++rank) {
        TMAP_ASSERT_CUDA(cudaGraphLaunch(graphs[rank], on(rank).stream->get()));
      }
      expect_all();
    }
    for (const cudaGraphExec_t graph : graphs) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
  }

  shape sizes_{.k = 4, .row_bytes = 1040, .result_type = moe::float_type::bf16};
  std::vector<std::uint64_t> tokens_{37, 53, 0, 29};
  std::uint32_t x_gap_{0};
  bool adds_to_x_{false};  ///< instead of storing sums elsewhere
  std::uint32_t blocks_{4};
  bool wants_weights_{true};         ///< of rows
  bool odd_ranks_have_room_{false};  ///< so much that they take a kernel for each step
  std::function<std::int32_t(std::uint32_t)> choose_{[this](std::uint32_t drawn) {
    return drawn % 16 == 0 ? -1 : static_cast<std::int32_t>(drawn / 16 % sizes_.experts);
  }};
  std::vector<std::unique_ptr<arrays_of_rank>> arrays_;
  std::vector<sent> sent_;

 private:
  std::mt19937_64 random_{run_random(31)};
};

}  // namespace tmap::testing
