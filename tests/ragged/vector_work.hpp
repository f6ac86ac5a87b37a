// SPDX-License-Identifier: Apache-2.0
#pragma once

// Planned work for the vector operations, made from batches in host memory in place of a planning
// kernel. Each tensor's route is pinned, or the tensors take the routes that suit them in turn.

#include <tmap/encode.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "kernels/ragged_launch.hpp"
#include "support/ragged_reference.hpp"

namespace tmap::testing {

inline kernels::device_shape this_device() {
  int blocks = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&blocks, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  return {static_cast<std::uint32_t>(blocks), 227 * 1024};
}

/// Holds both sides of an operation: in host memory, and a copy on the device.
struct vector_sides {
  host_batch source;
  host_batch destination;
  bool has_rows;  ///< one element of the destination for each row of the source
};

class vector_work {
 public:
  /// Pins the route `pinned`; tensors that do not suit it are moved by `plain`. Without it, tensors
  /// take every route in turn.
  vector_work(const vector_sides& sides, const kernels::piece_rule& rule, std::optional<route> pinned,
              bool has_partials = true)
      : rule_(rule),
        source_(sides.source.bytes),
        destination_(sides.destination.bytes),
        partials_(kernels::reduce_partials) {
    for (std::uint32_t i = 0; i < sides.source.tensors.size(); ++i) add(sides, i, pinned);
    tensors_ = std::make_unique<device_array<kernels::planned_tensor>>(planned_);
    ends_ = std::make_unique<device_array<std::uint64_t>>(pieces_);
    maps_ = std::make_unique<device_array<tensor_map>>(encoded_);
    has_partials_ = has_partials;
  }

  kernels::planned_work work() const {
    return {tensors_->data(),
            ends_->data(),
            planned_.size(),
            rule_,
            maps_->data(),
            nullptr,
            has_partials_ ? partials_.data() : nullptr};
  }
  std::vector<unsigned char> result() const { return destination_.download(); }
  std::uint32_t of_route(route way) const {
    std::uint32_t count = 0;
    for (const kernels::planned_tensor& tensor : planned_) count += tensor.way == way;
    return count;
  }

 private:
  void add(const vector_sides& sides, std::uint32_t i, std::optional<route> pinned) {
    const host_tensor& from = sides.source.tensors[i];
    const host_tensor& to = sides.destination.tensors[i];
    kernels::planned_tensor planned{};
    planned.source = source_.address() + from.begin;
    planned.destination = destination_.address() + to.begin;
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) planned.dim[axis] = from.shape.dim[axis];
    for (std::uint32_t axis = 0; axis + 1 < max_rank; ++axis) {
      planned.source_stride[axis] = from.stride[axis];
      planned.destination_stride[axis] = to.stride[axis];
    }
    planned.tensor = i;
    const route wanted = pinned.value_or(static_cast<route>(i % route_count));
    planned.way = is_fit(sides, planned, wanted) ? wanted : route::plain;
    encoded_.resize(encoded_.size() + 2);
    if (planned.way == route::tensor_map) encode_both(sides, planned);
    planned_.push_back(planned);
    pieces_.push_back((pieces_.empty() ? 0 : pieces_.back()) + count_pieces(planned));
  }

  static std::uint64_t bits_of(std::uint64_t address, const std::uint64_t* stride, const std::uint64_t* dim) {
    std::uint64_t bits = address;
    for (std::uint32_t axis = 1; axis < max_rank; ++axis) bits |= dim[axis] == 1 ? 0 : stride[axis - 1];
    return bits;
  }

  static bool is_fit(const vector_sides& sides, const kernels::planned_tensor& t, route way) {
    const std::uint64_t from = bits_of(t.source, t.source_stride, t.dim);
    const std::uint64_t to = sides.has_rows ? 0 : bits_of(t.destination, t.destination_stride, t.dim);
    if (t.dim[0] * t.dim[1] * t.dim[2] * t.dim[3] * t.dim[4] == 0) return way == route::plain;
    if (way == route::tensor_map) return (from | to) % 16 == 0;
    if (way == route::bulk) return (from | to) % 16 == 0;
    if (way == route::ldgsts) return (from | to | t.dim[0] * sides.source.element_bytes) % 4 == 0;
    return true;
  }

  void encode_both(const vector_sides& sides, const kernels::planned_tensor& planned) {
    encoded_[encoded_.size() - 2] = map_of(planned, planned.source, planned.source_stride, sides.source.element_bytes);
    if (sides.has_rows) return;
    encoded_[encoded_.size() - 1] =
        map_of(planned, planned.destination, planned.destination_stride, sides.destination.element_bytes);
  }

  tensor_map map_of(const kernels::planned_tensor& planned, std::uint64_t address, const std::uint64_t* stride,
                    std::uint32_t element_bytes) const {
    tensor_spec spec;
    spec.type = element_bytes == 1 ? element_type::u8 : element_bytes == 2 ? element_type::u16 : element_type::f32;
    spec.rank = rule_.map_rank;
    spec.global_address = address;
    for (std::uint32_t axis = 0; axis < rule_.map_rank; ++axis) {
      spec.global_dim[axis] = planned.dim[axis];
      spec.box_dim[axis] = rule_.box_dim[axis];
      spec.element_stride[axis] = 1;
      if (axis + 1 == rule_.map_rank) continue;
      spec.global_stride_bytes[axis] = detail::up(stride[axis], 16);
    }
    const tmap::result<tensor_map> map = encode(spec);
    EXPECT_TRUE(map.has_value()) << to_string(map.error());
    return map.value_or(tensor_map{});
  }

  std::uint64_t count_pieces(const kernels::planned_tensor& t) const {
    const std::uint64_t rows = t.dim[1] * t.dim[2] * t.dim[3] * t.dim[4];
    if (t.dim[0] * rows == 0) return 0;
    const auto up = [](std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; };
    if (t.way == route::tensor_map) {
      std::uint64_t boxes = 1;
      for (std::uint32_t axis = 0; axis < rule_.map_rank; ++axis) boxes *= up(t.dim[axis], rule_.box_dim[axis]);
      return boxes;
    }
    if (t.dim[0] > rule_.piece_elements) return rows * up(t.dim[0], rule_.piece_elements);
    return up(rows, rule_.piece_elements / t.dim[0]);
  }

  kernels::piece_rule rule_;
  device_array<unsigned char> source_;
  device_array<unsigned char> destination_;
  device_array<float> partials_;
  bool has_partials_{};
  std::vector<kernels::planned_tensor> planned_;
  std::vector<std::uint64_t> pieces_;
  std::vector<tensor_map> encoded_;
  std::unique_ptr<device_array<kernels::planned_tensor>> tensors_;
  std::unique_ptr<device_array<std::uint64_t>> ends_;
  std::unique_ptr<device_array<tensor_map>> maps_;
};

}  // namespace tmap::testing
