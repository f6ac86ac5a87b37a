// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/plan.hpp"

#include <algorithm>
#include <limits>

namespace tmap::tool {
namespace {

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

shape_t ranked(const tensor& t) {
  return t.shape.empty() ? shape_t{1} : t.shape;
}

/// Finds the place of one packed tensor in a buffer that holds many.
map_patch lay_out(const shape_t& extents, std::uint64_t element_bytes, std::uint64_t& buffer_bytes) {
  constexpr std::uint64_t line_bytes = 128;
  map_patch place{};
  place.global_address = buffer_bytes;
  std::uint64_t stride = element_bytes;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    place.global_dim[axis] = extents[axis];
    stride *= extents[axis];
    if (axis + 1 < extents.size()) place.global_stride_bytes[axis] = stride;
  }
  buffer_bytes += round_up(stride, line_bytes);
  return place;
}

outcome<void> check_size(const batch_plan& plan, const plan_options& options, std::size_t count) {
  const auto slice = dense_bytes(plan.shape, plan.type);
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max() / 64;  // so that sums have room
  if (!slice || *slice > most / count) {
    return refuse("the padded shape {} is larger than any memory; --crop makes it smaller", to_string(plan.shape));
  }
  if (*slice * count <= options.most_bytes) return {};
  return refuse("the padded batch of {} tensors {} needs {} bytes, --max-bytes allows {}", count, to_string(plan.shape),
                *slice * count, options.most_bytes);
}

std::uint64_t valid_bytes(const shape_t& shape, const batch_plan& plan) {
  shape_t common = shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) common[axis] = std::min(shape[axis], plan.shape[axis]);
  return *dense_bytes(common, plan.type);
}

void lay_out_all(batch_plan& plan, const std::vector<shape_t>& shapes) {
  for (const shape_t& shape : shapes) {
    plan.sources.push_back(lay_out(innermost_first(shape, plan.folding), bytes(plan.type), plan.source_bytes));
    plan.valid_bytes += valid_bytes(shape, plan);
  }
  plan.dense_bytes = *dense_bytes(plan.shape, plan.type) * shapes.size();
}

}  // namespace

bool batch_plan::is_empty(std::size_t member) const {
  const auto& dims = sources[member].global_dim;
  return std::find(dims, dims + rank(), 0u) != dims + rank();
}

std::vector<map_patch> batch_plan::sources_at(std::uint64_t address) const {
  std::vector<map_patch> moved = sources;
  for (map_patch& source : moved) source.global_address += address;
  return moved;
}

tensor_batch batch_plan::described(const map_patch* sources_there, array_side side) const {
  tensor_batch batch;
  batch.tensors = patch_array{sources_there};
  batch.count = sources.size();
  batch.element_bytes = static_cast<std::uint32_t>(bytes(type));
  batch.rank = rank();
  batch.side = side;
  return batch;
}

/// Strides and pitch of 0: packed.
dense_batch batch_plan::batch_at(std::uint64_t address) const {
  dense_batch batch;
  batch.address = address;
  const shape_t extents = innermost_first(shape, folding);
  std::copy(extents.begin(), extents.end(), batch.dim);
  return batch;
}

outcome<batch_plan> plan_batch(const std::vector<tensor>& tensors, const std::vector<std::size_t>& members,
                               const plan_options& options) {
  batch_plan plan;
  plan.type = tensors[members.front()].type;
  plan.members = members;
  std::vector<shape_t> shapes;
  for (const std::size_t member : members) shapes.push_back(ranked(tensors[member]));
  plan.name = tensors[members.front()].picture
                  ? "batch_pictures"
                  : fmt::format("batch_{}_rank{}", info(plan.type).name, shapes.front().size());
  plan.shape = batch_shape(shapes, options);
  const auto named = [&](const std::string& cause) { return refuse("{}: {}", plan.name, cause); };
  if (const auto size = check_size(plan, options, members.size()); !size) return named(size.error());

  plan.folding = fold(shapes, plan.shape);
  if (plan.folding.size() > max_rank) {
    return named(fmt::format("{} of its dimensions differ, at most {} may", plan.folding.size(), max_rank));
  }
  lay_out_all(plan, shapes);
  return plan;
}

}  // namespace tmap::tool
