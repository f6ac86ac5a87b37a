// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes the batches of ragged_reference.hpp in place: in host memory.

#include <tmap/tensor_batch.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "support/ragged_reference.hpp"

namespace tmap::testing {

/// Describes `batch` in the form `form`; both must stay unchanged while this exists.
class host_side {
 public:
  host_side(host_batch& batch, source_form form) : batch_{batch} {
    described.count = batch.tensors.size();
    described.element_bytes = batch.element_bytes;
    described.rank = batch.rank;
    described.side = array_side::host;
    if (form == source_form::array) describe_array();
    if (form == source_form::columns || form == source_form::packed_columns) describe_columns(form);
    if (form == source_form::compact) describe_compact();
    if (!is_rows(form)) return;
    const auto nth = static_cast<std::uint32_t>(form) - static_cast<std::uint32_t>(source_form::rows32_ends);
    const auto format = static_cast<offset_format>(nth % 3);
    if (nth < 3) describe_rows<std::int32_t>(format);
    if (nth >= 3) describe_rows<std::int64_t>(format);
  }

  tensor_batch described{};

  map_patch* patches() const { return patches_.get(); }

 private:
  std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(batch_.bytes.data()); }

  /// Fields beyond the rank hold noise, which the library must not read.
  void describe_array() {
    patches_ = std::make_unique<map_patch[]>(batch_.tensors.size());
    for (std::uint64_t i = 0; i < batch_.tensors.size(); ++i) {
      std::memset(static_cast<void*>(&patches_[i]), 0xee, sizeof(map_patch));
      patches_[i].global_address = base() + batch_.tensors[i].begin;
      for (std::uint32_t axis = 0; axis < batch_.rank; ++axis) {
        patches_[i].global_dim[axis] = batch_.tensors[i].shape.dim[axis];
        if (axis + 1 < batch_.rank) patches_[i].global_stride_bytes[axis] = batch_.tensors[i].stride[axis];
      }
    }
    described.tensors = patch_array{patches_.get()};
  }

  template <class T, class Get>
  const T* column(const Get& get) {
    auto values = std::make_shared<std::vector<T>>();
    for (const host_tensor& tensor : batch_.tensors) values->push_back(static_cast<T>(get(tensor)));
    kept_.push_back(values);
    return values->data();
  }

  void describe_columns(source_form form) {
    patch_columns columns{};
    columns.global_address = column<std::uint64_t>([&](const host_tensor& t) { return base() + t.begin; });
    for (std::uint32_t axis = 0; axis < batch_.rank; ++axis) {
      columns.global_dim[axis] = column<std::uint64_t>([&](const host_tensor& t) { return t.shape.dim[axis]; });
      if (form == source_form::packed_columns || axis + 1 == batch_.rank) continue;
      columns.global_stride_bytes[axis] = column<std::uint64_t>([&](const host_tensor& t) { return t.stride[axis]; });
    }
    described.tensors = columns;
  }

  void describe_compact() {
    compact_columns columns{};
    columns.base_address = base();
    columns.address_units = column<std::uint32_t>([&](const host_tensor& t) { return t.begin / 16; });
    for (std::uint32_t axis = 0; axis < batch_.rank; ++axis) {
      columns.global_dim[axis] = column<std::uint32_t>([&](const host_tensor& t) { return t.shape.dim[axis]; });
      if (axis + 1 == batch_.rank) continue;
      columns.global_stride_units[axis] =
          column<std::uint32_t>([&](const host_tensor& t) { return t.stride[axis] / 16; });
    }
    described.tensors = columns;
  }

  template <class Offset>
  void describe_rows(offset_format format) {
    const std::uint32_t outer = batch_.rank - 1;
    auto offsets = std::make_shared<std::vector<Offset>>();
    std::int64_t end = 0;
    if (format == offset_format::prefix) offsets->push_back(0);
    for (const host_tensor& tensor : batch_.tensors) {
      const auto rows = static_cast<std::int64_t>(tensor.shape.dim[outer]);
      end += rows;
      offsets->push_back(static_cast<Offset>(format == offset_format::sizes ? rows : end));
    }
    kept_.push_back(offsets);
    const host_tensor& first = batch_.tensors.front();
    ragged_rows source{};
    source.base_address = base() + first.begin;
    source.row_pitch_bytes = batch_.rank == 1 ? batch_.element_bytes : first.stride[outer - 1];
    source.offsets = {offsets->data(), format, sizeof(Offset)};
    for (std::uint32_t axis = 0; axis < outer; ++axis) {
      described.inner.dim[axis] = first.shape.dim[axis];
      if (axis + 1 < outer) described.inner.stride_bytes[axis] = first.stride[axis];
    }
    described.tensors = source;
  }

  host_batch& batch_;
  std::unique_ptr<map_patch[]> patches_;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace tmap::testing
