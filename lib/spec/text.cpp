// SPDX-License-Identifier: Apache-2.0
#include <tmap/error.hpp>
#include <tmap/validate.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lib/spec/fault_text.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

using value_name = const char* (*)(std::uint64_t);

template <class Enum>
const char* name_of_value(std::uint64_t value) {
  return value > 255 ? "invalid" : name(static_cast<Enum>(value));
}

/// Returns the function that names the values of a rule about a type or mode, else null.
value_name names_of_rule(rule id) {
  switch (id) {
    case rule::t02_element_type:
    case rule::u06_reduction_type: return name_of_value<element_type>;
    case rule::t21_interleave_value:
    case rule::w04_interleave: return name_of_value<interleave>;
    case rule::t25_interleave_32_swizzle:
    case rule::t26_swizzle_u6:
    case rule::t27_swizzle_u4:
    case rule::t28_swizzle_value:
    case rule::w03_swizzle: return name_of_value<swizzle>;
    case rule::t29_l2_promotion_value: return name_of_value<l2_promotion>;
    case rule::t30_oob_fill: return name_of_value<oob_fill>;
    default: return nullptr;
  }
}

/// Returns the number itself where it has no name.
std::string name_or_number(rule id, std::uint64_t value) {
  const value_name named = names_of_rule(id);
  const std::string_view text = named == nullptr ? "invalid" : named(value);
  return text == "invalid" ? fmt::format("{}", value) : std::string{text};
}

/// Lists the names of the values from 0 to `last`: "none, 16B or 32B".
std::string names_up_to(rule id, std::uint64_t last) {
  if (names_of_rule(id) == nullptr) return fmt::format("{}", last);
  std::string text;
  for (std::uint64_t value = 0; value <= std::min<std::uint64_t>(last, 15); ++value) {
    const char* const comma = value == last ? " or " : ", ";
    text += fmt::format("{}{}", value == 0 ? "" : comma, name_or_number(id, value));
  }
  return text;
}

std::uint64_t multiple_below(std::uint64_t value, std::uint64_t unit) {
  return unit == 0 ? value : value - value % unit;
}

/// Saturates at the largest multiple of 64 bits; never returns 0.
std::uint64_t multiple_above(std::uint64_t value, std::uint64_t unit) {
  const std::uint64_t below = multiple_below(value, unit);
  if (below == value && value != 0) return value;
  return below > ~std::uint64_t{0} - unit ? below : below + unit;
}

/// Returns " (4104 elements)" for bytes that hold whole elements, else nothing.
std::string in_elements(std::uint64_t size, element_type type) {
  const std::uint64_t bits = element_bits(type);
  if (bits < 8 || size % (bits / 8) != 0) return {};
  return fmt::format(" ({} elements)", size / (bits / 8));
}

/// Returns the multiples on both sides, without 0: "0x1000 or 0x1010", or "16".
std::string nearest_multiples(std::uint64_t value, std::uint64_t unit, bool is_hexadecimal) {
  const std::uint64_t below = multiple_below(value, unit);
  const auto text = [&](std::uint64_t number) {
    return is_hexadecimal ? fmt::format("{:#x}", number) : fmt::format("{}", number);
  };
  return below == 0 ? text(multiple_above(value, unit)) : text(below) + " or " + text(multiple_above(value, unit));
}

/// Coordinates have 32 bits and units fewer; other values are cut so that no sum wraps.
std::string nearest_signed_multiples(std::int64_t value, std::int64_t unit) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  value = std::clamp(value, -most, most);
  unit = std::clamp<std::int64_t>(unit, 1, most);
  const std::int64_t below = value - ((value % unit) + unit) % unit;
  return fmt::format("{} or {}", below, below + unit);
}

/// Fills the places of a message or remedy.
std::string with_values(const char* text, const violation& v, element_type type) {
  const auto found = static_cast<std::int64_t>(v.found);
  const auto allowed = static_cast<std::int64_t>(v.allowed);
  const auto corner = static_cast<std::int64_t>(found < 0 ? 0 - v.allowed : v.allowed - 1);
  const std::uint64_t above = multiple_above(v.found, v.allowed);
  const std::uint64_t room = multiple_above(v.allowed, 16);
  return fmt::format(
      fmt::runtime(text), fmt::arg("axis", v.axis), fmt::arg("found", v.found), fmt::arg("signed_found", found),
      fmt::arg("allowed", v.allowed), fmt::arg("found_name", name_or_number(v.id, v.found)),
      fmt::arg("first_name", name_or_number(v.id, 0)), fmt::arg("allowed_name", name_or_number(v.id, v.allowed)),
      fmt::arg("allowed_names", names_up_to(v.id, v.allowed)),
      fmt::arg("nearest", v.found == 0 ? 1 : std::min(v.found, v.allowed)), fmt::arg("above", above),
      fmt::arg("above_elements", in_elements(above, type)), fmt::arg("room", room),
      fmt::arg("room_elements", in_elements(room, type)),
      fmt::arg("multiples", nearest_multiples(v.found, v.allowed, false)),
      fmt::arg("multiples_hex", nearest_multiples(v.found, v.allowed, true)),
      fmt::arg("multiples_signed", nearest_signed_multiples(found, allowed)), fmt::arg("nearest_corner", corner),
      fmt::arg("excess", v.found - std::min(v.found, v.allowed)));
}

std::string sentence_of(const violation& v) {
  const rule_info& row = info(v.id);
  return fmt::format("{} {}", row.name, with_values(row.message, v, element_type::u8));
}

std::string names_except(rule_set rules, rule first) {
  std::string names;
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const auto id = static_cast<rule>(i);
    if (id != first && rules.contains(id)) names += fmt::format("{}{}", names.empty() ? "" : ", ", info(id).name);
  }
  return names;
}

struct status_text {
  const char* name;
  const char* sentence;
};

status_text text_of(status code) {
  switch (code) {
    case status::rule_broken: return {"rule_broken", "the spec breaks a rule"};
    case status::invalid_argument: return {"invalid_argument", "an argument lies outside the function's contract"};
    case status::no_driver: return {"no_driver", "this machine has no CUDA driver"};
    case status::no_device: return {"no_device", "the CUDA driver sees no GPU"};
    case status::compute_capability_too_low:
      return {"compute_capability_too_low", "the GPU has no copy engine: compute capability 9.0 or higher is needed"};
    case status::driver_too_old:
      return {"driver_too_old", "the CUDA driver is too old for this function: update the driver"};
    case status::symbol_missing: return {"symbol_missing", "the CUDA driver does not have this function"};
    case status::driver_refused: return {"driver_refused", "the CUDA driver refused the arguments"};
    case status::no_context: return {"no_context", "the calling thread has no usable CUDA context"};
    case status::earlier_asynchronous_error:
      return {"earlier_asynchronous_error",
              "an earlier kernel broke the CUDA context; the process must be started again"};
    case status::no_kernel_image: return {"no_kernel_image", "tmap was not built for this GPU"};
    case status::out_of_memory: return {"out_of_memory", "an allocation failed"};
    case status::cuda_failure: return {"cuda_failure", "a CUDA call failed"};
    case status::not_a_tensor_map: return {"not_a_tensor_map", "the 128 bytes are no tensor map"};
    case status::illegal_instruction:
      return {"illegal_instruction", "the copy engine would raise an illegal instruction"};
    case status::misaligned_address: return {"misaligned_address", "the copy engine would raise a misaligned address"};
    case status::illegal_memory_access:
      return {"illegal_memory_access", "the copy engine would raise an illegal memory access"};
    case status::unsupported: return {"unsupported", "the combination is documented but not supported here"};
    case status::pool_exhausted: return {"pool_exhausted", "the service has too few free slots in one piece"};
    case status::service_dead:
      return {"service_dead", "the CUDA context was lost or broken: make a new service in a new context"};
    case status::forked:
      return {"forked", "the service was made before this process was forked off: CUDA works in the parent only"};
    case status::wrong_context:
      return {"wrong_context", "another CUDA context is current than the one the service was made in"};
    case status::self_test_failed:
      return {"self_test_failed", "a map made on this GPU differs from the driver's: nothing can be encoded here"};
    case status::pageable_memory_in_capture:
      return {"pageable_memory_in_capture",
              "an array lies in pageable host memory, which a graph would read again at each replay: use pinned memory "
              "that outlives the graph, or device memory"};
    case status::bad_items: return {"bad_items", "a checked call met bad items"};
    case status::no_peer_access: return {"no_peer_access", "a GPU of the group cannot reach the memory of another one"};
    case status::nccl_missing:
      return {"nccl_missing", "libnccl.so.2 cannot be loaded: install NCCL, or add its folder to LD_LIBRARY_PATH"};
    case status::nccl_version: return {"nccl_version", "this version of NCCL lacks a function that a group needs"};
    case status::nccl_failure: return {"nccl_failure", "a call of NCCL failed"};
    case status::multicast_not_off:
      return {"multicast_not_off", "NCCL may use NVLink multicast: set NCCL_NVLS_ENABLE=0 before the program starts"};
    case status::windows_differ:
      return {"windows_differ", "the ranks of the group asked for windows of different sizes"};
    case status::peer_timeout: return {"peer_timeout", "a rank of the group did not come before the deadline"};
    case status::group_broken: return {"group_broken", "an earlier call of the group failed: make a new group"};
    case status::peer_lost: return {"peer_lost", "the process of a peer ended, or its GPU failed: make a new group"};
    case status::peer_mismatch: return {"peer_mismatch", "the ranks of the group made different calls"};
    case status::peer_overflow:
      return {"peer_overflow", "more rows would come to a rank of the group than it has room for"};
  }
  return {"unknown", "an unknown status"};
}

/// Returns what is wrong with an argument or, if none is named, with the machine.
std::string reason_sentence(const error& e) {
  const std::string reason =
      fmt::format(fmt::runtime(e.reason), fmt::arg("found", e.found), fmt::arg("allowed", e.allowed));
  return e.argument.empty() ? reason : fmt::format("`{}` {}", e.argument.view(), reason);
}

std::string sentence_of(const error& e) {
  if (e.code == status::bad_items) return detail::bad_items_sentence(e);
  if (e.reason != nullptr) return reason_sentence(e);
  std::string text = text_of(e.code).sentence;
  if (!e.argument.empty()) text = fmt::format("`{}`: {}", e.argument.view(), text);
  if (e.code == status::pageable_memory_in_capture) {
    text += fmt::format(" (the array at {:#x})", e.found);
  } else if (e.found != 0 || e.allowed != 0) {
    if (e.rules.empty() && e.code != status::pool_exhausted)
      text += fmt::format(" (found {}, allowed {})", e.found, e.allowed);
  }
  if (!e.rules.empty()) {
    text += fmt::format(": {}", sentence_of(violation{e.first, e.axis, e.found, e.allowed}));
    const std::string others = names_except(e.rules, e.first);
    if (!others.empty()) text += fmt::format(" (also broken: {})", others);
  }
  if (e.code == status::pool_exhausted) {
    text += fmt::format(": {} asked for; of {} slots {} are free, {} leased, {} pending, {} captured", e.found,
                        e.slots.capacity, e.slots.free, e.slots.leased, e.slots.pending, e.slots.captured);
  }
  if (e.cuda_code != 0) text += fmt::format(" [CUDA code {}]", e.cuda_code);
  return text;
}

}  // namespace

std::string to_string(const violation& v) {
  return support::without_throwing([&] { return sentence_of(v); });
}

std::string remedy(const violation& v, element_type type) {
  return support::without_throwing([&] { return with_values(info(v.id).remedy, v, type); });
}

std::string to_string(const violations& v) {
  return support::without_throwing([&] {
    if (v.empty()) return std::string{"no rule broken"};
    std::string lines;
    for (const violation& each : v) lines += fmt::format("{}{}", lines.empty() ? "" : "\n", sentence_of(each));
    return lines;
  });
}

std::string to_string(const error& e) {
  return support::without_throwing([&] { return sentence_of(e); });
}

const char* name(status code) {
  return text_of(code).name;
}

}  // namespace tmap
