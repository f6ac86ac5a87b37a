// SPDX-License-Identifier: Apache-2.0
// Builds the code of docs/peers.md, and runs what needs no GPU.
#include <tmap/encode_batch.hpp>
#include <tmap/expert_parallel.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/peer_exchange.hpp>
#include <tmap/peer_group.hpp>

#include <gtest/gtest.h>

#include <cstdlib>

#include "lib/peer/make_group.hpp"
#include "peer/fake_peers.hpp"

namespace tmap::testing {
namespace {

// [group_of_addresses]
tmap::result<tmap::peer_memory> window_at(std::uint32_t rank, const std::vector<tmap::device_address>& buffers,
                                          std::uint64_t buffer_bytes) {
  // buffers[r]: the zeroed buffer of rank r as this GPU sees it, such as PyTorch's `buffer_ptrs`.
  auto group = tmap::peer_group::from_addresses(rank, buffers, buffer_bytes);
  if (!group) return tmap::failure{group.error()};
  return group->allocate(buffer_bytes - tmap::peer_header_bytes);
}
// [group_of_addresses]

// [group_of_process]
tmap::result<std::vector<tmap::peer_memory>> windows_on_two_gpus(std::uint64_t bytes) {
  auto groups = tmap::peer_group::of_process({0, 1});
  if (!groups) return tmap::failure{groups.error()};
  std::vector<tmap::peer_memory> windows;
  for (tmap::peer_group& rank : *groups) {
    auto window = rank.allocate(bytes);
    if (!window) return tmap::failure{window.error()};
    windows.push_back(std::move(*window));
  }
  return windows;
}
// [group_of_process]

// [group_over_nccl]
tmap::result<tmap::peer_memory> window_of_a_job(std::uint32_t rank, std::uint32_t ranks, std::uint64_t job,
                                                std::uint64_t bytes) {
  auto group = tmap::peer_group::create(
      {.rank = rank, .ranks = ranks, .id_file = "/shared/run/peers", .run = job, .patience = std::chrono::seconds{60}});
  if (!group) return tmap::failure{group.error()};
  return group->allocate(bytes);
}
// [group_over_nccl]

// [product_for_a_peer]
tmap::result<void> multiply_for(const tmap::peer_memory& window, std::uint32_t owner, std::uint64_t offset,
                                tmap::gemm::row_problem product, const tmap::gemm::run& with) {
  product.c.address = window.ref().address(owner, offset);  // the results land there, tile by tile
  if (auto done = tmap::gemm::multiply(product, with); !done) return done;
  return tmap::barrier_async(window, with.where.stream);  // all ranks make this call; then the owner reads
}
// [product_for_a_peer]

// [window_without_peer_access]
tmap::result<tmap::peer_memory> window_anywhere(tmap::peer_group& group, std::uint64_t bytes,
                                                std::uint64_t pair_bytes) {
  auto window = group.allocate(bytes);
  if (window || window.error().code != tmap::status::no_peer_access) return window;
  return group.allocate_local(bytes, pair_bytes);  // all ranks come here, or none does
}
// [window_without_peer_access]

// [map_owners]
tmap::result<void> encode_for_owners(const tmap::peer_memory& window, const std::uint32_t* owners,
                                     const tmap::map_template& base, const tmap::patch_columns& tensors,
                                     tmap::tensor_map* slots, std::uint64_t count, cuda::stream_ref stream) {
  tmap::encode_run run{stream};
  run.choices.owners = {owners, window.ref()};  // owners[i]: the rank of tensor i, in device memory
  return tmap::encode_batch(base, tensors, slots, count, run);
}
// [map_owners]

// [exchange_rows]
tmap::result<void> exchange_tokens(const tmap::peer_memory& window, std::uint64_t most_rows, std::uint32_t row_bytes,
                                   cuda::stream_ref stream) {
  const auto at = [&](std::uint64_t offset) { return static_cast<unsigned char*>(window.data()) + offset; };
  tmap::exchange_problem problem;
  problem.groups = 8;  // experts of each rank
  problem.row_bytes = row_bytes;
  problem.splits = reinterpret_cast<const std::uint32_t*>(at(0));      // [ranks, experts], made by a kernel
  problem.out_splits = reinterpret_cast<std::uint32_t*>(at(1 << 12));  // how many rows came
  problem.rows = at(1 << 13);
  problem.out = at((1 << 13) + most_rows * row_bytes);
  problem.sent_rows = problem.capacity = most_rows;
  problem.placed = tmap::row_placement::group_major;  // by expert
  return tmap::exchange_rows_async(window, problem, {stream});
}
// [exchange_rows]

// [exchange_all]
/// Both ranks exchange tokens. `streams[i]` belongs to GPU i.
tmap::result<void> exchange_on_two_gpus(const std::vector<tmap::peer_memory>& windows, const cudaStream_t* streams,
                                        std::uint64_t most_rows, std::uint32_t row_bytes) {
  for (int gpu = 0; gpu < 2; ++gpu) {
    if (cudaSetDevice(gpu) != cudaSuccess) return tmap::failure{tmap::error{tmap::status::no_device}};
    const auto sent = exchange_tokens(windows[gpu], most_rows, row_bytes, cuda::stream_ref{streams[gpu]});
    if (!sent) return sent;
  }
  for (int gpu = 0; gpu < 2; ++gpu) {  // only now, because the ranks wait for each other
    const auto ended = tmap::last_outcome(windows[gpu], cuda::stream_ref{streams[gpu]});
    if (!ended) return ended;
  }
  return {};
}
// [exchange_all]

// [expert_places]
/// Parts of a window, in bytes from its beginning. The tokens come first.
struct expert_places {
  std::uint64_t rows;     // by expert
  std::uint64_t scratch;  // of both calls
  std::uint64_t end;
};

tmap::result<expert_places> place_experts(const tmap::expert_parallel::shape& sizes, std::uint32_t ranks) {
  const auto bytes = tmap::expert_parallel::workspace_bytes(sizes, ranks);
  if (!bytes) return tmap::failure{bytes.error()};
  const auto after = [](std::uint64_t begin, std::uint64_t count) { return begin + (count + 255) / 256 * 256; };
  expert_places at{};
  at.rows = after(0, sizes.tokens * sizes.row_bytes);
  at.scratch = after(at.rows, tmap::expert_parallel::row_count(sizes, ranks) * sizes.row_bytes);
  at.end = at.scratch + *bytes;
  return at;
}
// [expert_places]

/// Addresses: x, rows and scratch lie in the window, the others in any memory of this GPU.
struct expert_buffers {
  std::uint64_t x, rows, results, out;
  const std::int32_t* ids;
  const float* weights;
  std::int32_t* begins;
  workspace scratch;
};

// [expert_ranks]
tmap::result<void> layer_of_experts(const tmap::peer_memory& window, const tmap::expert_parallel::shape& sizes,
                                    const expert_buffers& at, cuda::stream_ref stream) {
  const tmap::expert_parallel::run run{.stream = stream, .scratch = at.scratch};
  tmap::expert_parallel::dispatch_problem there;
  there.sizes = sizes;
  there.x = {at.x, sizes.row_bytes};
  there.ids = at.ids;  // of `moe::route` with the experts of all ranks
  there.weights = at.weights;
  there.out = {at.rows, sizes.row_bytes};
  there.begins = at.begins;  // cut the rows into this rank's experts, by `offset_format::prefix`
  if (auto sent = dispatch_async(window, there, run); !sent) return sent;

  // Here products multiply the rows of each expert, as in a layer on one GPU.

  tmap::expert_parallel::combine_problem back;
  back.sizes = sizes;
  back.values = {at.results, sizes.columns * 2};
  back.out = {at.out, sizes.columns * 2};
  return combine_async(window, back, run);
}
// [expert_ranks]

/// Events that order two streams.
struct stream_events {
  cudaEvent_t ready, multiplied;
};

// [overlapped_product]
tmap::result<void> multiply_while_rows_come(const tmap::peer_memory& window,
                                            tmap::expert_parallel::dispatch_problem sent,
                                            const tmap::expert_parallel::run& run, tmap::gemm::row_problem product,
                                            const tmap::gemm::run& beside, std::uint32_t* pending,
                                            const stream_events& events) {
  sent.pending = pending;  // a word for each expert of this rank, and one more
  sent.ready = events.ready;
  if (auto done = dispatch_async(window, sent, run); !done) return done;
  cudaStreamWaitEvent(beside.where.stream.get(), events.ready);  // the second stream
  product.pending = pending;
  if (auto done = tmap::gemm::multiply(product, beside); !done) return done;
  cudaEventRecord(events.multiplied, beside.where.stream.get());
  cudaStreamWaitEvent(run.stream.get(), events.multiplied);  // the first one joins
  return {};
}
// [overlapped_product]

TEST(group_samples, a_product_that_begins_while_rows_come_needs_a_good_dispatch) {
  const auto window = window_at(0, {1 << 20, 1 << 21}, 1 << 20);
  ASSERT_TRUE(window.has_value());
  const cuda::stream_ref stream{cudaStream_t{}};
  tmap::expert_parallel::dispatch_problem sent;
  sent.sizes = {.k = 2, .experts = 8};
  const auto refused =
      multiply_while_rows_come(*window, sent, {.stream = stream}, {}, {.where = {stream}}, nullptr, {});
  EXPECT_EQ(refused.error().argument.view(), "problem.sizes.row_bytes");
}

TEST(group_samples, experts_refuse_sizes_of_no_rows) {
  const auto window = window_at(0, {1 << 20, 1 << 21}, 1 << 20);
  ASSERT_TRUE(window.has_value());
  const auto refused = layer_of_experts(*window, {.k = 2, .experts = 8}, {}, cuda::stream_ref{cudaStream_t{}});
  EXPECT_EQ(refused.error().argument.view(), "problem.sizes.row_bytes");
}

TEST(group_samples, parts_of_a_window_of_experts_do_not_overlap) {
  const tmap::expert_parallel::shape sizes{
      .tokens = 100, .k = 2, .experts = 8, .arrivals = 200, .row_bytes = 48, .columns = 64};
  const auto at = place_experts(sizes, 2);
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(at->rows, 4864u);
  EXPECT_EQ(at->scratch, 4864u + 400 * 48);
  EXPECT_EQ(at->end, at->scratch + tmap::expert_parallel::workspace_bytes(sizes, 2).value());
  EXPECT_EQ(place_experts(sizes, 3).error().argument.view(), "sizes.experts");
}

TEST(group_samples, owners_are_checked_on_the_host) {
  const auto window = window_at(1, {1 << 20, 1 << 21}, 1 << 20);
  map_template base{};
  base.spec.rank = 2;
  base.fields = patch_dim(1);
  const std::uint64_t rows = 0;
  const std::uint32_t owner = 0;
  alignas(128) tensor_map slot{};
  const auto encoded = encode_for_owners(*window, &owner, base, {nullptr, {nullptr, &rows}, {}}, &slot, 1,
                                         cuda::stream_ref{cudaStream_t{}});
  EXPECT_EQ(encoded.error().argument.view(), "base.fields") << "maps of peers need the address";
}

TEST(group_samples, an_exchange_refuses_a_window_that_is_too_small) {
  const auto window = window_at(0, {1 << 20, 1 << 21}, 1 << 20);
  ASSERT_TRUE(window.has_value());
  const auto refused = exchange_tokens(*window, 8192, 0, cuda::stream_ref{cudaStream_t{}});
  EXPECT_EQ(refused.error().argument.view(), "problem.row_bytes");
}

TEST(group_samples, two_ranks_are_refused_as_one_is) {
  std::vector<peer_memory> windows;
  windows.push_back(window_at(0, {1 << 20, 1 << 21}, 1 << 20).value());
  windows.push_back(window_at(1, {1 << 20, 1 << 21}, 1 << 20).value());
  const cudaStream_t streams[2]{};
  const auto refused = exchange_on_two_gpus(windows, streams, 8192, 0);
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().code == status::no_device || refused.error().argument.view() == "problem.row_bytes");
}

TEST(group_samples, a_window_at_addresses) {
  const auto window = window_at(1, {1 << 20, 1 << 21}, 1 << 20);
  ASSERT_TRUE(window.has_value());
  EXPECT_EQ(window->ref().address(0), (1u << 20) + peer_header_bytes);
}

TEST(group_samples, a_product_for_a_peer_is_checked_as_any_other) {
  const auto window = window_at(1, {1 << 20, 1 << 21}, 1 << 20);
  ASSERT_TRUE(window.has_value());
  const auto refused = multiply_for(*window, 0, 4096, {}, {.where = {cuda::stream_ref{cudaStream_t{}}}});
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().code == status::no_device || refused.error().code == status::no_driver ||
              refused.error().code == status::invalid_argument)
      << to_string(refused.error());
}

TEST(group_samples, a_window_without_peer_access_is_one_that_peers_do_not_reach) {
  fake_peers machine;
  auto group =
      peer::group_from_nccl(machine.program_communicator(0, 2, 1), std::chrono::seconds{1}, fake_peers::calls());
  EXPECT_TRUE(window_anywhere(*group, 4096, 256)->reaches_peers());
  machine.are_windows_refused = true;
  EXPECT_FALSE(window_anywhere(*group, 4096, 256)->reaches_peers());
}

TEST(group_samples, two_gpus_are_there_or_the_reason_why_not) {
  const auto windows = windows_on_two_gpus(4096);
  if (windows) {
    EXPECT_EQ(windows->size(), 2u);
    return;
  }
  const status code = windows.error().code;
  EXPECT_TRUE(code == status::no_driver || code == status::no_device || code == status::invalid_argument ||
              code == status::no_peer_access)
      << to_string(windows.error());
}

TEST(group_samples, multicast_must_be_off_in_this_process_too) {
  ASSERT_EQ(unsetenv("NCCL_NVLS_ENABLE"), 0);
  EXPECT_EQ(window_of_a_job(1, 2, 7, 4096).error().code, status::multicast_not_off);
}

}  // namespace
}  // namespace tmap::testing
