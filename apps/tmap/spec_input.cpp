// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/spec_input.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace tmap::tool {
namespace {

constexpr std::uint64_t assumed_address = 0x100000;

/// A member of a spec as a person writes it: a flag without its dashes, and a key of JSON.
struct member {
  const char* flag;
  const char* key;
};

constexpr member type_member{"type", "element_type"};
constexpr member dims_member{"dims", "global_dim"};
constexpr member strides_member{"strides", "global_stride_bytes"};
constexpr member box_member{"box", "box_dim"};
constexpr member element_strides_member{"element-strides", "element_stride"};
constexpr member interleave_member{"interleave", "interleave"};
constexpr member swizzle_member{"swizzle", "swizzle"};
constexpr member l2_member{"l2", "l2_promotion"};
constexpr member fill_member{"fill", "oob_fill"};
constexpr member address_member{"address", "global_address"};
constexpr member lower_member{"lower", "lower_corner"};
constexpr member upper_member{"upper", "upper_corner"};
constexpr member channels_member{"channels", "channels_per_pixel"};
constexpr member pixels_member{"pixels", "pixels_per_column"};

std::string shown(const spec_words& words, const member& m) {
  return words.is_json ? fmt::format("\"{}\"", m.key) : m.flag;
}

/// Finds the enumerator whose name is `word`, or whose name is `word` and a B: "128" is "128B".
template <class Enum>
outcome<Enum> find_mode(const std::string& what, const std::string& word, std::uint32_t count) {
  std::string known;
  for (std::uint32_t value = 0; value < count; ++value) {
    const auto mode = static_cast<Enum>(value);
    if (word == name(mode) || word + "B" == name(mode)) return mode;
    known += fmt::format("{}{}", value == 0 ? "" : ", ", name(mode));
  }
  return refuse("{}: '{}' is not one of {}", what, word, known);
}

outcome<void> read_modes(const spec_words& words, tensor_spec& spec) {
  const auto type = find_mode<element_type>(shown(words, type_member), words.type, element_type_count);
  if (!type) return refusal{type.error()};
  const auto layout = find_mode<interleave>(shown(words, interleave_member), words.interleave, 3);
  if (!layout) return refusal{layout.error()};
  const auto pattern = find_mode<swizzle>(shown(words, swizzle_member), words.swizzle, 7);
  if (!pattern) return refusal{pattern.error()};
  const auto promotion = find_mode<l2_promotion>(shown(words, l2_member), words.l2, 4);
  if (!promotion) return refusal{promotion.error()};
  const auto fill = find_mode<oob_fill>(shown(words, fill_member), words.fill, 2);
  if (!fill) return refusal{fill.error()};
  spec.type = *type;
  spec.interleave = *layout;
  spec.swizzle = *pattern;
  spec.l2_promotion = *promotion;
  spec.oob_fill = *fill;
  return {};
}

outcome<std::uint64_t> read_number(const std::string& what, const std::string& word) {
  const bool is_hex = word.starts_with("0x") || word.starts_with("0X");
  std::uint64_t value = 0;
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + (is_hex ? 2 : 0), end, value, is_hex ? 16 : 10);
  if (read.ec != std::errc{} || read.ptr != end) return refuse("{}: '{}' is not a 64-bit number", what, word);
  return value;
}

/// Returns a product. Saturates: a product past 64 bits must not wrap into a legal
/// stride.
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::uint64_t>::max() : product;
}

std::uint64_t packed_row_bytes(const tensor_spec& spec) {
  switch (spec.interleave) {
    case interleave::bytes_16: return times(16, spec.global_dim[0]);
    case interleave::bytes_32: return times(32, spec.global_dim[0]);
    default: break;
  }
  const std::uint64_t bits = times(element_bits(spec.type), spec.global_dim[0]);
  return bits / 8 + (bits % 8 != 0 ? 1 : 0);
}

void derive_strides(spec_answer& answer) {
  tensor_spec& spec = answer.spec;
  std::vector<std::uint64_t> strides;
  for (std::uint32_t axis = 0; axis + 1 < spec.rank && axis + 1 < max_rank; ++axis) {
    const std::uint64_t below =
        axis == 0 ? packed_row_bytes(spec) : times(spec.global_stride_bytes[axis - 1], spec.global_dim[axis]);
    spec.global_stride_bytes[axis] = below;
    strides.push_back(below);
  }
  if (!strides.empty()) answer.notes.push_back(fmt::format("packed strides of {} bytes", fmt::join(strides, ", ")));
}

outcome<void> check_count(const std::string& what, std::size_t count, std::size_t wanted, std::size_t rank) {
  if (count == wanted) return {};
  return refuse("{}: {} given, but rank {} needs {}", what, count, rank, wanted);
}

template <class From, class To>
void copy_some(const std::vector<From>& from, To& to) {
  std::copy_n(from.begin(), std::min(from.size(), std::size(to)), std::begin(to));
}

/// Copies `from` to `to` where it has the number of values that the rank wants.
template <class From, class To>
outcome<void> read_list(const std::string& what, const std::vector<From>& from, std::size_t wanted, std::size_t rank,
                        To& to) {
  if (auto ok = check_count(what, from.size(), wanted, rank); !ok) return ok;
  copy_some(from, to);
  return {};
}

outcome<void> read_box(const spec_words& words, spec_answer& answer) {
  const std::size_t rank = words.dims.size();
  if (words.box.empty()) return refuse("{}: must be given, innermost first", shown(words, box_member));
  return read_list(shown(words, box_member), words.box, rank, rank, answer.spec.box_dim);
}

outcome<void> read_window(const spec_words& words, spec_answer& answer) {
  const std::size_t rank = words.dims.size();
  const std::size_t spatial = rank < 2 ? 0 : rank - 2;
  im2col_window window;
  if (!words.channels) return refuse("{}: must be given for im2col", shown(words, channels_member));
  if (!words.pixels) return refuse("{}: must be given for im2col", shown(words, pixels_member));
  window.channels_per_pixel = *words.channels;
  window.pixels_per_column = *words.pixels;
  auto ok = read_list(shown(words, lower_member), words.lower, spatial, rank, window.lower_corner);
  if (ok) ok = read_list(shown(words, upper_member), words.upper, spatial, rank, window.upper_corner);
  if (!words.box.empty()) return refuse("{}: im2col has no box", shown(words, box_member));
  answer.window = window;
  return ok;
}

outcome<void> read_extents(const spec_words& words, spec_answer& answer) {
  const std::size_t rank = words.dims.size();
  if (rank == 0) return refuse("{}: must be given, innermost first", shown(words, dims_member));
  answer.spec.rank = static_cast<std::uint32_t>(rank);
  copy_some(words.dims, answer.spec.global_dim);
  if (auto ok = words.is_im2col() ? read_window(words, answer) : read_box(words, answer); !ok) return ok;
  if (!words.element_strides.empty()) {
    const std::string what = shown(words, element_strides_member);
    if (auto ok = read_list(what, words.element_strides, rank, rank, answer.spec.element_stride); !ok) return ok;
  }
  if (words.strides.empty()) {
    derive_strides(answer);
    return {};
  }
  return read_list(shown(words, strides_member), words.strides, rank - 1, rank, answer.spec.global_stride_bytes);
}

outcome<void> read_address(const spec_words& words, spec_answer& answer) {
  if (words.address.empty()) {
    answer.spec.global_address = assumed_address;
    answer.notes.push_back(fmt::format("address {:#x}", assumed_address));
    return {};
  }
  const auto address = read_number(shown(words, address_member), words.address);
  if (!address) return refusal{address.error()};
  answer.spec.global_address = *address;
  return {};
}

}  // namespace

outcome<spec_answer> understand(const spec_words& words) {
  if (words.type.empty()) return refuse("{}: must be given", shown(words, type_member));
  spec_answer answer;
  if (auto ok = read_modes(words, answer.spec); !ok) return refusal{ok.error()};
  if (auto ok = read_address(words, answer); !ok) return refusal{ok.error()};
  if (auto ok = read_extents(words, answer); !ok) return refusal{ok.error()};
  return answer;
}

namespace {

/// Returns the decimal number that `text` is, and nothing else.
std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns the digits of a version: without nvcc's "sm_" or "compute_", and without its "a" or "f"
/// for one GPU or family.
std::string_view version_digits(std::string_view text) {
  for (const std::string_view prefix : {"sm_", "compute_"}) {
    if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  }
  if (text.ends_with('a') || text.ends_with('f')) text.remove_suffix(1);
  return text;
}

/// 90 for "9.0", "90" and "9", 120 for "12": what is below 20 stands for a major version alone.
std::optional<std::uint64_t> capability_of(std::string_view digits) {
  constexpr std::uint64_t first_with_minor = 20;
  const std::size_t dot = digits.find('.');
  const auto major = number_in(digits.substr(0, dot));
  if (!major || *major > 999) return std::nullopt;
  if (dot == std::string_view::npos) return *major < first_with_minor ? 10 * *major : *major;
  const auto minor = number_in(digits.substr(dot + 1));
  if (!minor || *minor > 9 || *major > 99) return std::nullopt;
  return 10 * *major + *minor;
}

}  // namespace

outcome<device_limits> read_compute_capability(const std::string& text) {
  const auto capability = capability_of(version_digits(text));
  if (!capability) return refuse("compute-capability: '{}' is not a version such as 9.0, 90 or sm_90a", text);
  if (*capability < first_compute_capability) {
    return refuse("compute-capability: {} has no tensor maps, {}.{} is the first with them", text,
                  first_compute_capability / 10, first_compute_capability % 10);
  }
  device_limits limits = hopper_limits();
  limits.compute_capability = static_cast<std::uint32_t>(*capability);
  return limits;
}

}  // namespace tmap::tool
