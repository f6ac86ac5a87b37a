// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_status.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>

// The encoder's contract on the CPU, one map at a time: what kernels/encode does, by the codec.

namespace tmap::testing {

/// As `make_template`, by the codec.
result<map_template> codec_template(const tensor_spec& spec, patch_fields fields);

/// What safe empty maps point to.
inline constexpr std::uint64_t fake_page = 1 << 16;

map_patch patch_at(const patch_array& source, const map_template& base, std::uint64_t i);
map_patch patch_at(const patch_columns& source, const map_template& base, std::uint64_t i);
map_patch patch_at(const compact_columns& source, const map_template& base, std::uint64_t i);
template <class Offset>
map_patch patch_at(const ragged_rows<Offset>& source, const map_template& base, std::uint64_t i);

struct encoded_map {
  tensor_map map;
  map_status status;
};
encoded_map encode_one(const map_template& base, const map_patch& patch, const encode_options& options);

/// Adds a verdict to the header and totals that are asked for.
void count_verdict(map_status status, std::uint32_t map, const encode_options& options);

}  // namespace tmap::testing
