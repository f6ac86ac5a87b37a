// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/detail/peer_barrier.hpp>

#include <cstdint>

#include "kernels/peer/protocol_exchange.hpp"
#include "kernels/peer/protocol_parcels.hpp"
#include "peer/byte_link.hpp"
#include "peer/exchange_case.hpp"

namespace tmap::testing {

using kernels::peer::exchange_request;
using kernels::peer::parcel_layout;

/// Runs exchanges by parcels. Its calls take the image for the windows of other ranks, as kernels
/// do that get its address. The all-to-all is made of loads and stores of the model.
template <class Base>
class parcel_link : public Base {
 public:
  static constexpr std::uint64_t user_bytes = 16384;  // more than an exchange of a test needs
  static constexpr bool has_bytes = requires(Base & link) { link.load_byte(0, 0); };

  explicit parcel_link(const ranks::model_link& sound) : Base(sound) {}

  peer_verdict exchange_by_parcels(exchange_request request, std::uint64_t pair_bytes, std::uint64_t deadline) {
    at_ = kernels::peer::layout_of(this->ranks(), user_bytes, pair_bytes);
    request.lacking = at_.lacking;
    Base& own = *this;
    kernels::peer::pack_parcels(own, request, at_);
    this->end_kernel();
    if (request.block == 0) all_to_all(request, deadline);
    this->end_kernel();
    kernels::peer::deliver_parcels(own, request, at_, request.block, request.blocks);
    this->end_kernel();
    lone_thread alone{request.row_bytes};
    return kernels::peer::exchange(*this, request, alone, deadline);
  }

  // Calls that may go to other ranks.
  std::uint32_t load(std::uint32_t rank, std::uint64_t offset) { return Base::load(this->rank(), at(rank, offset)); }
  void store(std::uint32_t rank, std::uint64_t offset, std::uint32_t value) {
    Base::store(this->rank(), at(rank, offset), value);
  }
  void get(std::uint32_t to_shared, std::uint32_t rank, std::uint64_t offset, std::uint32_t bytes, std::uint32_t set) {
    Base::get(to_shared, this->rank(), at(rank, offset), bytes, set);
  }
  void send(std::uint32_t rank, std::uint64_t offset, const detail::peer::packet& given) {
    Base::send(this->rank(), at(rank, offset), given);
  }
  void raise(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) {
    Base::raise(this->rank(), at(rank, signal), by);
  }
  void raise_released(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) {
    Base::raise_released(this->rank(), at(rank, signal), by);
  }

 protected:
  /// Returns the rank whose parcel comes as that of `source`.
  virtual std::uint32_t sender(std::uint32_t source) const { return source; }

 private:
  std::uint64_t at(std::uint32_t rank, std::uint64_t offset) const {
    return rank == this->rank() ? offset : at_.image + offset;
  }

  void all_to_all(const exchange_request& request, std::uint64_t deadline) {
    Base& direct = *this;
    static_cast<void>(detail::peer::barrier(direct, deadline));
    const std::uint32_t me = this->rank();
    for (std::uint32_t source = 0; source < this->ranks(); ++source) {
      const std::uint64_t to = at_.parcel_from(source), from = at_.parcel_for(me);
      const std::uint64_t slot_end =
          kernels::peer::slot_bytes(this->ranks()) + kernels::peer::count_bytes(request.groups);
      carry_words(direct, to, sender(source), from, slot_end);
      carry(direct, to + at_.slot_bytes, sender(source), from + at_.slot_bytes, at_.pair_bytes);
    }
    static_cast<void>(detail::peer::barrier(direct, deadline));
  }
  void carry(Base& direct, std::uint64_t to, std::uint32_t source, std::uint64_t from, std::uint64_t bytes) {
    if constexpr (has_bytes) {
      for (std::uint64_t i = 0; i < bytes; ++i) direct.store_byte(to + i, direct.load_byte(source, from + i));
    } else {
      carry_words(direct, to, source, from, bytes);
    }
  }
  static void carry_words(Base& direct, std::uint64_t to, std::uint32_t source, std::uint64_t from,
                          std::uint64_t bytes) {
    for (std::uint64_t i = 0; i < bytes; i += 4) direct.store(direct.rank(), to + i, direct.load(source, from + i));
  }

  parcel_layout at_{};
};

/// Fails if something outside the window and its parcels is read or written.
template <std::uint64_t pair_bytes>
struct bounded : faulty_link {
  using faulty_link::faulty_link;
  void get(std::uint32_t to_shared, std::uint32_t from, std::uint64_t offset, std::uint32_t bytes, std::uint32_t set) {
    expect(offset + bytes <= end(), "a get stays in bounds");
    faulty_link::get(to_shared, from, offset, bytes, set);
  }
  void put(std::uint32_t to, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) {
    expect(offset + bytes <= end(), "a put stays in bounds");
    faulty_link::put(to, offset, from_shared, bytes);
  }

 private:
  std::uint64_t end() const {
    return end_of(kernels::peer::layout_of(ranks(), parcel_link<faulty_link>::user_bytes, pair_bytes), ranks());
  }
};

// Faults of the steps around an all-to-all.

/// Gives a rank the parcel of the next one.
template <class Base = faulty_link>
struct swapped_parcels : parcel_link<Base> {
  using parcel_link<Base>::parcel_link;
  std::uint32_t sender(std::uint32_t source) const override { return (source + 1) % this->ranks(); }
};

}  // namespace tmap::testing
