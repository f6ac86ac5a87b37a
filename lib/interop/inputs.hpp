// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda/std/span>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lib/interop/call.hpp"
#include "lib/interop/convert.hpp"
#include "lib/interop/handle_table.hpp"
#include "lib/support/without_throwing.hpp"

// The one way from C's arguments to the library's. A C function names its inputs and the library's
// function. `run` checks the inputs in their order, converts each, and calls the function.

namespace tmap::interop {

/// A struct that `library_of` converts.
template <class Struct>
struct input {
  void check(arguments& all) const {
    all.structure(given, name);
    if (all) check_members(all, *given, name);
  }
  auto value() const { return library_of(*given); }

  const char* name;
  const Struct* given;
};
template <class Struct>
input(const char*, const Struct*) -> input<Struct>;

/// A struct, or null, which stands for the library's default.
template <class Struct>
struct optional_input {
  void check(arguments& all) const {
    if (given != nullptr) input{name, given}.check(all);
  }
  auto value() const {
    using made = decltype(input{name, given}.value());
    return given == nullptr ? made{} : input{name, given}.value();
  }

  const char* name;
  const Struct* given;
};
template <class Struct>
optional_input(const char*, const Struct*) -> optional_input<Struct>;

/// The object that a handle names. It lives as long as the call.
template <class Object>
class object {
 public:
  object(const char* name, handle_table<Object>& table, std::uint64_t handle)
      : name_{name}, found_{table.find(handle)} {}
  void check(arguments& all) const { all.handle(found_ != nullptr, name_); }
  Object& value() const { return *found_; }

 private:
  const char* name_;
  std::shared_ptr<Object> found_;
};

/// A result, which goes to the caller.
template <class T>
struct output {
  void check(arguments& all) const { all.pointer(to, name); }
  T& value() const { return *to; }

  const char* name;
  T* to;
};
template <class T>
output(const char*, T*) -> output<T>;

/// A result in a struct whose size the caller has set.
template <class Struct>
struct sized_output {
  void check(arguments& all) const { all.structure(to, name); }
  Struct& value() const { return *to; }

  const char* name;
  Struct* to;
};
template <class Struct>
sized_output(const char*, Struct*) -> sized_output<Struct>;

/// An array of `size` elements.
template <class T>
struct array {
  void check(arguments& all) const { all.buffer(elements, size, name); }
  cuda::std::span<T> value() const { return {elements, size}; }

  const char* name;
  T* elements;
  std::size_t size;
};
template <class T>
array(const char*, T*, std::size_t) -> array<T>;

/// A buffer for a text, as tmap.h describes them.
struct text_output {
  void check(arguments& all) const {
    all.buffer(buffer, capacity, "text");
    all.optional_pointer(length, "length");
  }
  const text_output& value() const { return *this; }

  answer write(std::string_view text) const {
    if (length != nullptr) *length = text.size();
    if (capacity == 0) return {};
    const std::size_t room = capacity - 1;
    const std::size_t written = text.size() < room ? text.size() : room;
    std::memcpy(buffer, text.data(), written);
    buffer[written] = '\0';
    if (written == text.size()) return {};
    return {TMAP_BUFFER_TOO_SMALL, error{.found = capacity,
                                         .allowed = text.size() + 1,
                                         .argument = "capacity",
                                         .reason = "is {found}; it must be at least {allowed} for the whole text"}};
  }
  /// Writes a text that the library made.
  answer write_made(std::string text) const { return write(support::or_throw(std::move(text))); }

  char* buffer;
  std::size_t capacity;
  std::size_t* length;
};

/// An argument that the library takes as C has it, and checks.
template <class T>
struct as_is {
  void check(arguments&) const {}
  const T& value() const { return given; }

  T given;
};
template <class T>
as_is(T) -> as_is<T>;

template <class Function, class... Inputs>
tmap_status run(const char* name, const Function& function, const Inputs&... inputs) noexcept {
  return call(name, [&]() -> answer {
    arguments given;
    (inputs.check(given), ...);
    if (!given) return given.complaint();
    return answer_of(function(inputs.value()...));
  });
}

/// Runs a function whose result goes to `to`.
template <class Output, class Function, class... Inputs>
tmap_status ask(const char* name, const Output& to, const Function& function, const Inputs&... inputs) noexcept {
  return call(name, [&]() -> answer {
    arguments given;
    (inputs.check(given), ...);
    to.check(given);
    if (!given) return given.complaint();
    const auto made = function(inputs.value()...);
    if (!made) return made.error();
    to.value() = c_of(*made);
    return {};
  });
}

}  // namespace tmap::interop
