// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged.hpp>

#include <algorithm>
#include <cstring>

#include "kernels/ragged/transpose_tiles.hpp"
#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/operation.hpp"
#include "lib/ragged/workspace.hpp"
#include "lib/simulator/ragged_run.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

result<void> check_transpose(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  support::arguments given;
  check_equal_sides(given, {source, "source"}, {destination, "destination"});
  given.at_least(source.rank, 2, support::argument{"source"}.member("rank"));
  check_call(given, with);
  return given.outcome();
}

simulator::element_bytes_t transposed(const tensor_layout& source, const simulator::element_bytes_t& elements) {
  const std::uint64_t item = source.element_bytes;
  const std::uint64_t columns = source.dim[0];
  const std::uint64_t rows = source.dim[1];
  simulator::element_bytes_t made(elements.size());
  for (std::uint64_t begin = 0; begin < elements.size(); begin += columns * rows * item) {
    for (std::uint64_t row = 0; row < rows; ++row) {
      for (std::uint64_t column = 0; column < columns; ++column) {
        std::memcpy(made.data() + begin + (column * rows + row) * item,
                    elements.data() + begin + (row * columns + column) * item, item);
      }
    }
  }
  return made;
}

result<void> transpose_on_host(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  return simulator::transform(
      batch_call::ragged_transpose, source, destination, kernels::shape_relation::swapped, with,
      [](const simulator::tensor_pair& pair, simulator::element_bytes_t elements, const route_options&) {
        return result<simulator::element_bytes_t>{transposed(pair.source, elements)};
      });
}

std::optional<tensor_spec> source_map(std::uint32_t element_bytes, std::uint32_t rank) {
  const kernels::transpose_box box = kernels::transpose_map_box(element_bytes);
  if (!box.exists) return {};
  tensor_spec spec;
  spec.type = box.type;
  spec.rank = rank;
  spec.swizzle = box.swizzle;
  std::copy(box.box_dim, box.box_dim + rank, spec.box_dim);
  return spec;
}

/// Bulk copies of a row each are the slowest way to load a tile. This leaves them out if maps or
/// asynchronous copies are allowed.
run without_bulk(run with) {
  constexpr route_set faster = route_bit(route::tensor_map) | route_bit(route::ldgsts);
  route_set& allowed = with.choices.allowed;
  if (!(allowed & faster).empty()) allowed = allowed.without(route::bulk);
  return with;
}

}  // namespace

result<void> transpose(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  const support::trace_range range{"tmap ragged transpose"};
  if (const auto checked = check_transpose(source, destination, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return transpose_on_host(source, destination, with);
  if (const auto checked = check_workspace_of(source, where->scratch); !checked || source.count == 0) return checked;
  operation op{tensors_of(source), tensors_of(destination), kernels::shape_relation::swapped, 2,
               kernels::transpose_pieces(source.element_bytes, source.rank)};
  op.source_map = source_map(source.element_bytes, source.rank);
  return enqueue(batch_call::ragged_transpose, op, *where, without_bulk(with), [&](const planned_operation& plan) {
    return kernels::launch_transpose(plan.work, source.element_bytes, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
