// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks arguments for every public function. A function makes an `arguments`, calls a check for
// each argument, and returns the outcome: the first complaint, which names the argument as the
// caller wrote it.

#include <tmap/error.hpp>

#include <cstdint>

namespace tmap::support {

/// Builds a name: `argument{"source"}.member("tensors").member("global_dim")[3]`. Each part only
/// points to the one before it, so that a check that passes does no work for its name. A part must
/// not outlive the one that it points to.
class argument {
 public:
  constexpr argument(const char* word) : word_{word} {}  // NOLINT: a word is a name

  constexpr argument member(const char* word) const { return {this, word, 0}; }
  constexpr argument operator[](std::uint32_t index) const { return {this, nullptr, index}; }

  argument_name name() const;

 private:
  constexpr argument(const argument* whole, const char* word, std::uint32_t index)
      : whole_{whole}, word_{word}, index_{index} {}
  void write(argument_name& to) const;

  const argument* whole_{};
  const char* word_{};  // null: the element `index_` of the whole
  std::uint32_t index_{};
};

/// Checks arguments one after the other and keeps the first complaint. If one check depends on
/// another, test in between whether all were good so far.
class arguments {
 public:
  /// Whether all were good so far.
  explicit operator bool() const { return outcome_.has_value(); }
  [[nodiscard]] const result<void>& outcome() const { return outcome_; }
  /// Returns the first complaint, if there is one.
  const error& complaint() const { return outcome_.error(); }

  /// Checks that a pointer is not null and is a multiple of `alignment`. Its target cannot be
  /// checked.
  void pointer(const void* given, std::uint64_t alignment, const argument& name) {
    address(reinterpret_cast<std::uintptr_t>(given), alignment, name);
  }
  template <class T>
  void pointer(const T* given, const argument& name) {
    pointer(given, alignof(T), name);
  }
  /// Checks the same, but accepts null.
  template <class T>
  void optional_pointer(const T* given, const argument& name) {
    if (given != nullptr) pointer(given, alignof(T), name);
  }
  /// Checks a pointer that its struct holds as a number.
  void address(std::uint64_t given, std::uint64_t alignment, const argument& name) {
    if (given == 0) return refuse(name, alignment == 1 ? null_bytes : null, given, alignment);
    if (given % alignment != 0) refuse(name, misaligned, given, alignment);
  }

  void at_least(std::uint64_t given, std::uint64_t least, const argument& name) {
    if (given < least) refuse(name, too_small, given, least);
  }
  void at_most(std::uint64_t given, std::uint64_t most, const argument& name) {
    if (given > most) refuse(name, too_large, given, most);
  }
  void range(std::uint64_t given, std::uint64_t least, std::uint64_t most, const argument& name) {
    at_least(given, least, name);
    at_most(given, most, name);
  }
  void multiple(std::uint64_t given, std::uint64_t divisor, const argument& name) {
    if (given % divisor != 0) refuse(name, no_multiple, given, divisor);
  }
  void power_of_two(std::uint64_t given, std::uint64_t most, const argument& name) {
    if (given == 0 || given > most || (given & (given - 1)) != 0) refuse(name, no_power_of_two, given, most);
  }
  /// Checks for one number; `why` is the `error::reason`.
  void equal(std::uint64_t given, std::uint64_t wanted, const argument& name, const char* why) {
    if (given != wanted) refuse(name, why, given, wanted);
  }
  /// Checks for the bytes of an integer: 4 or 8.
  void integer_bytes(std::uint64_t given, const argument& name) {
    if (given != 4 && given != 8) refuse(name, no_integer, given, 8);
  }
  /// Checks for a value of an enumeration that begins at 0, or its number.
  template <class Enum>
  void enumerator(Enum given, Enum last, const argument& name) {
    enumerator(static_cast<std::uint64_t>(given), static_cast<std::uint64_t>(last), name);
  }

  void enumerator(std::uint64_t given, std::uint64_t last, const argument& name) {
    if (given > last) refuse(name, no_enumerator, given, last);
  }

  /// Adds the complaint of another function.
  template <class T>
  void add(const result<T>& found) {
    if (outcome_ && !found) outcome_ = failure{found.error()};
  }

  /// Adds a complaint; `reason` is the `error::reason`.
  void refuse(const argument& name, const char* reason, std::uint64_t found = 0, std::uint64_t allowed = 0);

 private:
  static const char null[];
  static const char null_bytes[];
  static const char misaligned[];
  static const char too_small[];
  static const char too_large[];
  static const char no_multiple[];
  static const char no_power_of_two[];
  static const char no_integer[];
  static const char no_enumerator[];

  result<void> outcome_{};
};

/// Returns the failure of one argument.
[[nodiscard]] failure refused(const argument& name, const char* reason, std::uint64_t found = 0,
                              std::uint64_t allowed = 0);

}  // namespace tmap::support
