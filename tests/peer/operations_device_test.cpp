// SPDX-License-Identifier: Apache-2.0
// Runs each function of tmap/device/peer.cuh in kernels that move data, and compares every byte.
// Virtual ranks and two GPUs run the same tests.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "peer/operations_kernels.hpp"
#include "peer/ranks_on_gpus.hpp"
#include "support/scaled.hpp"

namespace tmap::testing::operations {
namespace {

constexpr std::uint64_t window_bytes = 2 << 20;
constexpr std::uint64_t signals_at = 0, credits_at = 256, added_at = 512;
constexpr std::uint64_t data_at = 4096, meet_at = 1 << 20, pass_at = (1 << 20) + (1 << 19);
constexpr std::uint32_t untouched = 0x5a5a5a5a;
constexpr std::uint32_t out_words = 40960;
constexpr std::uint32_t most_counts = 16;
constexpr std::uint64_t patience_ns = 4'000'000'000;

std::uint32_t few(std::uint32_t amount) {
  return static_cast<std::uint32_t>(scaled(amount));
}

/// Places what a test reads back, outside the window of a rank.
struct rank_results {
  device_array<operation_counts> counts{most_counts};
  device_array<std::uint32_t> out{out_words};
};

class operations_on_gpus : public ranks_on_gpus {
 protected:
  operations_on_gpus() : ranks_on_gpus(window_bytes) {}

  void SetUp() override {
    ranks_on_gpus::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      static_cast<void>(on(rank));
      results_.push_back(std::make_unique<rank_results>());
      TMAP_ASSERT_CUDA(load_kernels());
      TMAP_ASSERT_CUDA(load_turns());
    }
    begin(0);
  }
  void TearDown() override {
    results_.clear();
    ranks_on_gpus::TearDown();
  }

  /// Makes all memory as it is before the round numbered `first`.
  void begin(std::uint32_t first) const {
    operation_counts counts{};
    counts.rounds = first;
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      upload(rank, 0, words(data_at / 4));
      for (const std::uint64_t each : {signals_at, credits_at}) upload(rank, each, signals_after(first));
      upload(rank, data_at, words((window_bytes - data_at) / 4, untouched));
      results_[rank]->counts.upload(std::vector<operation_counts>(most_counts));
      results_[rank]->counts.upload({counts});
      results_[rank]->out.fill_poison();
      TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    }
  }

  /// Calls `launch(window, results, stream)` for all ranks before any of them is waited for.
  template <class Launch>
  void launch_all(const Launch& launch) const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      EXPECT_EQ(launch(at.window.ref(), *results_[rank], at.stream->get()), cudaSuccess);
    }
    wait_for_all();
  }
  void wait_for_all() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      EXPECT_EQ(cudaStreamSynchronize(on(rank).stream->get()), cudaSuccess);
    }
  }
  static piece_request request(piece_way way) {
    return {data_at, signals_at, credits_at, 3, most_words, few(200), way, piece_order::quiet_each, patience_ns};
  }

  void expect_counts(std::uint32_t rank, std::uint32_t block, std::uint32_t rounds, std::uint64_t right) const {
    static_cast<void>(on(rank));
    const operation_counts found = results_[rank]->counts.download()[block];
    EXPECT_EQ(found.ended, peer_status::ok);
    EXPECT_EQ(found.rounds, rounds);
    EXPECT_EQ(found.right_words, right);
    EXPECT_EQ(found.wrong_words, 0u);
  }
  /// Returns the bytes after the signals once the pieces of a round have come, or were written.
  words window_after(const piece_request& at, std::uint32_t rank, std::uint32_t round) const {
    words all((window_bytes - data_at) / 4, untouched);
    for (std::uint32_t peer = 0; peer < count(); ++peer) {
      const bool is_source = at.way == piece_way::write_and_get;
      for (std::uint32_t piece = 0; piece < at.pieces; ++piece) {
        std::uint32_t* const to = &all[(at.place(peer, piece) - data_at) / 4];
        for (std::uint32_t i = 0; i < at.words; ++i) {
          to[i] = is_source ? piece_word(round, rank, peer, piece, i) : piece_word(round, peer, rank, piece, i);
        }
      }
    }
    return all;
  }
  words out_after(const piece_request& at, std::uint32_t rank, std::uint32_t round) const {
    words all;
    for (std::uint32_t from = 0; from < count(); ++from) {
      for (std::uint32_t piece = 0; piece < at.pieces; ++piece) {
        for (std::uint32_t i = 0; i < at.words; ++i) all.push_back(piece_word(round, from, rank, piece, i));
      }
    }
    EXPECT_LT(all.size(), out_words);
    all.resize(out_words, 0xa5a5a5a5);
    return all;
  }
  words signals_after(std::uint32_t value) const {
    words all(32);
    std::fill_n(all.begin(), count(), value);
    return all;
  }
  /// Expects that so many rounds have run since the one numbered `first`.
  void expect_pieces(const piece_request& at, std::uint32_t first, std::uint32_t rounds) const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      expect_counts(rank, 0, first + rounds, std::uint64_t{rounds} * count() * at.pieces * at.words);
      EXPECT_TRUE(results_[rank]->out.download() == out_after(at, rank, first + rounds - 1)) << "wrong words were read";
      EXPECT_TRUE(download(rank, data_at, (window_bytes - data_at) / 4) == window_after(at, rank, first + rounds - 1))
          << "wrong words are in the window";
      EXPECT_EQ(download(rank, signals_at, 32), signals_after(first + rounds));
      EXPECT_EQ(download(rank, credits_at, 32), signals_after(first + rounds));
    }
  }
  void check_pieces(const piece_request& at, std::uint32_t first = 0) const {
    begin(first);
    launch_all([&](const peer_memory_ref& window, const rank_results& results, cudaStream_t stream) {
      return launch_pieces(window, at, results.counts.data(), results.out.data(), stream);
    });
    expect_pieces(at, first, at.rounds);
  }

  template <class T>
  void check_sums(std::uint32_t elements) const;

  std::vector<std::unique_ptr<rank_results>> results_;
};

TEST_P(operations_on_gpus, pieces_that_are_put_and_announced_are_loaded) {
  check_pieces(request(piece_way::put_and_load));
}

TEST_P(operations_on_gpus, pieces_that_are_put_and_announced_are_copied) {
  check_pieces(request(piece_way::put_and_copy));
}

TEST_P(operations_on_gpus, pieces_that_threads_wrote_are_got_from_their_rank) {
  for (const piece_order order : {piece_order::quiet_each, piece_order::flush_each}) {
    piece_request at = request(piece_way::write_and_get);
    at.order = order;
    check_pieces(at);
  }
}

TEST_P(operations_on_gpus, pieces_of_16_bytes_come_by_every_way) {
  for (const piece_way way : {piece_way::put_and_load, piece_way::put_and_copy, piece_way::write_and_get}) {
    piece_request at = request(way);
    at.words = 4;
    check_pieces(at);
  }
}

/// Each piece is overwritten in shared memory as soon as `flush` returns, and all are announced at
/// the end.
TEST_P(operations_on_gpus, shared_memory_is_used_again_after_a_flush) {
  for (const piece_way way : {piece_way::put_and_load, piece_way::put_and_copy}) {
    piece_request at = request(way);
    at.pieces = 8;
    at.order = piece_order::flush_each;
    check_pieces(at);
  }
}

TEST_P(operations_on_gpus, pieces_are_announced_while_a_later_put_is_on_its_way) {
  for (const std::uint32_t pieces : {1u, 3u}) {
    for (const piece_way way : {piece_way::put_and_load, piece_way::put_and_copy}) {
      piece_request at = request(way);
      at.pieces = pieces;
      at.order = piece_order::one_ahead;
      check_pieces(at);
    }
  }
}

TEST_P(operations_on_gpus, counters_wrap_around) {
  piece_request at = request(piece_way::put_and_load);
  at.rounds = 16;
  check_pieces(at, 0xfffffff8);
}

/// Compares sums of whole numbers, which are exact in any order.
template <class T>
void operations_on_gpus::check_sums(std::uint32_t elements) const {
  const add_request at{data_at, added_at, elements, 2, 2, patience_ns};
  const auto before = [](std::uint32_t rank, std::uint32_t i) { return static_cast<float>((i + 3 * rank) % 5); };
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    std::vector<T> values;
    for (std::uint32_t i = 0; i < elements; ++i) values.push_back(static_cast<T>(before(rank, i)));
    upload(rank, data_at, values);
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
  }
  launch_all([&](const peer_memory_ref& window, const rank_results& results, cudaStream_t stream) {
    return launch_adds(window, at, results.counts.data(), reinterpret_cast<T*>(results.out.data()), stream);
  });
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    words in_window((window_bytes - data_at) / 4, untouched), out(out_words, 0xa5a5a5a5);
    for (std::uint32_t i = 0; i < elements; ++i) {
      float sum = before(rank, i);
      for (std::uint32_t from = 0; from < count(); ++from) {
        sum += static_cast<float>(at.times * at.blocks) * addend(from, rank, i);
      }
      const auto value = static_cast<T>(sum);
      for (words* const each : {&in_window, &out}) {
        std::memcpy(reinterpret_cast<unsigned char*>(each->data()) + i * sizeof(T), &value, sizeof(T));
      }
    }
    expect_counts(rank, 0, 1, 0);
    EXPECT_TRUE(results_[rank]->out.download() == out) << "wrong sums were loaded";
    EXPECT_TRUE(download(rank, data_at, in_window.size()) == in_window) << "wrong sums are in the window";
    EXPECT_EQ(download(rank, added_at, 1).front(), count() * at.blocks);
  }
}

TEST_P(operations_on_gpus, all_ranks_add_f32_into_all_ranks_at_once) {
  check_sums<float>(2048);
}

TEST_P(operations_on_gpus, all_ranks_add_bf16_into_all_ranks_at_once) {
  check_sums<__nv_bfloat16>(4096);
}

TEST_P(operations_on_gpus, all_ranks_add_f16_into_all_ranks_at_once) {
  check_sums<__half>(4096);
}

TEST_P(operations_on_gpus, a_barrier_announces_what_its_thread_wrote_and_put) {
  const turns_request at{meet_at, 64, few(1000), patience_ns};
  launch_all([&](const peer_memory_ref& window, const rank_results& results, cudaStream_t stream) {
    return launch_barriers(window, at, results.counts.data(), stream);
  });
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    expect_counts(rank, 0, at.turns, std::uint64_t{at.turns} * count() * 2 * at.words);
    words expected((window_bytes - data_at) / 4, untouched);
    for (std::uint32_t from = 0; from < count(); ++from) {
      for (std::uint32_t i = 0; i < at.words; ++i) {
        expected[(at.place(from) - data_at) / 4 + i] = piece_word(at.turns - 1, from, rank, 0, i);
      }
    }
    EXPECT_TRUE(download(rank, data_at, expected.size()) == expected) << "wrong words are in the window";
  }
}

TEST_P(operations_on_gpus, pieces_pass_one_after_the_other_through_one_place) {
  const turns_request at{pass_at, most_words, few(1000), patience_ns};
  launch_all([&](const peer_memory_ref& window, const rank_results& results, cudaStream_t stream) {
    return launch_passes(window, at, results.counts.data(), stream);
  });
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    words expected((window_bytes - data_at) / 4, untouched);
    for (std::uint32_t peer = 0; peer < count(); ++peer) {
      SCOPED_TRACE("ranks " + std::to_string(rank) + " and " + std::to_string(peer));
      expect_counts(rank, peer, at.turns, 0);
      expect_counts(rank, count() + peer, at.turns, std::uint64_t{at.turns} * at.words);
      for (std::uint32_t i = 0; i < at.words; ++i) {
        expected[(at.place(peer) - data_at) / 4 + i] = piece_word(at.turns - 1, peer, rank, 0, i);
      }
    }
    EXPECT_TRUE(download(rank, data_at, expected.size()) == expected) << "wrong words are in the window";
  }
}

/// Waits find the values that they expect in device memory: in the counts of a kernel for signals,
/// and in the window for barriers and pieces that pass.
TEST_P(operations_on_gpus, a_graph_of_signals_barriers_and_passes_is_replayed) {
  const std::uint32_t times = few(500);
  piece_request pieces = request(piece_way::put_and_load);
  pieces.rounds = 1;
  const turns_request meeting{meet_at, 64, 2, patience_ns}, passing{pass_at, most_words, 3, patience_ns};
  std::vector<cudaGraphExec_t> graphs(count());
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    const rank_on_gpu& at = on(rank);
    operation_counts* const counts = results_[rank]->counts.data();
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(at.stream->get(), cudaStreamCaptureModeRelaxed));
    TMAP_ASSERT_CUDA(launch_pieces(at.window.ref(), pieces, counts, results_[rank]->out.data(), at.stream->get()));
    TMAP_ASSERT_CUDA(launch_barriers(at.window.ref(), meeting, counts + 1, at.stream->get()));
    TMAP_ASSERT_CUDA(launch_passes(at.window.ref(), passing, counts + 2, at.stream->get()));
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(at.stream->get(), &graph));
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&graphs[rank], graph, 0));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
    TMAP_ASSERT_CUDA(cudaGraphUpload(graphs[rank], at.stream->get()));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(at.stream->get()));
  }
  for (std::uint32_t i = 0; i < times; ++i) {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      TMAP_ASSERT_CUDA(cudaGraphLaunch(graphs[rank], on(rank).stream->get()));
    }
    if (i % 100 == 0) wait_for_all();
  }
  wait_for_all();
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    SCOPED_TRACE("rank " + std::to_string(rank));
    expect_counts(rank, 0, times, std::uint64_t{times} * count() * pieces.pieces * pieces.words);
    EXPECT_TRUE(results_[rank]->out.download() == out_after(pieces, rank, times - 1)) << "wrong words were read";
    expect_counts(rank, 1, 2 * times, std::uint64_t{2} * times * count() * 2 * meeting.words);
    for (std::uint32_t peer = 0; peer < count(); ++peer) {
      expect_counts(rank, 2 + peer, 3 * times, 0);
      expect_counts(rank, 2 + count() + peer, 3 * times, std::uint64_t{3} * times * passing.words);
    }
  }
  for (const cudaGraphExec_t graph : graphs) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, operations_on_gpus, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, operations_on_gpus, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, operations_on_gpus, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_ranks_over_nccl, operations_on_gpus, ::testing::Values(ranks_over_nccl({0, 0})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, operations_on_gpus, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing::operations
