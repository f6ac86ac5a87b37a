// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/plan.hpp"

#include <tmap/validate.hpp>

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

/// What rows and tensors of a buffer begin at multiples of.
struct spacing {
  std::uint64_t row_bytes;
  std::uint64_t tensor_bytes;
};
constexpr spacing of_maps{16, 128};

/// Where one tensor lies in a buffer that holds many.
tensor_spec lay_out(const tensor_spec& tile, const shape_t& extents, spacing apart, std::uint64_t& buffer_bytes) {
  tensor_spec spec = tile;
  spec.global_address = buffer_bytes;
  std::uint64_t stride = round_up(element_bytes(tile.type, extents[0]), apart.row_bytes);
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    spec.global_dim[axis] = extents[axis];
    if (axis > 0) stride *= extents[axis];
    if (axis + 1 < extents.size()) spec.global_stride_bytes[axis] = stride;
  }
  buffer_bytes += round_up(stride, apart.tensor_bytes);
  return spec;
}

tensor_spec make_tile(const shape_t& extents, dtype type, const plan_options& options) {
  tensor_spec tile;
  tile.type = info(type).moved_as;
  tile.rank = static_cast<std::uint32_t>(extents.size());
  tile.swizzle = options.swizzle;
  const std::vector<std::uint32_t> box = options.box.empty() ? choose_box(extents, type, options.swizzle) : options.box;
  for (std::uint32_t axis = 0; axis < tile.rank; ++axis) tile.box_dim[axis] = axis < box.size() ? box[axis] : 1;
  return tile;
}

/// A copy keeps at least two tiles in the shared memory of one block.
outcome<void> check_tile(const tensor_spec& tile) {
  constexpr std::uint64_t most = 96 * 1024;
  const std::uint64_t size = tile_footprint_bytes(tile);
  if (size <= most) return {};
  return refuse("a box that takes {} bytes of shared memory is too large (at most {})", size, most);
}

bool has_elements(const tensor_spec& spec) {
  return std::find(spec.global_dim, spec.global_dim + spec.rank, 0u) == spec.global_dim + spec.rank;
}

/// A tensor without elements has no map: it is never loaded from.
outcome<void> check_maps(const std::vector<tensor_spec>& specs) {
  for (tensor_spec spec : specs) {
    if (!has_elements(spec)) continue;
    spec.global_address += 4096;  // offsets begin at 0, which no allocation does
    if (broken_rules(spec).empty()) continue;
    for (const violation& broken : validate(spec)) {
      if (!detail::is_warning(broken.id)) return refuse("{}", to_string(broken));
    }
  }
  return {};
}

outcome<void> check_size(const batch_plan& plan, const plan_options& options, std::size_t count) {
  const auto slice = dense_bytes(plan.shape, plan.type);
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max() / 64;  // room for pitches and for sums
  if (!slice || *slice > most / count) {
    return refuse("the padded shape {} is larger than any memory; --crop makes it smaller", to_string(plan.shape));
  }
  if (*slice * count <= options.most_bytes) return {};
  return refuse("the padded batch of {} tensors {} needs {} bytes, --max-bytes allows {}", count, to_string(plan.shape),
                *slice * count, options.most_bytes);
}

/// Short rows grow to 16 bytes each, so what is really allocated can be far more than the batch.
outcome<void> check_buffers(const batch_plan& plan, const plan_options& options) {
  const std::uint64_t largest = std::max(plan.source_bytes, plan.destination_bytes);
  if (!plan.by_maps || largest <= options.most_bytes) return {};
  return refuse("with rows of whole 16-byte units it needs a buffer of {} bytes, --max-bytes allows {}", largest,
                options.most_bytes);
}

std::uint64_t valid_bytes(const shape_t& shape, const batch_plan& plan) {
  shape_t common = shape;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) common[axis] = std::min(shape[axis], plan.shape[axis]);
  return *dense_bytes(common, plan.type);
}

/// Whether tensor maps can describe all tensors as they are, or are asked for all the same.
bool goes_by_maps(const batch_plan& plan, const std::vector<shape_t>& shapes, const plan_options& options) {
  if (*dense_bytes(plan.shape, plan.type) == 0) return false;
  if (!options.box.empty() || options.swizzle != tmap::swizzle::none || plan.folding.size() == 1) return true;
  const auto has_whole_rows = [&](const shape_t& shape) {
    return innermost_first(shape, plan.folding)[0] * bytes(plan.type) % of_maps.row_bytes == 0;
  };
  return has_whole_rows(plan.shape) && std::all_of(shapes.begin(), shapes.end(), has_whole_rows);
}

void lay_out_all(batch_plan& plan, const std::vector<shape_t>& shapes) {
  const spacing of_sources = plan.by_maps ? of_maps : spacing{1, 16};
  const spacing of_destinations = plan.by_maps ? of_maps : spacing{1, 1};
  const shape_t extents = innermost_first(plan.shape, plan.folding);
  for (const shape_t& shape : shapes) {
    plan.sources.push_back(lay_out(plan.tile, innermost_first(shape, plan.folding), of_sources, plan.source_bytes));
    plan.destinations.push_back(lay_out(plan.tile, extents, of_destinations, plan.destination_bytes));
    plan.valid_bytes += valid_bytes(shape, plan);
  }
  plan.dense_bytes = *dense_bytes(plan.shape, plan.type) * shapes.size();
  if (!plan.by_maps) return;
  plan.tiles_per_tensor = 1;
  for (std::size_t axis = 0; axis < extents.size(); ++axis) {
    plan.tiles_per_tensor *= (extents[axis] + plan.tile.box_dim[axis] - 1) / plan.tile.box_dim[axis];
  }
}

}  // namespace

bool batch_plan::repitched(std::size_t member) const {
  const tensor_spec& spec = sources[member];
  return spec.rank > 1 && spec.global_stride_bytes[0] != element_bytes(spec.type, spec.global_dim[0]);
}

bool batch_plan::is_empty(std::size_t member) const {
  return !has_elements(sources[member]);
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
  plan.by_maps = goes_by_maps(plan, shapes, options);
  plan.tile = make_tile(innermost_first(plan.shape, plan.folding), plan.type, options);
  if (const auto tile = check_tile(plan.tile); !tile) return named(tile.error());
  lay_out_all(plan, shapes);
  if (const auto fits = check_buffers(plan, options); !fits) return named(fits.error());
  if (!plan.by_maps) return plan;
  if (const auto legal = check_maps(plan.sources); !legal) return named(legal.error());
  if (const auto legal = check_maps(plan.destinations); !legal) return named(legal.error());
  return plan;
}

}  // namespace tmap::tool
