// SPDX-License-Identifier: Apache-2.0
#include <tmap/detail/quantization.hpp>
#include <tmap/ragged.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "lib/batch/ragged_arguments.hpp"
#include "lib/ragged/values.hpp"
#include "lib/support/trace.hpp"

namespace tmap::ragged {
namespace {

using simulator::element_bytes_t;
using simulator::tensor_pair;

tmap::detail::scale_grid grid_of(const quantize_values& values) {
  constexpr std::uint32_t width = tmap::detail::scale_block_width;
  const bool is_transposed = values.transposed_scales;
  switch (values.block) {
    case scale_block::row: return {0, 1, is_transposed};
    case scale_block::block_1x128: return {width, 1, is_transposed};
    case scale_block::block_128x128: return {width, width, is_transposed};
    default: return {1, width, is_transposed};
  }
}

/// Returns whether columns of the source are rows of the destination.
bool is_turned(const quantize_values& values) {
  return values.block == scale_block::block_128x1;
}

kernels::shape_relation relation_of(const quantize_values& values) {
  return is_turned(values) ? kernels::shape_relation::swapped : kernels::shape_relation::equal;
}

void check_types(support::arguments& given, const quantize_values& values, const support::argument& name) {
  check_float_type(given, values.from, name.member("from"));
  if (values.to != value_type::f8_e4m3 && values.to != value_type::f8_e5m2) {
    given.refuse(name.member("to"), "is {found}; it must be f8_e4m3 (4) or f8_e5m2 ({allowed})",
                 static_cast<std::uint64_t>(values.to), static_cast<std::uint64_t>(value_type::f8_e5m2));
  }
  given.enumerator(values.block, scale_block::block_128x1, name.member("block"));
}

result<void> check_quantize(const tensor_batch& source, const tensor_batch& destination, const tensor_batch& scales,
                            const quantize_values& values, const run& with) {
  const support::argument name{"values"};
  support::arguments given;
  check_types(given, values, name);
  check_values(given, {source, "source"}, value_bytes(values.from), {destination, "destination"},
               value_bytes(values.to));
  check_values(given, {source, "source"}, value_bytes(values.from), {scales, "scales"}, f32_bytes);
  const bool has_columns = values.block == scale_block::block_128x128 || is_turned(values) || values.transposed_scales;
  if (has_columns) given.at_least(source.rank, 2, "source.rank");
  check_call(given, with);
  return given.outcome();
}

/// The elements of a tensor without gaps, and the results.
struct quantized {
  const tmap::detail::side_extents& source;  ///< dims
  const quantize_values& values;
  const element_bytes_t& elements;
  element_bytes_t made;
  element_bytes_t scales;
};

/// A block: columns of rows, numbered without gaps.
struct block_place {
  std::uint64_t row;
  std::uint64_t rows;
  std::uint64_t column;
  std::uint64_t columns;
};

/// Calls `use(number of the element, its number in the destination)` for each element of a block.
template <class Use>
void visit_block(const quantized& tensor, const block_place& block, Use&& use) {
  const auto& dim = tensor.source.dim;
  for (std::uint64_t row = block.row; row < block.row + block.rows; ++row) {
    const std::uint64_t slice = row / dim[1] * dim[1];
    for (std::uint64_t column = block.column; column < block.column + block.columns; ++column) {
      const std::uint64_t number = row * dim[0] + column;
      const std::uint64_t turned = slice * dim[0] + column * dim[1] + (row - slice);
      use(number, is_turned(tensor.values) ? turned : number);
    }
  }
}

float quantize_block(quantized& tensor, const block_place& block) {
  const quantize_values& values = tensor.values;
  const std::uint64_t item = value_bytes(values.from);
  float top = 0;
  visit_block(tensor, block, [&](std::uint64_t i, std::uint64_t) {
    const float magnitude = std::fabs(simulator::load_value(values.from, tensor.elements.data() + i * item));
    const bool is_finite = magnitude <= std::numeric_limits<float>::max();
    top = is_finite ? std::max(top, magnitude) : std::numeric_limits<float>::infinity();
  });
  const auto made = tmap::detail::scale_of(top, tmap::detail::largest_f8(values.to), values.powers_of_two);
  visit_block(tensor, block, [&](std::uint64_t i, std::uint64_t made_at) {
    const float value = simulator::load_value(values.from, tensor.elements.data() + i * item);
    simulator::store_value(values.to, value * made.inverse, tensor.made.data() + made_at);
  });
  return made.scale;
}

/// Quantizes all blocks of a tensor. Scales are written in the order of the tensor's own dims, or
/// with the first two exchanged.
void quantize_blocks(quantized& tensor) {
  const tmap::detail::scale_grid grid = grid_of(tensor.values);
  const auto& dim = tensor.source.dim;
  const std::uint64_t width = grid.columns == 0 ? dim[0] : grid.columns;
  const std::uint64_t across = (dim[0] + width - 1) / width;
  const std::uint64_t down = (dim[1] + grid.rows - 1) / grid.rows;
  const std::uint64_t slices = dim[2] * dim[3] * dim[4];
  tensor.scales.resize(across * down * slices * f32_bytes);
  for (std::uint64_t block = 0; block < across * down * slices; ++block) {
    const std::uint64_t x = block % across;
    const std::uint64_t y = block / across % down;
    const std::uint64_t slice = block / across / down;
    const std::uint64_t row = y * grid.rows;
    const float scale = quantize_block(tensor, {slice * dim[1] + row, std::min<std::uint64_t>(grid.rows, dim[1] - row),
                                                x * width, std::min(width, dim[0] - x * width)});
    const std::uint64_t within = grid.is_transposed ? x * down + y : y * across + x;
    set_f32(tensor.scales, slice * across * down + within, scale);
  }
}

result<void> quantize_pair(const tensor_pair& pair, const quantize_values& values, const route_options& routes) {
  const auto elements = simulator::read_elements(pair.source, routes);
  if (!elements) return failure{elements.error()};
  const tmap::detail::side_extents source = simulator::extents_of(pair.source);
  quantized tensor{source, values, *elements, element_bytes_t(elements->size() / value_bytes(values.from)), {}};
  quantize_blocks(tensor);
  const auto written = simulator::write_elements(pair.destination, tensor.made, routes);
  if (!written) return written;
  return simulator::write_elements(pair.scales, tensor.scales, routes);
}

result<void> quantize_on_host(const tensor_batch& source, const tensor_batch& destination, const tensor_batch& scales,
                              const quantize_values& values, const run& with) {
  simulator::tensor_reader sources{source};
  simulator::tensor_reader destinations{destination};
  simulator::tensor_reader scale_places{scales};
  const auto next = [&](tensor_pair& pair) {
    pair.source = sources.next();
    pair.destination = destinations.next();
    pair.scales = scale_places.next();
  };
  const tmap::detail::scale_grid grid = grid_of(values);
  const auto terms =
      simulator::terms_of(relation_of(values), source.element_bytes, destination.element_bytes, source.count, with);
  return simulator::for_each_pair({batch_call::ragged_quantize, source.count, &grid}, terms, with, next,
                                  [&](const tensor_pair& pair, const route_options& routes) -> result<void> {
                                    if (!pair.status.is_good()) return {};
                                    return quantize_pair(pair, values, routes);
                                  });
}

}  // namespace

result<void> quantize(const tensor_batch& source, const tensor_batch& destination, const tensor_batch& scales,
                      const quantize_values& values, const run& with) {
  const support::trace_range range{"tmap ragged quantize"};
  if (const auto checked = check_quantize(source, destination, scales, values, with); !checked) return checked;
  const on_stream* const where = stream_of(with);
  if (where == nullptr) return quantize_on_host(source, destination, scales, values, with);
  if (const auto checked = check_workspace_of(source, where->scratch); !checked || source.count == 0) return checked;
  operation op{tensors_of(source), tensors_of(destination), relation_of(values), max_rank,
               kernels::quantize_pieces(values, source.rank)};
  op.scales = kernels::scale_side{tensors_of(scales), grid_of(values)};
  return enqueue(batch_call::ragged_quantize, op, *where, with, [&](const planned_operation& plan) {
    return kernels::launch_quantize(plan.work, values, plan.device, where->stream.get());
  });
}

}  // namespace tmap::ragged
