// SPDX-License-Identifier: Apache-2.0
#include "defects/graph_topologies.cuh"

namespace tmap::testing {
namespace {

patch_array source_of(const graph_workload& work, std::uint32_t source) {
  return {work.arrays().patches_of(source)};
}

}  // namespace

result<void> enqueue_linear(map_service& service, const map_template& base, const graph_workload& work,
                            cudaStream_t stream) {
  const graph_arrays arrays = work.arrays();
  begin_replay<<<1, graph_maps, 0, stream>>>(arrays);
  const result<map_batch> batch = service.encode(base, source_of(work, 0), graph_maps, {stream});
  if (!batch) return failure(batch.error());
  launch_consume_lines({batch->ref(), arrays.uses_of(0)}, 0, graph_maps, arrays.found, stream);
  return {};
}

result<void> enqueue_fork_join(map_service& service, const map_template& base, const graph_workload& work,
                               cudaStream_t stream) {
  const graph_arrays arrays = work.arrays();
  const cudaStream_t second = work.second_stream();
  begin_replay<<<1, graph_maps, 0, stream>>>(arrays);
  result<map_batch> batch = service.encode(base, source_of(work, 0), graph_maps, {stream});
  if (!batch) return failure(batch.error());
  if (const result<void> used = batch->use_on(second); !used) return used;
  const line_batch lines{batch->ref(), arrays.uses_of(0)};
  launch_consume_lines(lines, 0, graph_maps / 2, arrays.found, stream);
  launch_consume_lines(lines, graph_maps / 2, graph_maps, arrays.found, second);
  work.join(stream);
  return {};
}

result<void> enqueue_update(map_service& service, const map_template& base, const graph_workload& work,
                            cudaStream_t stream) {
  const graph_arrays arrays = work.arrays();
  begin_replay<<<1, graph_maps, 0, stream>>>(arrays);
  const result<map_batch> first = service.encode(base, source_of(work, 0), graph_maps, {stream});
  if (!first) return failure(first.error());
  const result<map_batch> second = service.encode(base, source_of(work, 1), graph_maps, {stream});
  if (!second) return failure(second.error());
  const changed_maps changed{arrays.changed, graph_changes};
  const result<map_batch> updated = service.update(*first, changed, base, source_of(work, 2), {stream});
  if (!updated) return failure(updated.error());
  const dim3 grid(graph_maps / consumer_warps, 2);
  consume_lines<consumer_warps><<<grid, consumer_warps * 32, 0, stream>>>(
      {second->ref(), arrays.uses_of(1)}, {updated->ref(), arrays.updated_uses}, 0, graph_maps, arrays.found);
  return {};
}

}  // namespace tmap::testing
