// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/product.hpp"

#include "lib/torch/call.hpp"
#include "lib/torch/cuda_memory.hpp"

#include <algorithm>
#include <limits>

namespace tmap::pytorch {
namespace {

constexpr std::int64_t unit_bytes = 16;

void check_units(const char* name, std::int64_t extent, std::int64_t item) {
  if (extent * item % unit_bytes != 0) {
    refuse(std::string(name) + " is " + number_text(extent) + ": its elements must take a multiple of 16 bytes");
  }
}

void check_k(std::int64_t of_a, std::int64_t of_b) {
  if (of_a != of_b) {
    refuse("a has rows of " + number_text(of_a) + " elements, but b has columns of " + number_text(of_b) +
           ": they must be equal");
  }
}

struct lines {
  bool are_along_k;
  std::int64_t pitch;  ///< elements from one line to the next
};

/// Returns how the lines of an operand's matrix run. `k_axis` is 0 or 1, the axis of k among the
/// last two.
lines lines_of(const char* name, const tensor_view& of, std::int64_t k_axis) {
  const std::int64_t last = of.rank - 1;
  std::array<std::int64_t, 2> inner{last, last - 1};
  // The step of a dim of one element may be anything, so a longer dim comes first.
  if (of.sizes[last] == 1 && of.sizes[last - 1] != 1) std::swap(inner[0], inner[1]);
  for (const std::int64_t axis : inner) {
    if (of.strides[axis] != 1 && of.sizes[axis] != 1) continue;
    const std::int64_t outer = 2 * last - 1 - axis;
    const std::int64_t pitch = of.sizes[outer] > 1 ? of.strides[outer] : std::max<std::int64_t>(of.sizes[axis], 1);
    return {axis == last - 1 + k_axis, pitch};
  }
  refuse("one of the last two strides of " + std::string(name) + " must be 1: call .contiguous() first");
}

/// The numbers of a product that all three forms have.
struct shape_of_product {
  std::uint32_t operand, groups;
  std::int64_t item, result_bytes;
  tmap_row_offsets offsets;
};

template <class Problem>
Problem begin_problem(const shape_of_product& of) {
  Problem problem{};
  problem.struct_size = sizeof problem;
  problem.operand = of.operand;
  problem.groups = of.groups;
  problem.offsets = of.offsets;
  return problem;
}

template <class Problem>
void set_lines(Problem& problem, const tensor_view& a, const tensor_view& b, std::int64_t item) {
  const lines of_a = lines_of("a", a, 1), of_b = lines_of("b", b, 0);
  problem.a_layout = of_a.are_along_k ? TMAP_A_M_BY_K : TMAP_A_K_BY_M;
  problem.b_layout = of_b.are_along_k ? TMAP_B_N_BY_K : TMAP_B_K_BY_N;
  problem.a.pitch_bytes = unsigned_of(of_a.pitch * item);
  problem.b.pitch_bytes = unsigned_of(of_b.pitch * item);
}

/// Lines of the output begin at multiples of 16 bytes.
std::int64_t pitch_of(std::int64_t columns, std::int64_t result_bytes) {
  const std::int64_t unit = unit_bytes / result_bytes;
  return (columns + unit - 1) / unit * unit;
}

std::int64_t least_bytes_of_n(std::uint32_t b_layout, const shape_of_product& of) {
  return b_layout == TMAP_B_K_BY_N ? std::min(of.item, of.result_bytes) : of.result_bytes;
}

std::uint32_t result_type_of(std::int64_t result_bytes) {
  return result_bytes == 4 ? TMAP_RESULT_F32 : TMAP_RESULT_LIKE_OPERANDS;
}

product rows_product(const tensor_view& a, const tensor_view& b, const shape_of_product& of) {
  const std::int64_t rows = a.sizes[0], k = a.sizes[1], n = b.sizes[2];
  check_k(k, b.sizes[1]);
  check_units("k", k, of.item);
  auto problem = begin_problem<tmap_row_problem>(of);
  set_lines(problem, a, b, of.item);
  if (of.item == 1 && (problem.a_layout != TMAP_A_M_BY_K || problem.b_layout != TMAP_B_N_BY_K)) {
    refuse("8-bit operands are read along k: give a as it is, and b as b_n_by_k.transpose(-2, -1)");
  }
  check_units("n", n, least_bytes_of_n(problem.b_layout, of));
  problem.c_type = result_type_of(of.result_bytes);
  problem.rows = unsigned_of(rows);
  problem.n = unsigned_of(n);
  problem.k = unsigned_of(k);
  problem.b_group_pitch_bytes = unsigned_of(b.strides[0] * of.item);
  const std::int64_t pitch = pitch_of(n, of.result_bytes);
  problem.c.pitch_bytes = unsigned_of(pitch * of.result_bytes);
  return {problem, 2, {rows, n, 0}, {pitch, 1, 0}, k > 0 && n > 0};
}

product columns_product(const tensor_view& a, const tensor_view& b, const shape_of_product& of) {
  const std::int64_t m = a.sizes[1], k = a.sizes[2], columns = b.sizes[1];
  check_k(k, b.sizes[0]);
  check_units("k", k, of.item);
  auto problem = begin_problem<tmap_column_problem>(of);
  set_lines(problem, a, b, of.item);
  problem.columns = unsigned_of(columns);
  problem.m = unsigned_of(m);
  problem.k = unsigned_of(k);
  problem.a_group_pitch_bytes = unsigned_of(a.strides[0] * of.item);
  const std::int64_t pitch = pitch_of(columns, of.result_bytes);
  problem.c.pitch_bytes = unsigned_of(pitch * of.result_bytes);
  return {problem, 2, {m, columns, 0}, {pitch, 1, 0}, k > 0 && m > 0};
}

product weights_product(const tensor_view& a, const tensor_view& b, const shape_of_product& of) {
  const std::int64_t m = a.sizes[0], rows = a.sizes[1], n = b.sizes[1];
  check_k(rows, b.sizes[0]);
  auto problem = begin_problem<tmap_weight_problem>(of);
  set_lines(problem, a, b, of.item);
  check_units("n", n, least_bytes_of_n(problem.b_layout, of));
  problem.c_type = result_type_of(of.result_bytes);
  problem.rows = unsigned_of(rows);
  problem.m = unsigned_of(m);
  problem.n = unsigned_of(n);
  const std::int64_t pitch = pitch_of(n, of.result_bytes);
  problem.c.pitch_bytes = unsigned_of(pitch * of.result_bytes);
  problem.c_group_pitch_bytes = unsigned_of(m * pitch * of.result_bytes);
  return {problem, 3, {of.groups, m, n}, {m * pitch, pitch, 1}, m > 0 && n > 0};
}

void check_groups(std::int64_t groups, const tensor_view& grouped) {
  if (grouped.sizes[0] != groups) {
    refuse("offs cuts " + number_text(groups) + " groups, the operand with groups has " +
           number_text(grouped.sizes[0]));
  }
}

tmap_status run(const tmap_row_problem& problem, const tmap_call& call) {
  return tmap_gemm_rows(&problem, &call);
}
tmap_status run(const tmap_column_problem& problem, const tmap_call& call) {
  return tmap_gemm_columns(&problem, &call);
}
tmap_status run(const tmap_weight_problem& problem, const tmap_call& call) {
  return tmap_gemm_weights(&problem, &call);
}

/// Lets the product clear what no good group writes, and returns whether it does.
bool clear_rest(tmap_column_problem&) {
  return false;
}
template <class Problem>
bool clear_rest(Problem& problem) {
  problem.zero_rest = 1;
  return problem.groups != 0;
}

}  // namespace

product prepare(const tensor_view& a, const tensor_view& b, const tensor_view& offs, std::uint32_t operand,
                std::int64_t result_bytes) {
  const bool has_8_bits = operand == TMAP_OPERAND_F8_E4M3 || operand == TMAP_OPERAND_F8_E5M2;
  const std::int64_t groups = offs.sizes[0];
  if (groups > std::numeric_limits<std::uint32_t>::max()) refuse("the number of groups is " + number_text(groups));
  const shape_of_product of{operand, static_cast<std::uint32_t>(groups), has_8_bits ? 1 : 2, result_bytes,
                            describe_offsets(offs, TMAP_OFFSETS_ENDS)};
  if (a.rank == 2 && b.rank == 3) {
    check_groups(groups, b);
    return rows_product(a, b, of);
  }
  if (a.rank == 3 && b.rank == 2) {
    check_groups(groups, a);
    return columns_product(a, b, of);
  }
  if (a.rank == 2 && b.rank == 2) return weights_product(a, b, of);
  refuse("operands have 2 or 3 dims, not " + number_text(a.rank) + " and " + number_text(b.rank));
}

void enqueue(product& ready, const tensor_view& a, const tensor_view& b, const tensor_view& out) {
  tmap_call call = call_for(a);
  std::visit(
      [&](auto& problem) {
        problem.a.address = a.address();
        problem.b.address = b.address();
        problem.c.address = out.address();
        check(tmap_gemm_workspace_bytes(problem.groups, &call.workspace_bytes));
        const lent_memory workspace{call.workspace_bytes};
        call.workspace = workspace.address();
        check(run(problem, call));
      },
      ready.problem);
}

Tensor make_output(product& ready, std::int32_t type, const tensor_view& like, bool zero_rest) {
  const auto rank = static_cast<std::size_t>(ready.rank);
  Tensor out = new_tensor({ready.sizes.data(), rank}, {ready.strides.data(), rank}, type, like);
  const auto clears = [](auto& problem) { return clear_rest(problem); };
  if (!ready.has_sums || (zero_rest && !std::visit(clears, ready.problem))) {
    TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(out.get()));
  }
  return out;
}

void check_offsets(const tensor_view& a, const tensor_view& b, const tensor_view& offs) {
  if (!are_offsets(offs) || !offs.is_packed()) {
    refuse("offs is int32 or int64 [groups] without gaps, not " + type_name(offs.type) + " " + shape_text(offs));
  }
  if (!a.is_on_device_of(b) || !b.is_on_device_of(offs)) {
    refuse("a, b and offs are on one device, not on " + device_name(a) + ", " + device_name(b) + " and " +
           device_name(offs));
  }
}

void check_bias(const tensor_view& b, const tensor_view& bias, std::int32_t type) {
  const std::int64_t groups = b.sizes[0], n = b.sizes[2];
  if (bias.type == type && bias.has_shape({groups, n}) && bias.is_on_device_of(b)) return;
  refuse("bias is " + shape_text(bias) + " of " + type_name(bias.type) + " on " + device_name(bias) + ": it must be " +
         shape_text({groups, n}) + " of " + type_name(type) + " on " + device_name(b));
}

}  // namespace tmap::pytorch
