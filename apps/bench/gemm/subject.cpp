// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/gemm/subject.hpp"

#include <algorithm>
#include <numeric>

#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

using gemm::operand_type;

constexpr std::size_t mebibyte = std::size_t{1} << 20;
constexpr std::size_t a_bytes = 1024 * mebibyte;
constexpr std::size_t b_bytes = 256 * 56 * mebibyte;  // 256 matrices of 4096 x 7168
constexpr std::size_t c_bytes = 2048 * mebibyte;
constexpr std::size_t most_rows = 131072;
constexpr std::size_t most_columns = 1 << 20;  // over all groups
constexpr std::uint32_t most_groups = 1024;
constexpr std::uint64_t spare_rows = 128;  // after the last group
constexpr std::size_t pointer_arrays = 9;

gemm::matrix packed(std::uint64_t address, std::uint64_t columns, std::uint64_t element_bytes) {
  return {address, columns * element_bytes};
}

template <class T = void>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<peer_product> subject::peer_products() const {
  std::vector<peer_product> all;
  for (const checked_product& p : products) {
    all.push_back({p.a, p.b, const_cast<void*>(p.c), p.m, p.n, p.k, p.a_pitch, p.b_pitch, p.c_pitch});
  }
  return all;
}

operand_memory::operand_memory()
    : a_(a_bytes),
      b_(b_bytes),
      c_(c_bytes),
      row_scales_(most_rows),
      column_scales_(most_columns),
      scratch_(value_of(gemm::workspace_bytes(most_groups))),
      offsets_(most_groups),
      no_rows_(most_groups),
      columns_(pointer_arrays * most_groups) {
  no_rows_.fill(0);
  fill_scales(row_scales_.get(), row_scales_.size(), 3);
  fill_scales(column_scales_.get(), column_scales_.size(), 4);
  fill(operand_type::bf16);
}

void operand_memory::fill(operand_type type) {
  type_ = type;
  const std::size_t element_bytes = gemm::operand_bytes(type);
  fill_normal(type, a_.get(), a_.size() / element_bytes, 1);
  fill_normal(type, b_.get(), b_.size() / element_bytes, 2);
}

std::uint64_t operand_memory::address_of(const device_array<unsigned char>& of) const {
  return reinterpret_cast<std::uint64_t>(of.get());
}

void operand_memory::set_offsets(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> ends(sizes.size());
  std::partial_sum(sizes.begin(), sizes.end(), ends.begin());
  require(sizes.size() <= most_groups);
  require(cudaMemcpy(offsets_.get(), ends.data(), ends.size() * sizeof(ends[0]), cudaMemcpyHostToDevice));
}

gemm::row_problem operand_memory::row_problem_of(const row_shape& shape, const std::vector<std::int64_t>& sizes) {
  set_offsets(sizes);
  const std::uint64_t bytes = gemm::operand_bytes(type_);
  const bool has_scales = type_ == operand_type::f8_e4m3;
  gemm::row_problem problem;
  problem.type = type_;
  problem.groups = shape.groups;
  problem.rows = shape.rows + spare_rows;
  problem.n = shape.n;
  problem.k = shape.k;
  problem.offsets = {offsets_.get(), offset_format::ends, sizeof(std::int64_t)};
  problem.a = packed(address_of(a_), shape.k, bytes);
  problem.b = packed(address_of(b_), shape.k, bytes);
  problem.b_group_pitch_bytes = shape.n * shape.k * bytes;
  problem.c = packed(address_of(c_), shape.n, sizeof(std::uint16_t));
  if (has_scales) problem.epilogue.row_scales = row_scales_.get();
  if (has_scales) problem.epilogue.column_scales = column_scales_.get();
  require(problem.rows * problem.a.pitch_bytes <= a_bytes && problem.rows * problem.c.pitch_bytes <= c_bytes);
  require(shape.groups * problem.b_group_pitch_bytes <= b_bytes && problem.rows <= most_rows);
  require(!has_scales || shape.groups * shape.n <= most_columns);
  return problem;
}

subject operand_memory::rows(const row_shape& shape, const std::vector<std::int64_t>& sizes, bool fast_accumulation) {
  const bool has_scales = type_ == operand_type::f8_e4m3;
  gemm::row_problem problem = row_problem_of(shape, sizes);
  problem.fast_accumulation = fast_accumulation;

  const std::string kind = !has_scales ? "" : fast_accumulation ? ", f8 fast" : ", f8";
  subject made{shape.name() + kind, has_scales ? 0 : shape.goal, shape.operations(), {type_, false, fast_accumulation}};
  std::uint64_t row = 0;
  for (std::uint32_t g = 0; g < shape.groups; ++g) {
    const auto k = static_cast<std::int64_t>(shape.k);
    const auto n = static_cast<std::int64_t>(shape.n);
    made.products.push_back(
        {at(problem.a.address + row * problem.a.pitch_bytes), at(problem.b.address + g * problem.b_group_pitch_bytes),
         at(problem.c.address + row * problem.c.pitch_bytes), has_scales ? row_scales_.get() + row : nullptr,
         has_scales ? column_scales_.get() + g * shape.n : nullptr, sizes[g], n, k, k, k, n});
    row += static_cast<std::uint64_t>(sizes[g]);
  }
  made.c = c_.get();
  made.c_elements = problem.rows * shape.n;
  made.untouched = (problem.rows - row) * shape.n;
  const workspace room = scratch();
  made.enqueue = [=](cudaStream_t stream, std::optional<std::uint32_t> plan) {
    require(gemm::multiply(problem, {.where = {cuda::stream_ref{stream}, room}, .choices = {plan}}));
  };
  made.enqueue_empty = [=, none = no_rows_.get()](cudaStream_t stream) {
    gemm::row_problem empty = problem;
    empty.offsets.values = none;
    require(gemm::multiply(empty, {{cuda::stream_ref{stream}, room}}));
  };
  return made;
}

gemm::weight_problem operand_memory::weight_problem_of(const row_shape& shape, const std::vector<std::int64_t>& sizes) {
  const std::uint64_t bytes = gemm::operand_bytes(type_);
  gemm::weight_problem problem;
  problem.type = type_;
  problem.groups = shape.groups;
  problem.rows = shape.rows;
  problem.m = shape.n;
  problem.n = shape.k;
  problem.offsets = {offsets_.get(), offset_format::ends, sizeof(std::int64_t)};
  problem.a = packed(address_of(a_), problem.m, bytes);
  problem.b = packed(address_of(b_), problem.n, bytes);
  problem.c = packed(address_of(c_), problem.n, sizeof(std::uint16_t));
  problem.c_group_pitch_bytes = problem.m * problem.c.pitch_bytes;
  require(shape.groups * problem.c_group_pitch_bytes <= c_bytes);
  set_offsets(sizes);
  return problem;
}

subject operand_memory::weights(const row_shape& shape, const std::vector<std::int64_t>& sizes) {
  const gemm::weight_problem problem = weight_problem_of(shape, sizes);
  subject made{"gradient: " + shape.name(), 0, shape.operations(), {type_, true, false}};
  std::uint64_t row = 0;
  for (std::uint32_t g = 0; g < shape.groups; ++g) {
    const auto m = static_cast<std::int64_t>(problem.m);
    const auto n = static_cast<std::int64_t>(problem.n);
    made.products.push_back(
        {at(problem.a.address + row * problem.a.pitch_bytes), at(problem.b.address + row * problem.b.pitch_bytes),
         at(problem.c.address + g * problem.c_group_pitch_bytes), nullptr, nullptr, m, n, sizes[g], m, n, n});
    row += static_cast<std::uint64_t>(sizes[g]);
  }
  made.c = c_.get();
  made.c_elements = shape.groups * problem.m * problem.n;
  const workspace room = scratch();
  made.enqueue = [=](cudaStream_t stream, std::optional<std::uint32_t> plan) {
    require(gemm::multiply(problem, {.where = {cuda::stream_ref{stream}, room}, .choices = {plan}}));
  };
  return made;
}

epilogue_memory operand_memory::epilogues() {
  constexpr std::size_t half = c_bytes / 2;
  constexpr std::size_t kept_bytes = half / 2;
  const std::uint64_t kept = address_of(c_) + half;
  fill_normal(operand_type::bf16, at(kept), kept_bytes / sizeof(std::uint16_t), 5);
  return {row_scales_.get(), column_scales_.get(), a_.get(), kept, at<float>(kept + kept_bytes)};
}

/// Places matrices one after another with 256 unused bytes between them.
void operand_memory::add_pointers(subject& made, const std::vector<pointer_size>& sizes) {
  std::uint64_t a = address_of(a_);
  std::uint64_t b = address_of(b_);
  std::uint64_t c = address_of(c_);
  const auto advance = [](std::uint64_t& place, std::int64_t elements) {
    place = round_up(place + static_cast<std::uint64_t>(elements) * sizeof(std::uint16_t) + 256, 256);
  };
  for (const auto& [m, n, k] : sizes) {
    made.products.push_back({at(a), at(b), at(c), nullptr, nullptr, m, n, k, k, k, n});
    made.operations += 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    made.untouched -= static_cast<std::size_t>(m * n);
    advance(a, m * k);
    advance(b, n * k);
    advance(c, m * n);
  }
  require(a <= address_of(a_) + a_bytes && b <= address_of(b_) + b_bytes && c <= address_of(c_) + c_bytes);
  made.c_elements = (c - address_of(c_)) / sizeof(std::uint16_t);
  made.untouched += made.c_elements;
}

subject operand_memory::pointers(const std::vector<pointer_size>& sizes) {
  subject made{std::to_string(sizes.size()) + " products by pointers", 0, 0, {type_, false, false}};
  add_pointers(made, sizes);
  std::vector<std::int64_t> columns[pointer_arrays];
  constexpr std::int64_t bytes = sizeof(std::uint16_t);
  for (const checked_product& p : made.products) {
    const std::int64_t values[pointer_arrays] = {reinterpret_cast<std::int64_t>(p.a),
                                                 reinterpret_cast<std::int64_t>(p.b),
                                                 reinterpret_cast<std::int64_t>(p.c),
                                                 p.a_pitch * bytes,
                                                 p.b_pitch * bytes,
                                                 p.c_pitch * bytes,
                                                 p.m,
                                                 p.n,
                                                 p.k};
    for (std::size_t i = 0; i < pointer_arrays; ++i) columns[i].push_back(values[i]);
  }
  const std::int64_t* places[pointer_arrays];
  for (std::size_t i = 0; i < pointer_arrays; ++i) {
    std::int64_t* const place = columns_.get() + i * most_groups;
    require(cudaMemcpy(place, columns[i].data(), columns[i].size() * sizeof(std::int64_t), cudaMemcpyHostToDevice));
    places[i] = place;
  }
  const auto addresses = [&](std::size_t i) { return reinterpret_cast<const std::uint64_t*>(places[i]); };
  gemm::pointer_problem problem{type_,        static_cast<std::uint32_t>(sizes.size()),
                                addresses(0), addresses(1),
                                addresses(2), places[3],
                                places[4],    places[5],
                                places[6],    places[7],
                                places[8]};
  made.c = c_.get();
  const workspace room = scratch();
  made.enqueue = [=](cudaStream_t stream, std::optional<std::uint32_t> plan) {
    require(gemm::multiply(problem, {.where = {cuda::stream_ref{stream}, room}, .choices = {plan}}));
  };
  made.enqueue_empty = [=, none = no_rows_.get()](cudaStream_t stream) {
    gemm::pointer_problem empty = problem;
    empty.m = none;
    require(gemm::multiply(empty, {{cuda::stream_ref{stream}, room}}));
  };
  return made;
}

}  // namespace tmap::apps::bench
