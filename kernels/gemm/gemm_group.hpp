// SPDX-License-Identifier: Apache-2.0
#pragma once

// Data that the set-up kernel writes to device memory and the product kernel reads.

#include <tmap/bad_items.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/tensor_map.hpp>

#include <cstddef>
#include <cstdint>

namespace tmap::device {
struct queue_counter;
}

namespace tmap::kernels {

/// One group. Its maps of A and B begin where these matrices begin, which may hold elements of
/// other groups before its own, and end with its own. So `first_*` are coordinates in these maps,
/// and nothing after the group is loaded. Its maps of results cover exactly its elements.
struct alignas(16) gemm_group {
  std::uint64_t c;  ///< the address of its first element of C; of C, if an index names its rows
  std::uint64_t c_pitch;
  std::uint32_t m;
  std::uint32_t n;  ///< columns of B
  std::uint32_t k;
  std::uint32_t first_row;     ///< in A
  std::uint32_t first_column;  ///< in B
  std::uint32_t first_k;       ///< in A and B
};

/// The rows that one label names. Each word begins with all bits set, so that one fill prepares all
/// of them.
struct label_run {
  std::uint32_t first;     ///< the smallest first row of its runs
  std::uint32_t not_last;  ///< the complement of the largest last row
  std::uint32_t runs;      ///< the number of its runs of equal labels, less one

  TMAP_HOST_DEVICE constexpr bool is_empty() const { return first == ~0u; }
  TMAP_HOST_DEVICE constexpr std::uint32_t count() const { return is_empty() ? 0 : ~not_last - first + 1; }
};

struct gemm_scratch {
  tensor_map* a;
  tensor_map* b;
  tensor_map* c;
  tensor_map* second;  ///< of results that are not in C, or in the second half of its columns
  gemm_group* groups;
  std::uint64_t* tile_ends;      ///< tiles, or pairs of them, of groups 0 to i
  label_run* runs;               ///< of `offset_format::labels`: the rows of each group
  device::queue_counter* taken;  ///< of them
};

/// Returns the bytes of device memory that a problem of this many groups needs.
constexpr std::size_t gemm_scratch_bytes(std::uint32_t groups) {
  constexpr std::size_t of_group =
      4 * sizeof(tensor_map) + sizeof(gemm_group) + sizeof(std::uint64_t) + sizeof(label_run);
  constexpr std::size_t of_call = sizeof(std::uint32_t);  // a device::queue_counter
  return groups * of_group + of_call;
}

inline gemm_scratch cut_scratch(void* memory, std::uint32_t groups) {
  auto* const maps = static_cast<tensor_map*>(memory);
  auto* const records = reinterpret_cast<gemm_group*>(maps + 4 * std::size_t{groups});
  auto* const tile_ends = reinterpret_cast<std::uint64_t*>(records + groups);
  auto* const runs = reinterpret_cast<label_run*>(tile_ends + groups);
  return {maps,
          maps + groups,
          maps + 2 * std::size_t{groups},
          maps + 3 * std::size_t{groups},
          records,
          tile_ends,
          runs,
          reinterpret_cast<device::queue_counter*>(runs + groups)};
}

/// The size of a product's tiles.
struct tile_sizes {
  std::uint32_t m;
  std::uint32_t result_n;  ///< columns of C
  bool are_paired;
};

/// Holds all that happens to sums on their way to C.
struct result_work {
  gemm::epilogue with;
  gemm::result_scales scales;
  gemm::result_type type;
  bool accumulates;
};

/// Stands for a row of zeros that is read, or for a row that is not stored.
inline constexpr std::uint32_t no_row = ~0u;

/// Names the rows of a matrix that the rows of a product read, or are stored in, if these do not
/// follow each other.
struct row_index {
  const std::int32_t* rows;  ///< null: the matrix's rows follow each other
  std::uint32_t count;       ///< of the matrix's rows
  gemm::matrix of;
  fault_sink faults;

  TMAP_HOST_DEVICE constexpr bool has(std::int32_t row) const { return static_cast<std::uint32_t>(row) < count; }
  /// Returns the row of the matrix that belongs to row `row` of the product, or `no_row`.
  TMAP_HOST_DEVICE constexpr std::uint32_t source(std::uint32_t row) const {
    if (rows == nullptr) return row;
    return has(rows[row]) ? static_cast<std::uint32_t>(rows[row]) : no_row;
  }
};

/// Returns the element of a group's first scale, that of line 0 and its first 128 rows, in a
/// product that sums over rows. The group begins at row `begin`.
TMAP_HOST_DEVICE constexpr std::uint32_t first_scale(const gemm::block_scales& of, std::uint32_t group,
                                                     std::uint32_t begin) {
  return group * static_cast<std::uint32_t>(of.group_stride) +
         begin / gemm::scaled_elements * static_cast<std::uint32_t>(of.k_stride);
}

/// Holds what all groups have in common.
struct gemm_shape {
  gemm_scratch scratch;
  result_work results;
  gemm::block_scales a_scales;
  gemm::block_scales b_scales;
  std::uint32_t groups;
  bool has_own_b;            ///< each group has a map of B; else all share one, which has the group as its third dim
  std::uint32_t b_pieces;    ///< loads that make the tile of B
  std::uint32_t per_result;  ///< columns of B that make a result: 2 with gates, else 1
  std::uint32_t values;      ///< the column of B at which values begin; 0: not after all gates
  row_index a_rows;
  row_index c_rows;
  const std::uint32_t* pending;  ///< as `gemm::row_problem::pending`
};

/// Returns whether results are made of gates and values, so that there are half as many as columns
/// of B.
TMAP_HOST_DEVICE constexpr bool has_gates(const gemm::row_problem& problem) {
  return problem.epilogue.gate.function != gemm::gate_function::none && !problem.epilogue.gate.backward;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool has_gates(const Problem&) {
  return false;
}
TMAP_HOST_DEVICE constexpr bool is_backward(const gemm::row_problem& problem) {
  return problem.epilogue.gate.function != gemm::gate_function::none && problem.epilogue.gate.backward;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr bool is_backward(const Problem&) {
  return false;
}
/// Returns whether C gets the gradients of values after those of all gates. One map of C would not
/// cut off the gates there, so these have a map of their own.
TMAP_HOST_DEVICE constexpr bool has_second_gradients(const gemm::gate& gate) {
  return gate.function != gemm::gate_function::none && gate.backward && gate.columns == gemm::gate_columns::halves;
}
/// Returns whether groups have a second map of results: of the sums that a gate keeps, or of the
/// gradients of values.
TMAP_HOST_DEVICE constexpr bool has_second_results(const gemm::gate& gate) {
  const bool keeps = gate.function != gemm::gate_function::none && !gate.backward && gate.kept.address.value() != 0;
  return keeps || has_second_gradients(gate);
}
/// Return how many results a row has, and how many columns C has, if B has `n` columns.
template <class Problem>
TMAP_HOST_DEVICE constexpr std::uint64_t results_of_row(const Problem& problem, std::uint64_t n) {
  return has_gates(problem) ? n / 2 : n;
}
template <class Problem>
TMAP_HOST_DEVICE constexpr std::uint64_t c_columns(const Problem& problem, std::uint64_t n) {
  return is_backward(problem) ? 2 * n : results_of_row(problem, n);
}

}  // namespace tmap::kernels
