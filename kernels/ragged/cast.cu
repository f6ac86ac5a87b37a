// SPDX-License-Identifier: Apache-2.0
#include "kernels/ragged/segment_pipeline.cuh"
#include "kernels/ragged/segment_rows.cuh"
#include "kernels/values/value_words.cuh"

namespace tmap::kernels {
namespace {

constexpr std::uint32_t source_bytes = 8192;  // of a piece

/// One unit of the destination: as many numbers as have 16 bytes.
template <value_type To>
inline constexpr std::uint32_t unit_values = 16 / sizeof(value_word<To>);

/// `Count` numbers in shared memory, read in units as wide as they and their alignment allow.
template <value_type From, std::uint32_t Count>
struct source_values {
  using word = value_word<From>;
  static constexpr std::uint32_t bytes = Count * sizeof(word);
  static constexpr std::uint32_t width = bytes < 16 ? bytes : 16;
  using wide = std::conditional_t<width == 16, uint4, std::conditional_t<width == 8, uint2, std::uint32_t>>;

  alignas(16) word words[Count];

  __device__ source_values(const word* from, bool is_aligned) {
    if (is_aligned) {
#pragma unroll
      for (std::uint32_t i = 0; i < bytes / width; ++i) {
        reinterpret_cast<wide*>(words)[i] = reinterpret_cast<const wide*>(from)[i];
      }
    } else {
#pragma unroll
      for (std::uint32_t i = 0; i < Count; ++i) words[i] = from[i];
    }
  }
};

template <value_type To>
struct cast {
  using arguments = ragged::cast_values;
  static constexpr std::uint32_t warps = 8;
  static constexpr std::uint32_t stages = 3;
  static constexpr std::uint32_t inputs = 1;
  /// A line of the destination may hold as many elements as bytes, and those of the source have
  /// four at most.
  static constexpr std::uint32_t stage_bytes = source_bytes + 4 * line_bytes + stage_alignment;
  static constexpr std::uint32_t scratch_bytes = 0;
  static constexpr row_cuts cuts = row_cuts::at_lines;

  const ragged::cast_values& values;

  __device__ cast(const planned_work&, const arguments& given, unsigned char*) : values(given) {}
  __device__ piece_steps steps(const planned_work& work) const { return share_of_warp<warps>(work); }
  __device__ element_sizes sizes() const { return {ragged::value_bytes(values.from), ragged::value_bytes(To)}; }
  __device__ static std::uint32_t reach() { return 0; }

  __device__ void staged(const segment& s, const unsigned char* row, const unsigned char*, std::uint32_t pitch) const {
    const float scale = values.scales == nullptr ? values.scale : values.scales[s.tensor];
    const float shift = values.shifts == nullptr ? values.shift : values.shifts[s.tensor];
    with_type(values.from, [&](auto from) {
      const auto* const x = reinterpret_cast<const value_word<from()>*>(row);
      convert_rows<from()>(s, x, pitch, scale, shift);
    });
  }

  template <value_type From>
  __device__ static void convert_rows(const segment& s, const value_word<From>* x, std::uint32_t pitch, float scale,
                                      float shift) {
    constexpr std::uint32_t count = unit_values<To>;
    using source_unit = source_values<From, count>;
    const row_units cut(s.destination, s.columns, sizeof(value_word<To>));
    const bool is_aligned = reinterpret_cast<std::uint64_t>(x + cut.head) % source_unit::width == 0;
    const auto unit = [&](std::uint32_t r, std::uint32_t column) {
      const source_unit source(x + r * pitch + column, is_aligned);
      alignas(16) value_word<To> made[count];
#pragma unroll
      for (std::uint32_t i = 0; i < count; ++i) {
        made[i] = from_float<To>(fmaf(to_float<From>(source.words[i]), scale, shift));
      }
      *reinterpret_cast<uint4*>(place(s, r, column)) = *reinterpret_cast<const uint4*>(made);
    };
    visit_units(s, sizeof(value_word<To>), unit, [&](std::uint32_t r, std::uint32_t column) {
      *place(s, r, column) = from_float<To>(fmaf(to_float<From>(x[r * pitch + column]), scale, shift));
    });
  }

  __device__ void direct(const segment& s) const {
    const float scale = values.scales == nullptr ? values.scale : values.scales[s.tensor];
    const float shift = values.shifts == nullptr ? values.shift : values.shifts[s.tensor];
    with_type(values.from, [&](auto from) {
      spread(s.rows, s.columns, [&](std::uint32_t row, std::uint32_t column) {
        const auto* const x = reinterpret_cast<const value_word<from()>*>(s.source + row * s.source_pitch);
        *place(s, row, column) = from_float<To>(fmaf(to_float<from()>(x[column]), scale, shift));
      });
    });
  }

  __device__ static value_word<To>* place(const segment& s, std::uint32_t row, std::uint32_t column) {
    return reinterpret_cast<value_word<To>*>(s.destination + row * s.destination_pitch) + column;
  }
};

}  // namespace

piece_rule cast_pieces(const ragged::cast_values& values, std::uint32_t rank) {
  const std::uint32_t elements = source_bytes / ragged::value_bytes(values.from);
  return {elements, {box_columns, elements / box_columns, 1, 1, 1}, 0, rank};
}

cudaError_t launch_cast(const planned_work& work, const ragged::cast_values& values, const device_shape& device,
                        cudaStream_t stream) {
  return with_type(values.to, [&](auto to) { return launch_segments<cast<to()>>(work, values, device, stream); });
}

}  // namespace tmap::kernels
