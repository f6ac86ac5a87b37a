// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/detail/standard.hpp>

namespace tmap {

/// An address, made from a pointer of any type or from a number, and read as a number. It has the
/// size and alignment of a `std::uint64_t` and, like one, has no initial value unless you write
/// `device_address at{}`.
class device_address {
 public:
  device_address() = default;
  TMAP_HOST_DEVICE constexpr device_address(std::uint64_t value) : value_{value} {}
  template <class T>
  TMAP_HOST_DEVICE device_address(T* memory) : value_{reinterpret_cast<std::uintptr_t>(memory)} {}

  TMAP_HOST_DEVICE constexpr std::uint64_t value() const { return value_; }
  TMAP_HOST_DEVICE constexpr operator std::uint64_t() const { return value_; }

  TMAP_HOST_DEVICE constexpr device_address& operator+=(std::uint64_t bytes) {
    value_ += bytes;
    return *this;
  }
  TMAP_HOST_DEVICE constexpr device_address& operator-=(std::uint64_t bytes) {
    value_ -= bytes;
    return *this;
  }

 private:
  std::uint64_t value_;
};
static_assert(sizeof(device_address) == 8 && std::is_trivially_copyable_v<device_address> &&
              std::is_trivially_default_constructible_v<device_address>);

}  // namespace tmap
