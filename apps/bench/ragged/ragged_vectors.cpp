// SPDX-License-Identifier: Apache-2.0
// Measures the operations that compute: saxpy, max pooling, cast, row sums.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/bench/ragged/ragged_batch.hpp"
#include "apps/bench/ragged/ragged_case.hpp"
#include "apps/bench/ragged/ragged_peers.hpp"
#include "apps/bench/ragged/vector_checks.hpp"
#include "apps/bench/ragged/vector_peers.hpp"

namespace tmap::apps::bench {
namespace {

constexpr std::uint64_t elements_in_all = std::uint64_t{1} << 28;

/// Returns one vector of 2^28 elements, or 2,048 vectors of 2^15 to 2^18 - 1, which is about the
/// same total.
std::vector<placed_tensor> vectors(bool are_ragged) {
  random_sizes random(3);
  std::vector<placed_tensor> tensors(are_ragged ? 1820 : 1);
  for (placed_tensor& tensor : tensors) {
    tensor.dim[0] = are_ragged ? random.between(1 << 15, (1 << 18) - 1) : elements_in_all;
  }
  return tensors;
}

std::vector<placed_tensor> rows_of(std::uint64_t columns) {
  std::vector<placed_tensor> tensors(256);
  random_sizes random(4);
  for (placed_tensor& tensor : tensors) {
    tensor.dim[0] = columns;
    tensor.dim[1] = random.between(1, 2 * elements_in_all / columns / tensors.size());
  }
  return tensors;
}

/// Makes a float that no operation returns.
constexpr int poison = 0x7f;
constexpr std::uint32_t radius = 15;
constexpr float factor = 0.5f;
constexpr std::uint32_t y_series = 1;

/// Holds the rates of plain memory traffic: two streams by cudaMemcpyAsync, three streams by a
/// plain saxpy kernel.
struct memory_rates {
  double two_streams;
  double three_streams;
};

memory_rates measure_memory(const ragged_meter& meter) {
  const device_array<float> x(elements_in_all);
  const device_array<float> y(elements_in_all);
  x.fill(0);
  y.fill(0);
  const auto saxpy = [&](cudaStream_t stream) { plain_saxpy({x.get(), y.get(), elements_in_all}, factor, stream); };
  return {meter.copy_rate(elements_in_all * sizeof(float)), meter.gigabytes(3 * x.bytes(), saxpy).graph};
}

void add_f32(ragged_table& table, const memory_rates& memory, const char* shape, bool are_ragged) {
  const device_batch x(vectors(are_ragged), 4, 1, {16, 0, 0});
  const device_batch y(vectors(are_ragged), 4, 1, {16, 0, 0});
  fill_with_floats(x.memory());
  const ragged_goal saxpy_goal{text(0.95 * memory.three_streams, 0), 0.95 * memory.three_streams};
  table.add(
      {fmt::format("saxpy, {}", shape), x.tensors().size(), 1, 3 * x.bytes(),
       [&](const ragged::run& with) { return ragged::saxpy(factor, x.described(), y.described(), with); },
       [&] { return count_wrong_saxpy(x, y, factor, y_series); }, [&] { fill_with_floats(y.memory(), y_series); }},
      memory.three_streams, saxpy_goal);
  const ragged_goal pool_goal{text(0.9 * memory.two_streams, 0), 0.9 * memory.two_streams};
  table.add({fmt::format("max_pool_1d, radius {}, {}", radius, shape), x.tensors().size(), 1, 2 * x.bytes(),
             [&](const ragged::run& with) { return ragged::max_pool_1d(x.described(), y.described(), radius, with); },
             [&] { return count_wrong_max_pool(x, y, radius); }, [&] { y.memory().fill(poison); }},
            memory.two_streams, pool_goal);
}

void add_cast(ragged_table& table, double copy_rate) {
  const device_batch wide(vectors(true), 4, 1, {16, 0, 0});
  const device_batch narrow(vectors(true), 2, 1, {16, 0, 0});
  fill_with_floats(wide.memory());
  table.add({"cast f32 to bf16, ragged", wide.tensors().size(), 1, wide.bytes() + narrow.bytes(),
             [&](const ragged::run& with) {
               const ragged::cast_values values{ragged::value_type::f32, ragged::value_type::bf16};
               return ragged::cast(wide.described(), narrow.described(), values, with);
             },
             [&] { return count_wrong_bf16(wide, narrow); }, [&] { narrow.memory().fill(poison); }},
            copy_rate, {"-", 0});
}

void add_sums(ragged_table& table, double copy_rate, std::uint64_t columns) {
  std::vector<placed_tensor> tensors = rows_of(columns);
  const device_batch source(tensors, 4, 2, {16, 0, 0});
  for (placed_tensor& tensor : tensors) tensor.dim[0] = 1;
  const device_batch sums(tensors, 4, 2, {16, 0, 0});
  fill_with_floats(source.memory());
  table.add({fmt::format("reduce_rows sum f32, rows of {}", columns), source.tensors().size(), 2,
             source.bytes() + sums.bytes(),
             [&](const ragged::run& with) {
               return ragged::reduce_rows(source.described(), ragged::value_type::f32, ragged::row_reduction::sum,
                                          sums.described(), with);
             },
             [&] { return count_wrong_sums(source, sums); }, [&] { sums.memory().fill(poison); }},
            copy_rate, {"-", 0});
}

/// Prints the figures of kernels that a user might write for one long vector.
void print_by_hand(const ragged_meter& meter) {
  const device_array<float> x(elements_in_all);
  const device_array<float> y(elements_in_all);
  x.fill(0);
  y.fill(0);
  const vector_pair vectors{x.get(), y.get(), elements_in_all};
  const auto saxpy_rate = [&](void (*run)(const vector_pair&, float, cudaStream_t)) {
    return text(meter.gigabytes(3 * x.bytes(), [&](cudaStream_t stream) { run(vectors, factor, stream); }).graph, 0);
  };
  const auto pool_rate = [&](void (*run)(const vector_pair&, std::uint32_t, cudaStream_t)) {
    return text(meter.gigabytes(2 * x.bytes(), [&](cudaStream_t stream) { run(vectors, radius, stream); }).graph, 0);
  };
  table by_hand("Kernels for one vector of 2^28", {"kernel", "saxpy", "max_pool_1d, radius 15"});
  by_hand.add({"plain", saxpy_rate(plain_saxpy), pool_rate(naive_max_pool)});
  by_hand.add({"LDGSTS pipeline", saxpy_rate(ldgsts_saxpy), pool_rate(ldgsts_max_pool)});
  by_hand.add({"bulk pipeline", saxpy_rate(bulk_saxpy), pool_rate(bulk_max_pool)});
  by_hand.print();
}

}  // namespace

void print_vectors(const ragged_meter& meter) {
  const memory_rates memory = measure_memory(meter);
  ragged_table table("Vectors and rows", "memory", meter);
  add_f32(table, memory, "2^28", false);
  add_f32(table, memory, "1,820 of 2^15 to 2^18", true);
  add_cast(table, memory.two_streams);
  add_sums(table, memory.two_streams, 1024);
  table.print();
  if (meter.wanted() != columns_wanted::parts) print_by_hand(meter);
}

}  // namespace tmap::apps::bench
