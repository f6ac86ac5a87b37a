// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>
#include <tmap/error.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

#include "lib/support/arguments.hpp"

// The one way in and out of a C function: arguments are checked by `arguments`, the body runs in
// `call`, which lets no exception through and notes what failed for `tmap_last_error`.

namespace tmap::interop {

/// The library's name of an argument as C has it: some members are arguments of their own there, or
/// have another word.
argument_name c_name_of(const argument_name& name);

/// How a call ended. Plain data.
struct answer {
  answer() = default;
  /// A failure of the library is an answer.
  answer(const error& e) : code{static_cast<tmap_status>(e.code)}, details{e} {  // NOLINT
    details.argument = c_name_of(e.argument);
  }
  /// What C itself has to say; its codes are more than the library's.
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

/// Notes a failure of `function` for this thread, and gives its code back.
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

/// The library's checker, and what C's arguments need beside it.
class arguments : public support::arguments {
 public:
  answer complaint() const { return {code_, support::arguments::complaint()}; }

  /// A handle that names an object.
  void handle(bool names_one, const support::argument& name) {
    if (names_one || !*this) return;
    code_ = TMAP_INVALID_HANDLE;
    refuse(name, "is no handle of such an object, or of one that was destroyed");
  }

  /// A struct of a size that this library knows, its reserved member 0. Its other members may be
  /// read then.
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

  /// The same, or null.
  template <class Struct>
  void optional_structure(const Struct* given, const support::argument& name) {
    if (given != nullptr) structure(given, name);
  }

  /// Room for `capacity` elements; may be null when that is 0.
  template <class T>
  void buffer(const T* given, std::uint64_t capacity, const support::argument& name) {
    if (capacity != 0) pointer(given, name);
  }

 private:
  tmap_status code_{TMAP_INVALID_ARGUMENT};
};

}  // namespace tmap::interop
