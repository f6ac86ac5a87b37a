// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/ragged/ragged_batch.hpp"

#include <cmath>
#include <utility>

namespace tmap::apps::bench {

std::uint64_t random_sizes::bits() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double random_sizes::log_between(double low, double high) {
  const double part = static_cast<double>(bits() >> 11) * 0x1p-53;
  return low * std::pow(high / low, part);
}

device_batch::device_batch(std::vector<placed_tensor> tensors, std::uint32_t element_bytes, std::uint32_t rank,
                           const placement& where)
    : tensors_{std::move(tensors)}, element_bytes_{element_bytes}, rank_{rank} {
  place(where);
  memory_ = std::make_unique<device_array<unsigned char>>(span_);
  describe();
}

void device_batch::place(const placement& where) {
  for (placed_tensor& tensor : tensors_) {
    std::uint64_t extent = tensor.dim[0] * element_bytes_;
    std::uint64_t elements = tensor.dim[0];
    for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
      tensor.stride_bytes[axis - 1] = extent + (axis == 1 && rank_ > 1 ? where.row_gap : 0);
      extent = tensor.stride_bytes[axis - 1] * tensor.dim[axis];
      elements *= tensor.dim[axis];
    }
    tensor.begin = (span_ + where.alignment - 1) / where.alignment * where.alignment + where.offset;
    span_ = tensor.begin + extent;
    bytes_ += elements * element_bytes_;
  }
  span_ += where.alignment;
}

void device_batch::describe() {
  const auto column = [&](const auto& value_of) {
    std::vector<std::uint64_t> values;
    for (std::uint64_t i = 0; i < tensors_.size(); ++i) values.push_back(value_of(i));
    columns_.push_back(std::make_unique<device_array<std::uint64_t>>(values));
    return columns_.back()->get();
  };
  patch_columns columns{};
  columns.global_address = column([&](std::uint64_t i) { return address(i); });
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    columns.global_dim[axis] = column([&](std::uint64_t i) { return tensors_[i].dim[axis]; });
  }
  for (std::uint32_t i = 0; i + 1 < max_rank; ++i) {
    columns.global_stride_bytes[i] = column([&](std::uint64_t t) { return tensors_[t].stride_bytes[i]; });
  }
  described_.tensors = columns;
  described_.count = tensors_.size();
  described_.element_bytes = element_bytes_;
  described_.rank = rank_;
}

tensor_columns device_batch::columns() const {
  tensor_columns view{};
  view.address = columns_[0]->get();
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) view.dim[axis] = columns_[1 + axis]->get();
  for (std::uint32_t i = 0; i + 1 < max_rank; ++i) view.stride[i] = columns_[1 + max_rank + i]->get();
  view.count = tensors_.size();
  view.element_bytes = element_bytes_;
  return view;
}

}  // namespace tmap::apps::bench
