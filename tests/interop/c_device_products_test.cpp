// SPDX-License-Identifier: Apache-2.0
// Products of the C interface begin while a dispatch brings their rows.
#include "device/own_stream.hpp"
#include "interop/c_device_peers.hpp"

namespace tmap::testing {
namespace {

/// A product of bf16 reads the same bytes.
class c_device_products : public c_device_experts {
 protected:
  static constexpr std::uint32_t groups = experts / ranks, row_bytes = 4 * columns, n = 16;

  struct product_memory {
    explicit product_memory(std::uint64_t workspace_bytes) : workspace(workspace_bytes) {}

    device_array<std::uint32_t> pending{groups + 1};
    device_array<std::uint16_t> b{groups * n * row_bytes / 2}, c{most_rows * n};
    device_array<unsigned char> workspace;
    own_stream side;
    cudaEvent_t ready{}, done{};
  };

  void SetUp() override {
    c_device_experts::SetUp();
    if (IsSkipped()) return;
    std::uint64_t bytes = 0;
    ASSERT_EQ(tmap_gemm_workspace_bytes(groups, &bytes), TMAP_OK);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      memory_.push_back(std::make_unique<product_memory>(bytes));
      product_memory& at = *memory_[rank];
      std::vector<std::uint16_t> numbers(at.b.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint16_t>(0x3f80 + i % 61);
      at.b.upload(numbers);
      TMAP_ASSERT_CUDA(cudaEventCreateWithFlags(&at.ready, cudaEventDisableTiming));
      TMAP_ASSERT_CUDA(cudaEventCreateWithFlags(&at.done, cudaEventDisableTiming));
      arrays_[rank]->begins.upload(std::vector<std::int32_t>(groups + 1, 0));
      multiply(rank, nullptr, streams_[rank]);  // CUDA may wait for the GPU when it loads a kernel
    }
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  }
  void TearDown() override {
    for (const auto& each : memory_) {
      EXPECT_EQ(cudaEventDestroy(each->ready), cudaSuccess);
      EXPECT_EQ(cudaEventDestroy(each->done), cudaSuccess);
    }
    memory_.clear();
    c_device_experts::TearDown();
  }

  void multiply(std::uint32_t rank, const std::uint32_t* pending, cudaStream_t stream) const {
    const product_memory& of = *memory_[rank];
    auto problem = sized<tmap_row_problem>();
    problem.operand = TMAP_OPERAND_BF16;
    problem.b_layout = TMAP_B_N_BY_K;
    problem.groups = groups;
    problem.rows = most_rows;
    problem.n = n;
    problem.k = row_bytes / 2;
    problem.offsets = {arrays_[rank]->begins.data(), TMAP_OFFSETS_PREFIX, 4, nullptr, 0};
    problem.a = {at(rank, rows_at), row_bytes};
    problem.b = {of.b.address(), row_bytes};
    problem.b_group_pitch_bytes = n * row_bytes;
    problem.c = {of.c.address(), n * 2};
    problem.pending = pending;
    auto call = sized<tmap_call>();
    call.stream = stream;
    call.workspace = of.workspace.data();
    call.workspace_bytes = of.workspace.size();
    call.blocks = 8;  // the other rank needs multiprocessors, too
    ASSERT_EQ(tmap_gemm_rows(&problem, &call), TMAP_OK);
  }
  void multiply_after(std::uint32_t rank) const {
    dispatch(rank);
    multiply(rank, nullptr, streams_[rank]);
  }
  void multiply_meanwhile(std::uint32_t rank) const {
    const product_memory& of = *memory_[rank];
    dispatch(rank, of.pending.data(), of.ready);
    TMAP_ASSERT_CUDA(cudaStreamWaitEvent(of.side.get(), of.ready, 0));
    multiply(rank, of.pending.data(), of.side.get());
    TMAP_ASSERT_CUDA(cudaEventRecord(of.done, of.side.get()));
    TMAP_ASSERT_CUDA(cudaStreamWaitEvent(streams_[rank], of.done, 0));
  }
  template <class Multiply>
  std::vector<std::vector<std::uint16_t>> results_of(const Multiply& multiply) const {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      memory_[rank]->c.fill_poison();
      EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(at(rank, rows_at)), 0xa5, most_rows * row_bytes), cudaSuccess);
      EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) multiply(rank);
    std::vector<std::vector<std::uint16_t>> found;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(tmap_peer_last_outcome(windows_[rank], streams_[rank]), TMAP_OK);
      expect_rows_by_expert(rank);
      found.push_back(memory_[rank]->c.download());
    }
    return found;
  }

  std::vector<std::unique_ptr<product_memory>> memory_;
};

TEST_F(c_device_products, begin_while_rows_come_and_have_the_same_bits) {
  const auto wanted = results_of([&](std::uint32_t rank) { multiply_after(rank); });
  EXPECT_NE(wanted[0][0], 0xa5a5) << "the product wrote nothing";
  for (int call = 0; call < 5; ++call) {
    EXPECT_EQ(results_of([&](std::uint32_t rank) { multiply_meanwhile(rank); }), wanted);
    for (const auto& each : memory_) EXPECT_EQ(each->pending.download(), std::vector<std::uint32_t>(groups + 1, 0));
  }
}

}  // namespace
}  // namespace tmap::testing
