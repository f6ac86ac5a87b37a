// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tensor_spec.hpp>

#include "apps/tmap/pad/tensor.hpp"

#include <optional>
#include <string>
#include <vector>

namespace tmap::tool {

/// What the user may say about the batches.
struct plan_options {
  std::vector<std::uint32_t> box;  ///< innermost first, of the folded tensor; empty: chosen
  tmap::swizzle swizzle{};
  bool crop_to_smallest{};
  shape_t crop;  ///< as files write shapes; empty: none. Concerns batches of this rank only
  std::uint64_t most_bytes{};
};

/// How the axes of a batch fold into those of a tensor map (at most five): axes [first, last] become one. An axis that
/// is equal in every tensor folds into the axis outside it, since padding never comes between the two.
struct axis_run {
  std::uint32_t first;
  std::uint32_t last;
  friend bool operator==(axis_run a, axis_run b) { return a.first == b.first && a.last == b.last; }
};

/// Everything about one batch that can be known before a byte moves. The addresses in the specs are offsets into the
/// buffer of all sources and into that of all destinations.
///
/// Rows of whole 16-byte units move through tensor maps, tile by tile. Any others move by the ragged pad operation, as
/// dense as the files hold them; but where the user chose a box or a swizzle, they are moved apart to pitches that a
/// map may have.
struct batch_plan {
  std::string name;  ///< "batch_f32_rank2" or "batch_pictures"
  dtype type{};
  std::vector<std::size_t> members;  ///< places in the list of all tensors
  shape_t shape;                     ///< of one padded tensor, outermost first
  std::vector<axis_run> folding;     ///< outermost first
  bool by_maps{};                    ///< else by the ragged pad operation
  tensor_spec tile;                  ///< type and rank; by maps also the box and swizzle that all share
  std::vector<tensor_spec> sources;
  std::vector<tensor_spec> destinations;
  std::uint64_t source_bytes{};
  std::uint64_t destination_bytes{};
  std::uint64_t dense_bytes{};       ///< of the batch file's data
  std::uint64_t valid_bytes{};       ///< of these, bytes that come from a tensor
  std::uint64_t tiles_per_tensor{};  ///< 0 unless by maps

  /// Whether the rows of tensor `member` had to be moved apart to reach a multiple of 16 bytes.
  bool repitched(std::size_t member) const;
  /// Whether tensor `member` has no element, so that its place is all padding.
  bool is_empty(std::size_t member) const;
  /// Whether any tensor has an element that goes to the batch. Nothing else needs an engine.
  bool has_work() const { return source_bytes != 0 && destination_bytes != 0; }
};

/// The tensors of equal type and rank, in order of first appearance. A scalar counts as one element of rank 1; pictures
/// are among themselves, so that an array of many channels does not widen them.
std::vector<std::vector<std::size_t>> group(const std::vector<tensor>& tensors);

/// The common shape: the largest size of each dimension, or what the options crop to.
shape_t batch_shape(const std::vector<shape_t>& shapes, const plan_options& options);

/// The coarsest folding of these shapes (all of one rank, `batch` among them).
std::vector<axis_run> fold(const std::vector<shape_t>& shapes, const shape_t& batch);

/// Extents of the folded tensor, innermost first: the one place where the order of dimensions turns round.
shape_t innermost_first(const shape_t& shape, const std::vector<axis_run>& folding);

/// A box of about 16 KiB for a tensor with these (folded, innermost first) extents.
std::vector<std::uint32_t> choose_box(const shape_t& extents, dtype type, tmap::swizzle mode);

/// Fails when the batch is larger than allowed, needs more than five dimensions, or the box breaks a rule.
outcome<batch_plan> plan_batch(const std::vector<tensor>& tensors, const std::vector<std::size_t>& members,
                               const plan_options& options);

}  // namespace tmap::tool
