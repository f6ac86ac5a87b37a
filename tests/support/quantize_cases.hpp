// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches for `quantize` and `column_sums` with values of every kind, for tests on the host and on
// a GPU.

#include <tmap/ragged.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "support/ragged_reference.hpp"
#include "support/ragged_values_reference.hpp"
#include "support/random_spec.hpp"

namespace tmap::testing {

inline constexpr ragged::value_type float_types[] = {ragged::value_type::f32, ragged::value_type::f16,
                                                     ragged::value_type::bf16};

/// Writes rows of moderate, tiny and huge numbers, denormals and zeros. One element in `odd_one_in`
/// is a NaN or an infinity.
inline void make_values(random_source& random, ragged::value_type type, host_batch& batch, std::uint64_t odd_one_in) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (std::uint64_t i = 0; i < batch.tensors.size(); ++i) {
    float unit = 1;
    for_each_element(batch.tensors[i].shape, [&](const std::uint64_t* at) {
      if (at[0] % 64 == 0) {
        unit = std::ldexp(1.0f, static_cast<int>(random.below(40)) - 20);
        if (random.one_in(6)) unit = random.pick<float>({0, 0x1p-149f, 0x1p-130f, 0x1p-24f, 0x1p110f});
      }
      float value = (static_cast<float>(random.below(1 << 20)) / (1 << 17) - 4) * unit;
      if (unit == 0x1p-149f) value = static_cast<float>(random.below(9)) * unit;
      if (random.one_in(50)) value = random.one_in(2) ? 0.0f : -0.0f;
      if (random.one_in(odd_one_in)) value = random.pick<float>({std::nanf(""), infinity, -infinity});
      reference::put_value(type, value, batch.element(i, at));
    });
  }
}

/// Writes numbers of one order of magnitude, whose sums are rounded at nearly every step.
inline void make_addends(random_source& random, ragged::value_type type, host_batch& batch, std::uint64_t odd_one_in) {
  for (std::uint64_t i = 0; i < batch.tensors.size(); ++i) {
    for_each_element(batch.tensors[i].shape, [&](const std::uint64_t* at) {
      float value = static_cast<float>(random.below(1 << 20)) / (1 << 17) - 3;
      if (random.one_in(odd_one_in)) value = random.one_in(2) ? std::nanf("") : std::numeric_limits<float>::infinity();
      reference::put_value(type, value, batch.element(i, at));
    });
  }
}

/// The three sides of a call of `quantize`.
struct quantize_batch {
  host_batch source;
  host_batch destination;
  host_batch scales;
};

inline quantize_batch make_quantize_batch(random_source& random, const std::vector<extents>& shapes, std::uint32_t rank,
                                          const ragged::quantize_values& values, source_form form) {
  std::vector<extents> scales;
  std::vector<extents> results;
  for (const extents& shape : shapes) scales.push_back(reference::scale_shape(values, shape));
  for (const extents& shape : shapes) results.push_back(reference::quantized_shape(values, shape));
  quantize_batch made{lay_out(random, shapes, rank, value_bytes(values.from), form),
                      lay_out(random, results, rank, value_bytes(values.to), form),
                      lay_out(random, scales, rank, 4, source_form::array)};
  make_values(random, values.from, made.source, 5000);
  return made;
}

/// Calls `use(values)` for every combination of types, blocks and options that the rank allows.
template <class Use>
void for_each_quantization(std::uint32_t rank, const Use& use) {
  using ragged::scale_block;
  using ragged::value_type;
  for (const value_type from : float_types) {
    for (const value_type to : {value_type::f8_e4m3, value_type::f8_e5m2}) {
      for (const scale_block block :
           {scale_block::row, scale_block::block_1x128, scale_block::block_128x128, scale_block::block_128x1}) {
        for (const bool is_transposed : {false, true}) {
          const bool has_columns = block >= scale_block::block_128x128 || is_transposed;
          if (has_columns && rank < 2) continue;
          use(ragged::quantize_values{from, to, block, (to == value_type::f8_e5m2) != is_transposed, is_transposed});
        }
      }
    }
  }
}

/// Shapes near all sizes at which blocks and kernels cut, and random ones. Some are empty.
inline std::vector<extents> quantize_shapes(random_source& random, std::uint32_t rank) {
  std::vector<extents> shapes = random_shapes(random, {rank, 10, 20000, false, 9});
  if (rank == 1) {
    for (const std::uint64_t n : {1, 7, 8, 127, 128, 129, 1023, 1024, 1025, 1152, 4096, 8192, 8200, 16385, 40000}) {
      shapes.push_back({{n, 1, 1, 1, 1}});
    }
  }
  if (rank == 2) {
    for (const std::uint64_t n : {1, 8, 24, 128, 136, 200, 1000, 2048, 2056, 7168}) {
      shapes.push_back({{n, n < 1000 ? 300u : 5u, 1, 1, 1}});
      shapes.push_back({{n, n < 1000 ? 129u : 2u, 1, 1, 1}});
    }
  }
  if (rank == 3) shapes.push_back({{136, 130, 3, 1, 1}});
  return shapes;
}

/// Spoils the scales of some of at least eight tensors of rank 2, which have several rows. Returns
/// the faults of each tensor.
inline std::vector<std::uint32_t> spoil_scales(host_batch& scales) {
  using ragged::fault;
  std::vector<std::uint32_t> faults(scales.tensors.size());
  const auto set = [&](std::uint64_t i, fault of) { faults[i] |= static_cast<std::uint32_t>(of); };
  scales.tensors[1].shape.dim[0] += 1;
  set(1, fault::mismatch);
  scales.tensors[2].shape.dim[1] -= 1;
  set(2, fault::mismatch);
  scales.tensors[3].begin += 2;
  set(3, fault::address);
  scales.tensors[5].stride[0] = 0;
  set(5, fault::overlap);
  scales.tensors[6].stride[0] += 2;
  set(6, fault::stride);
  scales.tensors[7].shape.dim[0] = 0;
  set(7, fault::mismatch);
  return faults;
}

}  // namespace tmap::testing
