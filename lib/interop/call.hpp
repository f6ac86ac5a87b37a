// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/c/status.h>
#include <tmap/error.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

// The one way in and out of a C function: arguments are checked by `arguments`, the body runs in `call`, which lets no
// exception through and notes what failed for `tmap_last_error`.

namespace tmap::interop {

/// How a call ended. Plain data; the texts are literals.
struct answer {
  answer() = default;
  answer(const error& e) : code{static_cast<tmap_status>(e.code)}, details{e} {}  // NOLINT: a failure is an answer
  answer(tmap_status c, const char* argument_name, const char* why, const error& e = {})
      : code{c}, details{e}, argument{argument_name}, reason{why} {}

  bool is_ok() const { return code == TMAP_OK; }

  tmap_status code{TMAP_OK};
  error details{};
  const char* argument{};  ///< null: `details` says all
  const char* reason{};
};

inline answer answer_of(const result<void>& done) {
  return done ? answer{} : answer{done.error()};
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
    return note(function, {TMAP_INTERNAL_ERROR, "tmap", "met an exception that it does not know"});
  }
}

/// Checks arguments one after the other and keeps the first complaint.
class arguments {
 public:
  explicit operator bool() const { return complaint_.is_ok(); }
  const answer& complaint() const { return complaint_; }

  /// Not null, and aligned as its type.
  template <class T>
  void pointer(const T* given, const char* name) {
    if (given == nullptr) return complain(name, "is null");
    optional(given, name);
  }

  /// Null or aligned as its type.
  template <class T>
  void optional(const T* given, const char* name) {
    const auto address = reinterpret_cast<std::uintptr_t>(given);
    if (address % alignof(T) != 0) complain(name, "is misaligned", address, alignof(T));
  }

  /// A struct of a size that this library knows, its reserved member 0. Any `other` of its members may be read after.
  template <class Struct>
  void structure(const Struct* given, const char* name) {
    pointer(given, name);
    if (!*this) return;
    if (given->struct_size != sizeof(Struct)) {
      return complain(name, "has another struct_size than this library", given->struct_size, sizeof(Struct));
    }
    if constexpr (requires { given->reserved; }) {
      if (given->reserved != 0) complain(name, "has a reserved member that is not 0", given->reserved, 0);
    }
  }

  /// The same, or null.
  template <class Struct>
  void optional_structure(const Struct* given, const char* name) {
    if (given != nullptr) structure(given, name);
  }

  /// A number from 0 to `last`.
  void choice(std::uint64_t given, std::uint64_t last, const char* name) {
    if (given > last) complain(name, "is no value that this library knows", given, last);
  }

  /// Room for `capacity` elements; may be null when that is 0.
  template <class T>
  void buffer(const T* given, std::uint64_t capacity, const char* name) {
    if (capacity != 0) pointer(given, name);
  }

  void complain(const char* name, const char* reason, std::uint64_t found = 0, std::uint64_t allowed = 0) {
    if (!complaint_.is_ok()) return;
    complaint_ = answer{TMAP_INVALID_ARGUMENT, name, reason,
                        error{.code = status::invalid_argument, .found = found, .allowed = allowed}};
  }

 private:
  answer complaint_;
};

}  // namespace tmap::interop
