// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/ragged.h>

#include "lib/torch/call.hpp"
#include "lib/torch/element.hpp"
#include "lib/torch/on_device.hpp"
#include "lib/torch/operators.hpp"

#include <algorithm>
#include <vector>

namespace tmap::pytorch {
namespace {

/// Returns how many tensors the offsets cut.
std::int64_t count_of(const tensor_view& offsets, const std::string& format) {
  const bool is_prefix = format == "prefix";
  if (format != "ends" && !is_prefix && format != "sizes") {
    refuse("format is '" + format + "': it must be one of ends, prefix, sizes");
  }
  if (!are_offsets(offsets)) {
    refuse("offsets are int32 or int64 in one dim, not " + type_name(offsets.type) + " " + shape_text(offsets));
  }
  if (is_prefix && offsets.sizes[0] == 0) refuse("offsets of format prefix have one value at least");
  return offsets.sizes[0] - (is_prefix ? 1 : 0);
}

void check_length(std::int64_t length, const char* name) {
  if (length >= 0) return;
  refuse(std::string(name) + " is " + number_text(length) + ": it must be from 0 to 9223372036854775807");
}

bool is_empty(const std::vector<std::int64_t>& sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

/// Makes a tensor without gaps, of the type and on the device of another.
Tensor new_packed(const std::vector<std::int64_t>& sizes, const tensor_view& like) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t axis = sizes.size(); axis-- > 0; step *= std::max<std::int64_t>(sizes[axis], 1)) {
    strides[axis] = step;
  }
  return new_tensor(sizes, strides, like.type, like);
}

/// Offsets in a format that the library reads, without gaps.
struct cut {
  cut(const Tensor& given, const std::string& format)
      : offsets(packed(format == "sizes" ? running_sum(given) : given)),
        about(describe_offsets(view_of(offsets), format == "prefix" ? TMAP_OFFSETS_PREFIX : TMAP_OFFSETS_ENDS)) {}

  Tensor offsets;
  tmap_row_offsets about;
};

void check_device(const tensor_view& rows, const tensor_view& offsets) {
  if (rows.is_on_device_of(offsets)) return;
  refuse("rows and offsets are on one device, not on " + device_name(rows) + " and " + device_name(offsets));
}

tmap_padded_rows describe(const tensor_view& values, const tensor_view& dense, const cut& by) {
  tmap_padded_rows rows{};
  rows.struct_size = sizeof rows;
  rows.element_bytes = static_cast<std::uint32_t>(aoti_torch_dtype_element_size(values.type));
  rows.values = values.address();
  rows.rows = unsigned_of(values.sizes[0]);
  rows.dense = dense.address();
  rows.count = unsigned_of(dense.sizes[0]);
  rows.longest = unsigned_of(dense.sizes[1]);
  rows.row_bytes = rows.element_bytes;
  for (std::int64_t axis = 1; axis < values.rank; ++axis) rows.row_bytes *= unsigned_of(values.sizes[axis]);
  rows.offsets = by.about;
  return rows;
}

}  // namespace

Tensor pad_ragged(const Tensor& values, const Tensor& offsets, std::int64_t max_length, double fill,
                  const std::string& format) {
  check_length(max_length, "max_length");
  const tensor_view given = view_of(values), ends = view_of(offsets);
  const std::int64_t count = count_of(ends, format);
  if (given.rank == 0) refuse("values have rows: one dim at least");
  std::vector<std::int64_t> sizes(given.sizes, given.sizes + given.rank);
  sizes[0] = max_length;
  sizes.insert(sizes.begin(), count);
  if (is_empty(sizes)) return new_packed(sizes, given);
  const auto element = element_bytes(fill, given.type, "fill");
  check_device(given, ends);
  const on_device here{given};
  Tensor dense = new_packed(sizes, given);
  const Tensor rows = packed(values);
  const cut by{offsets, format};
  const tmap_padded_rows described = describe(view_of(rows), view_of(dense), by);
  const tmap_call call = call_for(given);
  check(tmap_ragged_pad_rows(&described, element.data(), &call));
  return dense;
}

Tensor unpad_ragged(const Tensor& dense, const Tensor& offsets, std::int64_t total, const std::string& format) {
  check_length(total, "total");
  const tensor_view given = view_of(dense), ends = view_of(offsets);
  const std::int64_t count = count_of(ends, format);
  if (given.rank < 2 || given.sizes[0] != count) {
    refuse("dense is [" + number_text(count) + ", longest, ...], not " + shape_text(given));
  }
  std::vector<std::int64_t> sizes(given.sizes + 1, given.sizes + given.rank);
  sizes[0] = total;
  if (is_empty(sizes)) return new_packed(sizes, given);
  check_device(given, ends);
  const on_device here{given};
  Tensor values = new_packed(sizes, given);
  const Tensor from = packed(dense);
  const cut by{offsets, format};
  const tmap_padded_rows described = describe(view_of(values), view_of(from), by);
  const tmap_call call = call_for(given);
  check(tmap_ragged_unpad_rows(&described, &call));
  return values;
}

}  // namespace tmap::pytorch
