// SPDX-License-Identifier: Apache-2.0
#include "lib/gemm/checks.hpp"

#include <tmap/detail/spec_arithmetic.hpp>

#include <cstdint>

#include "lib/encode/batch_checks.hpp"
#include "lib/encode/device.hpp"
#include "lib/support/checking.hpp"

namespace tmap::gemm {
namespace {

// What tensor maps demand of addresses and strides.
constexpr std::uint64_t unit_bytes = 16;
constexpr std::uint64_t most_pitch = (std::uint64_t{1} << 40) - unit_bytes;

result<void> check_most(std::uint64_t value, std::uint64_t most) {
  if (value > most) return invalid_argument(value, most);
  return {};
}

result<void> check_least(std::uint64_t value, std::uint64_t least) {
  if (value < least) return invalid_argument(value, least);
  return {};
}

result<void> check_multiple(std::uint64_t value, std::uint64_t divisor) {
  if (value % divisor != 0) return invalid_argument(value, divisor);
  return {};
}

template <class Enum>
result<void> check_enum(Enum value, Enum most) {
  return check_most(static_cast<std::uint64_t>(value), static_cast<std::uint64_t>(most));
}

result<void> check_groups(std::uint32_t groups, operand_type type, operand_type last_type) {
  if (const auto checked = check_enum(type, last_type); !checked) return checked;
  return check_most(groups, max_groups);
}

/// Columns of whole units, of at least one.
result<void> check_columns(std::uint64_t columns, std::uint32_t element_bytes) {
  if (const auto checked = check_least(columns, unit_bytes / element_bytes); !checked) return checked;
  if (const auto checked = check_most(columns, max_extent); !checked) return checked;
  return check_multiple(columns * element_bytes, unit_bytes);
}

result<void> check_pitch(std::uint64_t pitch, std::uint64_t least) {
  if (const auto checked = check_least(pitch, least); !checked) return checked;
  if (const auto checked = check_most(pitch, most_pitch); !checked) return checked;
  return check_multiple(pitch, unit_bytes);
}

/// Beyond the last address maps would be refused on the device, and read as zeros.
result<void> check_reach(const matrix& of, std::uint64_t rows, std::uint64_t row_bytes) {
  using tmap::detail::address_limit;
  if (tmap::detail::has_addresses(of.address, rows, of.pitch_bytes, row_bytes)) return {};
  return invalid_argument(of.address, address_limit);
}

result<void> check_matrix(const matrix& of, std::uint64_t rows, std::uint64_t columns, std::uint32_t element_bytes) {
  if (of.address == 0) return invalid_argument(0, unit_bytes);
  if (const auto checked = check_multiple(of.address, unit_bytes); !checked) return checked;
  if (const auto checked = check_pitch(of.pitch_bytes, columns * element_bytes); !checked) return checked;
  return check_reach(of, rows, columns * element_bytes);
}

/// From one group's matrix to the next.
result<void> check_group_pitch(std::uint64_t pitch, const matrix& of, std::uint64_t rows) {
  const bool is_reachable = of.pitch_bytes <= most_pitch / rows;
  return is_reachable ? check_pitch(pitch, rows * of.pitch_bytes) : invalid_argument(of.pitch_bytes, most_pitch / rows);
}

struct group_places {
  std::uint32_t groups;
  std::uint64_t pitch_bytes;
};

/// Equally large matrices, one for each group.
result<void> check_matrices(const matrix& first, std::uint64_t rows, std::uint64_t columns, std::uint32_t element_bytes,
                            const group_places& places) {
  if (const auto checked = check_matrix(first, rows, columns, element_bytes); !checked) return checked;
  if (places.groups < 2) return {};
  if (const auto checked = check_group_pitch(places.pitch_bytes, first, rows); !checked) return checked;
  const matrix last{first.address + (places.groups - 1) * places.pitch_bytes, first.pitch_bytes};
  return check_reach(last, rows, columns * element_bytes);
}

result<void> check_offsets(const group_offsets& offsets) {
  if (const auto checked = check_enum(offsets.format, offset_format::sizes); !checked) return checked;
  if (offsets.bytes != 4 && offsets.bytes != 8) return invalid_argument(offsets.bytes, 8);
  return check_device_array(offsets.values, offsets.bytes);
}

result<void> check_epilogue(const epilogue& with, std::uint64_t n) {
  // A tile holds as many columns of gates as of values.
  constexpr std::uint64_t swiglu_columns = 32;
  for (const float* const scales : {with.row_scales, with.column_scales}) {
    if (const auto checked = check_optional_array(scales, unit_bytes); !checked) return checked;
  }
  if (with.kind == epilogue_kind::bias) return check_device_array(with.bias, unit_bytes);
  return with.kind == epilogue_kind::swiglu ? check_multiple(n, swiglu_columns) : result<void>{};
}

/// 8-bit operands are read along K only.
result<void> check_layout(b_layout layout, operand_type type) {
  return check_enum(layout, type == operand_type::f8_e4m3 ? b_layout::n_by_k : b_layout::k_by_n);
}

/// Only the sums of 8-bit products can be had faster.
result<void> check_accumulation(const row_problem& problem) {
  return check_most(problem.fast_accumulation ? 1 : 0, problem.type == operand_type::f8_e4m3 ? 1 : 0);
}

result<void> check_matrices(const row_problem& problem) {
  const std::uint32_t element_bytes = operand_bytes(problem.type);
  const bool by_n = problem.layout == b_layout::n_by_k;
  const std::uint64_t c_columns = problem.with.kind == epilogue_kind::swiglu ? problem.n / 2 : problem.n;
  if (const auto checked = check_matrix(problem.a, problem.rows, problem.k, element_bytes); !checked) return checked;
  if (const auto checked = check_matrix(problem.c, problem.rows, c_columns, sizeof(std::uint16_t)); !checked)
    return checked;
  return check_matrices(problem.b, by_n ? problem.n : problem.k, by_n ? problem.k : problem.n, element_bytes,
                        {problem.groups, problem.b_group_pitch_bytes});
}

/// `none` or `accumulate`.
result<void> check_plain_epilogue(epilogue_kind kind) {
  const bool is_plain = kind == epilogue_kind::none || kind == epilogue_kind::accumulate;
  if (is_plain) return {};
  return invalid_argument(static_cast<std::uint64_t>(kind), static_cast<std::uint64_t>(epilogue_kind::accumulate));
}

}  // namespace

result<void> check_options(const options& with) {
  if (const auto checked = support::is_checked(with.check); !checked) return failure(checked.error());
  if (with.plan && *with.plan >= plan_count()) return invalid_argument(*with.plan, plan_count());
  if (const auto checked = check_optional_array(with.statuses, alignof(group_status)); !checked) return checked;
  return check_optional_array(with.header, alignof(batch_header));
}

result<void> check_problem(const row_problem& problem) {
  if (const auto checked = check_groups(problem.groups, problem.type, operand_type::f8_e4m3); !checked) return checked;
  if (const auto checked = check_layout(problem.layout, problem.type); !checked) return checked;
  if (const auto checked = check_accumulation(problem); !checked) return checked;
  if (const auto checked = check_enum(problem.with.kind, epilogue_kind::accumulate); !checked) return checked;
  if (const auto checked = check_most(problem.rows, max_extent); !checked) return checked;
  const std::uint32_t element_bytes = operand_bytes(problem.type);
  for (const std::uint64_t columns : {problem.n, problem.k}) {
    if (const auto checked = check_columns(columns, element_bytes); !checked) return checked;
  }
  if (problem.groups == 0 || problem.rows == 0) return {};
  if (const auto checked = check_offsets(problem.offsets); !checked) return checked;
  if (const auto checked = check_epilogue(problem.with, problem.n); !checked) return checked;
  return check_matrices(problem);
}

result<void> check_problem(const weight_problem& problem) {
  if (const auto checked = check_groups(problem.groups, problem.type, operand_type::f16); !checked) return checked;
  if (const auto checked = check_plain_epilogue(problem.kind); !checked) return checked;
  if (const auto checked = check_most(problem.rows, max_extent); !checked) return checked;
  const std::uint32_t element_bytes = operand_bytes(problem.type);
  for (const std::uint64_t columns : {problem.m, problem.n}) {
    if (const auto checked = check_columns(columns, element_bytes); !checked) return checked;
  }
  if (problem.groups == 0) return {};
  if (const auto checked = check_offsets(problem.offsets); !checked) return checked;
  if (problem.rows != 0) {
    if (const auto checked = check_matrix(problem.a, problem.rows, problem.m, element_bytes); !checked) return checked;
    if (const auto checked = check_matrix(problem.b, problem.rows, problem.n, element_bytes); !checked) return checked;
  }
  return check_matrices(problem.c, problem.m, problem.n, element_bytes, {problem.groups, problem.c_group_pitch_bytes});
}

result<void> check_problem(const pointer_problem& problem) {
  if (const auto checked = check_groups(problem.groups, problem.type, operand_type::f16); !checked) return checked;
  if (const auto checked = check_layout(problem.layout, problem.type); !checked) return checked;
  if (const auto checked = check_plain_epilogue(problem.kind); !checked || problem.groups == 0) return checked;
  const void* const arrays[] = {
      problem.a, problem.b, problem.c, problem.a_pitch_bytes, problem.b_pitch_bytes, problem.c_pitch_bytes,
      problem.m, problem.n, problem.k};
  for (const void* const array : arrays) {
    if (const auto checked = check_device_array(array, sizeof(std::uint64_t)); !checked) return checked;
  }
  return {};
}

}  // namespace tmap::gemm
