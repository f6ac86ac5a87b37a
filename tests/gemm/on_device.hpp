// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "gemm/pointer_case.hpp"
#include "gemm/row_case.hpp"
#include "gemm/weight_case.hpp"

// The cases of this folder with their operands in device memory, run and compared.

namespace tmap::gemm::testing {

using tmap::testing::device_array;

/// Skips what only a Hopper GPU runs, and leaves no work behind.
class gemm_test : public tmap::testing::gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    int major = 0;
    if (!IsSkipped() &&
        (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) != cudaSuccess || major != 9)) {
      GTEST_SKIP() << "no Hopper GPU";
    }
  }
};

inline matrix place_of(const host_matrix& shape, const device_array<unsigned char>& bytes) {
  return {bytes.address() + margin_bytes, shape.pitch_bytes()};
}

inline host_matrix download(const host_matrix& shape, const device_array<unsigned char>& bytes) {
  host_matrix got = shape;
  got.bytes() = bytes.download();
  return got;
}

/// What every call works in, beside its operands.
class call_memory {
 public:
  explicit call_memory(std::uint32_t groups)
      : scratch_(workspace_bytes(groups).value()), statuses_(groups), header_(1) {}

  workspace scratch() const { return {scratch_.data(), scratch_.bytes()}; }
  options with(std::optional<std::uint32_t> plan) const { return {statuses_.data(), header_.data(), plan}; }

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

class rows_on_device {
 public:
  explicit rows_on_device(const row_case& of)
      : with_(of.settings()),
        rows_(of.rows()),
        b_group_pitch_(of.b_group_rows() * of.b().pitch_bytes()),
        a_shape_(of.a()),
        b_shape_(of.b()),
        c_shape_(of.c()),
        a_(of.a().bytes()),
        b_(of.b().bytes()),
        c_(of.c().bytes()),
        bias_(of.bias().bytes()),
        row_scales_(of.row_scales()),
        column_scales_(of.column_scales()),
        offsets_(offset_bytes_of(of.offsets(), with_.offset_bytes)),
        memory_(with_.groups()) {}

  row_problem problem() const {
    row_problem made;
    made.type = with_.type;
    made.groups = with_.groups();
    made.rows = rows_;
    made.n = with_.n;
    made.k = with_.k;
    made.offsets = {offsets_.data(), with_.format, with_.offset_bytes};
    made.a = place_of(a_shape_, a_);
    made.b = place_of(b_shape_, b_);
    made.b_group_pitch_bytes = b_group_pitch_;
    made.layout = with_.layout;
    made.c = place_of(c_shape_, c_);
    made.with.kind = with_.epilogue;
    made.with.bias = with_.epilogue == epilogue_kind::bias ? bias_.data() + margin_bytes : nullptr;
    made.with.row_scales = with_.row_scales ? row_scales_.data() : nullptr;
    made.with.column_scales = with_.column_scales ? column_scales_.data() : nullptr;
    made.fast_accumulation = with_.fast_accumulation;
    return made;
  }

  result<void> enqueue(cudaStream_t stream, std::optional<std::uint32_t> plan = {}) const {
    return multiply_async(problem(), memory_.scratch(), cuda::stream_ref{stream}, memory_.with(plan));
  }
  void upload_offsets(const std::vector<std::int64_t>& values) const {
    offsets_.upload(offset_bytes_of(values, with_.offset_bytes));
  }
  void reset_output() const { c_.upload(c_shape_.bytes()); }
  host_matrix output() const { return download(c_shape_, c_); }
  const call_memory& memory() const { return memory_; }

  void expect(const row_case& of, const std::string& what) const {
    EXPECT_EQ(of.expected().fault_of(output(), with_.kind != input_kind::normal), "") << what;
    memory_.expect(of.judged());
  }

 private:
  row_settings with_;
  std::uint64_t rows_;
  std::uint64_t b_group_pitch_;
  host_matrix a_shape_;
  host_matrix b_shape_;
  host_matrix c_shape_;
  device_array<unsigned char> a_;
  device_array<unsigned char> b_;
  device_array<unsigned char> c_;
  device_array<unsigned char> bias_;
  device_array<float> row_scales_;
  device_array<float> column_scales_;
  device_array<unsigned char> offsets_;
  call_memory memory_;
};

class weights_on_device {
 public:
  explicit weights_on_device(const weight_case& of)
      : with_(of.settings()),
        rows_(of.rows()),
        c_group_pitch_(of.c_group_rows() * of.c().pitch_bytes()),
        a_shape_(of.a()),
        b_shape_(of.b()),
        c_shape_(of.c()),
        a_(of.a().bytes()),
        b_(of.b().bytes()),
        c_(of.c().bytes()),
        offsets_(offset_bytes_of(of.offsets(), with_.offset_bytes)),
        memory_(with_.groups()) {}

  weight_problem problem() const {
    weight_problem made;
    made.type = with_.type;
    made.groups = with_.groups();
    made.rows = rows_;
    made.m = with_.m;
    made.n = with_.n;
    made.offsets = {offsets_.data(), with_.format, with_.offset_bytes};
    made.a = place_of(a_shape_, a_);
    made.b = place_of(b_shape_, b_);
    made.c = place_of(c_shape_, c_);
    made.c_group_pitch_bytes = c_group_pitch_;
    made.kind = with_.epilogue;
    return made;
  }

  result<void> enqueue(cudaStream_t stream, std::optional<std::uint32_t> plan = {}) const {
    return multiply_async(problem(), memory_.scratch(), cuda::stream_ref{stream}, memory_.with(plan));
  }
  void upload_offsets(const std::vector<std::int64_t>& values) const {
    offsets_.upload(offset_bytes_of(values, with_.offset_bytes));
  }
  void reset_output() const { c_.upload(c_shape_.bytes()); }
  host_matrix output() const { return download(c_shape_, c_); }

  void expect(const weight_case& of, const std::string& what) const {
    EXPECT_EQ(of.expected().fault_of(output(), with_.kind == input_kind::integers), "") << what;
    memory_.expect(of.judged());
  }

 private:
  weight_settings with_;
  std::uint64_t rows_;
  std::uint64_t c_group_pitch_;
  host_matrix a_shape_;
  host_matrix b_shape_;
  host_matrix c_shape_;
  device_array<unsigned char> a_;
  device_array<unsigned char> b_;
  device_array<unsigned char> c_;
  device_array<unsigned char> offsets_;
  call_memory memory_;
};

/// The arrays of a `pointer_problem`, in host memory first, so that a test may spoil them.
struct pointer_columns {
  std::vector<std::uint64_t> a, b, c;
  std::vector<std::int64_t> a_pitch, b_pitch, c_pitch, m, n, k;
};

class pointers_on_device {
 public:
  explicit pointers_on_device(const pointer_settings& with)
      : with_(with), products_(products_of(with)), memory_(count()) {
    for (const pointer_product& product : products_) {
      add(product.a(), columns_.a, columns_.a_pitch);
      add(product.b(), columns_.b, columns_.b_pitch);
      add(product.c(), columns_.c, columns_.c_pitch);
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
      addresses_.push_back(std::make_unique<device_array<std::uint64_t>>(*column));
    }
    for (const auto* column :
         {&columns_.a_pitch, &columns_.b_pitch, &columns_.c_pitch, &columns_.m, &columns_.n, &columns_.k}) {
      numbers_.push_back(std::make_unique<device_array<std::int64_t>>(*column));
    }
  }

  pointer_problem problem() const {
    pointer_problem made;
    made.type = with_.type;
    made.groups = count();
    made.a = addresses_[0]->data();
    made.b = addresses_[1]->data();
    made.c = addresses_[2]->data();
    made.a_pitch_bytes = numbers_[0]->data();
    made.b_pitch_bytes = numbers_[1]->data();
    made.c_pitch_bytes = numbers_[2]->data();
    made.m = numbers_[3]->data();
    made.n = numbers_[4]->data();
    made.k = numbers_[5]->data();
    made.layout = with_.layout;
    made.kind = with_.epilogue;
    return made;
  }

  result<void> enqueue(cudaStream_t stream, std::optional<std::uint32_t> plan = {}) const {
    return multiply_async(problem(), memory_.scratch(), cuda::stream_ref{stream}, memory_.with(plan));
  }

  /// Groups with a bad status must be as before.
  void expect(const std::vector<group_status>& statuses) const {
    std::vector<judged_group> judged;
    for (std::size_t g = 0; g < products_.size(); ++g) {
      const host_matrix& before = products_[g].c();
      const host_matrix after = download(before, *memories_[3 * g + 2]);
      const bool is_bad = statuses[g].is_bad();
      const expected_output want = is_bad ? expected_output(before) : products_[g].expected();
      EXPECT_EQ(want.fault_of(after, with_.kind == input_kind::integers), "") << "group " << g;
      judged.push_back({0, 0, statuses[g]});
    }
    memory_.expect(judged);
  }
  /// All groups good or empty.
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
  void add(const host_matrix& shape, std::vector<std::uint64_t>& addresses, std::vector<std::int64_t>& pitches) {
    memories_.push_back(std::make_unique<device_array<unsigned char>>(shape.bytes()));
    addresses.push_back(memories_.back()->address() + margin_bytes);
    pitches.push_back(static_cast<std::int64_t>(shape.pitch_bytes()));
  }

  pointer_settings with_;
  std::vector<pointer_product> products_;
  std::vector<std::unique_ptr<device_array<unsigned char>>> memories_;
  pointer_columns columns_;
  std::vector<std::unique_ptr<device_array<std::uint64_t>>> addresses_;
  std::vector<std::unique_ptr<device_array<std::int64_t>>> numbers_;
  call_memory memory_;
};

}  // namespace tmap::gemm::testing
