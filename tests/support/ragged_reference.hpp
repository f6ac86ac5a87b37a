// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ragged batches in host memory and simple, correct implementations of moving them.
// ragged_upload.hpp copies the batches to a device, and ragged_values_reference.hpp has the results
// of computing. Every test of the operations compares with these. `expect_bytes` compares the whole
// memory of a side, including the bytes around every tensor.

#include <tmap/ragged.hpp>
#include <tmap/tensor_batch.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "support/random_spec.hpp"

namespace tmap::testing {

/// States how the tensors of a side are described to the library.
enum class source_form : std::uint32_t {
  array,
  columns,
  packed_columns,  ///< null stride arrays
  compact,
  rows32_ends,
  rows32_prefix,
  rows32_sizes,
  rows64_ends,
  rows64_prefix,
  rows64_sizes,
};
inline constexpr std::uint32_t source_forms = 10;
constexpr bool is_rows(source_form form) {
  return form >= source_form::rows32_ends;
}

/// Holds the dims of one tensor, innermost first; 1 beyond the rank.
struct extents {
  std::uint64_t dim[max_rank]{1, 1, 1, 1, 1};
  std::uint64_t elements() const { return dim[0] * dim[1] * dim[2] * dim[3] * dim[4]; }
};

/// Calls `use(index)` for every element, dim 0 first; `index` has `max_rank` numbers.
template <class Use>
void for_each_element(const extents& shape, const Use& use) {
  std::uint64_t at[max_rank]{};
  for (std::uint64_t left = shape.elements(); left > 0; --left) {
    use(at);
    for (std::uint32_t axis = 0; axis < max_rank && ++at[axis] == shape.dim[axis]; ++axis) at[axis] = 0;
  }
}

/// Holds one tensor in the memory of its side.
struct host_tensor {
  std::uint64_t begin{};  ///< in bytes, from the start of the memory
  extents shape;
  std::uint64_t stride[max_rank - 1]{};  ///< in bytes

  std::uint64_t at(const std::uint64_t* index, std::uint32_t element_bytes) const {
    std::uint64_t offset = begin + index[0] * element_bytes;
    for (std::uint32_t axis = 1; axis < max_rank; ++axis) offset += index[axis] * stride[axis - 1];
    return offset;
  }
};

/// Holds all tensors of one side and their memory. At least 64 unused bytes are around each tensor,
/// except in the row forms, where tensors follow each other.
struct host_batch {
  std::uint32_t element_bytes{};
  std::uint32_t rank{};
  std::vector<host_tensor> tensors;
  std::vector<unsigned char> bytes;

  unsigned char* element(std::uint64_t i, const std::uint64_t* index) {
    return bytes.data() + tensors[i].at(index, element_bytes);
  }
  const unsigned char* element(std::uint64_t i, const std::uint64_t* index) const {
    return bytes.data() + tensors[i].at(index, element_bytes);
  }
};

/// Returns the largest power of two that divides the element's size.
constexpr std::uint32_t element_alignment(std::uint32_t element_bytes) {
  return element_bytes & (~element_bytes + 1);
}

/// States the range of random shapes.
struct shape_range {
  std::uint32_t rank{};
  std::uint64_t count{};
  std::uint64_t max_elements{4096};  ///< per tensor
  bool share_inner{};                ///< all dims except the outermost are the same, as the row forms require
  std::uint64_t empty_one_in{9};     ///< 0 means that none is empty
};

inline extents random_shape(random_source& random, const shape_range& range) {
  extents shape;
  std::uint64_t room = range.max_elements;
  const std::uint32_t first = random.below32(range.rank);
  for (std::uint32_t k = 0; k < range.rank; ++k) {
    const std::uint32_t axis = (first + k) % range.rank;
    const std::uint64_t most = std::max<std::uint64_t>(1, room);
    shape.dim[axis] = 1 + random.below(random.one_in(2) ? most : std::min<std::uint64_t>(most, 8));
    room /= shape.dim[axis];
  }
  return shape;
}

inline std::vector<extents> random_shapes(random_source& random, const shape_range& range) {
  std::vector<extents> shapes;
  const extents shared = random_shape(random, range);
  std::uint64_t inner = 1;
  for (std::uint32_t axis = 0; axis + 1 < range.rank; ++axis) inner *= shared.dim[axis];
  for (std::uint64_t i = 0; i < range.count; ++i) {
    extents shape = random_shape(random, range);
    if (range.share_inner) {
      shape = shared;
      shape.dim[range.rank - 1] = 1 + random.below(std::max<std::uint64_t>(1, range.max_elements / inner));
    }
    const std::uint32_t zero = range.share_inner ? range.rank - 1 : random.below32(range.rank);
    if (range.empty_one_in != 0 && random.one_in(range.empty_one_in)) shape.dim[zero] = 0;
    shapes.push_back(shape);
  }
  return shapes;
}

/// States how loosely a tensor is laid out: beginnings and strides are multiples of `unit`, and
/// there are at most `slack` units between rows.
struct looseness {
  std::uint64_t unit{1};
  std::uint64_t slack{};
};

/// Returns odd, 4-, 16- or 128-byte units, packed or with gaps; never below the element's
/// alignment.
inline looseness random_looseness(random_source& random, std::uint32_t element_bytes) {
  const std::uint64_t unit = random.pick<std::uint64_t>({1, 2, 4, 8, 16, 16, 16, 128});
  return {std::max<std::uint64_t>(unit, element_alignment(element_bytes)), random.one_in(2) ? 0 : random.below(4)};
}

namespace detail {

inline std::uint64_t up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// Sets the strides of a tensor whose rows and slices begin at multiples of the unit. With unit 1
/// and no slack it is packed. Returns the bytes that it spans.
inline std::uint64_t set_strides(host_tensor& tensor, const host_batch& batch, looseness loose, random_source& random) {
  std::uint64_t extent = tensor.shape.dim[0] * batch.element_bytes;
  for (std::uint32_t axis = 1; axis < max_rank; ++axis) {
    const std::uint64_t gap = axis < batch.rank && loose.slack != 0 ? random.below(loose.slack + 1) * loose.unit : 0;
    tensor.stride[axis - 1] = axis < batch.rank && loose.slack != 0 ? up(extent, loose.unit) + gap : extent;
    if (axis < batch.rank && loose.unit >= 16 && loose.slack == 0) tensor.stride[axis - 1] = up(extent, 16);
    extent = tensor.stride[axis - 1] * tensor.shape.dim[axis];
  }
  return extent;
}

inline void append(host_batch& batch, host_tensor tensor, std::uint64_t span, looseness loose, random_source& random) {
  const std::uint64_t start = up(batch.bytes.size() + 64, 256);
  tensor.begin = start + loose.unit * random.below(std::max<std::uint64_t>(1, 256 / loose.unit));
  batch.bytes.resize(tensor.begin + span + 64);
  batch.tensors.push_back(tensor);
}

/// Appends tensors in a row form: they follow each other in one buffer with the same strides.
inline void append_rows(host_batch& batch, const std::vector<extents>& shapes, looseness loose, random_source& random) {
  host_tensor tensor;
  if (!shapes.empty()) tensor.shape = shapes.front();
  tensor.shape.dim[batch.rank - 1] = 1;
  const bool is_packed = batch.rank == 1 || random.one_in(2);
  const std::uint64_t span = set_strides(tensor, batch, is_packed ? looseness{} : loose, random);
  append(batch, tensor, span, loose, random);
  std::uint64_t begin = batch.tensors.front().begin;
  const std::uint64_t pitch = batch.rank == 1 ? batch.element_bytes : tensor.stride[batch.rank - 2];
  batch.tensors.clear();
  for (const extents& shape : shapes) {
    tensor.begin = begin;
    tensor.shape = shape;
    batch.tensors.push_back(tensor);
    begin += pitch * shape.dim[batch.rank - 1];
  }
  batch.bytes.resize(begin + span + 64);
}

}  // namespace detail

/// Returns tensors of these shapes in random bytes, laid out so that `form` can describe them.
inline host_batch lay_out(random_source& random, const std::vector<extents>& shapes, std::uint32_t rank,
                          std::uint32_t element_bytes, source_form form) {
  host_batch batch{element_bytes, rank, {}, {}};
  looseness loose = random_looseness(random, element_bytes);
  if (form == source_form::compact) loose.unit = std::max<std::uint64_t>(16, loose.unit);
  if (is_rows(form)) {
    detail::append_rows(batch, shapes, loose, random);
  } else {
    for (const extents& shape : shapes) {
      host_tensor tensor;
      tensor.shape = shape;
      const looseness rows = form == source_form::packed_columns ? looseness{} : loose;
      const std::uint64_t span = detail::set_strides(tensor, batch, rows, random);
      detail::append(batch, tensor, span, loose, random);
    }
    batch.bytes.resize(batch.bytes.size() + 256);
  }
  for (unsigned char& byte : batch.bytes) byte = static_cast<unsigned char>(random.bits());
  return batch;
}

/// Holds tensors of equal dims at equal distances, as a `dense_batch` describes them.
struct host_dense {
  host_batch batch;
  std::uint64_t pitch{};

  dense_batch described(std::uint64_t address) const {
    dense_batch dense;
    const host_tensor& first = batch.tensors.front();
    dense.address = address + first.begin;
    for (std::uint32_t axis = 0; axis < batch.rank; ++axis) {
      dense.dim[axis] = first.shape.dim[axis];
      if (axis + 1 < batch.rank) dense.stride_bytes[axis] = first.stride[axis];
    }
    dense.tensor_pitch_bytes = pitch;
    return dense;
  }
};

inline host_dense lay_out_dense(random_source& random, const extents& shape, std::uint64_t count, std::uint32_t rank,
                                std::uint32_t element_bytes) {
  host_dense dense{{element_bytes, rank, {}, {}}, 0};
  const looseness loose = random_looseness(random, element_bytes);
  host_tensor tensor;
  tensor.shape = shape;
  const bool is_packed = random.one_in(2);
  const std::uint64_t span = detail::set_strides(tensor, dense.batch, is_packed ? looseness{} : loose, random);
  detail::append(dense.batch, tensor, span, loose, random);
  dense.pitch = is_packed ? span : detail::up(span, loose.unit) + loose.slack * loose.unit;
  for (std::uint64_t i = 1; i < count; ++i) {
    dense.batch.tensors.push_back(dense.batch.tensors.back());
    dense.batch.tensors.back().begin += dense.pitch;
  }
  dense.batch.bytes.resize(dense.batch.bytes.size() + dense.pitch * count + 256);
  for (unsigned char& byte : dense.batch.bytes) byte = static_cast<unsigned char>(random.bits());
  return dense;
}

namespace reference {

/// Sets destination[i] = source[i] for the dims of `shape`.
inline void copy_tensor(const host_batch& source, host_batch& destination, std::uint64_t i, const extents& shape) {
  for_each_element(shape, [&](const std::uint64_t* at) {
    std::memcpy(destination.element(i, at), source.element(i, at), source.element_bytes);
  });
}

inline void copy(const host_batch& source, host_batch& destination) {
  for (std::uint64_t i = 0; i < source.tensors.size(); ++i) {
    copy_tensor(source, destination, i, source.tensors[i].shape);
  }
}

/// Exchanges dims 0 and 1.
inline void transpose(const host_batch& source, host_batch& destination) {
  for (std::uint64_t i = 0; i < source.tensors.size(); ++i) {
    for_each_element(source.tensors[i].shape, [&](const std::uint64_t* at) {
      const std::uint64_t to[max_rank]{at[1], at[0], at[2], at[3], at[4]};
      std::memcpy(destination.element(i, to), source.element(i, at), source.element_bytes);
    });
  }
}

/// Returns the beginnings of packed tensors, and the end of the last one.
inline std::vector<std::int64_t> packed_begins(const host_batch& batch, std::uint64_t alignment) {
  std::vector<std::int64_t> begins{0};
  for (const host_tensor& tensor : batch.tensors) {
    const std::uint64_t bytes = detail::up(tensor.shape.elements() * batch.element_bytes, alignment);
    begins.push_back(begins.back() + static_cast<std::int64_t>(bytes));
  }
  return begins;
}

/// Returns the packed tensors as a batch in `memory`, from byte `start` on.
inline host_batch packed_batch(const host_batch& batch, std::uint64_t alignment, std::uint64_t start,
                               std::vector<unsigned char> memory) {
  const std::vector<std::int64_t> begins = packed_begins(batch, alignment);
  host_batch packed{batch.element_bytes, batch.rank, batch.tensors, std::move(memory)};
  for (std::uint64_t i = 0; i < packed.tensors.size(); ++i) {
    host_tensor& tensor = packed.tensors[i];
    tensor.begin = start + static_cast<std::uint64_t>(begins[i]);
    std::uint64_t extent = batch.element_bytes;
    for (std::uint32_t axis = 0; axis + 1 < max_rank; ++axis) {
      extent *= tensor.shape.dim[axis];
      tensor.stride[axis] = extent;
    }
  }
  return packed;
}

/// Copies the corner that both have and fills the rest of the dense tensor. If `is_bad[i]`, copies
/// nothing; `is_bad` may be empty.
inline void pad(const host_batch& source, host_batch& dense, const ragged::fill_value& fill,
                const std::vector<bool>& is_bad = {}) {
  for (std::uint64_t i = 0; i < source.tensors.size(); ++i) {
    const extents& shape = source.tensors[i].shape;
    for_each_element(dense.tensors[i].shape, [&](const std::uint64_t* at) {
      bool is_inside = is_bad.empty() || !is_bad[i];
      for (std::uint32_t axis = 0; axis < max_rank; ++axis) is_inside = is_inside && at[axis] < shape.dim[axis];
      std::memcpy(dense.element(i, at), is_inside ? source.element(i, at) : fill.bytes, source.element_bytes);
    });
  }
}

/// Copies ragged tensors from the corners of dense ones. Does not copy larger ones.
inline void unpad(const host_batch& dense, host_batch& destination) {
  for (std::uint64_t i = 0; i < destination.tensors.size(); ++i) {
    const extents& shape = destination.tensors[i].shape;
    bool fits = true;
    for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
      fits = fits && shape.dim[axis] <= dense.tensors[i].shape.dim[axis];
    }
    if (fits) copy_tensor(dense, destination, i, shape);
  }
}

}  // namespace reference

/// Compares whole memories byte for byte and names the first difference.
inline void expect_bytes(const std::vector<unsigned char>& expected, const std::vector<unsigned char>& found) {
  ASSERT_EQ(expected.size(), found.size());
  const auto [want, got] = std::mismatch(expected.begin(), expected.end(), found.begin());
  if (want == expected.end()) return;
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < expected.size(); ++i) wrong += expected[i] != found[i];
  ADD_FAILURE() << wrong << " bytes differ, the first at " << want - expected.begin() << ": expected "
                << unsigned{*want} << ", found " << unsigned{*got};
}

}  // namespace tmap::testing
