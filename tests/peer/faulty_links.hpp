// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/peer/protocol_announce.hpp"
#include "lib/simulator/ranks/model_link.hpp"

// Links with one fault each. A program that runs over one of them must fail in the model.

namespace tmap::testing {

/// Makes a link of its own out of the one that a thread got.
struct faulty_link : ranks::model_link {
  explicit faulty_link(const ranks::model_link& sound) : ranks::model_link(sound) {}
};

struct without_quiet : faulty_link {
  using faulty_link::faulty_link;
  void quiet() {}
};

struct flush_for_quiet : faulty_link {
  using faulty_link::faulty_link;
  void quiet() { flush(); }
};

struct without_settle : faulty_link {
  using faulty_link::faulty_link;
  void settle() {}
};

struct flush_for_settle : faulty_link {
  using faulty_link::faulty_link;
  void settle() { flush(); }
};

/// Raises without the fence that carries what the thread wrote.
struct without_release : faulty_link {
  using faulty_link::faulty_link;
  void release() {}
};

/// Waits for its bulk stores and leaves out the fence.
struct quiet_without_fence : faulty_link {
  using faulty_link::faulty_link;
  void quiet() { machine_->wait_group(thread_); }
};

struct without_flush : faulty_link {
  using faulty_link::faulty_link;
  void flush() {}
};

/// Flushes only after the next get was issued.
struct flush_after_get : faulty_link {
  using faulty_link::faulty_link;
  void flush() { is_due_ = true; }
  void get(std::uint32_t to_shared, std::uint32_t from, std::uint64_t offset, std::uint32_t bytes,
           std::uint32_t set = 0) {
    faulty_link::get(to_shared, from, offset, bytes, set);
    if (is_due_) faulty_link::flush();
    is_due_ = false;
  }

 private:
  bool is_due_{false};
};

struct without_proxy_fence : faulty_link {
  using faulty_link::faulty_link;
  void proxy_fence() {}
};

struct without_sync : faulty_link {
  using faulty_link::faulty_link;
  void sync() {}
};

/// Goes on without the other threads of its block.
struct without_sync_or : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] static bool sync_or(bool mine) { return mine; }
};

struct without_wait_gets : faulty_link {
  using faulty_link::faulty_link;
  void wait_gets(std::uint32_t = 0) {}
};

struct wait_for_other_gets : faulty_link {
  using faulty_link::faulty_link;
  void wait_gets(std::uint32_t set = 0) { faulty_link::wait_gets(set ^ 1); }
};

struct raise_relaxed : faulty_link {
  using faulty_link::faulty_link;
  void raise(std::uint32_t to, std::uint64_t signal, std::uint32_t by) {
    machine_->reduce(thread_, at(to, signal), by, ranks::announced::nothing);
  }
  void raise_released(std::uint32_t to, std::uint64_t signal, std::uint32_t by) { raise(to, signal, by); }
  void raise_here(std::uint64_t signal, std::uint32_t by) { raise(rank(), signal, by); }
};

/// Takes packets without an acquire.
struct take_relaxed : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] bool take(std::uint64_t first, std::uint32_t packets, std::uint32_t tag, std::uint32_t to,
                          std::uint64_t deadline, std::uint64_t unless = no_word) {
    return take_packets({at(rank(), first), packets, tag, deadline, optional_at(unless)}, to, false);
  }
};

/// Acquires the first one of the packets that it takes.
struct acquires_the_first_packet : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] bool take(std::uint64_t first, std::uint32_t packets, std::uint32_t tag, std::uint32_t to,
                          std::uint64_t deadline, std::uint64_t unless = no_word) {
    return take_packets({at(rank(), first), packets, tag, deadline, optional_at(unless)}, to, false) &&
           take_packets({at(rank(), first), 1, tag, deadline, optional_at(unless)}, to, true);
  }
};

struct wait_relaxed : take_relaxed {
  using take_relaxed::take_relaxed;
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                          std::uint64_t unless = no_word) {
    return poll(signal, value, deadline, unless, false);
  }
};

// The faults below are those of a protocol: each changes what it does with one part of the header.

using detail::peer::window_header;
using detail::peer::word_at;

/// Returns whether `offset` is a word of an array of the header with one word for each rank.
constexpr bool is_word_of(std::uint64_t offset, std::uint64_t array) {
  return offset >= array && offset < word_at(array, max_group_ranks);
}

/// Does not wait for signals of one array.
template <std::uint64_t array>
struct without_waiting_for : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                          std::uint64_t unless = no_word) {
    return is_word_of(signal, array) || faulty_link::wait(signal, value, deadline, unless);
  }
};
using without_credit = without_waiting_for<offsetof(window_header, credited)>;
using without_return = without_waiting_for<offsetof(window_header, put_returned)>;

/// Takes the packets that are there for those of the call.
struct counts_before_the_wait : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] bool take(std::uint64_t first, std::uint32_t packets, std::uint32_t, std::uint32_t to, std::uint64_t,
                          std::uint64_t = no_word) {
    constexpr auto bytes = static_cast<std::uint32_t>(sizeof(detail::peer::packet));
    for (std::uint32_t i = 0; i < packets * bytes; i += 4) keep(to * bytes + i, load(rank(), first + i));
    return true;
  }
};

/// Does not wait for the last rank in a barrier.
struct barrier_of_the_others : faulty_link {
  using faulty_link::faulty_link;
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                          std::uint64_t unless = no_word) {
    return signal == word_at(offsetof(window_header, barrier_raised), ranks() - 1) ||
           faulty_link::wait(signal, value, deadline, unless);
  }
};

/// Forgets an epoch, so that the next call takes the signals of the last one for its own.
template <std::uint64_t epoch>
struct epoch_not_raised : faulty_link {
  using faulty_link::faulty_link;
  void store(std::uint32_t to, std::uint64_t offset, std::uint32_t value) {
    if (offset != epoch) faulty_link::store(to, offset, value);
  }
};

/// Pulls from the neighbour of the rank that it should pull from.
struct swapped_ranks : faulty_link {
  using faulty_link::faulty_link;
  void get(std::uint32_t to_shared, std::uint32_t from, std::uint64_t offset, std::uint32_t bytes,
           std::uint32_t set = 0) {
    faulty_link::get(to_shared, (from + 1) % ranks(), offset, bytes, set);
  }
};

struct off_by_one_row : faulty_link {
  using faulty_link::faulty_link;
  void get(std::uint32_t to_shared, std::uint32_t from, std::uint64_t offset, std::uint32_t bytes,
           std::uint32_t set = 0) {
    faulty_link::get(to_shared, from, offset + 16, bytes, set);
  }
};

/// Takes the packets that are there for those of the call.
struct any_packets : faulty_link {
  using faulty_link::faulty_link;
  template <std::uint32_t Most>
  bool await_packets(std::uint64_t first, std::uint32_t step, std::uint32_t count, std::uint32_t tag,
                     detail::peer::packet (&found)[Most], std::uint64_t, std::uint64_t = no_word) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t at = first + std::uint64_t{i} * step * sizeof(detail::peer::packet);
      found[i] = {{load(rank(), at), load(rank(), at + 4), load(rank(), at + 8)}, tag};
    }
    return true;
  }
};

/// Sends eager packets to the rank after the one that they are for.
struct packets_for_the_next_rank : faulty_link {
  using faulty_link::faulty_link;
  void send(std::uint32_t to, std::uint64_t offset, const detail::peer::packet& given) {
    const bool is_eager = offset >= offsetof(window_header, eager);
    faulty_link::send(is_eager ? (to + 1) % ranks() : to, offset, given);
  }
};

/// Changes one word of each slot in a header. `Change` takes and returns its value.
template <std::uint32_t number, auto change>
struct changed_slots : faulty_link {
  using faulty_link::faulty_link;
  void send(std::uint32_t to, std::uint64_t offset, detail::peer::packet given) {
    using namespace kernels::peer;
    const std::uint64_t slots = slot_at(ranks(), 0, 0), in_slot = (offset - slots) % slot_bytes(ranks());
    const bool is_slot = offset < offsetof(window_header, eager);
    const bool is_there = is_slot && in_slot == number / packet_words * sizeof(packet);
    faulty_link::send(to, offset, is_there ? changed(given) : given);
  }
  void keep(std::uint32_t offset, std::uint32_t value) {
    using namespace kernels::peer;
    const bool is_there = offset % slot_bytes(ranks()) == packet_word_at(0, number);
    faulty_link::keep(offset, is_there ? change(value) : value);
  }

 private:
  static detail::peer::packet changed(detail::peer::packet given) {
    std::uint32_t& word = given.words[number % detail::peer::packet_words];
    word = change(word);
    return given;
  }
};

/// Announces a capacity that nothing exceeds.
using unchecked_capacity = changed_slots<kernels::peer::slot::capacity, [](std::uint32_t) { return ~0u; }>;

/// Announces that there is room for everything.
using unchecked_room = changed_slots<kernels::peer::slot::flags,
                                     [](std::uint32_t bits) { return bits & ~kernels::peer::slot_flag::lacks_room; }>;

}  // namespace tmap::testing
