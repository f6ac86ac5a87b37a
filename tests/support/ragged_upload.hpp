// SPDX-License-Identifier: Apache-2.0
#pragma once

// Places the batches of ragged_reference.hpp on the device and describes them as any tensor source.

#include <tmap/tensor_batch.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "support/ragged_reference.hpp"

namespace tmap::testing {

/// Holds the arrays of a description, in host memory or on the device.
class described_arrays {
 public:
  explicit described_arrays(array_side side) : side_(side) {}

  template <class T>
  const T* keep(const std::vector<T>& values) {
    const auto* const first = reinterpret_cast<const unsigned char*>(values.data());
    const std::vector<unsigned char> bytes(first, first + values.size() * sizeof(T));
    if (side_ == array_side::device) {
      device_.push_back(std::make_unique<device_array<unsigned char>>(bytes));
      return reinterpret_cast<const T*>(device_.back()->data());
    }
    const std::uint64_t blocks = bytes.size() / sizeof(block) + 1;
    host_.push_back(std::make_unique<block[]>(blocks));
    std::memcpy(host_.back().get(), bytes.data(), bytes.size());
    return reinterpret_cast<const T*>(host_.back().get());
  }

 private:
  struct alignas(16) block {
    unsigned char bytes[16];
  };
  array_side side_;
  std::vector<std::unique_ptr<device_array<unsigned char>>> device_;
  std::vector<std::unique_ptr<block[]>> host_;
};

/// Holds a side on the device: its memory and its description, which refers to the memory.
class device_side {
 public:
  device_side(const host_batch& batch, source_form form, array_side side)
      : memory_(batch.bytes), arrays_(side), described_{} {
    described_.count = batch.tensors.size();
    described_.element_bytes = batch.element_bytes;
    described_.rank = batch.rank;
    described_.side = side;
    describe(batch, form);
  }

  const tensor_batch& described() const { return described_; }
  const device_array<unsigned char>& memory() const { return memory_; }

 private:
  void describe(const host_batch& batch, source_form form) {
    switch (form) {
      case source_form::array: described_.tensors = array_of(batch); break;
      case source_form::columns: described_.tensors = columns_of(batch, true); break;
      case source_form::packed_columns: described_.tensors = columns_of(batch, false); break;
      case source_form::compact: described_.tensors = compact_of(batch); break;
      case source_form::rows32_ends: described_.tensors = rows_of<std::int32_t>(batch, offset_format::ends); break;
      case source_form::rows32_prefix: described_.tensors = rows_of<std::int32_t>(batch, offset_format::prefix); break;
      case source_form::rows32_sizes: described_.tensors = rows_of<std::int32_t>(batch, offset_format::sizes); break;
      case source_form::rows64_ends: described_.tensors = rows_of<std::int64_t>(batch, offset_format::ends); break;
      case source_form::rows64_prefix: described_.tensors = rows_of<std::int64_t>(batch, offset_format::prefix); break;
      default: described_.tensors = rows_of<std::int64_t>(batch, offset_format::sizes); break;
    }
  }

  /// Fields beyond the rank hold noise, which the library must not read.
  patch_array array_of(const host_batch& batch) {
    std::vector<map_patch> patches(batch.tensors.size());
    for (std::uint64_t i = 0; i < patches.size(); ++i) {
      std::memset(static_cast<void*>(&patches[i]), 0xee, sizeof(map_patch));
      patches[i].global_address = memory_.address() + batch.tensors[i].begin;
      for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
        patches[i].global_dim[axis] = batch.tensors[i].shape.dim[axis];
        if (axis + 1 < batch.rank) patches[i].global_stride_bytes[axis] = batch.tensors[i].stride[axis];
      }
    }
    return {arrays_.keep(patches)};
  }

  template <class T, class Get>
  const T* column(const host_batch& batch, const Get& get) {
    std::vector<T> values;
    for (const host_tensor& tensor : batch.tensors) values.push_back(static_cast<T>(get(tensor)));
    return arrays_.keep(values);
  }

  patch_columns columns_of(const host_batch& batch, bool has_strides) {
    patch_columns columns{};
    columns.global_address =
        column<std::uint64_t>(batch, [&](const host_tensor& t) { return memory_.address() + t.begin; });
    for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
      columns.global_dim[axis] = column<std::uint64_t>(batch, [&](const host_tensor& t) { return t.shape.dim[axis]; });
      if (!has_strides || axis + 1 == batch.rank) continue;
      columns.global_stride_bytes[axis] =
          column<std::uint64_t>(batch, [&](const host_tensor& t) { return t.stride[axis]; });
    }
    return columns;
  }

  compact_columns compact_of(const host_batch& batch) {
    compact_columns columns{};
    columns.base_address = memory_.address();
    columns.address_units = column<std::uint32_t>(batch, [&](const host_tensor& t) { return t.begin / 16; });
    for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
      columns.global_dim[axis] = column<std::uint32_t>(batch, [&](const host_tensor& t) { return t.shape.dim[axis]; });
      if (axis + 1 == batch.rank) continue;
      columns.global_stride_units[axis] =
          column<std::uint32_t>(batch, [&](const host_tensor& t) { return t.stride[axis] / 16; });
    }
    return columns;
  }

  template <class Offset>
  ragged_rows rows_of(const host_batch& batch, offset_format format) {
    const std::uint32_t outer = batch.rank - 1;
    std::vector<Offset> offsets;
    std::int64_t end = 0;
    if (format == offset_format::prefix) offsets.push_back(0);
    for (const host_tensor& tensor : batch.tensors) {
      const auto rows = static_cast<std::int64_t>(tensor.shape.dim[outer]);
      end += rows;
      offsets.push_back(static_cast<Offset>(format == offset_format::sizes ? rows : end));
    }
    ragged_rows source{};
    const host_tensor first = batch.tensors.empty() ? host_tensor{} : batch.tensors.front();
    source.base_address = memory_.address() + first.begin;
    source.row_pitch_bytes = batch.rank == 1 ? batch.element_bytes : first.stride[outer - 1];
    source.offsets = {arrays_.keep(offsets), format, sizeof(Offset)};
    for (std::uint32_t axis = 0; axis < outer; ++axis) {
      described_.inner.dim[axis] = first.shape.dim[axis];
      if (axis + 1 < outer) described_.inner.stride_bytes[axis] = first.stride[axis];
    }
    return source;
  }

  device_array<unsigned char> memory_;
  described_arrays arrays_;
  tensor_batch described_;
};

}  // namespace tmap::testing
