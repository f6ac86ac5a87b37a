// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "gemm/column_case.hpp"
#include "gemm/gemm_fixture.hpp"
#include "gemm/pointer_case.hpp"
#include "gemm/row_case.hpp"
#include "gemm/weight_case.hpp"

// Puts the operands of this folder's cases into device memory, runs the products and compares the
// results.

namespace tmap::gemm::testing {

using tmap::testing::device_array;

/// Holds a matrix with its copy in device memory. Both have the same margins.
class matrix_on_device {
 public:
  explicit matrix_on_device(const host_matrix& values) : before_(values), bytes_(values.bytes()) {}

  matrix place() const { return {bytes_.address() + margin_bytes, before_.pitch_bytes()}; }
  const host_matrix& before() const { return before_; }
  void reset() const { bytes_.upload(before_.bytes()); }
  void upload(const host_matrix& values) const { bytes_.upload(values.bytes()); }
  host_matrix download() const {
    host_matrix got = before_;
    got.bytes() = bytes_.download();
    return got;
  }

 private:
  host_matrix before_;
  device_array<unsigned char> bytes_;
};

/// Holds the memory that every call needs in addition to its operands.
class call_memory {
 public:
  explicit call_memory(std::uint32_t groups)
      : scratch_(workspace_bytes(groups).value()), statuses_(groups), header_(1) {}

  workspace scratch() const { return {scratch_.data(), scratch_.bytes()}; }
  run on(cudaStream_t stream, std::optional<std::uint32_t> plan) const {
    return {.where = {cuda::stream_ref{stream}, scratch()},
            .statuses = statuses_.data(),
            .header = header_.data(),
            .choices = {plan}};
  }

  void expect(const std::vector<judged_group>& judged) const {
    const std::vector<group_status> got = statuses_.download();
    for (std::size_t g = 0; g < judged.size(); ++g) EXPECT_EQ(got[g].bits, judged[g].status.bits) << "group " << g;
    const batch_header want = header_of(judged);
    const batch_header header = header_.download()[0];
    EXPECT_EQ(header.bad_count, want.bad_count);
    EXPECT_EQ(header.first_bad, want.first_bad);
    EXPECT_EQ(header.empty_count, want.empty_count);
  }

 private:
  device_array<unsigned char> scratch_;
  device_array<group_status> statuses_;
  device_array<batch_header> header_;
};

/// Returns addresses of equal distance.
inline std::vector<std::uint64_t> addresses_of(const matrix& first, std::uint64_t pitch, std::uint32_t count) {
  std::vector<std::uint64_t> addresses;
  for (std::uint32_t i = 0; i < count; ++i) addresses.push_back(first.address + i * pitch);
  return addresses;
}

/// Holds what products share whose groups are parts of a ragged dim. `Case` and `Problem` belong to
/// one of them.
template <class Case, class Problem>
class groups_on_device {
 public:
  const Problem& problem() const { return problem_; }
  result<void> enqueue(cudaStream_t stream, std::optional<std::uint32_t> plan = {}) const {
    return multiply(problem_, memory_.on(stream, plan));
  }
  /// Lets so many blocks at most compute tiles.
  result<void> enqueue_bounded(std::uint32_t plan, std::uint32_t blocks) const {
    run with = memory_.on(nullptr, plan);
    with.choices.blocks = blocks;
    return multiply(problem_, with);
  }
  /// Sets other groups here and in `of`, and poisons the output.
  void set_offsets(Case& of, std::vector<std::int64_t> values) const {
    offsets_.upload(offset_bytes_of(values, problem_.offsets.bytes));
    of.set_offsets(std::move(values));
    reset_output();
  }
  void reset_output() const { c_.reset(); }
  host_matrix output() const { return c_.download(); }
  const call_memory& memory() const { return memory_; }

  void expect(const Case& of, const std::string& what) const { expect(of, of.expected(), what); }
  /// Computing `want` takes long, so a case that runs several times does it once.
  void expect(const Case& of, const expected_output& want, const std::string& what) const {
    EXPECT_EQ(want.fault_of(output(), is_exact(of.settings().kind)), "") << what;
    memory_.expect(of.judged());
  }

 protected:
  explicit groups_on_device(const Case& of)
      : a_(of.a()),
        b_(of.b()),
        c_(of.c()),
        offsets_(offset_bytes_of(of.offsets(), of.settings().offset_bytes)),
        memory_(of.settings().groups()) {
    const auto& with = of.settings();
    problem_.type = with.type;
    problem_.groups = with.groups();
    problem_.offsets = {offsets_.data(), with.format, with.offset_bytes};
    problem_.offsets.slot_rows = of.slot_rows();
    if (with.format == offset_format::begins_and_counts) {
      problem_.offsets.counts = offsets_.data() + with.groups() * with.offset_bytes;
    }
    problem_.a = a_.place();
    problem_.a_layout = with.a_layout;
    problem_.b = b_.place();
    problem_.b_layout = with.b_layout;
    problem_.c = c_.place();
    if constexpr (!std::is_same_v<Problem, column_problem>) {
      problem_.c_type = with.c_type;
      problem_.accumulate = with.accumulate;
    }
  }

  Problem problem_;  ///< the derived class adds its own members

 private:
  matrix_on_device a_;
  matrix_on_device b_;
  matrix_on_device c_;
  device_array<unsigned char> offsets_;
  call_memory memory_;
};

class rows_on_device : public groups_on_device<row_case, row_problem> {
 public:
  explicit rows_on_device(const row_case& of)
      : groups_on_device(of),
        bias_(of.bias().bytes()),
        kept_(of.kept()),
        row_scales_(of.row_scales()),
        column_scales_(of.column_scales()),
        a_scales_(of.a_scales().values()),
        b_scales_(of.b_scales().values()) {
    const row_settings& with = of.settings();
    problem_.rows = of.rows();
    problem_.n = with.n;
    problem_.k = with.k;
    const std::uint64_t b_pitch = of.b_group_rows() * of.b().pitch_bytes();
    if (with.lists_b) {
      b_list_.emplace(addresses_of(problem_.b, b_pitch, with.groups()));
      problem_.b_addresses = b_list_->data();
      problem_.b.address = 0;
    } else {
      problem_.b_group_pitch_bytes = b_pitch;
    }
    if (with.lists_c) list_outputs(of);
    problem_.epilogue.gate = with.gates;
    if (with.kept || with.is_backward()) problem_.epilogue.gate.kept = kept_.place();
    if (with.bias) problem_.epilogue.bias = bias_.data() + margin_bytes;
    if (with.row_scales) problem_.epilogue.row_scales = row_scales_.data();
    problem_.epilogue.row_scale_stride = with.row_scale_stride;
    if (with.column_scales) problem_.epilogue.column_scales = column_scales_.data();
    if (with.block_scales) {
      problem_.a_scales = of.a_scales().placed(a_scales_.data());
      problem_.b_scales = of.b_scales().placed(b_scales_.data());
    }
    problem_.fast_accumulation = with.fast_accumulation;
    problem_.zero_rest = with.zero_rest;
  }

  host_matrix kept() const { return kept_.download(); }
  void reset_kept() const { kept_.reset(); }
  /// Names the memory for scales of C of f8_e4m3.
  void set_scales(const result_scales& scales) { problem_.c_scales = scales; }

 private:
  /// Each group's rows of C have an address of their own, in the place that they have without.
  void list_outputs(const row_case& of) {
    std::vector<std::uint64_t> addresses;
    for (const judged_group& group : of.judged()) {
      addresses.push_back(problem_.c.address + group.begin * problem_.c.pitch_bytes);
    }
    c_list_.emplace(addresses);
    problem_.c_addresses = c_list_->data();
    problem_.c.address = 0;
  }

  device_array<unsigned char> bias_;
  matrix_on_device kept_;
  device_array<float> row_scales_;
  device_array<float> column_scales_;
  device_array<float> a_scales_;
  device_array<float> b_scales_;
  std::optional<device_array<std::uint64_t>> b_list_;
  std::optional<device_array<std::uint64_t>> c_list_;
};

class columns_on_device : public groups_on_device<column_case, column_problem> {
 public:
  explicit columns_on_device(const column_case& of) : groups_on_device(of) {
    problem_.columns = of.columns();
    problem_.m = of.settings().m;
    problem_.k = of.settings().k;
    problem_.a_group_pitch_bytes = of.a_group_lines() * of.a().pitch_bytes();
  }
};

class weights_on_device : public groups_on_device<weight_case, weight_problem> {
 public:
  explicit weights_on_device(const weight_case& of) : groups_on_device(of) {
    problem_.rows = of.rows();
    problem_.m = of.settings().m;
    problem_.n = of.settings().n;
    problem_.zero_rest = of.settings().zero_rest;
    const std::uint64_t pitch = of.c_group_rows() * of.c().pitch_bytes();
    if (of.settings().lists_c) {
      c_list_.emplace(addresses_of(problem_.c, pitch, of.settings().groups()));
      problem_.c_addresses = c_list_->data();
      problem_.c.address = 0;
    } else {
      problem_.c_group_pitch_bytes = pitch;
    }
    if (!has_8_bits(of.settings().type)) return;
    a_scales_.emplace(of.a_scales().values());
    b_scales_.emplace(of.b_scales().values());
    problem_.a_scales = of.a_scales().placed(a_scales_->data());
    problem_.b_scales = of.b_scales().placed(b_scales_->data());
  }

 private:
  std::optional<device_array<std::uint64_t>> c_list_;
  std::optional<device_array<float>> a_scales_;
  std::optional<device_array<float>> b_scales_;
};

/// Holds the arrays of a `pointer_problem` in host memory first, so that a test may spoil them.
struct pointer_columns {
  std::vector<std::uint64_t> a, b, c;
  std::vector<std::int64_t> a_pitch, b_pitch, c_pitch, m, n, k;
};

class pointers_on_device {
 public:
  explicit pointers_on_device(const pointer_settings& with)
      : with_(with), products_(products_of(with)), memory_(count()) {
    for (const pointer_product& product : products_) {
      add(a_, product.a(), columns_.a, columns_.a_pitch);
      add(b_, product.b(), columns_.b, columns_.b_pitch);
      add(c_, product.c(), columns_.c, columns_.c_pitch);
      columns_.m.push_back(product.size().m);
      columns_.n.push_back(product.size().n);
      columns_.k.push_back(product.size().k);
    }
    upload();
  }

  pointer_columns& columns() { return columns_; }
  void upload() {
    addresses_.clear();
    numbers_.clear();
    for (const auto* column : {&columns_.a, &columns_.b, &columns_.c}) {
      addresses_.emplace_back(*column);
    }
    for (const auto* column :
         {&columns_.a_pitch, &columns_.b_pitch, &columns_.c_pitch, &columns_.m, &columns_.n, &columns_.k}) {
      numbers_.emplace_back(*column);
    }
  }

  pointer_problem problem() const {
    pointer_problem made;
    made.type = with_.type;
    made.groups = count();
    made.a = addresses_[0].data();
    made.b = addresses_[1].data();
    made.c = addresses_[2].data();
    made.a_pitch_bytes = numbers_[0].data();
    made.b_pitch_bytes = numbers_[1].data();
    made.c_pitch_bytes = numbers_[2].data();
    made.m = numbers_[3].data();
    made.n = numbers_[4].data();
    made.k = numbers_[5].data();
    made.a_layout = with_.a_layout;
    made.b_layout = with_.b_layout;
    made.c_type = with_.c_type;
    made.accumulate = with_.accumulate;
    return made;
  }

  result<void> enqueue(cudaStream_t stream, std::optional<std::uint32_t> plan = {}) const {
    return multiply(problem(), memory_.on(stream, plan));
  }

  void reset_outputs() const {
    for (const matrix_on_device& c : c_) c.reset();
  }
  std::vector<host_matrix> outputs() const {
    std::vector<host_matrix> got;
    for (const matrix_on_device& c : c_) got.push_back(c.download());
    return got;
  }

  /// Expects that groups with a bad status are unchanged and all others right.
  void expect(const std::vector<group_status>& statuses) const {
    std::vector<judged_group> judged;
    for (std::size_t g = 0; g < products_.size(); ++g) {
      const expected_output want = statuses[g].is_bad() ? expected_output(c_[g].before()) : products_[g].expected();
      EXPECT_EQ(want.fault_of(c_[g].download(), is_exact(with_.kind)), "") << "group " << g;
      judged.push_back({0, 0, statuses[g]});
    }
    memory_.expect(judged);
  }
  /// Expects that all groups are good or empty.
  void expect_all() const {
    std::vector<group_status> statuses;
    for (const product_size size : with_.sizes) {
      const bool is_empty = size.m == 0 || size.n == 0 || size.k == 0;
      statuses.push_back({is_empty ? group_status::empty_bit : 0});
    }
    expect(statuses);
  }

 private:
  std::uint32_t count() const { return static_cast<std::uint32_t>(products_.size()); }
  static void add(std::deque<matrix_on_device>& side, const host_matrix& values, std::vector<std::uint64_t>& addresses,
                  std::vector<std::int64_t>& pitches) {
    const matrix place = side.emplace_back(values).place();
    addresses.push_back(place.address);
    pitches.push_back(static_cast<std::int64_t>(place.pitch_bytes));
  }

  pointer_settings with_;
  std::vector<pointer_product> products_;
  std::deque<matrix_on_device> a_;
  std::deque<matrix_on_device> b_;
  std::deque<matrix_on_device> c_;
  pointer_columns columns_;
  std::deque<device_array<std::uint64_t>> addresses_;
  std::deque<device_array<std::int64_t>> numbers_;
  call_memory memory_;
};

}  // namespace tmap::gemm::testing
