// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lib/simulator/ranks/machine.hpp"

namespace tmap::ranks {

/// Gives one thread of a rank the calls that protocols are written in (kernels/peer), made of the
/// instructions that a GPU uses for them. Offsets are bytes of windows, as are those of shared
/// memory. Tests derive links with faults from it.
class model_link {
 public:
  /// Stands for no offset.
  static constexpr std::uint64_t no_word = ~std::uint64_t{0};

  model_link(machine& on, std::uint32_t rank, std::uint32_t thread) : machine_(&on), rank_(rank), thread_(thread) {}

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return machine_->ranks(); }

  std::uint32_t load(std::uint32_t rank, std::uint64_t offset) { return machine_->load(thread_, at(rank, offset)); }
  void store(std::uint32_t rank, std::uint64_t offset, std::uint32_t value) {
    machine_->store(thread_, at(rank, offset), value);
  }
  /// Returns a number that names a byte of a window, as an address does.
  std::uint64_t address(std::uint32_t rank, std::uint64_t offset) const { return std::uint64_t{rank} << 48 | offset; }
  void store_at(std::uint64_t address, std::uint32_t value) {
    store(rank_of_address(address), offset_of_address(address), value);
  }
  void put(std::uint32_t rank, std::uint64_t offset, std::uint32_t from_shared, std::uint32_t bytes) {
    machine_->bulk_store(thread_, at(rank, offset), shared(from_shared), bytes / 4);
  }
  void get(std::uint32_t to_shared, std::uint32_t rank, std::uint64_t offset, std::uint32_t bytes,
           std::uint32_t set = 0) {
    machine_->bulk_load(thread_, shared(to_shared), at(rank, offset), bytes / 4, set);
  }
  void wait_gets(std::uint32_t set = 0) { machine_->wait_mbarrier(thread_, set); }
  std::uint32_t load_shared(std::uint32_t offset) { return machine_->load(thread_, shared(offset)); }
  /// Stores rows of words that gets have brought to shared memory. On a GPU all threads of the
  /// block share the work, which ends when the call returns.
  template <class Rows>
  void store_rows(const Rows& rows, std::uint32_t from_shared) {
    for (std::uint32_t row = 0; row < rows.rows; ++row) {
      const std::uint32_t from = from_shared + row * rows.room() + rows.skew_of(row);
      for (std::uint32_t word = 0; word < rows.bytes; word += 4) {
        store(rank_, rows.target_of(row) + word, load_shared(from + word));
      }
    }
  }
  void flush() { machine_->wait_group_read(thread_); }
  void quiet() {
    machine_->wait_group(thread_);
    machine_->fence_acq_rel(thread_);
  }
  void quiet_flushed() {
    machine_->wait_earlier_groups(thread_);
    machine_->fence_acq_rel(thread_);
  }
  void settle() { machine_->wait_group(thread_); }
  void raise(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) {
    machine_->reduce(thread_, at(rank, signal), by, announced::all);
  }
  void raise_here(std::uint64_t signal, std::uint32_t by) { raise(rank_, signal, by); }
  std::uint32_t deal(std::uint64_t word) {
    return machine_->fetch_add(thread_, at(rank_, word), 1, announced::nothing);
  }
  std::uint32_t count_here(std::uint64_t word) {
    return machine_->fetch_add(thread_, at(rank_, word), 1, announced::all);
  }
  void release() { machine_->fence_acq_rel(thread_); }
  void raise_released(std::uint32_t rank, std::uint64_t signal, std::uint32_t by) {
    machine_->reduce(thread_, at(rank, signal), by, announced::fenced);
  }
  void raise_released_at(std::uint64_t address, std::uint32_t by) {
    raise_released(rank_of_address(address), offset_of_address(address), by);
  }
  void send(std::uint32_t rank, std::uint64_t offset, const detail::peer::packet& given) {
    machine_->store_packet(thread_, at(rank, offset), given);
  }
  void keep(std::uint32_t offset, std::uint32_t value) { machine_->keep(thread_, shared(taken_at(0) + offset), value); }
  [[nodiscard]] bool take(std::uint64_t first, std::uint32_t packets, std::uint32_t tag, std::uint32_t to,
                          std::uint64_t deadline, std::uint64_t unless = no_word) {
    return take_packets({at(rank_, first), packets, tag, deadline, optional_at(unless)}, to, true);
  }
  template <std::uint32_t Most>
  [[nodiscard]] bool await_packets(std::uint64_t first, std::uint32_t step, std::uint32_t count, std::uint32_t tag,
                                   detail::peer::packet (&found)[Most], std::uint64_t deadline,
                                   std::uint64_t unless = no_word) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t each = first + std::uint64_t{i} * step * sizeof(detail::peer::packet);
      const std::vector<std::uint32_t> words =
          machine_->poll_packets(thread_, {at(rank_, each), 1, tag, deadline, optional_at(unless)}, false);
      if (words.empty()) return false;
      found[i] = {{words[0], words[1], words[2]}, words[3]};
    }
    return true;
  }
  template <std::uint32_t Most>
  [[nodiscard]] bool look_packets(std::uint64_t first, std::uint32_t step, std::uint32_t count, std::uint32_t tag,
                                  detail::peer::packet (&found)[Most]) {
    return await_packets(first, step, count, tag, found, 0);
  }
  [[nodiscard]] detail::peer::packet load_row_words(std::uint64_t offset, std::uint32_t words) {
    detail::peer::packet found{};
    for (std::uint32_t i = 0; i < words; ++i) found.words[i] = load(rank_, offset + 4 * i);
    return found;
  }
  void store_row_words(std::uint64_t offset, std::uint32_t words, const detail::peer::packet& given) {
    for (std::uint32_t i = 0; i < words; ++i) store(rank_, offset + 4 * i, given.words[i]);
  }
  [[nodiscard]] std::uint32_t taken(std::uint32_t offset) { return load_shared(taken_at(0) + offset); }
  [[nodiscard]] std::uint32_t look(std::uint64_t signal) {
    return poll(signal, 1, 0, no_word, false) ? load(rank_, signal) : 0;
  }
  [[nodiscard]] bool wait(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline,
                          std::uint64_t unless = no_word) {
    return poll(signal, value, deadline, unless, true);
  }
  void proxy_fence() { machine_->fence_proxy_async(thread_); }
  void sync() { machine_->barrier(thread_); }
  /// Waits for the other threads of the block. Returns whether one of them passed true.
  [[nodiscard]] bool sync_or(bool mine) { return machine_->barrier_or(thread_, mine); }
  std::uint64_t now() const { return machine_->schedule().now(); }

  // Calls of test programs that protocols do without.
  void store_shared(std::uint32_t offset, std::uint32_t value) { machine_->store(thread_, shared(offset), value); }
  /// Ends a kernel of this rank and begins its next one.
  void end_kernel() { machine_->kernel_boundary(thread_); }
  /// Ends the execution as failed unless `holds`.
  void expect(bool holds, const char* what) {
    if (!holds) machine_->schedule().fail("rank " + std::to_string(rank_) + ": not so: " + what);
  }

 protected:
  static std::uint32_t rank_of_address(std::uint64_t address) { return static_cast<std::uint32_t>(address >> 48); }
  static std::uint64_t offset_of_address(std::uint64_t address) { return address & ((std::uint64_t{1} << 48) - 1); }
  /// Returns where a packet that was taken lies in shared memory, after all that programs use.
  static std::uint32_t taken_at(std::uint32_t i) {
    return (1u << 17) + i * static_cast<std::uint32_t>(sizeof(detail::peer::packet));
  }
  bool poll(std::uint64_t signal, std::uint32_t value, std::uint64_t deadline, std::uint64_t unless, bool is_acquire) {
    return machine_->poll(thread_, {at(rank_, signal), value, deadline, optional_at(unless)}, is_acquire);
  }
  /// Lets the block take packets as number `to` and the next.
  bool take_packets(const awaited_packets& given, std::uint32_t to, bool is_acquire) {
    const std::vector<std::uint32_t> found = machine_->poll_packets(thread_, given, is_acquire);
    for (std::uint32_t i = 0; i < found.size(); ++i) keep(taken_at(to) - taken_at(0) + 4 * i, found[i]);
    return !found.empty();
  }
  std::optional<place> optional_at(std::uint64_t offset) const {
    return offset == no_word ? std::nullopt : std::optional{at(rank_, offset)};
  }
  place at(std::uint32_t rank, std::uint64_t offset) const { return {rank, static_cast<std::uint32_t>(offset / 4)}; }
  place shared(std::uint32_t offset) const { return machine_->shared(thread_, offset / 4); }

  machine* machine_;
  std::uint32_t rank_;
  std::uint32_t thread_;
};

}  // namespace tmap::ranks
