// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes groups, and experts, of two ranks on one GPU by the C interface.

#include <gtest/gtest.h>
#include <tmap/tmap.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "interop/sized.hpp"

namespace tmap::testing {

/// Two windows on one GPU, each with a stream of its own. They prove nothing about order between
/// GPUs.
class c_device_peers : public gpu_test {
 protected:
  static constexpr std::uint32_t ranks = 2;
  static constexpr std::uint64_t user_bytes = 1 << 20, window_bytes = user_bytes + TMAP_PEER_HEADER_BYTES,
                                 rows_at = 8192, out_at = 1 << 19;
  static constexpr std::uint32_t row_words = 16;

  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    memory_ = std::make_unique<device_array<unsigned char>>(std::vector<unsigned char>(ranks * window_bytes));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    const std::uint64_t windows[ranks]{memory_->address(), memory_->address() + window_bytes};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      tmap_peer_group group{};
      ASSERT_EQ(tmap_peer_group_from_addresses(rank, windows, ranks, window_bytes, &group), TMAP_OK);
      ASSERT_EQ(tmap_peer_group_allocate(group, user_bytes, &windows_[rank]), TMAP_OK);
      EXPECT_EQ(tmap_peer_group_destroy(group), TMAP_OK);
      TMAP_ASSERT_CUDA(cudaStreamCreateWithFlags(&streams_[rank], cudaStreamNonBlocking));
    }
  }
  void TearDown() override {
    for (std::uint32_t rank = 0; memory_ != nullptr && rank < ranks; ++rank) {
      EXPECT_EQ(cudaStreamSynchronize(streams_[rank]), cudaSuccess);
      EXPECT_EQ(tmap_peer_memory_destroy(windows_[rank]), TMAP_OK);
      EXPECT_EQ(cudaStreamDestroy(streams_[rank]), cudaSuccess);
    }
    memory_.reset();
    gpu_test::TearDown();
  }

  std::uint64_t at(std::uint32_t rank, std::uint64_t offset) const {
    return memory_->address() + rank * window_bytes + TMAP_PEER_HEADER_BYTES + offset;
  }
  static std::uint32_t count(std::uint32_t from, std::uint32_t to) { return 3 + 5 * from + 2 * to; }
  static std::uint32_t value(std::uint32_t from, std::uint32_t to, std::uint32_t i) {
    return (from * 2 + to) << 16 | i;
  }

  void write(std::uint32_t rank) const {
    std::vector<std::uint32_t> rows;
    const std::uint32_t splits[ranks]{count(rank, 0), count(rank, 1)};
    for (std::uint32_t to = 0; to < ranks; ++to) {
      for (std::uint32_t i = 0; i < splits[to] * row_words; ++i) rows.push_back(value(rank, to, i));
    }
    EXPECT_EQ(cudaMemcpy(reinterpret_cast<void*>(at(rank, 0)), splits, sizeof splits, cudaMemcpyDefault), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(reinterpret_cast<void*>(at(rank, rows_at)), rows.data(), 4 * rows.size(), cudaMemcpyDefault),
              cudaSuccess);
  }
  tmap_exchange_problem problem(std::uint32_t rank) const {
    tmap_exchange_problem made = sized<tmap_exchange_problem>();
    made.row_bytes = 4 * row_words;
    made.sent_rows = made.capacity = 64;
    made.splits = reinterpret_cast<const std::uint32_t*>(at(rank, 0));
    made.out_splits = reinterpret_cast<std::uint32_t*>(at(rank, 4096));
    made.rows = reinterpret_cast<const void*>(at(rank, rows_at));
    made.out = reinterpret_cast<void*>(at(rank, out_at));
    return made;
  }
  void expect_rows(std::uint32_t rank) const {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t from = 0; from < ranks; ++from) {
      for (std::uint32_t i = 0; i < count(from, rank) * row_words; ++i) expected.push_back(value(from, rank, i));
    }
    std::vector<std::uint32_t> found(expected.size());
    EXPECT_EQ(
        cudaMemcpy(found.data(), reinterpret_cast<const void*>(at(rank, out_at)), 4 * found.size(), cudaMemcpyDefault),
        cudaSuccess);
    EXPECT_EQ(found, expected);
  }

  std::unique_ptr<device_array<unsigned char>> memory_;
  tmap_peer_memory windows_[ranks]{};
  tmap_stream streams_[ranks]{};
};

/// Holds the arrays of one rank outside its window.
struct c_expert_arrays {
  device_array<std::int32_t> ids, counts, begins, ends;
  device_array<float> weights, scales, out_scales, weight_of_row, base, out;
};

/// Two ranks with two experts each, and tokens of small integers, whose sums are exact in f32.
class c_device_experts : public c_device_peers {
 protected:
  static constexpr std::uint32_t experts = 4, k = 2, columns = 16, scales = 2, most_rows = 16;
  static constexpr std::uint64_t tokens[ranks]{5, 3}, workspace_at = 3 << 18, scale_pitch = 3;

  void SetUp() override {
    c_device_peers::SetUp();
    if (IsSkipped()) return;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::int32_t> ids;
      std::vector<float> weights, rows, scales_of_tokens, base;
      for (std::uint64_t token = 0; token < tokens[rank]; ++token) {
        for (std::uint32_t j = 0; j < k; ++j) {
          ids.push_back(id(rank, token, j));
          weights.push_back(weight(rank, token, j));
        }
        for (std::uint32_t i = 0; i < columns; ++i) rows.push_back(element(rank, token, i));
        for (std::uint32_t i = 0; i < columns; ++i) base.push_back(static_cast<float>(i));
        for (std::uint32_t i = 0; i < scale_pitch; ++i) scales_of_tokens.push_back(scale(rank, token, i));
      }
      const std::uint64_t results = tokens[rank] * columns;
      arrays_.push_back(std::unique_ptr<c_expert_arrays>{new c_expert_arrays{
          device_array(ids), device_array<std::int32_t>(experts / ranks),
          device_array<std::int32_t>(experts / ranks + 1), device_array<std::int32_t>(experts / ranks),
          device_array(weights), device_array(scales_of_tokens), device_array<float>(most_rows * scales),
          device_array<float>(most_rows), device_array(base), device_array<float>(results)}});
      TMAP_ASSERT_CUDA(
          cudaMemcpy(reinterpret_cast<void*>(at(rank, 0)), rows.data(), 4 * rows.size(), cudaMemcpyDefault));
    }
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }
  void TearDown() override {
    arrays_.clear();
    c_device_peers::TearDown();
  }

  static std::int32_t id(std::uint32_t rank, std::uint64_t token, std::uint32_t j) {
    if (token == 4 && j == 1) return -1;
    return static_cast<std::int32_t>((3 * token + j * (1 + token % 2) + rank) % experts);
  }
  static float weight(std::uint32_t rank, std::uint64_t token, std::uint32_t j) {
    return static_cast<float>(1 + 2 * rank + token + 3 * j);
  }
  static float element(std::uint32_t rank, std::uint64_t token, std::uint32_t column) {
    return static_cast<float>(100 * (rank + 1) + 10 * token) + static_cast<float>(column);
  }
  static float scale(std::uint32_t rank, std::uint64_t token, std::uint32_t i) {
    return static_cast<float>(1000 * (rank + 1) + 10 * token + i);
  }

  tmap_expert_shape sizes(std::uint32_t rank) const {
    tmap_expert_shape made = sized<tmap_expert_shape>();
    made.k = k;
    made.tokens = tokens[rank];
    made.arrivals = tokens[0] + tokens[1];
    made.columns = columns;
    made.experts = experts;
    made.row_bytes = 4 * columns;
    made.scales = scales;
    made.result_type = TMAP_FLOAT_F32;
    made.returned = returned_;
    return made;
  }
  template <class Problem>
  Problem problem_of(std::uint32_t rank) const {
    Problem made = sized<Problem>();
    made.sizes = sizes(rank);
    made.blocks = 4;
    made.patience_ms = 2000;
    made.workspace = reinterpret_cast<void*>(at(rank, workspace_at));
    EXPECT_EQ(tmap_peer_workspace_bytes(&made.sizes, ranks, &made.workspace_bytes), TMAP_OK);
    EXPECT_LE(workspace_at + made.workspace_bytes, user_bytes);
    return made;
  }
  void dispatch(std::uint32_t rank, std::uint32_t* pending = nullptr, cudaEvent_t ready = nullptr) const {
    const c_expert_arrays& of = *arrays_[rank];
    auto problem = problem_of<tmap_peer_dispatch_problem>(rank);
    std::uint64_t rows = 0;
    ASSERT_EQ(tmap_peer_expert_rows(&problem.sizes, ranks, &rows), TMAP_OK);
    ASSERT_EQ(rows, most_rows);
    problem.x = {at(rank, 0), 4 * columns};
    problem.x_scales = of.scales.data();
    problem.x_scale_pitch = scale_pitch;
    problem.ids = of.ids.data();
    problem.weights = of.weights.data();
    problem.out = {at(rank, rows_at), 4 * columns};
    problem.out_scales = of.out_scales.data();
    problem.counts = of.counts.data();
    problem.begins = of.begins.data();
    problem.ends = of.ends.data();
    problem.weight_of_row = of.weight_of_row.data();
    problem.pending = pending;
    problem.ready = ready;
    ASSERT_EQ(tmap_peer_dispatch(windows_[rank], &problem, streams_[rank]), TMAP_OK);
  }
  /// The experts return their rows.
  void combine(std::uint32_t rank) const {
    const c_expert_arrays& of = *arrays_[rank];
    auto problem = problem_of<tmap_peer_combine_problem>(rank);
    problem.values = {at(rank, rows_at), 4 * columns};
    problem.weights = of.weights.data();
    problem.base = {of.base.address(), 4 * columns};
    problem.out = {of.out.address(), 4 * columns};
    ASSERT_EQ(tmap_peer_combine(windows_[rank], &problem, streams_[rank]), TMAP_OK);
  }

  /// Names a choice of all ranks.
  struct choice_of_rank {
    std::uint32_t from;
    std::uint64_t token;
    std::uint32_t j;
  };
  static std::vector<choice_of_rank> choices_of(std::int32_t expert) {
    std::vector<choice_of_rank> found;
    for (std::uint32_t from = 0; from < ranks; ++from) {
      for (std::uint64_t i = 0; i < tokens[from] * k; ++i) {
        const choice_of_rank each{from, i / k, static_cast<std::uint32_t>(i % k)};
        if (id(each.from, each.token, each.j) == expert) found.push_back(each);
      }
    }
    return found;
  }
  void expect_rows_by_expert(std::uint32_t rank) const {
    std::vector<std::int32_t> counts, begins, ends;
    std::vector<float> rows, weights, scales_of_rows;
    for (std::uint32_t expert = rank * experts / ranks; expert < (rank + 1) * experts / ranks; ++expert) {
      const std::vector<choice_of_rank> all = choices_of(static_cast<std::int32_t>(expert));
      begins.push_back(static_cast<std::int32_t>(weights.size()));
      counts.push_back(static_cast<std::int32_t>(all.size()));
      for (const choice_of_rank& each : all) {
        weights.push_back(weight(each.from, each.token, each.j));
        for (std::uint32_t i = 0; i < columns; ++i) rows.push_back(element(each.from, each.token, i));
        for (std::uint32_t i = 0; i < scales; ++i) scales_of_rows.push_back(scale(each.from, each.token, i));
      }
      ends.push_back(static_cast<std::int32_t>(weights.size()));
    }
    begins.push_back(static_cast<std::int32_t>(weights.size()));
    const c_expert_arrays& of = *arrays_[rank];
    EXPECT_EQ(of.counts.download(), counts);
    EXPECT_EQ(of.begins.download(), begins);
    EXPECT_EQ(of.ends.download(), ends);
    expect_begin(of.weight_of_row.download(), weights);
    expect_begin(of.out_scales.download(), scales_of_rows);
    std::vector<float> found(rows.size());
    EXPECT_EQ(
        cudaMemcpy(found.data(), reinterpret_cast<const void*>(at(rank, rows_at)), 4 * found.size(), cudaMemcpyDefault),
        cudaSuccess);
    EXPECT_EQ(found, rows);
  }
  static void expect_begin(std::vector<float> found, const std::vector<float>& want) {
    found.resize(want.size());
    EXPECT_EQ(found, want);
  }
  void expect_results(std::uint32_t rank) const {
    std::vector<float> want;
    for (std::uint64_t i = 0; i < tokens[rank] * columns; ++i) {
      const std::uint64_t token = i / columns;
      const auto column = static_cast<std::uint32_t>(i % columns);
      float sum = static_cast<float>(column);  // the base
      for (std::uint32_t j = 0; j < k; ++j) {
        if (id(rank, token, j) >= 0) sum += weight(rank, token, j) * element(rank, token, column);
      }
      want.push_back(sum);
    }
    EXPECT_EQ(arrays_[rank]->out.download(), want);
  }

  void run_layer() const {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      dispatch(rank);
      combine(rank);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(tmap_peer_last_outcome(windows_[rank], streams_[rank]), TMAP_OK);
      expect_rows_by_expert(rank);
      expect_results(rank);
    }
  }

  std::uint32_t returned_{TMAP_RETURN_SUMS};
  std::vector<std::unique_ptr<c_expert_arrays>> arrays_;
};

}  // namespace tmap::testing
