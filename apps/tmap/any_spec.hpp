// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/decode.hpp>
#include <tmap/validate.hpp>

#include <nlohmann/json.hpp>
#include <optional>

namespace tmap::tool {

/// The members that an im2col spec has in addition to those of its tensor.
struct im2col_window {
  std::int32_t lower_corner[3]{};
  std::int32_t upper_corner[3]{};
  std::uint32_t channels_per_pixel{};
  std::uint32_t pixels_per_column{};
};

/// A tiled or im2col spec.
struct any_spec {
  tensor_spec spec;
  std::optional<im2col_window> window;  ///< im2col only

  im2col_spec im2col() const;

  violations broken(const device_limits& limits) const;
  bool is_legal(const device_limits& limits) const;
  [[nodiscard]] result<tensor_map> encoded(const device_limits& limits) const;

  /// Returns the bytes that one load brings, which its barrier must expect.
  std::uint64_t load_bytes() const;
  std::uint64_t shared_bytes() const;

  /// Returns an object with the names of `inspect --json`. Numbers are numbers, addresses text.
  nlohmann::ordered_json json() const;
};

/// Returns the 16 words of a map as JSON strings, which hold 64 bits in every reader.
nlohmann::ordered_json words_as_json(const tensor_map& map);

}  // namespace tmap::tool
