// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/tensor_spec.hpp>

#include <cstdint>

namespace tmap {

/// A route is the mechanism that moves a tensor's bytes between global and shared memory. Every
/// batched operation (ragged.hpp) gives the same bytes on every route; the route decides how fast.
/// Pure functions, the same on host and device.
enum class route : std::uint32_t {
  tensor_map,  ///< tiles through a tensor map (cp.async.bulk.tensor)
  bulk,        ///< one-dimensional bulk copies (cp.async.bulk), no map
  ldgsts,      ///< asynchronous copies of 4, 8 or 16 bytes a thread (cp.async)
  plain,       ///< loads and stores: any address, any pitch
};
inline constexpr std::uint32_t route_count = 4;

/// Returns "tensor_map", "bulk", "ldgsts", "plain"; "invalid" for a value that is no route.
TMAP_HOST_DEVICE constexpr const char* name(route r) {
  switch (r) {
    case route::tensor_map: return "tensor_map";
    case route::bulk: return "bulk";
    case route::ldgsts: return "ldgsts";
    case route::plain: return "plain";
  }
  return "invalid";
}

/// A set of routes: `route_bit(route::bulk) | route_bit(route::ldgsts)`. `plain` is always allowed,
/// since it moves a tensor that no other allowed route can move. No integer converts to a set.
class route_set {
 public:
  constexpr route_set() = default;
  TMAP_HOST_DEVICE constexpr explicit route_set(std::uint32_t bits) : bits_{bits} {}

  /// Bit r stands for route r.
  TMAP_HOST_DEVICE constexpr std::uint32_t bits() const { return bits_; }
  TMAP_HOST_DEVICE constexpr bool empty() const { return bits_ == 0; }
  TMAP_HOST_DEVICE constexpr bool contains(route r) const { return (bits_ & 1u << static_cast<std::uint32_t>(r)) != 0; }
  TMAP_HOST_DEVICE constexpr route_set without(route r) const {
    return route_set{bits_ & ~(1u << static_cast<std::uint32_t>(r))};
  }
  friend TMAP_HOST_DEVICE constexpr route_set operator|(route_set a, route_set b) {
    return route_set{a.bits_ | b.bits_};
  }
  friend TMAP_HOST_DEVICE constexpr route_set operator&(route_set a, route_set b) {
    return route_set{a.bits_ & b.bits_};
  }
  friend TMAP_HOST_DEVICE constexpr bool operator==(route_set a, route_set b) { return a.bits_ == b.bits_; }
  friend TMAP_HOST_DEVICE constexpr bool operator!=(route_set a, route_set b) { return a.bits_ != b.bits_; }

 private:
  std::uint32_t bits_{};
};
TMAP_HOST_DEVICE constexpr route_set route_bit(route r) {
  return route_set{1u << static_cast<std::uint32_t>(r)};
}
inline constexpr route_set all_routes{(1u << route_count) - 1};

/// Whether the copy engine may be used (routes `tensor_map` and `bulk`).
enum class route_policy : std::uint32_t {
  enable,   ///< for each eligible tensor that gains by it
  disable,  ///< never
  force,    ///< for each eligible tensor; an operation fails at once on a GPU without a copy engine
};

/// The reason for the choice of `choose_route`.
enum class route_reason : std::uint32_t {
  best,                ///< the route that measured fastest for such a tensor was possible
  disabled_by_policy,  ///< the copy engine would have been chosen
  not_allowed,         ///< a faster route is not in `route_options::allowed`
  misaligned,          ///< address, a stride, the row or the element is no multiple of what a faster route needs
  too_small,           ///< below the size from which a faster route gains
  extent_too_large,    ///< a dim above 2^31 or a stride of 2^40 and more: no tensor map
};

/// Returns a name for people: "best", "disabled by policy", ...
TMAP_HOST_DEVICE constexpr const char* name(route_reason why) {
  switch (why) {
    case route_reason::best: return "best";
    case route_reason::disabled_by_policy: return "disabled by policy";
    case route_reason::not_allowed: return "not allowed";
    case route_reason::misaligned: return "misaligned";
    case route_reason::too_small: return "too small";
    case route_reason::extent_too_large: return "extent too large";
  }
  return "invalid";
}

struct route_choice {
  route way{route::plain};
  route_reason why{route_reason::best};
};

struct route_options {
  route_policy policy{route_policy::enable};
  route_set allowed{all_routes};
};

/// The place of a tensor in memory, without the limits of a tensor map: any element size, any
/// pitch.
struct tensor_layout {
  device_address address{};
  std::uint32_t element_bytes{};
  std::uint32_t rank{};                        ///< 1 to 5
  std::uint64_t dim[max_rank]{};               ///< in elements, innermost first
  std::uint64_t stride_bytes[max_rank - 1]{};  ///< [i] is the step of dimension i + 1
};

/// Chooses the route for one tensor that is read. (For `tensor_map`, a destination also needs rows
/// of a multiple of 16 bytes.) Any bits are legal input; a rank above 5 counts as 5.
TMAP_HOST_DEVICE constexpr route_choice choose_route(const tensor_layout& tensor, const route_options& options = {});
/// Chooses the route for the tensor that a map would describe.
TMAP_HOST_DEVICE constexpr route_choice choose_route(const tensor_spec& spec, const route_options& options = {});

/// Returns the value of the environment variable TMAP_POLICY: `enable` (also when unset), `disable`
/// or `force`.
/// @fails `invalid_argument` for any other text. Each call reads the variable again. Operations
/// read it if no policy was chosen.
[[nodiscard]] TMAP_API result<route_policy> policy_from_environment();

}  // namespace tmap

#include <tmap/detail/choose_route.hpp>
