// SPDX-License-Identifier: Apache-2.0
// Runs products on rank 0 whose results lie in the windows of all ranks: the epilogue of a product
// is the transfer. Operands lie there, too. Every byte is that of the same product in local memory.
#include <tmap/grouped_gemm.hpp>
#include <tmap/peer_exchange.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gemm/on_device.hpp"
#include "peer/ranks_with_products.hpp"

namespace tmap::testing::products {
namespace {

using gemm::testing::call_memory;
using gemm::testing::host_matrix;
using gemm::testing::judged_group;
using gemm::testing::margin_bytes;
using gemm::testing::pointer_settings;
using gemm::testing::pointers_on_device;
using gemm::testing::product_size;
using gemm::testing::row_case;
using gemm::testing::row_settings;
using gemm::testing::rows_on_device;
using byte_list = std::vector<unsigned char>;

constexpr std::uint64_t result_bytes = 8 << 20;
constexpr unsigned char canary = 0x5a;

class products_into_windows : public ranks_with_products {
 protected:
  products_into_windows() : ranks_with_products(result_bytes) {}

  void SetUp() override {
    ranks_with_products::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    windows_.assign(count(), byte_list(result_bytes, canary));
  }

  /// Returns the address of a byte of a rank's window, as rank 0 sees it.
  std::uint64_t address(std::uint32_t rank, std::uint64_t offset) const {
    return on(0).window.ref().address(rank, offset);
  }
  /// Gives all windows the bytes that the test expects of them so far.
  void upload_all() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      upload(rank, 0, windows_[rank]);
      TMAP_ASSERT_CUDA(cudaStreamSynchronize(on(rank).stream->get()));
    }
    TMAP_ASSERT_CUDA(cudaSetDevice(on(0).gpu));
  }
  void expect_in_window(std::uint32_t rank, std::uint64_t offset, const byte_list& bytes) {
    ASSERT_LE(offset + bytes.size(), result_bytes);
    std::copy(bytes.begin(), bytes.end(), windows_[rank].begin() + static_cast<std::ptrdiff_t>(offset));
  }

  /// Runs a product of rank 0. After a barrier all ranks read their windows.
  template <class Problem>
  void run(const Problem& problem, const call_memory& memory) const {
    const rank_on_gpu& first = on(0);
    TMAP_ASSERT_OK(gemm::multiply(problem, memory.on(first.stream->get(), {})));
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const rank_on_gpu& at = on(rank);
      TMAP_ASSERT_OK(barrier_async(at.window, at.stream->ref(), patience));
    }
  }
  void expect_windows() const {
    for (std::uint32_t rank = 0; rank < count(); ++rank) {
      const byte_list found = download<unsigned char>(rank, 0, result_bytes);
      expect_ok(rank);
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < result_bytes; ++i) {
        if (found[i] != windows_[rank][i] && wrong++ == 0) ADD_FAILURE() << "rank " << rank << ": byte " << i;
      }
      EXPECT_EQ(wrong, 0u);
    }
    static_cast<void>(on(0));
  }

  void check_pointers(const pointer_settings& with);
  void check_rows(const row_settings& with);
  void check_row_lists(row_settings with);

  std::vector<byte_list> windows_;  ///< that are expected
};

std::vector<judged_group> judged_of(const std::vector<product_size>& sizes) {
  std::vector<judged_group> judged;
  for (const product_size& size : sizes) {
    const bool is_empty = size.m == 0 || size.n == 0 || size.k == 0;
    judged.push_back({0, 0, {is_empty ? gemm::group_status::empty_bit : 0}});
  }
  return judged;
}

/// Places the results of each group at another rank. The addresses are a list in device memory.
void products_into_windows::check_pointers(const pointer_settings& with) {
  const pointers_on_device local(with);
  pointers_on_device remote(with);
  const std::vector<host_matrix> before = local.outputs();
  TMAP_ASSERT_OK(local.enqueue(nullptr));
  const std::vector<host_matrix> after = local.outputs();
  std::vector<std::uint64_t> places;
  std::uint64_t end = 4096;
  for (std::uint32_t g = 0; g < before.size(); ++g) {
    places.push_back(end);
    remote.columns().c[g] = address(g % count(), end + margin_bytes);
    expect_in_window(g % count(), end, before[g].bytes());
    end += (before[g].bytes().size() + 255) / 256 * 256;
  }
  remote.upload();
  upload_all();
  const call_memory memory(static_cast<std::uint32_t>(before.size()));
  run(remote.problem(), memory);
  for (std::uint32_t g = 0; g < after.size(); ++g) expect_in_window(g % count(), places[g], after[g].bytes());
  expect_windows();
  memory.expect(judged_of(with.sizes));
}

TEST_P(products_into_windows, matrices_on_all_ranks_have_the_bits_of_local_ones) {
  for (const auto c_type : {gemm::result_type::like_operands, gemm::result_type::f32}) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(accumulate);
      pointer_settings with;
      with.c_type = c_type;
      with.accumulate = accumulate;
      with.sizes = {{129, 520, 64}, {63, 256, 200}, {1, 8, 8},     {300, 72, 328},
                    {0, 64, 64},    {40, 64, 0},    {65, 264, 72}, {447, 128, 1032}};
      check_pointers(with);
    }
  }
}

TEST_P(products_into_windows, operands_that_are_stored_across_k_give_the_same_bits) {
  pointer_settings with;
  with.type = gemm::operand_type::f16;
  with.a_layout = gemm::a_layout::k_by_m;
  with.b_layout = gemm::b_layout::k_by_n;
  with.sizes = {{200, 136, 96}, {64, 128, 72}, {129, 264, 200}, {7, 16, 40}};
  check_pointers(with);
}

/// Places the matrix C of all groups at the last rank.
void products_into_windows::check_rows(const row_settings& with) {
  const row_case made(with);
  const rows_on_device device(made);
  const host_matrix before = device.output();
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  const host_matrix after = device.output();
  const std::uint32_t owner = count() - 1;
  gemm::row_problem problem = device.problem();
  problem.c.address = address(owner, 4096 + margin_bytes);
  expect_in_window(owner, 4096, before.bytes());
  upload_all();
  const call_memory memory(with.groups());
  run(problem, memory);
  expect_in_window(owner, 4096, after.bytes());
  expect_windows();
  memory.expect(made.judged());
  EXPECT_TRUE(device.output().bytes() == after.bytes()) << "the local matrix has changed";
}

row_settings ragged_rows_with(gemm::result_type c_type) {
  row_settings with;
  with.c_type = c_type;
  with.sizes = {0, 1, 63, 130, 0, 257, 64};
  with.n = 264;
  return with;
}

TEST_P(products_into_windows, rows_on_another_rank_have_the_bits_of_local_ones) {
  for (const auto c_type : {gemm::result_type::like_operands, gemm::result_type::f32}) {
    row_settings with = ragged_rows_with(c_type);
    check_rows(with);
    with.accumulate = true;
    check_rows(with);
  }
}

TEST_P(products_into_windows, an_epilogue_with_a_gate_writes_to_another_rank) {
  row_settings with = ragged_rows_with(gemm::result_type::like_operands);
  with.n = 288;
  with.bias = with.row_scales = with.column_scales = true;
  with.gates.function = gemm::gate_function::silu;
  check_rows(with);
}

TEST_P(products_into_windows, rows_that_belong_to_no_group_become_zeros_on_another_rank) {
  row_settings with = ragged_rows_with(gemm::result_type::like_operands);
  with.zero_rest = true;
  check_rows(with);
}

/// Places the rows of each group at another rank, by a list of addresses in device memory.
void products_into_windows::check_row_lists(row_settings with) {
  const row_case made(with);
  const rows_on_device device(made);
  const host_matrix before = device.output();
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  const host_matrix after = device.output();
  const std::vector<judged_group> groups = made.judged();
  std::vector<host_matrix> expected(count(), before);
  std::vector<std::uint64_t> addresses;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    const std::uint64_t begin = after.place_of(groups[g].begin, 0), end = after.place_of(groups[g].end, 0);
    const auto from = after.bytes().begin();
    std::copy(from + static_cast<std::ptrdiff_t>(begin), from + static_cast<std::ptrdiff_t>(end),
              expected[g % count()].bytes().begin() + static_cast<std::ptrdiff_t>(begin));
    addresses.push_back(address(g % count(), 4096 + begin));
  }
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_in_window(rank, 4096, before.bytes());
  upload_all();
  const device_array<std::uint64_t> list(addresses);
  const call_memory memory(with.groups());
  gemm::row_problem problem = device.problem();
  problem.c.address = 0;
  problem.c_addresses = list.data();
  run(problem, memory);
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_in_window(rank, 4096, expected[rank].bytes());
  expect_windows();
  memory.expect(groups);
}

TEST_P(products_into_windows, groups_of_rows_go_to_the_ranks_that_a_list_names) {
  check_row_lists(ragged_rows_with(gemm::result_type::like_operands));
  check_row_lists(ragged_rows_with(gemm::result_type::f32));
}

TEST_P(products_into_windows, operands_on_another_rank_have_the_results_of_local_ones) {
  row_settings with = ragged_rows_with(gemm::result_type::like_operands);
  with.k = 328;
  const row_case made(with);
  const rows_on_device device(made);
  TMAP_ASSERT_OK(device.enqueue(nullptr));
  const host_matrix wanted = device.output();
  gemm::row_problem problem = device.problem();
  std::uint64_t end = 0;
  const auto move = [&](device_address& operand, std::uint64_t bytes) {
    const std::uint64_t place = address(count() - 1, end);
    EXPECT_EQ(cudaMemcpy(reinterpret_cast<void*>(place), reinterpret_cast<const void*>(operand.value()), bytes,
                         cudaMemcpyDefault),
              cudaSuccess);
    EXPECT_EQ(cudaMemset(reinterpret_cast<void*>(operand.value()), canary, bytes), cudaSuccess);
    operand = place;
    end += (bytes + 255) / 256 * 256;
  };
  move(problem.a.address, problem.rows * problem.a.pitch_bytes);
  move(problem.b.address, problem.groups * problem.b_group_pitch_bytes);
  ASSERT_LE(end, result_bytes);
  device.reset_output();
  TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
  const call_memory memory(with.groups());
  run(problem, memory);
  for (std::uint32_t rank = 0; rank < count(); ++rank) expect_ok(rank);
  static_cast<void>(on(0));
  EXPECT_TRUE(device.output().bytes() == wanted.bytes());
  memory.expect(made.judged());
}

INSTANTIATE_TEST_SUITE_P(two_virtual_ranks, products_into_windows, ::testing::Values(virtual_ranks(2)));
INSTANTIATE_TEST_SUITE_P(two_gpus, products_into_windows, ::testing::Values(ranks_of_process({0, 1})));

}  // namespace
}  // namespace tmap::testing::products
