// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/judge_tensors.hpp>
#include <tmap/ragged.hpp>
#include <tmap/route.hpp>
#include <tmap/tensor_batch.hpp>

#include <cstdint>

namespace tmap::simulator {

/// Reads the tensors of a batch whose arrays lie in host memory, one after another. It returns any
/// bits as they are and judges nothing.
class tensor_reader {
 public:
  explicit tensor_reader(const tensor_batch& batch) : batch_{batch} {}

  tensor_layout next();

 private:
  tensor_layout read(const patch_array& source) const;
  tensor_layout read(const patch_columns& source) const;
  tensor_layout read(const compact_columns& source) const;
  template <class Column>
  void read_columns(tensor_layout& layout, const Column* dims, const Column* strides, std::uint64_t unit) const;
  tensor_layout read(const ragged_rows& source);

  tensor_layout blank() const;

  const tensor_batch& batch_;
  std::uint64_t index_{};
  std::uint64_t begin_{};  ///< of `offset_format::sizes`: the rows of all tensors before
};

/// Converts to the form of the judge, in which every tensor has rank 5.
detail::side_extents extents_of(const tensor_layout& layout);

/// Sets strides without gaps for the dims of `layout`; saturating.
void pack_strides(tensor_layout& layout);

/// Returns the bytes of the elements, without gaps; saturating.
std::uint64_t packed_bytes(const tensor_layout& layout);

/// Returns tensor `index` of a dense batch that has strides and a pitch.
tensor_layout dense_tensor(const dense_batch& batch, std::uint32_t element_bytes, std::uint32_t rank,
                           std::uint64_t index);

/// Returns the bytes from the address to the end of the last element; saturating.
std::uint64_t reach_bytes(const tensor_layout& layout);

bool has_no_elements(const tensor_layout& layout);

}  // namespace tmap::simulator
