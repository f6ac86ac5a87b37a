// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "lib/simulator/ranks/model_link.hpp"
#include "peer/faulty_links.hpp"

namespace tmap::testing {

/// Moves rows byte by byte: each byte that copies move is a word of the model, which knows nothing
/// smaller. Counts and the header keep their words. `Link` may have a fault.
template <class Link = faulty_link>
struct byte_link : Link {
  using Link::Link;

  void put(std::uint32_t rank, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) {
    this->expect(((offset | from_shared | bytes) & 15) == 0, "a put is aligned");
    this->machine_->bulk_store(this->thread_, byte_at(rank, offset), shared_byte(from_shared), bytes);
  }
  void get(std::uint32_t to_shared, std::uint32_t rank, std::uint64_t offset, std::uint32_t bytes,
           std::uint32_t set = 0) {
    this->expect(((offset | to_shared | bytes) & 15) == 0, "a get is aligned");
    this->machine_->bulk_load(this->thread_, shared_byte(to_shared), byte_at(rank, offset), bytes, set);
  }
  template <class Rows>
  void store_rows(const Rows& rows, std::uint32_t from_shared) {
    for (std::uint32_t row = 0; row < rows.rows; ++row) {
      const std::uint32_t from = from_shared + row * rows.room() + rows.skew_of(row);
      for (std::uint32_t i = 0; i < rows.bytes; ++i) store_byte(rows.target_of(row) + i, load_shared_byte(from + i));
    }
  }

  void store_byte(std::uint64_t offset, std::uint32_t value) {
    this->machine_->store(this->thread_, byte_at(this->rank(), offset), value);
  }
  detail::peer::packet load_row_words(std::uint64_t offset, std::uint32_t words) {
    detail::peer::packet found{};
    for (std::uint32_t i = 0; i < 4 * words; ++i) found.words[i / 4] |= load_byte(offset + i) << 8 * (i % 4);
    return found;
  }
  void store_row_words(std::uint64_t offset, std::uint32_t words, const detail::peer::packet& given) {
    for (std::uint32_t i = 0; i < 4 * words; ++i) store_byte(offset + i, given.words[i / 4] >> 8 * (i % 4) & 0xff);
  }
  std::uint32_t load_byte(std::uint64_t offset) { return load_byte(this->rank(), offset); }
  std::uint32_t load_byte(std::uint32_t rank, std::uint64_t offset) {
    return this->machine_->load(this->thread_, byte_at(rank, offset));
  }

 protected:
  std::uint32_t load_shared_byte(std::uint32_t offset) {
    return this->machine_->load(this->thread_, shared_byte(offset));
  }

 private:
  static ranks::place byte_at(std::uint32_t rank, std::uint64_t offset) {
    constexpr std::uint32_t words = 1 << 18;  // more than a window of a test has
    return {rank, words + static_cast<std::uint32_t>(offset)};
  }
  ranks::place shared_byte(std::uint32_t offset) const { return this->machine_->shared(this->thread_, offset); }
};

// Faults of a crew that stores rows.

/// Stores whole units of 16 bytes, also after the end of a row.
struct whole_units : byte_link<> {
  using byte_link<>::byte_link;
  template <class Rows>
  void store_rows(const Rows& rows, std::uint32_t from_shared) {
    Rows wider = rows;
    wider.bytes = (rows.bytes + 15) / 16 * 16;
    byte_link<>::store_rows(wider, from_shared);
  }
};

/// Takes a row from the beginning of the unit that it came in.
struct without_skew : byte_link<> {
  using byte_link<>::byte_link;
  template <class Rows>
  void store_rows(const Rows& rows, std::uint32_t from_shared) {
    for (std::uint32_t row = 0; row < rows.rows; ++row) {
      for (std::uint32_t i = 0; i < rows.bytes; ++i) {
        store_byte(rows.target_of(row) + i, load_shared_byte(from_shared + row * rows.room() + i));
      }
    }
  }
};

}  // namespace tmap::testing
