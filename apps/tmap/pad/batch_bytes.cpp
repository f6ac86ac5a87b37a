// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/batch_bytes.hpp"

#include "apps/support/progress.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace tmap::tool {
namespace {

/// Compares one tensor with its slice of the batch, both dense.
class slice_check {
 public:
  slice_check(const shape_t& source, const shape_t& batch, std::uint64_t item)
      : source_{source}, batch_{batch}, source_step_(source.size(), item), batch_step_(batch.size(), item) {
    for (std::size_t axis = source.size(); --axis > 0;) {
      source_step_[axis - 1] = source_step_[axis] * source[axis];
      batch_step_[axis - 1] = batch_step_[axis] * batch[axis];
    }
  }

  /// Returns the first byte of the batch that differs from the loops over both shapes, or null.
  const std::byte* find(std::size_t axis, const std::byte* source, const std::byte* batch) const {
    const std::uint64_t common = std::min(source_[axis], batch_[axis]);
    if (std::equal(source_.begin() + static_cast<std::ptrdiff_t>(axis) + 1, source_.end(),
                   batch_.begin() + static_cast<std::ptrdiff_t>(axis) + 1)) {
      const std::uint64_t run = common * source_step_[axis];
      if (run > 0 && std::memcmp(source, batch, run) != 0) return std::mismatch(batch, batch + run, source).first;
    } else {
      for (std::uint64_t i = 0; i < common; ++i) {
        const std::byte* wrong = find(axis + 1, source + i * source_step_[axis], batch + i * batch_step_[axis]);
        if (wrong != nullptr) return wrong;
      }
    }
    return find_non_zero(batch + common * batch_step_[axis], (batch_[axis] - common) * batch_step_[axis]);
  }

  shape_t index_of(std::uint64_t offset) const {
    shape_t index;
    for (std::size_t axis = 0; axis < batch_.size(); ++axis) {
      index.push_back(offset / batch_step_[axis]);
      offset %= batch_step_[axis];
    }
    return index;
  }

  /// Returns where the source keeps this element, or nothing where the batch has padding.
  std::optional<std::uint64_t> source_offset(const shape_t& index) const {
    std::uint64_t offset = 0;
    for (std::size_t axis = 0; axis < index.size(); ++axis) {
      if (index[axis] >= source_[axis]) return std::nullopt;
      offset += index[axis] * source_step_[axis];
    }
    return offset;
  }

 private:
  static const std::byte* find_non_zero(const std::byte* first, std::uint64_t size) {
    // Bytes that equal their neighbours are all zero when one is: memcmp is much faster than a loop
    // over bytes.
    if (size == 0 || (*first == std::byte{0} && std::memcmp(first, first + 1, size - 1) == 0)) return nullptr;
    return std::find_if(first, first + size, [](std::byte b) { return b != std::byte{0}; });
  }

  shape_t source_;
  shape_t batch_;
  shape_t source_step_;
  shape_t batch_step_;
};

std::string hex(std::span<const std::byte> element) {
  std::string text = "0x";
  for (auto byte = element.rbegin(); byte != element.rend(); ++byte) {
    text += fmt::format("{:02x}", std::to_integer<int>(*byte));
  }
  return text;
}

outcome<void> check_tensor(const batch_plan& plan, const tensor& t, const std::byte* slice) {
  const std::uint64_t item = bytes(t.type);
  const slice_check check{t.shape.empty() ? shape_t{1} : t.shape, plan.shape, item};
  const std::byte* wrong = check.find(0, t.bytes.data(), slice);
  if (wrong == nullptr) return {};
  const auto offset = static_cast<std::uint64_t>(wrong - slice) / item * item;
  const shape_t index = check.index_of(offset);
  const auto source = check.source_offset(index);
  const std::vector<std::byte> zero(item);
  return refuse("{}: element {} of the batch is {}, the plain loop has {}", t.name, to_string(index),
                hex({slice + offset, item}), hex(source ? t.bytes.subspan(*source, item) : std::span{zero}));
}

}  // namespace

std::vector<std::byte> pack_sources(const batch_plan& plan, const std::vector<tensor>& tensors) {
  std::vector<std::byte> packed(plan.source_bytes);
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const std::span<const std::byte> bytes = tensors[plan.members[i]].bytes;
    std::copy(bytes.begin(), bytes.end(), packed.data() + plan.sources[i].global_address);
  }
  return packed;
}

outcome<void> check_batch(const batch_plan& plan, const std::vector<tensor>& tensors,
                          std::span<const std::byte> batch) {
  const std::uint64_t slice_bytes = plan.dense_bytes / plan.members.size();
  apps::progress bar{"checking", plan.members.size()};
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const auto same = check_tensor(plan, tensors[plan.members[i]], batch.data() + i * slice_bytes);
    if (!same) return same;
    bar.advance(1);
  }
  return {};
}

}  // namespace tmap::tool
