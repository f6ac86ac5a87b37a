// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tmap.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

namespace tmap::testing {

template <class T>
T* misaligned(T* pointer) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

/// Returns the argument that the last call refused, or an empty text if it did anything else.
inline std::string refused(tmap_status answer) {
  tmap_error last{};
  last.struct_size = sizeof last;
  const bool is_told = answer == TMAP_INVALID_ARGUMENT && tmap_last_error(&last) == TMAP_OK;
  return is_told ? last.argument : "";
}

/// Maps the refusal of a missing workspace to success, because a good call ends with it in tests
/// that have no device.
inline tmap_status without_workspace(tmap_status answer) {
  return refused(answer) == "call.workspace_bytes" ? tmap_status{TMAP_OK} : answer;
}

/// Calls `use` with null, a misaligned pointer, wrong sizes and a reserved member in the place of
/// `good`. It must return `TMAP_INVALID_ARGUMENT`, leave the struct unchanged and, if `is_named`,
/// always name it alike.
template <class Struct>
void refuses_bad_structs(const Struct& good, const std::function<tmap_status(Struct*)>& use, bool may_be_null = false,
                         bool is_named = true) {
  Struct given = good;
  const auto refusal_of = [&](Struct* bad) {
    const tmap_status answer = use(bad);
    EXPECT_EQ(answer, TMAP_INVALID_ARGUMENT);
    return refused(answer);
  };
  const std::string name = refusal_of(misaligned(&given));
  const auto expect_named = [&](Struct* bad, const std::string& member) {
    const std::string found = refusal_of(bad);
    EXPECT_EQ(found, is_named ? name + member : found);
  };
  EXPECT_TRUE(!is_named || !name.empty());
  if (!may_be_null) expect_named(nullptr, "");
  for (const std::uint32_t size : {0u, 4u, std::uint32_t{sizeof given} - 1, std::uint32_t{sizeof given} + 8, ~0u}) {
    given = good;
    given.struct_size = size;
    const Struct before = given;
    expect_named(&given, ".struct_size");
    EXPECT_EQ(std::memcmp(&given, &before, sizeof given), 0);
  }
  if constexpr (requires { given.reserved; }) {
    given = good;
    given.reserved = 1;
    const Struct before = given;
    expect_named(&given, ".reserved");
    EXPECT_EQ(std::memcmp(&given, &before, sizeof given), 0);
  }
}

}  // namespace tmap::testing
