// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_batch.hpp>

#include "apps/tmap/pad/tensor.hpp"

#include <string>
#include <vector>

namespace tmap::tool {

/// The user's wishes for the batches.
struct plan_options {
  bool crop_to_smallest{};
  shape_t crop{};  ///< as files write shapes; empty: none. Concerns batches of this rank only
  std::uint64_t most_bytes{};
};

/// How the axes of a batch fold into those that operations take (at most five): axes [first, last]
/// become one. An axis that is equal in every tensor folds into the axis outside it, since padding
/// never comes between the two.
struct axis_run {
  std::uint32_t first;
  std::uint32_t last;
  friend bool operator==(axis_run a, axis_run b) { return a.first == b.first && a.last == b.last; }
};

/// Everything about one batch that can be known before a byte moves. Tensors lie as dense as the
/// files hold them, each from the next whole line of memory on.
struct batch_plan {
  std::string name;  ///< "batch_f32_rank2" or "batch_pictures"
  dtype type{};
  std::vector<std::size_t> members;  ///< places in the list of all tensors
  shape_t shape;                     ///< of one padded tensor, outermost first
  std::vector<axis_run> folding;     ///< outermost first
  std::vector<map_patch> sources;    ///< folded; the addresses are offsets into the buffer of all
  std::uint64_t source_bytes{};      ///< of that buffer
  std::uint64_t dense_bytes{};       ///< of the padded batch, as the file has it
  std::uint64_t valid_bytes{};       ///< of these, bytes that come from a tensor

  std::uint32_t rank() const { return static_cast<std::uint32_t>(folding.size()); }
  /// Whether tensor `member` has no element, so that its place is all padding.
  bool is_empty(std::size_t member) const;
  /// Whether any tensor has an element that goes to the batch. Nothing else needs an engine.
  bool has_work() const { return source_bytes != 0 && dense_bytes != 0; }

  /// Returns the sources if their buffer begins at `address`.
  std::vector<map_patch> sources_at(std::uint64_t address) const;
  /// Describes them as an operation takes them.
  tensor_batch described(const map_patch* sources_there, array_side side) const;
  /// Returns the batch that begins at `address`.
  dense_batch batch_at(std::uint64_t address) const;
};

/// Returns the tensors of equal type and rank, in order of first appearance. A scalar counts as one
/// element of rank 1. Pictures are among themselves, so an array of many channels does not widen
/// them.
std::vector<std::vector<std::size_t>> group(const std::vector<tensor>& tensors);

/// Returns the common shape: the largest size of each dimension, or what the options crop to.
shape_t batch_shape(const std::vector<shape_t>& shapes, const plan_options& options);

/// Returns the coarsest folding of these shapes (all of one rank, `batch` among them).
std::vector<axis_run> fold(const std::vector<shape_t>& shapes, const shape_t& batch);

/// Returns the extents of the folded tensor, innermost first: the one place where the order of
/// dimensions turns round.
shape_t innermost_first(const shape_t& shape, const std::vector<axis_run>& folding);

/// Fails when the batch is larger than allowed or needs more than five dimensions.
outcome<batch_plan> plan_batch(const std::vector<tensor>& tensors, const std::vector<std::size_t>& members,
                               const plan_options& options);

}  // namespace tmap::tool
