// SPDX-License-Identifier: Apache-2.0
#include "lib/moe/layer_places.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "lib/batch/workspace.hpp"
#include "lib/moe/layer_checks.hpp"

namespace tmap::moe {
namespace {

/// In 16 bits, up to so many rows of an expert, reading its weights takes longer than multiplying
/// by them: a Hopper GPU computes 600 to 800 TFLOP/s and reads 4.2 TB/s. An index then costs
/// nothing. With more rows it costs 7 to 12 % of the product. In 8 bits a copy is never slower, and
/// with 64 rows faster by 5 %: tokens are rounded anyway, and the copy is part of that
/// (docs/measurements/grouped_gemm.md).
constexpr std::uint64_t few_rows = 128;
/// Up to so many columns an index costs less than a copy even there: its price grows with the
/// columns, and that of a copy does not. An index was faster by 4 % with 1,536 columns, and a copy
/// by 2 % with 4,096. This is the middle.
constexpr std::uint64_t few_columns = 2816;

/// Hands out the parts of a workspace, one after the other.
class parts {
 public:
  explicit parts(const void* memory) : next_(reinterpret_cast<std::uintptr_t>(memory)) {}

  workspace take(std::uint64_t bytes) {
    void* const part = reinterpret_cast<void*>(next_);
    next_ += round_up(bytes, workspace_alignment);
    return {part, bytes};
  }
  template <class T>
  T* take(T* given, std::uint64_t count) {
    const workspace part = take(count * sizeof(T));
    return given != nullptr ? given : static_cast<T*>(part.memory);
  }
  gemm::matrix take(const gemm::matrix& given, std::uint64_t rows, std::uint64_t row_bytes) {
    const std::uint64_t pitch = round_up(row_bytes, workspace_alignment);
    const workspace part = take(rows * pitch);
    return given.address != 0 ? given : gemm::matrix{part.memory, pitch};
  }
  std::uintptr_t next() const { return next_; }

 private:
  std::uintptr_t next_;
};

layer_rows place_rows(const layer_problem& problem, const layer_results& wanted, row_access access, parts& from) {
  if (wanted.rows.address != 0) return {wanted.rows, wanted.row_scales, row_access::sorted};
  if (access == row_access::by_index && !has_8_bits(problem)) return {problem.x, nullptr, access};
  const std::uint64_t rows = row_count(problem);
  layer_rows made{.access = row_access::sorted};
  made.values = from.take({}, rows, problem.width * gemm::operand_bytes(problem.type));
  if (has_8_bits(problem)) made.scales = from.take<float>(nullptr, rows * scales_of(problem.width));
  return made;
}

}  // namespace

row_access choose_access(const layer_problem& problem) {
  if (has_8_bits(problem)) return row_access::sorted;
  const route_problem& routing = problem.routing;
  const std::uint64_t rows = std::min(routing.tokens * routing.k, row_count(problem));
  const bool is_indexed = rows <= routing.experts * few_rows || 2 * problem.inner <= few_columns;
  return is_indexed ? row_access::by_index : row_access::sorted;
}

result<layer_places> place(const layer_problem& problem, const layer_results& wanted, const void* memory,
                           row_access access) {
  const route_problem& routing = problem.routing;
  const result<std::uint64_t> of_route = workspace_bytes(routing);
  if (!of_route) return failure(of_route.error());
  const result<std::uint64_t> of_product = gemm::workspace_bytes(routing.experts);
  if (!of_product) return failure(of_product.error());
  const std::uint64_t choices = routing.tokens * routing.k;
  const std::uint64_t rows = row_count(problem);
  parts from(memory);
  layer_places made{.results = wanted};
  route_results& routed = made.results.routed;
  routed.begins = from.take(routed.begins, routing.experts + 1);
  routed.row_of_choice = from.take(routed.row_of_choice, choices);
  routed.token_of_row = from.take(routed.token_of_row, rows);
  if (const auto* given = std::get_if<given_choices>(&routing.choices)) {
    made.weights = given->weights;
  } else {
    made.weights = routed.weights = from.take(routed.weights, choices);
  }
  made.route_scratch = from.take(*of_route);
  made.gate_up_scratch = from.take(*of_product);
  made.down_scratch = from.take(*of_product);
  made.rows = place_rows(problem, wanted, access, from);
  if (has_8_bits(problem)) {
    made.results.activated_scales = from.take(wanted.activated_scales, rows * scales_of(problem.inner));
  }
  made.results.activated = from.take(wanted.activated, rows, problem.inner * gemm::operand_bytes(problem.type));
  made.results.outputs = from.take(wanted.outputs, rows, problem.width * token_item_bytes);
  made.end = from.next();
  return made;
}

}  // namespace tmap::moe
