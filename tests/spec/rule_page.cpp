// SPDX-License-Identifier: Apache-2.0
#include "spec/rule_page.hpp"

#include <tmap/element_type.hpp>
#include <tmap/reduction.hpp>
#include <tmap/rule_info.hpp>

#include <fmt/format.h>

namespace tmap::testing {
namespace {

struct field_words {
  const char* name;
  const char* driver;
  const char* ptx;
  const char* meaning;
};

constexpr const char* nothing = "-";

constexpr field_words fields[] = {
    {"global_address", "globalAddress", ".global_address",
     "bytes; a multiple of 16 (32 with the 32-byte interleave), below 2^57"},
    {"type", "tensorDataType", ".elemtype (other numbers from 8 to 10)",
     "0 to 12; to 15 from compute capability 10.0 on"},
    {"rank", "tensorRank", ".rank (rank - 1)", "1 to 5"},
    {"global_dim[i]", "globalDim[i]", ".global_dim, ord i",
     "elements (units of 16 or 32 bytes along dimension 0 of an interleaved map); 1 to 2^31"},
    {"global_stride_bytes[i]", "globalStrides[i]", ".global_stride, ord i",
     "bytes from one index of dimension i + 1 to the next; a multiple of 16, 0 to 2^40 - 16"},
    {"box_dim[i]", "boxDim[i]", ".box_dim, ord i", "elements (units); 1 to 256"},
    {"element_stride[i]", "elementStrides[i]", ".element_stride, ord i", "elements (units); 1 to 8"},
    {"interleave", "interleave", ".interleave_layout", "0 to 2"},
    {"swizzle", "swizzle", ".swizzle_mode (and .swizzle_atomicity)", "0 to 3; to 6 from compute capability 10.0 on"},
    {"l2_promotion", "l2Promotion", nothing, "0 to 3; cannot be replaced on the device"},
    {"oob_fill", "oobFill", ".fill_mode", "0, or 1 for floating-point types"},
    {"lower_corner[i]", "pixelBoxLowerCorner[i]", nothing, "elements, W first; im2col only"},
    {"upper_corner[i]", "pixelBoxUpperCorner[i]", nothing, "elements, W first; im2col only"},
    {"lower_corner_w", "pixelBoxLowerCornerWidth", nothing, "elements; im2col-wide only"},
    {"upper_corner_w", "pixelBoxUpperCornerWidth", nothing, "elements; im2col-wide only"},
    {"channels_per_pixel", "channelsPerPixel", nothing, "elements; 1 to 256; im2col and im2col-wide"},
    {"pixels_per_column", "pixelsPerColumn", nothing, "elements; 1 to 1024; im2col and im2col-wide"},
    {"mode", "mode", nothing, "0 or 1; im2col-wide only"},
};

const char* stage_words(rule_stage stage) {
  switch (stage) {
    case rule_stage::spec: return "`validate`";
    case rule_stage::type: return "the type";
    case rule_stage::encode_call: return "the encode call";
    case rule_stage::use: return "each use";
  }
  return "?";
}

std::string code(const char* text) {
  return text == nothing ? std::string{text} : fmt::format("`{}`", text);
}

std::string field_table() {
  std::string text =
      "| tmap | units and range | driver parameter | `tensormap.replace` field |\n"
      "|---|---|---|---|\n";
  for (const field_words& f : fields) {
    text += fmt::format("| {} | {} | {} | {} |\n", code(f.name), f.meaning, code(f.driver), code(f.ptx));
  }
  return text;
}

std::string reductions_text(element_type type) {
  constexpr const char* names[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  std::string text;
  for (std::uint32_t op = 0; op < 8; ++op) {
    if ((reductions_of(type).bits() >> op & 1) != 0) text += fmt::format("{}{}", text.empty() ? "" : " ", names[op]);
  }
  return text.empty() ? nothing : text;
}

std::string type_table() {
  std::string text = "| number | type | bits | may fill with NaN | reductions |\n|---|---|---|---|---|\n";
  for (std::uint32_t i = 0; i < element_type_count; ++i) {
    const auto type = static_cast<element_type>(i);
    text += fmt::format("| {} | `{}` | {} | {} | {} |\n", i, name(type), element_bits(type),
                        is_floating_point(type) ? "yes" : "no", reductions_text(type));
  }
  return text;
}

std::string rule_rows() {
  std::string text =
      "| rule | what must hold | breaking it is | kept by | the driver refuses it | source |\n"
      "|---|---|---|---|---|---|\n";
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const rule_info& row = info(static_cast<rule>(i));
    const char* refuses = row.stage == rule_stage::use ? nothing : row.driver_refuses ? "yes" : "no";
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", row.name, row.sentence,
                        row.level == severity::error ? "an error" : "a warning", stage_words(row.stage), refuses,
                        row.source);
  }
  return text;
}

bool is_refused_by_tmap_alone(const rule_info& row) {
  return row.level == severity::error && row.stage != rule_stage::use && !row.driver_refuses;
}

std::string deviation_rows() {
  std::string text = "| rule | what must hold, and why the driver's yes is not enough | source |\n|---|---|---|\n";
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const rule_info& row = info(static_cast<rule>(i));
    if (is_refused_by_tmap_alone(row)) text += fmt::format("| {} | {} | {} |\n", row.name, row.sentence, row.source);
  }
  return text;
}

/// Returns the warnings, which do not affect a verdict, as "T16, T35".
std::string warning_names() {
  std::string text;
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const rule_info& row = info(static_cast<rule>(i));
    if (row.level == severity::warning) text += fmt::format("{}{}", text.empty() ? "" : ", ", row.name);
  }
  return text;
}

}  // namespace

std::string rule_page() {
  return R"(<!-- Made by tests/spec/rule_page.cpp from lib/spec/rule_table.hpp. Change the table, then run the
test rule_page.* with TMAP_WRITE_DOCS=1. -->
# Fields and rules of a tensor map

This page lists the fields of a tensor map and the rules that a spec must keep. Errors and
`tmap explain` name rules by the ids below.

## Fields

Dimensions are innermost first. The driver's `CUtensorMap...` enumerators have the same numbers as
those of tmap. libcu++ has a function `cuda::ptx::tensormap_replace_...` for each field of
`tensormap.replace`.

)" + field_table() +
         R"(
## Element types

There is no signed 8- or 16-bit type, no 8-bit float and no bool. Use the unsigned type of the same
width.

)" + type_table() +
         R"(
## Rules

| first letter | what the rule is for |
|---|---|
| T | every tiled map, and im2col maps where it applies |
| I | im2col maps |
| W | im2col-wide maps |
| U | the instruction that uses the map |

"The driver refuses it" states what `cuTensorMapEncode...` does with a spec that breaks this rule
alone. A *no* next to an error is a map that encodes, and may fail when it is used.

)" + rule_rows() +
         R"(
## Where the driver's verdict differs

The driver refuses nothing that tmap accepts. It accepts a spec that tmap refuses if all the rules
it breaks are among these:

)" + deviation_rows() +
         "\nThe warnings (" + warning_names() +
         R"() are no part of a verdict: both sides accept such a spec.

The driver refuses a dim of 0 (T09). A patch with such a dim is no error for the batch encoder. Its
map is the safe empty one, and its status is `empty`. `tests/verdicts` compares host, device and
driver.
)";
}

}  // namespace tmap::testing
