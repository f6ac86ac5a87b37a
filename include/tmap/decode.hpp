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

// The bits of a tensor map. For inspection, tests and the simulator: maps that a GPU will use come
// from the driver (encode.hpp) and from `tensormap.replace` (encode_batch.hpp). Layout as the
// driver 580 writes it for compute capability 9.0 (docs/measurements); where im2col maps keep their
// corners, channels and pixels, and what only compute capability 10 has, is taken from documents.
// Pure functions, thread-safe.

enum class map_kind : std::uint32_t { tiled = 0, im2col = 1 };

/// All that 128 bytes say. `spec` is whole for tiled maps; for im2col maps `im2col` adds the
/// corners.
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

/// Reads every field; unused axes come out blank, whatever a device encoder left in their bits.
/// Fails with `not_a_tensor_map` when a field holds a value no encoder writes (128 zero bytes,
/// say): an unknown number or bit, or a spec that breaks a rule the driver enforces, which the
/// error then names. Legal for the driver is enough: a null address decodes, though a copy through
/// it would fault.
[[nodiscard]] TMAP_API result<decoded_map> decode(const tensor_map& map);

/// The 128 bytes the driver would write on a GPU of these limits. Measured for `hopper_limits`;
/// what only later GPUs have (`blackwell_limits`: 4- and 6-bit types, swizzles with larger atoms,
/// the mark of large tensors) is documented only, and words 8 and 9 of such maps, the driver's
/// notes, are not documented at all. Fails with `rule_broken`.
[[nodiscard]] TMAP_API result<tensor_map> encode_bits(const tensor_spec& spec,
                                                      const device_limits& limits = hopper_limits());
[[nodiscard]] TMAP_API result<tensor_map> encode_bits(const im2col_spec& spec,
                                                      const device_limits& limits = hopper_limits());

/// Every field on a line of its own, aligned, for a person; also for bytes that `decode` refuses.
/// Empty for want of memory only.
TMAP_API std::string describe(const tensor_map& map);

/// The same as one JSON object. Empty for want of memory only.
TMAP_API std::string describe_json(const tensor_map& map);

/// One field in which two maps differ: its name ("global_dim[1]") and both values as text.
struct field_difference {
  std::string field;
  std::string first;
  std::string second;
};

/// Field by field; bits outside every known field show as "word N, unknown bits". Empty when equal.
/// Fails with `out_of_memory`.
[[nodiscard]] TMAP_API result<std::vector<field_difference>> diff(const tensor_map& first, const tensor_map& second);

}  // namespace tmap
