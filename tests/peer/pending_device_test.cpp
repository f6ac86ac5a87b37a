// SPDX-License-Identifier: Apache-2.0
// Products of all rows begin while rows come. Virtual ranks and two GPUs run the same tests.
#include "peer/pending_fixture.hpp"

namespace tmap::testing::pending {
namespace {

TEST_P(products_of_dispatches, begin_while_rows_come_and_have_the_same_bits) {
  prepare(many_tokens);
  compare(10);
}

TEST_P(products_of_dispatches, of_few_tokens_have_the_same_bits) {
  prepare(few_tokens);
  compare(5);
}

TEST_P(products_of_dispatches, leave_the_dispatch_its_multiprocessors) {
  if (share_a_gpu()) GTEST_SKIP() << "ranks of one GPU need bounded products";
  blocks_ = 64;
  prepare(many_tokens);
  compare(10);
}

TEST_P(products_of_dispatches, are_replayed_as_a_graph) {
  prepare(many_tokens);
  load_products();
  draw();
  results_of([&](std::uint32_t rank) { enqueue_meanwhile(rank); });  // loads all kernels
  std::vector<cudaGraphExec_t> graphs(count());
  for (std::uint32_t rank = 0; rank < count(); ++rank) {
    cudaGraph_t graph{};
    TMAP_ASSERT_CUDA(cudaStreamBeginCapture(on(rank).stream->get(), cudaStreamCaptureModeGlobal));
    enqueue_meanwhile(rank);
    TMAP_ASSERT_CUDA(cudaStreamEndCapture(on(rank).stream->get(), &graph));
    TMAP_ASSERT_CUDA(cudaGraphInstantiate(&graphs[rank], graph, 0));
    TMAP_ASSERT_CUDA(cudaGraphUpload(graphs[rank], on(rank).stream->get()));
    TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
    TMAP_ASSERT_CUDA(cudaGraphDestroy(graph));
  }
  for (std::uint32_t call = 0; call < 5; ++call) {
    draw();
    const auto wanted = results_of([&](std::uint32_t rank) { enqueue_after(rank); });
    poison_results();
    const auto found = results_of(
        [&](std::uint32_t rank) { EXPECT_EQ(cudaGraphLaunch(graphs[rank], on(rank).stream->get()), cudaSuccess); });
    EXPECT_TRUE(found == wanted) << "replay " << call;
  }
  for (const cudaGraphExec_t graph : graphs) EXPECT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_P(products_of_dispatches, end_when_a_rank_has_too_little_room) {
  for (const std::uint64_t tokens : {few_tokens, many_tokens}) {
    SCOPED_TRACE(tokens);
    sizes_.rows = 0;
    prepare(tokens);
    load_products();
    draw();
    results_of([&](std::uint32_t rank) { enqueue_after(rank); });
    sizes_.rows = 8;
    for (std::uint32_t rank = 0; rank < count(); ++rank) enqueue_meanwhile(rank);
    for (std::uint32_t rank = 0; rank < count(); ++rank) expect_status(rank, status::peer_overflow);
    expect_words_are_0();
  }
}

TEST_P(products_of_dispatches, end_when_a_rank_does_not_come) {
  if (count() == 1) GTEST_SKIP() << "needs two ranks";
  prepare(many_tokens);
  load_products();
  draw();
  results_of([&](std::uint32_t rank) { enqueue_after(rank); });
  const std::uint32_t late = count() - 1;
  for (std::uint32_t rank = 0; rank < late; ++rank) enqueue_meanwhile(rank);
  for (std::uint32_t rank = 0; rank < late; ++rank) EXPECT_FALSE(outcome(rank).has_value()) << rank;
  memory_[late]->pending.upload(words(experts_of_rank + 1, 0));
  expect_words_are_0();
}

INSTANTIATE_TEST_SUITE_P(one_rank, products_of_dispatches, ::testing::Values(virtual_ranks(1)));
INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, products_of_dispatches, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(four_virtual_ranks, products_of_dispatches, ::testing::Values(virtual_ranks(4)));
INSTANTIATE_TEST_SUITE_P(two_gpus, products_of_dispatches, ::testing::Values(ranks_of_process({0, 1})));
INSTANTIATE_TEST_SUITE_P(two_gpus_over_nccl, products_of_dispatches, ::testing::Values(ranks_over_nccl({0, 1})));

}  // namespace
}  // namespace tmap::testing::pending
