// SPDX-License-Identifier: Apache-2.0
#include "lib/ragged/upload.hpp"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "lib/batch/workspace.hpp"
#include "lib/support/check.hpp"

namespace tmap::ragged {
namespace {

/// Calls `visit(array, elements)` for each array of the source, with the bytes of an element if the
/// array has no type.
template <class Visit>
void visit_arrays(patch_array& source, const tensor_batch& batch, Visit& visit) {
  visit(source.patches, batch.count);
}

template <class Visit>
void visit_arrays(patch_columns& source, const tensor_batch& batch, Visit& visit) {
  visit(source.global_address, batch.count);
  for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
    visit(source.global_dim[axis], batch.count);
    if (axis > 0) visit(source.global_stride_bytes[axis - 1], batch.count);
  }
}

template <class Visit>
void visit_arrays(compact_columns& source, const tensor_batch& batch, Visit& visit) {
  visit(source.address_units, batch.count);
  for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
    visit(source.global_dim[axis], batch.count);
    if (axis > 0) visit(source.global_stride_units[axis - 1], batch.count);
  }
}

template <class Visit>
void visit_arrays(ragged_rows& source, const tensor_batch& batch, Visit& visit) {
  row_offsets& offsets = source.offsets;
  visit(offsets.values, batch.count + (offsets.format == offset_format::prefix ? 1 : 0), offsets.bytes);
  if (offsets.format == offset_format::begins_and_counts) visit(offsets.counts, batch.count, offsets.bytes);
}

/// Copies arrays one after another. After a failure it copies nothing more.
class array_uploader {
 public:
  array_uploader(void* place, cudaStream_t stream, const memory_calls& calls)
      : calls_{calls}, place_{static_cast<unsigned char*>(place)}, stream_{stream} {}

  /// Null stays null.
  template <class T>
  void operator()(const T*& array, std::uint64_t count, std::uint64_t element_bytes = sizeof(T)) {
    if (array == nullptr || code_ != cudaSuccess) return;
    const std::uint64_t bytes = count * element_bytes;
    code_ = calls_.copy(place_, array, bytes, stream_);
    array = reinterpret_cast<const T*>(place_);
    place_ += round_up(bytes, workspace_alignment);
  }
  cudaError_t code() const { return code_; }

 private:
  const memory_calls& calls_;
  unsigned char* place_;
  cudaStream_t stream_;
  cudaError_t code_{cudaSuccess};
};

/// Finds the first array in pageable memory. After a failure it looks at no more.
class pageable_finder {
 public:
  explicit pageable_finder(const memory_calls& calls) : calls_{calls} {}

  void operator()(const void* array, std::uint64_t, std::uint64_t = 0) {
    if (array == nullptr || found_ != nullptr || code_ != cudaSuccess) return;
    cudaPointerAttributes attributes{};
    code_ = calls_.attributes(&attributes, array);
    if (code_ == cudaSuccess && attributes.type == cudaMemoryTypeUnregistered) found_ = array;
  }
  const void* found() const { return found_; }
  cudaError_t code() const { return code_; }

 private:
  const memory_calls& calls_;
  const void* found_{};
  cudaError_t code_{cudaSuccess};
};

bool has_host_arrays(const kernels::side& side) {
  return side.kind == kernels::side_kind::tensors && side.tensors.side == array_side::host;
}

result<void> check_not_pageable(const named_side& given, const memory_calls& calls) {
  const kernels::side& side = given.side;
  if (!has_host_arrays(side)) return {};
  pageable_finder finder{calls};
  tensor_source arrays = side.tensors.tensors;
  std::visit([&](auto& source) { visit_arrays(source, side.tensors, finder); }, arrays);
  TMAP_TRY_CUDA(finder.code());
  if (finder.found() == nullptr) return {};
  return failure{error{.code = status::pageable_memory_in_capture,
                       .found = reinterpret_cast<std::uintptr_t>(finder.found()),
                       .argument = given.name}};
}

}  // namespace

const memory_calls& real_memory_calls() {
  static constexpr memory_calls calls{
      [](cudaStream_t stream, cudaStreamCaptureStatus* status) { return cudaStreamIsCapturing(stream, status); },
      [](cudaPointerAttributes* attributes, const void* data) { return cudaPointerGetAttributes(attributes, data); },
      [](void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
        return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream);
      },
  };
  return calls;
}

result<void> check_host_arrays(cuda::std::span<const named_side> sides, cudaStream_t stream,
                               const memory_calls& calls) {
  const bool has_any =
      std::any_of(sides.begin(), sides.end(), [](const named_side& given) { return has_host_arrays(given.side); });
  if (!has_any) return {};
  cudaStreamCaptureStatus status{};
  TMAP_TRY_CUDA(calls.capture_status(stream, &status));
  if (status != cudaStreamCaptureStatusActive) return {};
  for (const named_side& given : sides) {
    const result<void> checked = check_not_pageable(given, calls);
    if (!checked) return checked;
  }
  return {};
}

result<tensor_batch> upload_arrays(const tensor_batch& batch, void* place, cudaStream_t stream,
                                   const memory_calls& calls) {
  tensor_batch moved = batch;
  moved.side = array_side::device;
  if (batch.side == array_side::device) return moved;
  array_uploader uploader(place, stream, calls);
  std::visit([&](auto& source) { visit_arrays(source, batch, uploader); }, moved.tensors);
  TMAP_TRY_CUDA(uploader.code());
  return moved;
}

}  // namespace tmap::ragged
