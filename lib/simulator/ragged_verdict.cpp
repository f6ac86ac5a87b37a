// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_verdict.hpp"

#include <tmap/detail/spec_arithmetic.hpp>

#include "lib/simulator/ragged_tensors.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tmap::simulator {
namespace {

using ragged::fault;

constexpr std::uint64_t most_dim = std::uint64_t{1} << 31;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 39;
constexpr std::uint64_t most_span = std::uint64_t{1} << 47;

std::uint32_t bit(fault f, bool applies) {
  return applies ? static_cast<std::uint32_t>(f) : 0;
}

bool has_wild_dim(const tensor_layout& t) {
  return std::any_of(t.dim, t.dim + t.rank, [](std::uint64_t dim) { return dim > most_dim; }) ||
         packed_bytes(t) > most_bytes;
}

bool has_wild_stride(const tensor_layout& t) {
  for (std::uint32_t axis = 1; axis < t.rank; ++axis) {
    const std::uint64_t stride = t.stride_bytes[axis - 1];
    if (t.dim[axis] > 1 && (stride > most_span / t.dim[axis] || stride % element_alignment(t.element_bytes) != 0))
      return true;
  }
  return false;
}

bool has_wild_address(const tensor_layout& t) {
  return t.address == 0 || t.address % element_alignment(t.element_bytes) != 0 || t.address >= detail::address_limit;
}

bool is_outside_windows(const tensor_layout& t, const ragged::options& with) {
  if (with.window_count == 0) return false;
  const std::uint64_t end = t.address + reach_bytes(t);
  return std::none_of(with.windows, with.windows + with.window_count,
                      [&](const address_window& w) { return w.begin <= t.address && end <= w.end; });
}

/// Elements surely lie apart when each stride, from the smallest to the largest, steps over all below it.
bool has_overlap(const tensor_layout& t) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> steps;  // stride, dim
  for (std::uint32_t axis = 1; axis < t.rank; ++axis) {
    if (t.dim[axis] > 1) steps.emplace_back(t.stride_bytes[axis - 1], t.dim[axis]);
  }
  std::sort(steps.begin(), steps.end());
  std::uint64_t inside = t.dim[0] * t.element_bytes;
  for (const auto& [stride, dim] : steps) {
    if (stride < inside) return true;
    inside += stride * (dim - 1);
  }
  return false;
}

std::uint64_t wanted_dim(const tensor_pair& pair, dims_relation relation, std::uint32_t axis) {
  if (relation == dims_relation::swapped && axis < 2) return pair.source.dim[1 - axis];
  return relation == dims_relation::reduced && axis == 0 ? 1 : pair.source.dim[axis];
}

bool is_larger(const tensor_layout& a, const tensor_layout& b) {
  bool larger = false;
  for (std::uint32_t axis = 0; axis < a.rank; ++axis) larger |= a.dim[axis] > b.dim[axis];
  return larger;
}

bool has_mismatch(const tensor_pair& pair, dims_relation relation) {
  if (relation == dims_relation::cut) return false;
  if (relation == dims_relation::corner) return is_larger(pair.destination, pair.source);
  bool differs = false;
  for (std::uint32_t axis = 0; axis < pair.source.rank; ++axis) {
    differs |= pair.destination.dim[axis] != wanted_dim(pair, relation, axis);
  }
  return differs;
}

/// By the side or sides that bring shapes.
bool is_empty(const tensor_pair& pair, dims_relation relation) {
  if (relation == dims_relation::corner) return has_no_elements(pair.destination);
  const bool source_decides = relation == dims_relation::reduced || relation == dims_relation::cut;
  return has_no_elements(pair.source) && (source_decides || has_no_elements(pair.destination));
}

}  // namespace

ragged::tensor_status judge_side(const tensor_layout& t, const ragged::options& with) {
  const std::uint32_t bits = bit(fault::dim, has_wild_dim(t)) | bit(fault::stride, has_wild_stride(t)) |
                             bit(fault::address, has_wild_address(t));
  if (bits != 0) return {bits};
  if (reach_bytes(t) > detail::address_limit - t.address) return {bit(fault::address, true)};
  return {bit(fault::window, is_outside_windows(t, with))};
}

ragged::tensor_status judge_destination(const tensor_layout& t, const ragged::options& with) {
  const ragged::tensor_status side = judge_side(t, with);
  const bool has_extents = !side.has(fault::dim) && !side.has(fault::stride);
  return {side.bits | bit(fault::overlap, has_extents && has_overlap(t))};
}

ragged::tensor_status judge(const tensor_pair& pair, dims_relation relation, const ragged::options& with) {
  const bool empty = is_empty(pair, relation);
  const bool is_written = relation == dims_relation::cut ? !has_no_elements(pair.destination) : !empty;
  const std::uint32_t destination = is_written ? judge_destination(pair.destination, with).bits : 0;
  if (empty) return {destination != 0 ? destination : ragged::tensor_status::empty_bit};
  const std::uint32_t bits =
      destination | judge_side(pair.source, with).bits | bit(fault::mismatch, has_mismatch(pair, relation));
  const bool is_cut = relation == dims_relation::cut && is_larger(pair.source, pair.destination);
  return {bits != 0 ? bits : bit(fault::truncated, is_cut || pair.ends_behind_buffer)};
}

ragged::tensor_status judge_row(std::int64_t row, std::uint64_t rows) {
  return {bit(fault::index, row < 0 || static_cast<std::uint64_t>(row) >= rows)};
}

void verdict_writer::write(std::uint64_t index, ragged::tensor_status status) {
  if (with_.statuses != nullptr) with_.statuses[index] = status;
  header_.empty_count += status.is_empty() ? 1 : 0;
  if (!status.is_bad()) return;
  ++header_.bad_count;
  header_.first_bad = std::min(header_.first_bad, static_cast<std::uint32_t>(index));
}

}  // namespace tmap::simulator
