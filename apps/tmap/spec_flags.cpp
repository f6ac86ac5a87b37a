// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/spec_flags.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace tmap::tool {
namespace {

/// CLI11 by itself would read -1 as a huge number.
template <class Number>
std::string why_no_number(const std::string& word) {
  Number value{};
  const char* end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, value);
  if (read.ec == std::errc{} && read.ptr == end) return {};
  return fmt::format("'{}' is not a whole number from {} to {}", word, std::numeric_limits<Number>::min(),
                     std::numeric_limits<Number>::max());
}

template <class Number>
CLI::Option* add_number(CLI::App& command, const char* flag, std::optional<Number>& number, const char* help) {
  return command.add_option(flag, number, help)->type_name("N")->check(why_no_number<Number>);
}

template <class Number>
CLI::Option* add_numbers(CLI::App& command, const char* flag, std::vector<Number>& numbers, const char* help) {
  return command.add_option(flag, numbers, help)->delimiter(',')->type_name("N,N")->check(why_no_number<Number>);
}

}  // namespace

std::vector<CLI::Option*> add_spec_flags(CLI::App& command, spec_words& words) {
  const auto add_word = [&](const char* flag, std::string& word, const char* help) {
    return command.add_option(flag, word, help)->type_name("WORD");
  };
  return {
      add_word("--type", words.type, "Element type: u8, u16, u32, i32, u64, i64, f16, f32, f64, bf16, tf32 and others"),
      add_numbers(command, "--dims", words.dims, "Tensor dimensions, innermost first: 4096,128"),
      add_numbers(command, "--strides", words.strides, "Bytes from row to row, and so on; packed when left out"),
      add_numbers(command, "--box", words.box, "Box dimensions, innermost first: 64,32"),
      add_numbers(command, "--element-strides", words.element_strides, "Steps inside the box; 1 when left out"),
      add_word("--interleave", words.interleave, "none, 16B or 32B"),
      add_word("--swizzle", words.swizzle, "none, 32B, 64B or 128B"),
      add_word("--l2", words.l2, "L2 promotion: none, 64B, 128B or 256B"),
      add_word("--fill", words.fill, "Elements outside the tensor read as zero or nan"),
      add_word("--address", words.address, "Device address, decimal or 0x hexadecimal"),
      add_numbers(command, "--lower", words.lower, "im2col: lower corner of the box, W first; may be negative"),
      add_numbers(command, "--upper", words.upper, "im2col: upper corner of the box, W first; may be negative"),
      add_number(command, "--channels", words.channels, "im2col: channels per pixel"),
      add_number(command, "--pixels", words.pixels, "im2col: pixels per column"),
  };
}

}  // namespace tmap::tool
