// SPDX-License-Identifier: Apache-2.0
#include <tmap/ragged_host.hpp>

#include "lib/simulator/ragged_run.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tmap::ragged::on_host {
namespace {

using namespace tmap::simulator;

result<void> move(const tensor_layout& source, const tensor_layout& destination, const route_options& routes) {
  const auto elements = read_elements(source, routes);
  if (!elements) return failure{elements.error()};
  return write_elements(destination, *elements, routes);
}

result<void> move_good(const tensor_pair& pair, const route_options& routes) {
  if (!pair.status.is_good()) return {};
  return move(pair.source, pair.destination, routes);
}

result<void> check_packed(const packed_buffer& buffer, const tensor_batch& batch) {
  const bool has_alignment = std::has_single_bit(buffer.alignment) && buffer.alignment <= std::uint64_t{1} << 20;
  const auto address = reinterpret_cast<std::uint64_t>(buffer.memory);
  if (!has_alignment || address == 0 || address % element_alignment(batch.element_bytes) != 0) return bad_argument();
  return {};
}

/// The dense tensors are all alike, so what would be wrong with one is an argument's fault.
result<void> check_dense(const dense_batch& batch, const tensor_batch& other, bool is_destination) {
  const tensor_layout first = dense_tensor(batch, other.element_bytes, other.rank, 0);
  const std::uint64_t pitch = dense_pitch(batch, other.element_bytes, other.rank);
  const tensor_status verdict = is_destination ? judge_destination(first, {}) : judge_side(first, {});
  const bool overlaps = is_destination && other.count > 1 && pitch < reach_bytes(first);
  if (verdict.is_bad() || overlaps || pitch % element_alignment(other.element_bytes) != 0) return bad_argument();
  return {};
}

/// Gives each tensor its place in a packed buffer.
class packed_places {
 public:
  explicit packed_places(const packed_buffer& buffer) : buffer_{buffer} {}

  /// The place of a tensor with the dims of `other`, which is one of the pair's sides.
  tensor_layout next(const tensor_layout& other, tensor_pair& pair, const options& with) {
    tensor_layout place = other;
    pack_strides(place);
    place.address = reinterpret_cast<std::uint64_t>(buffer_.memory) + begin_;
    if (judge_side(other, with).is_good()) {
      const std::uint64_t bytes = packed_bytes(other);
      pair.ends_behind_buffer = bytes > buffer_.bytes || begin_ > buffer_.bytes - bytes;
      begin_ += (bytes + buffer_.alignment - 1) / buffer_.alignment * buffer_.alignment;
    }
    return place;
  }
  std::uint64_t end() const { return begin_; }

 private:
  const packed_buffer& buffer_;
  std::uint64_t begin_{};
};

/// The low corner of `tensor` with the dims of `other` where those are smaller.
tensor_layout corner(tensor_layout tensor, const tensor_layout& other) {
  for (std::uint32_t axis = 0; axis < tensor.rank; ++axis) {
    tensor.dim[axis] = std::min(tensor.dim[axis], other.dim[axis]);
  }
  return tensor;
}

/// All elements of a dense tensor, the low corner from the source, the rest `fill`.
result<element_bytes_t> padded(const tensor_pair& pair, const fill_value& fill, const route_options& routes) {
  const std::uint64_t item = pair.destination.element_bytes;
  element_bytes_t dense(packed_bytes(pair.destination));
  for (std::uint64_t at = 0; at < dense.size(); at += item) std::memcpy(dense.data() + at, fill.bytes, item);
  const tensor_layout source = corner(pair.source, pair.destination);
  const bool is_copied = pair.status.is_good() || pair.status.has(fault::truncated);
  if (!is_copied || has_no_elements(source)) return dense;

  const auto elements = read_elements(source, routes);
  if (!elements) return failure{elements.error()};
  tensor_layout inner = pair.destination;
  pack_strides(inner);
  inner.address = reinterpret_cast<std::uint64_t>(dense.data());
  const std::uint64_t row_bytes = source.dim[0] * item;
  for_each_row(corner(inner, source), [&](std::uint64_t index, std::byte* row) {
    std::memcpy(row, elements->data() + index * row_bytes, row_bytes);
  });
  return dense;
}

}  // namespace

result<void> copy(const tensor_batch& source, const tensor_batch& destination, const options& with) {
  if (const auto checked = check_sides(source, destination); !checked) return checked;
  return for_each_good_pair(source, destination, dims_relation::equal, with, move_good);
}

result<void> pack(const tensor_batch& source, const packed_buffer& destination, const options& with) {
  if (const auto checked = check_batch(source); !checked) return checked;
  if (const auto checked = check_packed(destination, source); !checked) return checked;
  tensor_reader sources{source};
  packed_places places{destination};
  const auto note = [&](std::uint64_t i) {
    if (destination.begins != nullptr) destination.begins[i] = static_cast<std::int64_t>(places.end());
  };
  const auto next = [&](tensor_pair& pair) {
    note(pair.index);
    pair.source = sources.next();
    pair.destination = places.next(pair.source, pair, with);
  };
  const auto packed = for_each_pair(source.count, dims_relation::equal, with, next, move_good);
  if (packed) note(source.count);
  return packed;
}

result<void> unpack(const packed_buffer& source, const tensor_batch& destination, const options& with) {
  if (const auto checked = check_batch(destination); !checked) return checked;
  if (const auto checked = check_packed(source, destination); !checked) return checked;
  tensor_reader destinations{destination};
  packed_places places{source};
  const auto note = [&](std::uint64_t i) {
    if (source.begins != nullptr) source.begins[i] = static_cast<std::int64_t>(places.end());
  };
  const auto next = [&](tensor_pair& pair) {
    note(pair.index);
    pair.destination = destinations.next();
    pair.source = places.next(pair.destination, pair, with);
  };
  const auto unpacked = for_each_pair(destination.count, dims_relation::equal, with, next, move_good);
  if (unpacked) note(destination.count);
  return unpacked;
}

result<void> pad(const tensor_batch& source, const dense_batch& destination, const fill_value& fill,
                 const options& with) {
  if (const auto checked = check_batch(source); !checked) return checked;
  if (const auto checked = check_dense(destination, source, true); !checked) return checked;
  tensor_reader sources{source};
  const auto next = [&](tensor_pair& pair) {
    pair.source = sources.next();
    pair.destination = dense_tensor(destination, source.element_bytes, source.rank, pair.index);
  };
  const auto work = [&](const tensor_pair& pair, const route_options& routes) -> result<void> {
    if (has_no_elements(pair.destination) || !judge_destination(pair.destination, with).is_good()) return {};
    const auto dense = padded(pair, fill, routes);
    if (!dense) return failure{dense.error()};
    return write_elements(pair.destination, *dense, routes);
  };
  return for_each_pair(source.count, dims_relation::cut, with, next, work);
}

result<void> unpad(const dense_batch& source, const tensor_batch& destination, const options& with) {
  if (const auto checked = check_batch(destination); !checked) return checked;
  if (const auto checked = check_dense(source, destination, false); !checked) return checked;
  tensor_reader destinations{destination};
  const auto next = [&](tensor_pair& pair) {
    pair.source = dense_tensor(source, destination.element_bytes, destination.rank, pair.index);
    pair.destination = destinations.next();
  };
  const auto work = [&](const tensor_pair& pair, const route_options& routes) -> result<void> {
    if (!pair.status.is_good()) return {};
    return move(corner(pair.source, pair.destination), pair.destination, routes);
  };
  return for_each_pair(destination.count, dims_relation::corner, with, next, work);
}

}  // namespace tmap::ragged::on_host
