// SPDX-License-Identifier: Apache-2.0
// Runs the operations of the host and of the GPU on the same managed memory with spoilt tensors
// among good ones. Expects the same statuses, headers and bytes.
#include <tmap/ragged.hpp>

#include <functional>

#include "device/gpu_fixture.hpp"
#include "simulator/spoilt_tensors.hpp"
#include "support/ragged_reference.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {
namespace {

using ragged::tensor_status;
using ragged::value_type;

using spoilt::reduced;
using spoilt::reshape;
using spoilt::same;
using spoilt::slot_bytes;
using spoilt::slot_count;
using spoilt::summed;
using spoilt::swapped;

template <class T>
class managed_array {
 public:
  explicit managed_array(std::uint64_t size) {
    EXPECT_EQ(cudaMallocManaged(reinterpret_cast<void**>(&data_), size * sizeof(T)), cudaSuccess);
    std::fill_n(data_, size, T{});
  }
  managed_array(const managed_array&) = delete;
  managed_array& operator=(const managed_array&) = delete;
  ~managed_array() { cudaFree(data_); }
  T* get() const { return data_; }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(data_); }

 private:
  T* data_{};
};

struct side_memory {
  managed_array<unsigned char> bytes{slot_count * slot_bytes};
  managed_array<map_patch> patches{slot_count};

  tensor_batch described(std::uint32_t element_bytes, std::uint32_t rank) const {
    tensor_batch batch;
    batch.tensors = patch_array{patches.get()};
    batch.count = slot_count;
    batch.element_bytes = element_bytes;
    batch.rank = rank;
    return batch;
  }
};

class ragged_on_both_engines : public gpu_test {
 protected:
  using operation = std::function<result<void>(const ragged::run&)>;

  void SetUp() override {
    gpu_test::SetUp();
    if (IsSkipped()) return;
    int managed = 0;
    cudaDeviceGetAttribute(&managed, cudaDevAttrConcurrentManagedAccess, 0);
    ASSERT_NE(managed, 0);
    source_ = std::make_unique<side_memory>();
    destination_ = std::make_unique<side_memory>();
    scales_ = std::make_unique<side_memory>();
    windows_ = std::make_unique<managed_array<address_window>>(3 * slot_count);
    statuses_ = std::make_unique<managed_array<tensor_status>>(slot_count);
    header_ = std::make_unique<managed_array<batch_header>>(1);
    spoilt::set_windows(where(), windows_->get());
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      const std::uint64_t slot = scales_->bytes.address() + i * slot_bytes;
      windows_->get()[2 * slot_count + i] = {slot, slot + slot_bytes};
    }
  }

  /// A single draw may spoil no tensor.
  void TearDown() override {
    EXPECT_TRUE(IsSkipped() || bad_count_ > 0);
    gpu_test::TearDown();
  }

  spoilt::slots where() const {
    return {source_->bytes.address(), destination_->bytes.address(), source_->patches.get(),
            destination_->patches.get()};
  }

  void fill(std::uint32_t rank, std::uint32_t from_item, std::uint32_t to_item, reshape to_destination = same) {
    spoilt::draw(random_, where(), {rank, from_item, to_item, to_destination});
    for (std::uint64_t k = 0; k < slot_count * slot_bytes; ++k) {
      source_->bytes.get()[k] =
          static_cast<unsigned char>(random_.below(120));  // no NaN in any type of 2 bytes or more
      destination_->bytes.get()[k] = static_cast<unsigned char>(random_.below(120));
      scales_->bytes.get()[k] = static_cast<unsigned char>(random_.below(120));
    }
    spoilt::draw_scales(random_, source_->patches.get(), rank, scales_->bytes.address(), scales_->patches.get());
  }

  void compare(std::uint32_t rank, route_set allowed, const operation& operate) {
    ragged::run with{on_host{}};
    with.choices.allowed = allowed;
    with.choices.policy = allowed == all_routes ? route_policy::enable : route_policy::force;
    with.statuses = statuses_->get();
    with.header = header_->get();
    with.windows = {windows_->get(), 3 * slot_count};
    const std::vector<unsigned char> before = bytes();
    const auto needed = ragged::workspace_bytes(slot_count, rank);
    TMAP_ASSERT_OK(needed);
    const device_array<unsigned char> scratch(*needed);
    with.where = on_stream{cuda::stream_ref{cudaStream_t{nullptr}}, {scratch.data(), *needed}};
    TMAP_ASSERT_OK(operate(with));
    TMAP_ASSERT_CUDA(cudaDeviceSynchronize());
    const std::vector<unsigned char> found = bytes();
    const std::vector<tensor_status> statuses(statuses_->get(), statuses_->get() + slot_count);
    const batch_header header = *header_->get();
    std::copy_n(before.begin(), slot_count * slot_bytes, destination_->bytes.get());
    std::copy_n(before.begin() + slot_count * slot_bytes, slot_count * slot_bytes, scales_->bytes.get());
    with.where = on_host{};
    TMAP_ASSERT_OK(operate(with));
    expect_bytes(bytes(), found);
    for (std::uint64_t i = 0; i < slot_count; ++i) {
      EXPECT_EQ(statuses[i].bits, statuses_->get()[i].bits) << "tensor " << i << " (GPU, host)";
    }
    EXPECT_EQ(header.bad_count, header_->get()->bad_count);
    EXPECT_EQ(header.first_bad, header_->get()->first_bad);
    EXPECT_EQ(header.empty_count, header_->get()->empty_count);
    bad_count_ += header.bad_count;
  }

  std::vector<unsigned char> bytes() const {
    std::vector<unsigned char> all(destination_->bytes.get(), destination_->bytes.get() + slot_count * slot_bytes);
    all.insert(all.end(), scales_->bytes.get(), scales_->bytes.get() + slot_count * slot_bytes);
    return all;
  }

  /// Calls `use(rank, routes)` for every rank and pinned route.
  template <class Use>
  static void for_each_case(std::uint32_t least_rank, const Use& use) {
    for (std::uint32_t rank = least_rank; rank <= max_rank; ++rank) {
      for (std::uint32_t r = 0; r <= route_count; ++r) {
        use(rank, r == route_count ? all_routes : route_bit(static_cast<route>(r)));
      }
    }
  }

  random_source random_{77};
  std::uint64_t bad_count_{};
  std::unique_ptr<side_memory> source_;
  std::unique_ptr<side_memory> destination_;
  std::unique_ptr<side_memory> scales_;
  std::unique_ptr<managed_array<address_window>> windows_;
  std::unique_ptr<managed_array<tensor_status>> statuses_;
  std::unique_ptr<managed_array<batch_header>> header_;
};

TEST_F(ragged_on_both_engines, copy) {
  for (const std::uint32_t item : {1u, 2u, 3u, 4u, 8u, 16u}) {
    for_each_case(1, [&](std::uint32_t rank, route_set allowed) {
      fill(rank, item, item);
      const tensor_batch from = source_->described(item, rank);
      const tensor_batch to = destination_->described(item, rank);
      compare(rank, allowed, [&](auto& with) { return ragged::copy(from, to, with); });
    });
  }
}

TEST_F(ragged_on_both_engines, transpose) {
  for (const std::uint32_t item : {1u, 2u, 3u, 4u, 8u, 16u}) {
    for_each_case(2, [&](std::uint32_t rank, route_set allowed) {
      fill(rank, item, item, swapped);
      const tensor_batch from = source_->described(item, rank);
      const tensor_batch to = destination_->described(item, rank);
      compare(rank, allowed, [&](auto& with) { return ragged::transpose(from, to, with); });
    });
  }
}

TEST_F(ragged_on_both_engines, pad_fills_the_place_of_bad_tensors) {
  for_each_case(1, [&](std::uint32_t rank, route_set allowed) {
    fill(rank, 2, 2);
    const tensor_batch from = source_->described(2, rank);
    dense_batch dense;
    dense.address = destination_->bytes.address();
    dense.tensor_pitch_bytes = slot_bytes;
    for (std::uint32_t axis = 0; axis < rank; ++axis) dense.dim[axis] = 3 + axis;  // rank 5: 5,040 bytes
    ragged::fill_value fill_with;
    fill_with.bytes[0] = 0x5a;
    compare(rank, allowed, [&](auto& with) { return ragged::pad(from, dense, fill_with, with); });
  });
}

TEST_F(ragged_on_both_engines, saxpy_pool_and_cast) {
  for_each_case(1, [&](std::uint32_t rank, route_set allowed) {
    const tensor_batch from = source_->described(4, rank);
    const tensor_batch to = destination_->described(4, rank);
    fill(rank, 4, 4);
    compare(rank, allowed, [&](auto& with) { return ragged::saxpy(-1.5f, from, to, with); });
    fill(rank, 4, 4);
    compare(rank, allowed, [&](auto& with) { return ragged::max_pool_1d(from, to, 15, with); });
    for (const value_type type : {value_type::u8, value_type::bf16, value_type::f8_e4m3, value_type::f8_e5m2}) {
      const ragged::cast_values values{value_type::f16, type, 3, -1, nullptr, nullptr};
      const std::uint32_t item = value_bytes(type);
      fill(rank, 2, item);
      const tensor_batch halves = source_->described(2, rank);
      const tensor_batch made = destination_->described(item, rank);
      compare(rank, allowed, [&](auto& with) { return ragged::cast(halves, made, values, with); });
    }
  });
}

TEST_F(ragged_on_both_engines, sums_and_maxima_of_rows) {
  for (const value_type type : {value_type::f32, value_type::f16, value_type::bf16}) {
    for (const ragged::row_reduction how : {ragged::row_reduction::sum, ragged::row_reduction::max}) {
      for_each_case(1, [&](std::uint32_t rank, route_set allowed) {
        fill(rank, value_bytes(type), 4, reduced);
        const tensor_batch from = source_->described(value_bytes(type), rank);
        const tensor_batch to = destination_->described(4, rank);
        compare(rank, allowed, [&](auto& with) { return ragged::reduce_rows(from, type, how, to, with); });
      });
    }
  }
}

TEST_F(ragged_on_both_engines, quantize) {
  for (const value_type type : {value_type::f32, value_type::f16, value_type::bf16}) {
    const ragged::quantize_values values{type, value_type::f8_e4m3, ragged::scale_block::block_1x128};
    for (std::uint32_t rank = 1; rank <= max_rank; ++rank) {
      fill(rank, value_bytes(type), 1);
      const tensor_batch from = source_->described(value_bytes(type), rank);
      const tensor_batch to = destination_->described(1, rank);
      const tensor_batch scales = scales_->described(4, rank);
      compare(rank, all_routes, [&](auto& with) { return ragged::quantize(from, to, scales, values, with); });
    }
  }
}

TEST_F(ragged_on_both_engines, sums_of_columns) {
  for (const value_type type : {value_type::f32, value_type::f16, value_type::bf16}) {
    for (const value_type to_type : {value_type::f32, type}) {
      fill(2, value_bytes(type), value_bytes(to_type), summed);
      const tensor_batch from = source_->described(value_bytes(type), 2);
      const tensor_batch to = destination_->described(value_bytes(to_type), 2);
      compare(2, all_routes, [&](auto& with) { return ragged::column_sums(from, type, to, to_type, with); });
    }
  }
}

TEST_F(ragged_on_both_engines, unpad_pack_and_unpack) {
  for_each_case(1, [&](std::uint32_t rank, route_set allowed) {
    fill(rank, 2, 2);
    const tensor_batch from = source_->described(2, rank);
    const tensor_batch to = destination_->described(2, rank);
    dense_batch dense;
    dense.address = source_->bytes.address();
    dense.tensor_pitch_bytes = slot_bytes;
    for (std::uint32_t axis = 0; axis < rank; ++axis) dense.dim[axis] = 6;  // rank 5: 15,552 bytes
    compare(rank, allowed, [&](auto& with) { return ragged::unpad(dense, to, with); });
    for (const std::uint64_t alignment : {1, 16}) {
      // Has a third of the room that all tensors need, so some are truncated.
      const ragged::packed_buffer packed{destination_->bytes.get(), slot_bytes / 3, alignment};
      const ragged::packed_buffer read{source_->bytes.get(), slot_bytes / 3, alignment};
      fill(rank, 2, 2);
      compare(rank, allowed, [&](auto& with) { return ragged::pack(from, packed, with); });
      fill(rank, 2, 2);
      compare(rank, allowed, [&](auto& with) { return ragged::unpack(read, to, with); });
    }
  });
}

}  // namespace
}  // namespace tmap::testing
