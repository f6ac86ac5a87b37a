// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>
#include <tmap/map_patch.hpp>
#include <tmap/map_template.hpp>
#include <tmap/tensor_map.hpp>

#include <cstdint>

#include "kernels/launch.hpp"

// The encoder's contract on the CPU: does what kernels/encode does, with the codec.

namespace tmap::testing {

/// Works like `make_template`, with the codec.
result<map_template> codec_template(const tensor_spec& spec, patch_fields fields);

/// The address that safe empty maps point to.
inline constexpr std::uint64_t fake_page = 1 << 16;

map_patch patch_at(const tensor_source& source, const map_template& base, std::uint64_t i);

struct encoded_map {
  tensor_map map;
  map_status status;
};
encoded_map encode_one(const map_template& base, const map_patch& patch, const kernels::encode_terms& terms);

/// Adds a verdict to the header and the totals, if the run has them.
void count_verdict(map_status status, std::uint32_t map, const kernels::encode_terms& terms);

/// Encodes all maps of a batch.
void encode_all(const map_template& base, const tensor_source& source, tensor_map* slots, std::uint64_t count,
                const kernels::encode_terms& terms);

/// Encodes the changed maps of an update.
void encode_changed(const map_template& base, const tensor_source& source, const kernels::update_target& target,
                    const kernels::encode_terms& terms);

}  // namespace tmap::testing
