// SPDX-License-Identifier: Apache-2.0
#include "lib/ragged/upload.hpp"

#include <cstdint>
#include <variant>

#include "lib/encode/device.hpp"
#include "lib/support/check.hpp"

namespace tmap::ragged {
namespace {

/// Copies arrays one behind the other; after a failure, nothing more.
class array_uploader {
 public:
  array_uploader(void* place, cudaStream_t stream) : place_{static_cast<unsigned char*>(place)}, stream_{stream} {}

  /// Null stays null.
  template <class T>
  void move(const T*& array, std::uint64_t count) {
    if (array == nullptr || code_ != cudaSuccess) return;
    const std::uint64_t bytes = count * sizeof(T);
    code_ = cudaMemcpyAsync(place_, array, bytes, cudaMemcpyHostToDevice, stream_);
    array = reinterpret_cast<const T*>(place_);
    place_ += round_up(bytes, workspace_alignment);
  }
  cudaError_t code() const { return code_; }

 private:
  unsigned char* place_;
  cudaStream_t stream_;
  cudaError_t code_{cudaSuccess};
};

void move_arrays(array_uploader& to, patch_array& source, const tensor_batch& batch) {
  to.move(source.patches, batch.count);
}

void move_arrays(array_uploader& to, patch_columns& source, const tensor_batch& batch) {
  to.move(source.global_address, batch.count);
  for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
    to.move(source.global_dim[axis], batch.count);
    if (axis > 0) to.move(source.global_stride_bytes[axis - 1], batch.count);
  }
}

void move_arrays(array_uploader& to, compact_columns& source, const tensor_batch& batch) {
  to.move(source.address_units, batch.count);
  for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
    to.move(source.global_dim[axis], batch.count);
    if (axis > 0) to.move(source.global_stride_units[axis - 1], batch.count);
  }
}

template <class Offset>
void move_arrays(array_uploader& to, ragged_rows<Offset>& source, const tensor_batch& batch) {
  to.move(source.offsets, batch.count + (source.format == offset_format::prefix ? 1 : 0));
}

}  // namespace

result<tensor_batch> upload_arrays(const tensor_batch& batch, void* place, cudaStream_t stream) {
  tensor_batch moved = batch;
  moved.side = array_side::device;
  if (batch.side == array_side::device) return moved;
  array_uploader uploader(place, stream);
  std::visit([&](auto& source) { move_arrays(uploader, source, batch); }, moved.tensors);
  TMAP_TRY_CUDA(uploader.code());
  return moved;
}

}  // namespace tmap::ragged
