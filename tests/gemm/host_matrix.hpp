// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/grouped_gemm.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "support/run_seed.hpp"

// Holds matrices in host memory, with the same bytes that they will have in device memory.

namespace tmap::gemm::testing {

/// The type of a matrix's elements.
enum class number_type { bf16, f16, f8_e4m3, f32, f8_e5m2 };

/// Returns the type of B.
inline number_type number_of(operand_type type) {
  switch (type) {
    case operand_type::bf16: return number_type::bf16;
    case operand_type::f16: return number_type::f16;
    default: return number_type::f8_e4m3;
  }
}
inline number_type number_of_a(operand_type type) {
  return type == operand_type::f8_e5m2 ? number_type::f8_e5m2 : number_of(type);
}
/// Returns the type of C.
inline number_type output_of(operand_type type, result_type c_type = result_type::like_operands) {
  switch (c_type) {
    case result_type::f32: return number_type::f32;
    case result_type::f8_e4m3: return number_type::f8_e4m3;
    default: return type == operand_type::f16 ? number_type::f16 : number_type::bf16;
  }
}
inline std::uint64_t number_bytes(number_type type) {
  switch (type) {
    case number_type::f32: return 4;
    case number_type::f8_e4m3:
    case number_type::f8_e5m2: return 1;
    default: return 2;
  }
}
inline constexpr std::uint64_t most_number_bytes = 4;

template <class T>
T read_as(const unsigned char* from) {
  T bits{};
  std::memcpy(&bits, from, sizeof(bits));
  return bits;
}

inline float decode(number_type type, const unsigned char* from) {
  switch (type) {
    case number_type::bf16: return __bfloat162float(__nv_bfloat16(__nv_bfloat16_raw{read_as<std::uint16_t>(from)}));
    case number_type::f16: return __half2float(__half(__half_raw{read_as<std::uint16_t>(from)}));
    case number_type::f32: return read_as<float>(from);
    case number_type::f8_e5m2: return __half2float(__half(__nv_cvt_fp8_to_halfraw(*from, __NV_E5M2)));
    default: return __half2float(__half(__nv_cvt_fp8_to_halfraw(*from, __NV_E4M3)));
  }
}

inline void encode(number_type type, double value, unsigned char* to) {
  const auto nearest = static_cast<float>(value);
  std::uint16_t bits{};
  switch (type) {
    case number_type::bf16: bits = static_cast<__nv_bfloat16_raw>(__double2bfloat16(value)).x; break;
    case number_type::f16: bits = static_cast<__half_raw>(__double2half(value)).x; break;
    case number_type::f32: std::memcpy(to, &nearest, sizeof(nearest)); return;
    case number_type::f8_e5m2: *to = __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E5M2); return;
    default: *to = __nv_cvt_double_to_fp8(value, __NV_SATFINITE, __NV_E4M3); return;
  }
  std::memcpy(to, &bits, sizeof(bits));
}

/// Returns the largest relative distance of a number to the nearest number of the type.
inline double rounding_of(number_type type) {
  switch (type) {
    case number_type::bf16: return 0x1p-8;
    case number_type::f32: return 0x1p-24;
    default: return 0x1p-11;
  }
}

/// No call may write the bytes before and after each matrix, nor depend on them.
inline constexpr std::uint64_t margin_bytes = 8192;
/// Is NaN in every type of operand, so that a read outside a matrix shows.
inline constexpr unsigned char nan_byte = 0xff;
/// Fills outputs before a call.
inline constexpr unsigned char poison_byte = 0xa5;

class host_matrix {
 public:
  host_matrix() = default;
  /// `gap` elements after each row do not belong to the matrix. All bytes are `filler` at first.
  host_matrix(number_type type, std::uint64_t rows, std::uint64_t columns, std::uint64_t gap, unsigned char filler)
      : type_(type),
        rows_(rows),
        columns_(columns),
        pitch_((columns + gap) * number_bytes(type)),
        bytes_(2 * margin_bytes + rows * pitch_, filler) {}
  host_matrix(operand_type type, std::uint64_t rows, std::uint64_t columns, std::uint64_t gap, unsigned char filler)
      : host_matrix(number_of(type), rows, columns, gap, filler) {}

  number_type type() const { return type_; }
  std::uint64_t rows() const { return rows_; }
  std::uint64_t columns() const { return columns_; }
  std::uint64_t pitch_bytes() const { return pitch_; }
  const std::vector<unsigned char>& bytes() const { return bytes_; }
  std::vector<unsigned char>& bytes() { return bytes_; }

  std::uint64_t place_of(std::uint64_t row, std::uint64_t column) const {
    return margin_bytes + row * pitch_ + column * number_bytes(type_);
  }
  float at(std::uint64_t row, std::uint64_t column) const { return decode(type_, &bytes_[place_of(row, column)]); }
  void set(std::uint64_t row, std::uint64_t column, double value) {
    encode(type_, value, &bytes_[place_of(row, column)]);
  }

 private:
  number_type type_{};
  std::uint64_t rows_{};
  std::uint64_t columns_{};
  std::uint64_t pitch_{};
  std::vector<unsigned char> bytes_;
};

enum class input_kind {
  normal,
  integers,  ///< -2 to 2: sums of them, and their sums in f32, are exact
  /// Rows begin with a large number and 127 zeros, and the rest are ones. Sums in f32 are exact,
  /// but sums of 13 bits would lose everything except the large number's square.
  outweighed,
};

/// Returns whether results must be the nearest numbers of their type.
inline bool is_exact(input_kind kind) {
  return kind != input_kind::normal;
}

class value_source {
 public:
  /// Draws different values for each number, and other values in each run.
  value_source(input_kind kind, std::uint64_t number) : kind_(kind), random_(tmap::testing::run_random(number)) {}
  input_kind kind() const { return kind_; }

  double next() {
    if (kind_ == input_kind::integers) return static_cast<double>(random_() % 5) - 2;
    return normal_(random_);
  }
  /// Returns a factor that keeps integers exact.
  float next_scale() { return std::ldexp(1.0f, static_cast<int>(random_() % 3) - 1); }
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void fill(host_matrix& matrix, std::uint64_t first_row, std::uint64_t end_row) {
    for (std::uint64_t row = first_row; row < end_row; ++row) {
      for (std::uint64_t column = 0; column < matrix.columns(); ++column) matrix.set(row, column, next_of(column));
    }
  }

 private:
  double next_of(std::uint64_t column) {
    if (kind_ != input_kind::outweighed) return next();
    return column == 0 ? 256 : column < 128 ? 0 : 1;
  }

  input_kind kind_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
};

/// Holds an operand of which each line, along K or across it, is contiguous. Lines along K are
/// those of a `host_matrix`. All bytes are NaN until they are filled.
class stored_operand {
 public:
  stored_operand() = default;
  stored_operand(operand_type type, bool is_along, std::uint64_t lines, std::uint64_t k, std::uint64_t gap)
      : is_along_(is_along),
        matrix_(number_of_a(type), is_along ? lines : k, is_along ? k : lines, is_along ? gap : gap_across(lines, gap),
                nan_byte) {}

  const host_matrix& matrix() const { return matrix_; }
  float at(std::uint64_t line, std::uint64_t i) const { return is_along_ ? matrix_.at(line, i) : matrix_.at(i, line); }

  /// Fills lines, all of K.
  void fill(value_source& values, std::uint64_t first, std::uint64_t count) {
    if (is_along_) return values.fill(matrix_, first, first + count);
    for (std::uint64_t i = 0; i < matrix_.rows(); ++i) fill_part(values, i, first, count);
  }
  /// Fills elements of K, in all lines.
  void fill_k(value_source& values, std::uint64_t first, std::uint64_t count) {
    if (!is_along_) return values.fill(matrix_, first, first + count);
    for (std::uint64_t line = 0; line < matrix_.rows(); ++line) fill_part(values, line, first, count);
  }

 private:
  /// Returns the gap that makes the pitch a multiple of 16 bytes.
  static std::uint64_t gap_across(std::uint64_t columns, std::uint64_t gap) { return gap + (16 - columns % 16) % 16; }

  void fill_part(value_source& values, std::uint64_t row, std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) matrix_.set(row, i, values.next());
  }

  bool is_along_{true};
  host_matrix matrix_;
};

}  // namespace tmap::gemm::testing
