// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>

#include "kernels/launch.hpp"

// The encoder's contract on the CPU: what kernels/encode does, by the codec.

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

/// All maps of a batch.
template <class Source>
void encode_all(const map_template& base, const Source& source, tensor_map* slots, std::uint64_t count,
                const encode_options& options) {
  if (options.header != nullptr) *options.header = batch_header{};
  for (std::uint64_t i = 0; i < count; ++i) {
    const encoded_map made = encode_one(base, patch_at(source, base, i), options);
    slots[i] = made.map;
    if (options.statuses != nullptr) options.statuses[i] = made.status;
    count_verdict(made.status, static_cast<std::uint32_t>(i), options);
  }
}

/// The changed maps of an update.
template <class Source>
void encode_changed(const map_template& base, const Source& source, const kernels::update_target& target,
                    const encode_options& options) {
  if (options.header != nullptr) *options.header = batch_header{};
  for (std::uint32_t j = 0; j < target.change_count; ++j) {
    const std::uint32_t map = target.changes[j];
    if (map >= target.map_count) continue;
    const encoded_map made = encode_one(base, patch_at(source, base, map), options);
    const std::uint32_t slot = target.table == nullptr ? map : j;
    target.slots[slot] = made.map;
    if (target.table != nullptr) target.table[map] = target.first_slot + j;
    if (target.statuses != nullptr) target.statuses[slot] = made.status;
    count_verdict(made.status, map, options);
  }
}

}  // namespace tmap::testing
