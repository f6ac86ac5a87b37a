// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/device_limits.hpp>
#include <tmap/error.hpp>
#include <tmap/tensor_map.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace tmap {

/// @file
/// Reads and writes the bits of a tensor map, for inspection, tests and the simulator. Maps that a
/// GPU will use come from the driver (encode.hpp) and from `tensormap.replace` (encode_batch.hpp).
/// The layout is the one that driver 580 writes for compute capability 9.0 (docs/measurements). The
/// place of the corners, channels and pixels of im2col maps, and what only compute capability 10
/// has, are documented only. Pure functions, thread-safe.

enum class map_kind : std::uint32_t { tiled = 0, im2col = 1 };

/// The content of the 128 bytes. `spec` describes a tiled map completely. An im2col map also has
/// corners, channels and pixels.
struct decoded_map {
  map_kind kind{};
  tensor_spec spec;                        ///< element_stride and box_dim of unused axes read as 1 and 0
  std::int32_t lower_corner[3]{};          ///< im2col only
  std::int32_t upper_corner[3]{};          ///< im2col only
  std::uint32_t channels_per_pixel{};      ///< im2col only
  std::uint32_t pixels_per_column{};       ///< im2col only
  std::uint64_t noted_box_bytes{};         ///< word 8, the driver's own note
  std::uint64_t noted_shared_alignment{};  ///< word 9, the driver's own note
  bool large_tensor{};  ///< word 1, bit 21, from compute capability 10 on: 128 KiB from the address on may be read
};

/// Reads every field. Axes beyond the rank are blank, even if a device encoder left bits there.
/// A map that the driver accepts decodes, even with a null address, through which a copy would
/// fault.
/// @fails `not_a_tensor_map` if no encoder writes such bytes, as with 128 zeros. A field holds an
/// unknown number or bit, or the spec breaks a rule that the driver enforces. The error then names
/// the rule.
[[nodiscard]] TMAP_API result<decoded_map> decode(const tensor_map& map);

/// Returns the 128 bytes that the driver would write on a GPU with these limits. Measured for
/// `hopper_limits`. What only later GPUs have is documented only: with `blackwell_limits` the 4-
/// and 6-bit types, swizzles with larger atoms and the mark of large tensors. Words 8 and 9 of such
/// maps, the driver's notes, are not documented.
/// @fails `rule_broken`.
[[nodiscard]] TMAP_API result<tensor_map> encode_bits(const tensor_spec& spec,
                                                      const device_limits& limits = hopper_limits());
[[nodiscard]] TMAP_API result<tensor_map> encode_bits(const im2col_spec& spec,
                                                      const device_limits& limits = hopper_limits());

/// Returns one aligned line for each field, also for bytes that `decode` refuses. Empty only if
/// memory runs out.
TMAP_API std::string describe(const tensor_map& map);

/// Returns the same as one JSON object. Empty only if memory runs out.
TMAP_API std::string describe_json(const tensor_map& map);

/// A field in which two maps differ: its name ("global_dim[1]") and both values as text.
struct field_difference {
  std::string field;
  std::string first;
  std::string second;
};

/// Compares two maps field by field. Bits outside every known field show as "word N, unknown bits".
/// Returns an empty list for equal maps.
/// @fails `out_of_memory`.
[[nodiscard]] TMAP_API result<std::vector<field_difference>> diff(const tensor_map& first, const tensor_map& second);

}  // namespace tmap
