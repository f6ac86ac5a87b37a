// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes rows on their way through shared memory. Bulk copies move multiples of 16 bytes between
// addresses that are multiples of 16. Other rows come in the aligned bytes around them, and threads
// store them.

#include <tmap/detail/standard.hpp>

namespace tmap::kernels::peer {

inline constexpr std::uint32_t bulk_unit = 16;

TMAP_HOST_DEVICE constexpr std::uint32_t bulk_bytes(std::uint32_t bytes) {
  return (bytes + bulk_unit - 1) / bulk_unit * bulk_unit;
}

/// Names bytes at equal distances on both sides: whole rows, or a part of one. `from` and `to` are
/// offsets of two windows, of which the second one is that of rank `target`.
struct row_piece {
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t from_step;  ///< from one row to the next
  std::uint64_t to_step;
  std::uint32_t rows;
  std::uint32_t bytes;  ///< of each row
  std::uint32_t target;

  TMAP_HOST_DEVICE std::uint64_t source_of(std::uint32_t row) const { return from + row * from_step; }
  TMAP_HOST_DEVICE std::uint64_t target_of(std::uint32_t row) const { return to + row * to_step; }

  /// Returns whether bulk copies can move the rows on both ways.
  TMAP_HOST_DEVICE bool is_aligned() const {
    const std::uint64_t steps = rows > 1 ? from_step | to_step : 0;
    return (from | to | bytes | steps) % bulk_unit == 0;
  }
  /// Returns the bytes in front of a row that come with it.
  TMAP_HOST_DEVICE std::uint32_t skew_of(std::uint32_t row) const {
    return static_cast<std::uint32_t>(source_of(row) % bulk_unit);
  }
  /// Returns the shared memory of a row.
  TMAP_HOST_DEVICE std::uint32_t room() const { return is_aligned() ? bytes : bulk_bytes(bytes) + bulk_unit; }
};

/// Cuts rows at equal distances, at least one, into pieces that fit a stage. Rows without gaps on
/// both sides are one long row. Bytes of a long row are dealt, or short rows.
class row_cut {
 public:
  TMAP_HOST_DEVICE row_cut(const row_piece& all, std::uint32_t staging_bytes)
      : all_(all),
        is_packed_(all.from_step == all.bytes && all.to_step == all.bytes),
        bytes_(is_packed_ ? std::uint64_t{all.rows} * all.bytes : all.bytes) {
    const std::uint64_t steps = is_packed_ ? 0 : all.from_step | all.to_step;
    const std::uint32_t room = (all.from | all.to | bytes_ | steps) % bulk_unit == 0 ? 0 : 2 * bulk_unit;
    is_short_ = !is_packed_ && bytes_ + room <= staging_bytes;
    most_ = is_short_ ? staging_bytes / (all.bytes + room) : staging_bytes - room;
    of_row_ = quotient(end() + most_ - 1, most_);
  }

  [[nodiscard]] TMAP_HOST_DEVICE std::uint32_t count() const {
    return (is_packed_ || is_short_ ? 1 : all_.rows) * of_row_;
  }
  [[nodiscard]] TMAP_HOST_DEVICE row_piece piece(std::uint32_t i) const {
    const std::uint32_t row = is_packed_ || is_short_ ? 0 : i / of_row_;
    const std::uint64_t at = std::uint64_t{i - row * of_row_} * most_;
    const std::uint32_t count = end() - at < most_ ? static_cast<std::uint32_t>(end() - at) : most_;
    row_piece made = all_;
    made.from += row * all_.from_step + at * (is_short_ ? all_.from_step : 1);
    made.to += row * all_.to_step + at * (is_short_ ? all_.to_step : 1);
    made.rows = is_short_ ? count : 1;
    if (!is_short_) made.bytes = count;
    return made;
  }

 private:
  /// Divides numbers of 32 bits, which most are, in less time.
  static TMAP_HOST_DEVICE std::uint32_t quotient(std::uint64_t number, std::uint32_t by) {
    const auto low = static_cast<std::uint32_t>(number);
    return low == number ? low / by : static_cast<std::uint32_t>(number / by);
  }
  /// Returns the rows, or the bytes of a row, that are dealt.
  [[nodiscard]] TMAP_HOST_DEVICE std::uint64_t end() const { return is_short_ ? all_.rows : bytes_; }

  row_piece all_;
  bool is_packed_;
  bool is_short_{false};
  std::uint64_t bytes_;  ///< of a long row
  std::uint32_t most_{0};
  std::uint32_t of_row_{0};  ///< pieces
};

}  // namespace tmap::kernels::peer
