// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/tmap.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>

namespace tmap::testing {

template <class T>
T* misaligned(T* pointer) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + 1);
}

/// What `use` does with null, a misaligned pointer, wrong sizes and a reserved member in the place of `good`: it
/// answers `TMAP_INVALID_ARGUMENT` and leaves the struct as it is.
template <class Struct>
void refuses_bad_structs(const Struct& good, const std::function<tmap_status(Struct*)>& use, bool may_be_null = false) {
  Struct given = good;
  if (!may_be_null) {
    EXPECT_EQ(use(nullptr), TMAP_INVALID_ARGUMENT);
  }
  EXPECT_EQ(use(misaligned(&given)), TMAP_INVALID_ARGUMENT);
  for (const std::uint32_t size : {0u, 4u, std::uint32_t{sizeof given} - 1, std::uint32_t{sizeof given} + 8, ~0u}) {
    given = good;
    given.struct_size = size;
    const Struct before = given;
    EXPECT_EQ(use(&given), TMAP_INVALID_ARGUMENT) << size;
    EXPECT_EQ(std::memcmp(&given, &before, sizeof given), 0);
  }
  if constexpr (requires { given.reserved; }) {
    given = good;
    given.reserved = 1;
    const Struct before = given;
    EXPECT_EQ(use(&given), TMAP_INVALID_ARGUMENT);
    EXPECT_EQ(std::memcmp(&given, &before, sizeof given), 0);
  }
}

}  // namespace tmap::testing
