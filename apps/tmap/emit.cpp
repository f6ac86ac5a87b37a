// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/emit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

namespace tmap::tool {
namespace {

constexpr const char* cpp_types[] = {"u8",       "u16",       "u32",        "i32",       "u64",     "i64",
                                     "f16",      "f32",       "f64",        "bf16",      "f32_ftz", "tf32",
                                     "tf32_ftz", "u4_align8", "u4_align16", "u6_align16"};
constexpr const char* driver_types[] = {
    "UINT8",   "UINT16",   "UINT32",      "INT32",    "UINT64",       "INT64",        "FLOAT16",       "FLOAT32",
    "FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
constexpr const char* cpp_interleaves[] = {"none", "bytes_16", "bytes_32"};
constexpr const char* driver_interleaves[] = {"NONE", "16B", "32B"};
constexpr const char* cpp_swizzles[] = {
    "none", "bytes_32", "bytes_64", "bytes_128", "bytes_128_atom_32", "bytes_128_atom_32_flip_8", "bytes_128_atom_64"};
constexpr const char* driver_swizzles[] = {
    "NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B", "128B_ATOM_64B"};
constexpr const char* cpp_promotions[] = {"none", "bytes_64", "bytes_128", "bytes_256"};
constexpr const char* driver_promotions[] = {"NONE", "L2_64B", "L2_128B", "L2_256B"};

template <class Enum, std::size_t Count>
const char* word(const char* const (&words)[Count], Enum value) {
  return words[static_cast<std::size_t>(value)];  // legal specs only
}

template <class Number>
std::string list(const Number* numbers, std::uint32_t count) {
  return fmt::format("{}", fmt::join(std::span{numbers, count}, ", "));
}

std::uint32_t spatial_rank(const any_spec& any) {
  return any.spec.rank - 2;
}

bool has_steps(const tensor_spec& spec) {
  return std::any_of(spec.element_stride, spec.element_stride + spec.rank, [](std::uint32_t s) { return s != 1; });
}

/// Assigns each value of an array of the spec.
template <class Number>
std::string assignments(const char* array, const Number* numbers, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text += fmt::format("  {}[{}] = {};\n", array, i, numbers[i]);
  return text;
}

std::string cpp_tensor(const tensor_spec& spec) {
  std::string text = "  tmap::tensor_spec spec;\n  spec.global_address = global_address;\n";
  text +=
      fmt::format("  spec.type = tmap::element_type::{};\n  spec.rank = {};\n", word(cpp_types, spec.type), spec.rank);
  text += assignments("spec.global_dim", spec.global_dim, spec.rank);
  text += assignments("spec.global_stride_bytes", spec.global_stride_bytes, spec.rank - 1);
  if (has_steps(spec)) text += assignments("spec.element_stride", spec.element_stride, spec.rank);
  if (spec.interleave != interleave::none) {
    text += fmt::format("  spec.interleave = tmap::interleave::{};\n", word(cpp_interleaves, spec.interleave));
  }
  if (spec.swizzle != swizzle::none) {
    text += fmt::format("  spec.swizzle = tmap::swizzle::{};\n", word(cpp_swizzles, spec.swizzle));
  }
  if (spec.l2_promotion != l2_promotion::none) {
    text += fmt::format("  spec.l2_promotion = tmap::l2_promotion::{};\n", word(cpp_promotions, spec.l2_promotion));
  }
  if (spec.oob_fill != oob_fill::zero) text += "  spec.oob_fill = tmap::oob_fill::nan;\n";
  return text;
}

std::string cpp_window(const any_spec& any) {
  const im2col_window& window = *any.window;
  return "  tmap::im2col_spec whole;\n  whole.tensor = spec;\n" +
         assignments("whole.lower_corner", window.lower_corner, spatial_rank(any)) +
         assignments("whole.upper_corner", window.upper_corner, spatial_rank(any)) +
         fmt::format("  whole.channels_per_pixel = {};\n  whole.pixels_per_column = {};\n", window.channels_per_pixel,
                     window.pixels_per_column);
}

template <class Number>
std::string driver_array(const char* type, const char* name, const Number* numbers, std::uint32_t count) {
  return fmt::format("  const {} {}[] = {{{}}};\n", type, name, list(numbers, count));
}

/// Returns the arguments after the box or window, which both calls share.
std::string driver_modes(const tensor_spec& spec) {
  return fmt::format(
      "                                  CU_TENSOR_MAP_INTERLEAVE_{}, CU_TENSOR_MAP_SWIZZLE_{},\n"
      "                                  CU_TENSOR_MAP_L2_PROMOTION_{}, CU_TENSOR_MAP_FLOAT_OOB_FILL_{});\n",
      word(driver_interleaves, spec.interleave), word(driver_swizzles, spec.swizzle),
      word(driver_promotions, spec.l2_promotion), spec.oob_fill == oob_fill::zero ? "NONE" : "NAN_REQUEST_ZERO_FMA");
}

std::string driver_window(const any_spec& any) {
  return driver_array("int", "lower_corner", any.window->lower_corner, spatial_rank(any)) +
         driver_array("int", "upper_corner", any.window->upper_corner, spatial_rank(any));
}

std::string driver_call(const any_spec& any) {
  const char* const function = any.window ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled";
  const std::string shape = any.window ? fmt::format("lower_corner, upper_corner, {}, {}, element_stride",
                                                     any.window->channels_per_pixel, any.window->pixels_per_column)
                                       : "box_dim, element_stride";
  return fmt::format(
             "  return {}(map, CU_TENSOR_MAP_DATA_TYPE_{}, {}, global_address, global_dim,\n"
             "                                  global_stride_bytes, {},\n",
             function, word(driver_types, any.spec.type), any.spec.rank, shape) +
         driver_modes(any.spec);
}

template <class Number>
std::string tuple(const Number* numbers, std::uint32_t count) {
  return fmt::format("({}{})", list(numbers, count), count == 1 ? "," : "");
}

}  // namespace

std::string cpp_code(const any_spec& any) {
  const char* const type = any.window ? "im2col_spec" : "tensor_spec";
  std::string text = fmt::format(
      "#include <tmap/encode.hpp>\n\n"
      "tmap::{} make_spec(tmap::device_address global_address) {{\n",
      type);
  text += cpp_tensor(any.spec);
  text += any.window ? cpp_window(any) + "  return whole;\n"
                     : assignments("spec.box_dim", any.spec.box_dim, any.spec.rank) + "  return spec;\n";
  return text +
         "}\n\n"
         "// Needs the CUDA driver; fails with a sentence (tmap::to_string) where there is none.\n"
         "tmap::result<tmap::tensor_map> make_map(tmap::device_address global_address) {\n"
         "  return tmap::encode(make_spec(global_address));\n"
         "}\n";
}

std::string driver_code(const any_spec& any) {
  const tensor_spec& spec = any.spec;
  // The driver takes an array of strides even for rank 1.
  const std::uint32_t strides = std::max(spec.rank - 1, 1u);
  return "#include <cuda.h>\n\n"
         "CUresult make_map(CUtensorMap* map, void* global_address) {\n" +
         driver_array("cuuint64_t", "global_dim", spec.global_dim, spec.rank) +
         driver_array("cuuint64_t", "global_stride_bytes", spec.global_stride_bytes, strides) +
         (any.window ? driver_window(any) : driver_array("cuuint32_t", "box_dim", spec.box_dim, spec.rank)) +
         driver_array("cuuint32_t", "element_stride", spec.element_stride, spec.rank) + driver_call(any) + "}\n";
}

outcome<std::string> python_code(const any_spec& any) {
  if (any.window) return refuse("--emit: tmap's Python module has tiled specs only, not im2col");
  const tensor_spec& spec = any.spec;
  std::string modes;
  if (spec.rank > 1) modes += fmt::format(", strides={}", tuple(spec.global_stride_bytes, spec.rank - 1));
  if (has_steps(spec)) modes += fmt::format(", element_strides={}", tuple(spec.element_stride, spec.rank));
  if (spec.interleave != interleave::none) modes += fmt::format(", interleave=\"{}\"", name(spec.interleave));
  if (spec.swizzle != swizzle::none) modes += fmt::format(", swizzle=\"{}\"", name(spec.swizzle));
  if (spec.l2_promotion != l2_promotion::none) modes += fmt::format(", l2_promotion=\"{}\"", name(spec.l2_promotion));
  if (spec.oob_fill != oob_fill::zero) modes += ", oob_fill=\"nan\"";
  return fmt::format(
      "import tmap\n\n\n"
      "def make_spec(address: int) -> tmap.TensorSpec:\n"
      "    return tmap.TensorSpec(\"{}\", dims={}, box={}, address=address{})\n\n\n"
      "def make_map(address: int) -> bytes:\n"
      "    return tmap.encode(make_spec(address))  # needs the CUDA driver\n",
      name(spec.type), tuple(spec.global_dim, spec.rank), tuple(spec.box_dim, spec.rank), modes);
}

}  // namespace tmap::tool
