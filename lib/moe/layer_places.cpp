// SPDX-License-Identifier: Apache-2.0
#include "lib/moe/layer_places.hpp"

#include <variant>

#include "lib/batch/workspace.hpp"
#include "lib/moe/layer_checks.hpp"

namespace tmap::moe {
namespace {

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

}  // namespace

result<layer_places> place_layer(const layer_problem& problem, const layer_results& wanted, const void* memory) {
  const route_problem& routing = problem.routing;
  const result<std::uint64_t> of_route = workspace_bytes(routing);
  if (!of_route) return failure(of_route.error());
  const result<std::uint64_t> of_product = gemm::workspace_bytes(routing.experts);
  if (!of_product) return failure(of_product.error());
  const std::uint64_t choices = routing.tokens * routing.k;
  const std::uint64_t rows = row_count(problem);
  parts from(memory);
  layer_places made{
      .results = wanted, .weights = {}, .route_scratch = {}, .gate_up_scratch = {}, .down_scratch = {}, .end = {}};
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
  const std::uint64_t item = gemm::operand_bytes(problem.type);
  if (has_8_bits(problem)) {
    made.results.rows = from.take(wanted.rows, rows, problem.width * item);
    made.results.row_scales = from.take(wanted.row_scales, rows * scales_of(problem.width));
    made.results.activated_scales = from.take(wanted.activated_scales, rows * scales_of(problem.inner));
  }
  made.results.activated = from.take(wanted.activated, rows, problem.inner * item);
  made.results.outputs = from.take(wanted.outputs, rows, problem.width * item_bytes);
  made.end = from.next();
  return made;
}

}  // namespace tmap::moe
