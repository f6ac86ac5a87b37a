// SPDX-License-Identifier: Apache-2.0
#include "lib/ragged/operation.hpp"

#include <tmap/make_template.hpp>

#include <algorithm>
#include <variant>

#include "kernels/launch.hpp"
#include "lib/driver/map_driver.hpp"
#include "lib/encode/device.hpp"
#include "lib/ragged/upload.hpp"
#include "lib/ragged/workspace.hpp"
#include "lib/support/check.hpp"

namespace tmap::ragged {
namespace {

/// Every kernel takes the shared memory of a block on Hopper.
result<void> check_shared_memory(std::uint32_t per_block) {
  if (per_block >= detail::ragged_shared_memory_bytes) return {};
  return failure{error{.code = status::unsupported,
                       .found = per_block,
                       .allowed = detail::ragged_shared_memory_bytes,
                       .reason = "a block on this GPU may have {found} bytes of shared memory; ragged operations need "
                                 "{allowed}"}};
}

/// The running sum that `sizes` need; other sources need none.
struct row_sum {
  std::int64_t* begins;
  void* scratch;
  std::size_t scratch_bytes;
  std::uint64_t count;
  cudaStream_t stream;

  template <class Source>
  result<const std::int64_t*> operator()(const Source&) const {
    return nullptr;
  }
  result<const std::int64_t*> operator()(const ragged_rows& source) const {
    if (source.offsets.format != offset_format::sizes) return nullptr;
    TMAP_TRY_CUDA(kernels::launch_running_sum(source.offsets, begins, count, scratch, scratch_bytes, stream));
    return begins;
  }
};

/// Returns a side with its arrays on the device and its rows summed. `which` is 0 for the source,
/// 1 for the destination and 2 for scales.
result<kernels::side> enqueue_side(const kernels::side& from, std::uint32_t which, const workspace& scratch,
                                   const workspace_layout& layout, cudaStream_t stream) {
  if (from.kind != kernels::side_kind::tensors) return from;
  kernels::side ready = from;
  const auto uploaded = upload_arrays(from.tensors, part_of<void*>(scratch, layout.arrays[which]), stream);
  if (!uploaded) return failure(uploaded.error());
  ready.tensors = *uploaded;
  const row_sum sum{part_of<std::int64_t>(scratch, layout.row_begins[which]), part_of<void*>(scratch, layout.scratch),
                    layout.scratch_bytes, from.tensors.count, stream};
  const result<const std::int64_t*> begins = std::visit(sum, ready.tensors.tensors);
  if (!begins) return failure(begins.error());
  ready.row_begins = *begins;
  return ready;
}

result<void> check_all_arrays(const operation& op, cudaStream_t stream) {
  const kernels::side& scales = op.scales ? op.scales->tensors : op.destination;
  const named_side sides[] = {{op.source, "source"}, {op.destination, "destination"}, {scales, "scales"}};
  return check_host_arrays({sides, op.scales ? 3u : 2u}, stream);
}

/// Returns a template for one side, or an empty one if there can be none.
map_template template_of(const std::optional<tensor_spec>& spec, std::uint32_t rank) {
  if (!spec) return {};
  const result<map_template> made = make_template(*spec, patch_extents(rank));
  return made ? *made : map_template{};
}

/// Returns whether bulk copies are the first choice for every tensor that a map could describe. A
/// tensor of rank 1 is one row: too small for either, or as long and as aligned as both need.
bool is_bulk_first(const kernels::plan_request& request) {
  const bool may_bulk = request.routes.allowed.contains(route::bulk);
  return request.rank == 1 && request.routes.policy == route_policy::enable && may_bulk;
}

/// Maps are left out where no template can be made; a plan that does not use them is spared their
/// launch.
void set_templates(kernels::plan_request& request, const operation& op) {
  const bool is_allowed =
      request.routes.policy != route_policy::disable && request.routes.allowed.contains(route::tensor_map);
  const bool may_use = is_allowed && !is_bulk_first(request);
  if (may_use) {
    request.source_map = template_of(op.source_map, request.rank);
    request.destination_map = template_of(op.destination_map, request.rank);
  }
  const bool has_source = request.source_map.spec.rank != 0;
  const bool has_destination = !op.destination_map || request.destination_map.spec.rank != 0;
  if (has_source && has_destination) return;
  request.routes.allowed = request.routes.allowed.without(route::tensor_map);
}

kernels::plan_target target_of(const operation& op, const workspace& scratch, const workspace_layout& layout,
                               bool has_maps) {
  const bool packs = op.destination.kind == kernels::side_kind::packed;
  const bool unpacks = op.source.kind == kernels::side_kind::packed;
  kernels::plan_target target{};
  target.tensors = part_of<kernels::planned_tensor>(scratch, layout.tensors);
  target.ends = part_of<std::uint64_t>(scratch, layout.ends);
  target.maps = has_maps ? part_of<tensor_map>(scratch, layout.maps) : nullptr;
  if (packs || unpacks) {
    const packed_buffer& packed = packs ? op.destination.packed : op.source.packed;
    target.begins = packed.begins != nullptr ? packed.begins : part_of<std::int64_t>(scratch, layout.begins);
  }
  if (op.relation == kernels::shape_relation::swapped) {
    target.queue = part_of<device::queue_counter>(scratch, layout.queue);
  }
  if (op.scales) target.scales = part_of<kernels::planned_scales>(scratch, layout.scales);
  target.scratch = part_of<void*>(scratch, layout.scratch);
  target.scratch_bytes = layout.scratch_bytes;
  return target;
}

kernels::plan_request request_of(const operation& op, const run& with, route_policy policy) {
  kernels::plan_request request{};
  request.count = op.source.tensors.count;
  request.rank = op.source.tensors.rank;
  request.relation = op.relation;
  request.kept_axes = op.kept_axes;
  request.routes = {policy, with.choices.allowed};
  request.rule = op.rule;
  request.statuses = with.statuses;
  request.header = with.header;
  request.windows = with.windows.data();
  request.window_count = static_cast<std::uint32_t>(with.windows.size());
  set_templates(request, op);
  return request;
}

}  // namespace

result<route_policy> policy_of(const choices& made) {
  const result<route_policy> policy = made.policy ? *made.policy : policy_from_environment();
  if (!policy || *policy != route_policy::force) return policy;
  if (const auto limits = driver::process_driver().usable_limits(); !limits) return failure(limits.error());
  return policy;
}

result<kernels::device_shape> current_device_shape() {
  const result<std::uint32_t> multiprocessors = multiprocessor_count();
  if (!multiprocessors) return failure(multiprocessors.error());
  const result<shared_memory_limits> shared_memory = query_shared_memory();
  if (!shared_memory) return failure(shared_memory.error());
  if (const auto checked = check_shared_memory(shared_memory->per_block); !checked) return failure(checked.error());
  return kernels::device_shape{*multiprocessors, shared_memory->per_block};
}

kernels::side tensors_of(const tensor_batch& batch) {
  kernels::side made{};
  made.kind = kernels::side_kind::tensors;
  made.tensors = batch;
  return made;
}

kernels::side dense_of(const dense_batch& dense, const tensor_batch& batch) {
  kernels::side made = tensors_of(batch);
  made.kind = kernels::side_kind::dense;
  made.dense = dense;
  return made;
}

kernels::side packed_of(const packed_buffer& packed, const tensor_batch& batch) {
  kernels::side made = tensors_of(batch);
  made.kind = kernels::side_kind::packed;
  made.packed = packed;
  return made;
}

std::optional<tensor_spec> map_of(const kernels::piece_rule& rule, std::uint32_t element_bytes, std::uint32_t rank) {
  tensor_spec spec;
  switch (element_bytes) {
    case 1: spec.type = element_type::u8; break;
    case 2: spec.type = element_type::u16; break;
    case 4: spec.type = element_type::u32; break;
    case 8: spec.type = element_type::u64; break;
    default: return {};
  }
  if (rule.box_dim[0] == 0) return {};
  spec.rank = rank;
  std::copy(rule.box_dim, rule.box_dim + rank, spec.box_dim);
  return spec;
}

result<planned_operation> enqueue_plan(const operation& op, const on_stream& where, const run& with,
                                       const fault_sink& faults) {
  const workspace& scratch = where.scratch;
  const cudaStream_t stream = where.stream.get();
  const result<route_policy> policy = policy_of(with.choices);
  if (!policy) return failure(policy.error());
  const result<kernels::device_shape> device = current_device_shape();
  if (!device) return failure(device.error());
  if (const auto checked = check_all_arrays(op, stream); !checked) return failure(checked.error());
  const workspace_layout layout = lay_out_workspace(op.source.tensors.count, op.source.tensors.rank);
  kernels::plan_request request = request_of(op, with, *policy);
  request.faults = faults;
  const result<kernels::side> source = enqueue_side(op.source, 0, scratch, layout, stream);
  if (!source) return failure(source.error());
  const result<kernels::side> destination = enqueue_side(op.destination, 1, scratch, layout, stream);
  if (!destination) return failure(destination.error());
  request.source = *source;
  request.destination = *destination;
  if (op.scales) {
    const result<kernels::side> scales = enqueue_side(op.scales->tensors, 2, scratch, layout, stream);
    if (!scales) return failure(scales.error());
    request.scales = {*scales, op.scales->grid};
  }
  const bool has_maps = request.routes.allowed.contains(route::tensor_map);
  const kernels::plan_target target = target_of(op, scratch, layout, has_maps);
  TMAP_TRY_CUDA(kernels::launch_plan(request, target, stream));
  const bool is_padded = op.relation == kernels::shape_relation::clipped;
  const std::uint64_t planned = request.count * (is_padded ? 1 + request.rank : 1);
  kernels::planned_work work{target.tensors, target.ends, planned, op.rule, target.maps, target.queue, nullptr};
  work.scales = target.scales;
  const bool is_reduced =
      op.relation == kernels::shape_relation::reduced || op.relation == kernels::shape_relation::summed;
  if (is_reduced) work.partials = part_of<float>(scratch, layout.partials);
  return planned_operation{work, *device};
}

}  // namespace tmap::ragged
