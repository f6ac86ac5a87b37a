// SPDX-License-Identifier: Apache-2.0
#pragma once

// Calls every public function that judges a batch, with one bad item or none, and gives the counts
// that must result.

#include <tmap/encode_batch.hpp>
#include <tmap/faults.hpp>
#include <tmap/grouped_gemm.hpp>
#include <tmap/map_service.hpp>
#include <tmap/moe.hpp>
#include <tmap/ragged.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "device/own_stream.hpp"
#include "service/rows_spec.hpp"

namespace tmap::testing {

namespace rg = tmap::ragged;

inline constexpr std::uint64_t item_count = 100;
inline constexpr std::uint64_t bad_at = 41;
inline constexpr std::uint32_t group_count = 3;

/// Makes tensors of 8 x 8 floats. One of them can be bad: its address is odd.
class tensors_on_device {
 public:
  explicit tensors_on_device(std::uint32_t rank, std::uint64_t inner = 8, std::uint64_t rows = 8)
      : rank_(rank), bytes_(item_count * 256) {
    bytes_.upload(std::vector<unsigned char>(item_count * 256, 0));
    for (std::uint64_t i = 0; i < item_count; ++i) {
      map_patch patch{};
      patch.global_address = bytes_.address() + 256 * i;
      for (std::uint32_t axis = 0; axis < max_rank; ++axis) patch.global_dim[axis] = 1;
      patch.global_dim[0] = inner;
      if (rank > 1) patch.global_dim[1] = rows;
      patch.global_stride_bytes[0] = 32;
      patches_.push_back(patch);
    }
    good_.upload(patches_);
    patches_[bad_at].global_address += 1;
    bad_.upload(patches_);
  }

  tensor_batch good() const { return batch(good_); }
  tensor_batch bad() const { return batch(bad_); }
  std::uint64_t address() const { return bytes_.address(); }
  std::uint64_t bytes() const { return bytes_.bytes(); }

 private:
  tensor_batch batch(const device_array<map_patch>& patches) const {
    tensor_batch made;
    made.tensors = patch_array{patches.data()};
    made.count = item_count;
    made.element_bytes = 4;
    made.rank = rank_;
    return made;
  }

  std::uint32_t rank_;
  device_array<unsigned char> bytes_;
  std::vector<map_patch> patches_;
  device_array<map_patch> good_{item_count};
  device_array<map_patch> bad_{item_count};
};

/// Holds the memory for all calls below. Each call has exactly one bad item, or none.
class world {
 public:
  world() {
    base_.emplace(make_template(rows_spec(), patch_address | patch_dim(1)).value());
    std::vector<map_patch> patches(item_count);
    for (std::uint64_t i = 0; i < item_count; ++i) {
      patches[i].global_address = maps_memory_.address() + 256 * i;
      patches[i].global_dim[1] = 1;
    }
    good_patches_.upload(patches);
    patches[bad_at].global_address += 8;
    bad_patches_.upload(patches);
    std::vector<std::int64_t> rows(item_count, 5);
    good_index_.upload(rows);
    rows[bad_at] = -1;
    bad_index_.upload(rows);
    std::vector<std::int32_t> choices(item_count, 5);
    good_choices_.upload(choices);
    choices[bad_at] += 100;
    bad_choices_.upload(choices);
    changed_.upload({3, static_cast<std::uint32_t>(bad_at), 99});
    good_ends_.upload({16, 32, 48});
    bad_ends_.upload({16, 32, 49});
    make_pointers();
    service_.emplace(map_service::create({.capacity = 4096, .self_test = false}).value());
  }

  result<void> run(batch_call call, bool is_bad, fault_check check, cudaStream_t stream) {
    const cuda::stream_ref on{stream};
    const gemm::run product{.where = {on, scratch()}, .check = check};
    const rg::run with{.where = on_stream{on, scratch()}, .check = check};
    const tensor_batch one = is_bad ? line_.bad() : line_.good();
    const tensor_batch square = is_bad ? square_.bad() : square_.good();
    const rg::packed_buffer packed{packed_.data(), packed_.bytes(), 256, nullptr};
    const patch_array patches{(is_bad ? bad_patches_ : good_patches_).data()};
    const encode_run maps{.where = {on}, .check = check};
    switch (call) {
      case batch_call::encode_batch: return encode_batch(*base_, patches, slots_.data(), item_count, maps);
      case batch_call::service_encode: return without_batch(service_->encode(*base_, patches, item_count, maps));
      case batch_call::service_update: {
        const auto old = service_->encode(*base_, patch_array{good_patches_.data()}, item_count,
                                          {.where = {on}, .check = fault_check::off});
        if (!old) return failure(old.error());
        return without_batch(service_->update(*old, {changed_.data(), 3}, *base_, patches, maps));
      }
      case batch_call::ragged_copy: return rg::copy(one, line_to_.good(), with);
      case batch_call::ragged_pack: return rg::pack(one, packed, with);
      case batch_call::ragged_unpack: return rg::unpack(packed, one, with);
      case batch_call::ragged_pad: return rg::pad(one, dense(), {}, with);
      case batch_call::ragged_unpad: return rg::unpad(dense(), one, with);
      case batch_call::ragged_gather_rows: return rg::gather_rows(matrix(), index(is_bad), matrix_to(), with);
      case batch_call::ragged_scatter_rows: return rg::scatter_rows(matrix(), index(is_bad), matrix_to(), with);
      case batch_call::ragged_transpose: return rg::transpose(square, square_to_.good(), with);
      case batch_call::ragged_cast:
        return rg::cast(one, line_to_.good(), {rg::value_type::f32, rg::value_type::f32}, with);
      case batch_call::ragged_saxpy: return rg::saxpy(2, one, line_to_.good(), with);
      case batch_call::ragged_max_pool_1d: return rg::max_pool_1d(one, line_to_.good(), 1, with);
      case batch_call::ragged_reduce_rows:
        return rg::reduce_rows(one, rg::value_type::f32, rg::row_reduction::sum, sums_.good(), with);
      case batch_call::ragged_quantize: {
        tensor_batch quantized = line_to_.good();
        quantized.element_bytes = 1;
        return rg::quantize(one, quantized, sums_.good(), {rg::value_type::f32, rg::value_type::f8_e4m3}, with);
      }
      case batch_call::ragged_column_sums:
        return rg::column_sums(square, rg::value_type::f32, row_.good(), rg::value_type::f32, with);
      case batch_call::gemm_rows: return gemm::multiply(row_problem(is_bad), product);
      case batch_call::gemm_columns: return gemm::multiply(column_problem(is_bad), product);
      case batch_call::gemm_weights: return gemm::multiply(weight_problem(is_bad), product);
      case batch_call::gemm_pointers: return gemm::multiply(pointer_problem(is_bad), product);
      case batch_call::moe_route: return moe::route(route_problem(is_bad), {}, {.where = {on}, .check = check});
      case batch_call::moe_combine: return moe::combine(combine_problem(is_bad), {.where = {on}, .check = check});
      case batch_call::moe_combine_backward:
        return moe::combine_backward(combine_gradients(is_bad), {.where = {on}, .check = check});
      case batch_call::none: break;
    }
    ADD_FAILURE() << "a call that this table does not know: " << name(call);
    return {};
  }

  /// Returns the bad item of a call, except for the call's number.
  static bad_item item_of(batch_call call) {
    if (call == batch_call::moe_route) return {call, 0, bad_at, static_cast<std::uint64_t>(moe::fault::expert)};
    switch (items_of(call)) {
      case item_kind::map:
        return {call, 0, bad_at, std::uint64_t{1} << static_cast<std::uint32_t>(rule::t06_address_multiple_of_16)};
      case item_kind::tensor: return {call, 0, bad_at, static_cast<std::uint64_t>(rg::fault::address)};
      case item_kind::row: return {call, 0, bad_at, static_cast<std::uint64_t>(rg::fault::index)};
      default: return {call, 0, 2, static_cast<std::uint64_t>(gemm::fault::rows)};
    }
  }
  static std::uint64_t items_in(batch_call call) {
    return items_of(call) == item_kind::group ? group_count : item_count;
  }

 private:
  static result<void> without_batch(const result<map_batch>& made) {
    return made ? result<void>{} : failure(made.error());
  }
  workspace scratch() const { return {scratch_.data(), scratch_.bytes()}; }
  dense_batch dense() const {
    return {.address = dense_.address(), .dim = {8}, .stride_bytes = {}, .tensor_pitch_bytes = 0};
  }
  rg::row_matrix matrix() const { return {line_.address(), item_count, 64, 256}; }
  rg::row_matrix matrix_to() const { return {line_to_.address(), item_count, 64, 256}; }
  rg::row_index index(bool is_bad) const { return {(is_bad ? bad_index_ : good_index_).data(), item_count, 8}; }
  row_offsets offsets(bool is_bad) const { return {(is_bad ? bad_ends_ : good_ends_).data(), offset_format::ends, 4}; }

  gemm::row_problem row_problem(bool is_bad) const {
    gemm::row_problem made;
    made.groups = group_count;
    made.rows = 48;
    made.n = made.k = 64;
    made.offsets = offsets(is_bad);
    made.a = {a_.address(), 128};
    made.b = {b_.address(), 128};
    made.b_group_pitch_bytes = 64 * 128;
    made.c = {c_.address(), 128};
    return made;
  }
  gemm::column_problem column_problem(bool is_bad) const {
    gemm::column_problem made;
    made.groups = group_count;
    made.columns = 48;
    made.m = made.k = 64;
    made.offsets = offsets(is_bad);
    made.a = {b_.address(), 128};
    made.a_group_pitch_bytes = 64 * 128;
    made.b = {a_.address(), 128};
    made.c = {c_.address(), 128};
    return made;
  }
  gemm::weight_problem weight_problem(bool is_bad) const {
    gemm::weight_problem made;
    made.groups = group_count;
    made.rows = 48;
    made.m = made.n = 64;
    made.offsets = offsets(is_bad);
    made.a = {a_.address(), 128};
    made.b = {b_.address(), 128};
    made.c = {c_.address(), 128};
    made.c_group_pitch_bytes = 64 * 128;
    return made;
  }
  gemm::pointer_problem pointer_problem(bool is_bad) const {
    gemm::pointer_problem made;
    made.groups = group_count;
    made.a = addresses_.data();
    made.b = addresses_.data() + group_count;
    made.c = addresses_.data() + 2 * group_count;
    made.a_pitch_bytes = made.b_pitch_bytes = made.c_pitch_bytes = pitches_.data();
    made.m = (is_bad ? bad_m_ : good_m_).data();
    made.n = made.k = extents_.data();
    return made;
  }
  /// One choice for each token. The bad one has the number 5 + 100.
  moe::route_problem route_problem(bool is_bad) const {
    const moe::given_choices given{.ids = (is_bad ? bad_choices_ : good_choices_).data()};
    return {.tokens = item_count, .experts = 100, .k = 1, .choices = given};
  }
  moe::combine_problem combine_problem(bool is_bad) const {
    moe::combine_problem made;
    made.tokens = item_count;
    made.k = 1;
    made.columns = 8;
    made.rows = 100;
    made.values = {line_.address(), 32};
    made.row_of_choice = (is_bad ? bad_choices_ : good_choices_).data();
    made.out = {line_to_.address(), 32};
    return made;
  }
  moe::combine_gradients combine_gradients(bool is_bad) const {
    moe::combine_gradients made;
    made.tokens = item_count;
    made.k = 1;
    made.columns = 8;
    made.rows = 100;
    made.row_of_choice = (is_bad ? bad_choices_ : good_choices_).data();
    made.d_out = {line_.address(), 32};
    made.d_values = {line_to_.address(), 32};
    return made;
  }
  void make_pointers() {
    std::vector<std::uint64_t> addresses;
    for (const auto* const side : {&a_, &b_, &c_}) {
      for (std::uint64_t g = 0; g < group_count; ++g) addresses.push_back(side->address() + g * 64 * 128);
    }
    addresses_.upload(addresses);
    pitches_.upload(std::vector<std::int64_t>(group_count, 128));
    extents_.upload(std::vector<std::int64_t>(group_count, 64));
    good_m_.upload({16, 16, 16});
    bad_m_.upload({16, 16, -1});
  }

  tensors_on_device line_{1};
  tensors_on_device line_to_{1};
  tensors_on_device sums_{1, 1};
  tensors_on_device square_{2};
  tensors_on_device square_to_{2};
  tensors_on_device row_{2, 8, 1};
  device_array<unsigned char> packed_{item_count * 256};
  device_array<unsigned char> dense_{item_count * 256};
  device_array<unsigned char> scratch_{
      std::max(rg::workspace_bytes(item_count, 2).value(), gemm::workspace_bytes(group_count).value())};
  device_array<unsigned char> maps_memory_{item_count * 256};
  device_array<map_patch> good_patches_{item_count};
  device_array<map_patch> bad_patches_{item_count};
  device_array<tensor_map> slots_{item_count};
  device_array<std::int64_t> good_index_{item_count};
  device_array<std::int64_t> bad_index_{item_count};
  device_array<std::int32_t> good_choices_{item_count};
  device_array<std::int32_t> bad_choices_{item_count};
  device_array<std::uint32_t> changed_{3};
  device_array<std::int32_t> good_ends_{group_count};
  device_array<std::int32_t> bad_ends_{group_count};
  device_array<unsigned char> a_{group_count * 64 * 128};
  device_array<unsigned char> b_{group_count * 64 * 128};
  device_array<unsigned char> c_{group_count * 64 * 128};
  device_array<std::uint64_t> addresses_{3 * group_count};
  device_array<std::int64_t> pitches_{group_count};
  device_array<std::int64_t> extents_{group_count};
  device_array<std::int64_t> good_m_{group_count};
  device_array<std::int64_t> bad_m_{group_count};
  std::optional<map_template> base_;
  std::optional<map_service> service_;
};

/// Returns every call. It includes each one that is added to `batch_call`, and `world::run` fails
/// for a call that it does not know.
inline std::vector<batch_call> all_calls() {
  std::vector<batch_call> calls;
  for (std::uint32_t call = 1; call < batch_call_count; ++call) calls.push_back(static_cast<batch_call>(call));
  return calls;
}

inline std::uint64_t count_of(const fault_report& report, item_kind kind) {
  const std::uint64_t counts[]{report.maps, report.tensors, report.rows, report.groups};
  return counts[static_cast<std::size_t>(kind)];
}

inline void expect_item(const bad_item& got, const bad_item& want) {
  EXPECT_EQ(got.call, want.call) << to_string(got);
  EXPECT_EQ(got.index, want.index);
  EXPECT_EQ(got.bits, want.bits);
  EXPECT_NE(got.number, 0u);
}

class device_faults : public gpu_test {
 protected:
  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    TMAP_ASSERT_OK(reset_faults());
  }
  static fault_report taken() {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const result<fault_report> report = reset_faults();
    EXPECT_TRUE(report.has_value()) << to_string(report.error());
    return report ? *report : fault_report{};
  }
};

}  // namespace tmap::testing
