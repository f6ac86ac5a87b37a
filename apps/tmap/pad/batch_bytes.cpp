// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/batch_bytes.hpp"

#include "apps/tmap/progress.hpp"

#include <algorithm>
#include <cstring>

namespace tmap::tool {
namespace {

struct row_layout {
  std::uint64_t rows;
  std::uint64_t row_bytes;
  std::uint64_t pitch;
};

row_layout rows_of(const tensor_spec& spec) {
  row_layout layout{1, element_bytes(spec.type, spec.global_dim[0]), 0};
  for (std::uint32_t axis = 1; axis < spec.rank; ++axis) layout.rows *= spec.global_dim[axis];
  layout.pitch = spec.rank > 1 ? spec.global_stride_bytes[0] : layout.row_bytes;
  return layout;
}

void copy_rows(std::byte* to, std::uint64_t to_pitch, const std::byte* from, std::uint64_t from_pitch,
               const row_layout& layout) {
  if (to_pitch == from_pitch) {
    std::memcpy(to, from, layout.rows * layout.row_bytes);
    return;
  }
  for (std::uint64_t row = 0; row < layout.rows; ++row) {
    std::memcpy(to + row * to_pitch, from + row * from_pitch, layout.row_bytes);
  }
}

/// Counts through the outer dimensions of a batch, all but the innermost, as an odometer does.
class outer_index {
 public:
  explicit outer_index(const shape_t& shape) : limits_{shape.begin(), shape.end() - 1}, at_(limits_.size()) {}

  const shape_t& at() const { return at_; }

  bool advance() {
    for (std::size_t axis = limits_.size(); axis-- > 0;) {
      if (++at_[axis] < limits_[axis]) return true;
      at_[axis] = 0;
    }
    return false;
  }

 private:
  shape_t limits_;
  shape_t at_;
};

/// The elements of a tensor's row at these outer indices; none when the row lies outside the tensor.
std::span<const std::byte> row_of(const tensor& t, const shape_t& outer) {
  const std::uint64_t row_bytes = (t.shape.empty() ? 1 : t.shape.back()) * bytes(t.type);
  std::uint64_t row = 0;
  for (std::size_t axis = 0; axis < outer.size(); ++axis) {
    if (outer[axis] >= t.shape[axis]) return {};
    row = row * t.shape[axis] + outer[axis];
  }
  return t.bytes.subspan(row * row_bytes, row_bytes);
}

std::string hex(std::span<const std::byte> element) {
  std::string text = "0x";
  for (auto byte = element.rbegin(); byte != element.rend(); ++byte)
    text += fmt::format("{:02x}", std::to_integer<int>(*byte));
  return text;
}

std::string difference(const tensor& t, const shape_t& outer, std::uint64_t at, std::span<const std::byte> found,
                       std::span<const std::byte> expected) {
  const std::uint64_t size = bytes(t.type);
  const std::uint64_t element = at / size;
  shape_t index = outer;
  index.push_back(element);
  return fmt::format("{}: element {} is {}, the plain loop says {}", t.name, to_string(index),
                     hex(found.subspan(element * size, size)), hex(expected.subspan(element * size, size)));
}

outcome<void> check_tensor(const batch_plan& plan, const tensor& t, const std::byte* slice) {
  const std::uint64_t row_bytes = plan.shape.back() * bytes(t.type);
  std::vector<std::byte> expected(row_bytes);
  outer_index outer{plan.shape};
  do {
    const auto source = row_of(t, outer.at());
    const std::uint64_t valid = std::min<std::uint64_t>(source.size(), row_bytes);
    const auto padding = std::copy_n(source.begin(), valid, expected.begin());
    std::fill(padding, expected.end(), std::byte{0});
    if (std::memcmp(slice, expected.data(), row_bytes) != 0) {
      const auto first = std::mismatch(expected.begin(), expected.end(), slice).first - expected.begin();
      return refusal{difference(t, outer.at(), static_cast<std::uint64_t>(first), {slice, row_bytes}, expected)};
    }
    slice += row_bytes;
  } while (outer.advance());
  return {};
}

}  // namespace

std::vector<std::byte> pack_sources(const batch_plan& plan, const std::vector<tensor>& tensors) {
  std::vector<std::byte> packed(plan.source_bytes);
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const row_layout layout = rows_of(plan.sources[i]);
    copy_rows(packed.data() + plan.sources[i].global_address, layout.pitch, tensors[plan.members[i]].bytes.data(),
              layout.row_bytes, layout);
  }
  return packed;
}

std::vector<std::byte> pack_batch(const batch_plan& plan, std::vector<std::byte> pitched) {
  if (pitched.size() == plan.dense_bytes) return pitched;
  std::vector<std::byte> dense(plan.dense_bytes);
  const std::uint64_t slice_bytes = plan.dense_bytes / plan.members.size();
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const row_layout layout = rows_of(plan.destinations[i]);
    copy_rows(dense.data() + i * slice_bytes, layout.row_bytes, pitched.data() + plan.destinations[i].global_address,
              layout.pitch, layout);
  }
  return dense;
}

outcome<void> check_batch(const batch_plan& plan, const std::vector<tensor>& tensors,
                          std::span<const std::byte> batch) {
  const std::uint64_t slice_bytes = plan.dense_bytes / plan.members.size();
  progress bar{"checking", plan.members.size()};
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const auto same = check_tensor(plan, tensors[plan.members[i]], batch.data() + i * slice_bytes);
    if (!same) return same;
    bar.advance(1);
  }
  return {};
}

}  // namespace tmap::tool
