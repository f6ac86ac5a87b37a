// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>
#include <tmap/error.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

#include "lib/support/arguments.hpp"

// The one way in and out of a C function. `arguments` checks what it was given. The body runs in
// `call`, which lets no exception through and notes a failure for `tmap_last_error`.

namespace tmap::interop {

/// Returns C's name of an argument that the library names: some members are arguments of their own
/// in C, or have another word.
argument_name c_name_of(const argument_name& name);

inline constexpr char stale_reason[] = "is no handle of such an object, or of one that was destroyed";

/// How a call ended. Plain data.
struct answer {
  answer() = default;
  /// Takes a failure of the library.
  answer(const error& e) : code{static_cast<tmap_status>(e.code)}, details{e} {  // NOLINT
    details.argument = c_name_of(e.argument);
  }
  /// Takes a failure that only C knows: it has more codes than the library.
  answer(tmap_status c, const error& e) : code{c}, details{e} {}

  bool is_ok() const { return code == TMAP_OK; }

  tmap_status code{TMAP_OK};
  error details{};
};

inline answer answer_of(const result<void>& done) {
  return done ? answer{} : answer{done.error()};
}
inline answer answer_of(const answer& ended) {
  return ended;
}

/// Notes a failure of `function` for this thread and returns its code.
tmap_status note(const char* function, const answer& ended) noexcept;

template <class Body>
tmap_status call(const char* function, const Body& body) noexcept {
  try {
    const answer ended = body();
    return ended.is_ok() ? TMAP_OK : note(function, ended);
  } catch (const std::bad_alloc&) {
    return note(function, error{.code = status::out_of_memory});
  } catch (...) {
    return note(function,
                {TMAP_INTERNAL_ERROR, error{.argument = "tmap", .reason = "met an exception that it does not know"}});
  }
}

/// The library's checker, and the checks that only C's arguments need.
class arguments : public support::arguments {
 public:
  answer complaint() const { return {code_, support::arguments::complaint()}; }

  /// Checks a handle, which must name an object.
  void handle(bool names_one, const support::argument& name) {
    if (names_one || !*this) return;
    code_ = TMAP_INVALID_HANDLE;
    refuse(name, stale_reason);
  }

  /// Checks a struct: its size is the library's and its reserved member 0. After that its other
  /// members may be read.
  template <class Struct>
  void structure(const Struct* given, const support::argument& name) {
    pointer(given, name);
    if (!*this) return;
    if constexpr (requires { given->struct_size; }) {
      equal(given->struct_size, sizeof(Struct), name.member("struct_size"),
            "is {found}; it must be {allowed}, the struct's size in this library");
    }
    if constexpr (requires { given->reserved; }) {
      equal(given->reserved, 0, name.member("reserved"), "is {found}; it must be {allowed}");
    }
  }

  /// Checks the same, or takes null.
  template <class Struct>
  void optional_structure(const Struct* given, const support::argument& name) {
    if (given != nullptr) structure(given, name);
  }

  /// Checks room for `capacity` elements, which may be null when that is 0.
  template <class T>
  void buffer(const T* given, std::uint64_t capacity, const support::argument& name) {
    if (capacity != 0) pointer(given, name);
  }

 private:
  tmap_status code_{TMAP_INVALID_ARGUMENT};
};

}  // namespace tmap::interop
