// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_operations.hpp"
#include "lib/simulator/ragged_run.hpp"

#include <algorithm>
#include <cstring>

namespace tmap::ragged::simulated {
namespace {

using namespace tmap::simulator;

result<void> move_good(const tensor_pair& pair, const route_options& routes) {
  if (!pair.status.is_good()) return {};
  return move_elements(pair.source, pair.destination, routes);
}

/// Gives each tensor its place in a packed buffer.
class packed_places {
 public:
  /// `limits` hold for all tensors.
  packed_places(const packed_buffer& buffer, const tmap::detail::tensor_limits& limits, bool is_source)
      : buffer_{buffer}, limits_{limits}, is_source_{is_source} {}

  tmap::detail::side_room room() const { return {reinterpret_cast<std::uint64_t>(buffer_.memory), buffer_.bytes}; }

  /// Returns the place of tensor `index`, whose other side is `other`.
  tensor_layout next(std::uint64_t index, const tensor_layout& other) {
    note(index);
    tensor_layout place = other;
    pack_strides(place);
    place.address = room().begin + begin_;
    begin_ += tmap::detail::packed_bytes<max_rank>(extents_of(other), other.element_bytes, buffer_.alignment, limits_,
                                                   is_source_);
    return place;
  }

  /// Writes where tensor `index` begins.
  void note(std::uint64_t index) const {
    if (buffer_.begins != nullptr) buffer_.begins[index] = static_cast<std::int64_t>(begin_);
  }

 private:
  const packed_buffer& buffer_;
  tmap::detail::tensor_limits limits_;
  bool is_source_;
  std::uint64_t begin_{};
};

/// Returns the low corner of `tensor`, with the dims of `other` that are smaller.
tensor_layout corner(tensor_layout tensor, const tensor_layout& other) {
  for (std::uint32_t axis = 0; axis < tensor.rank; ++axis) {
    tensor.dim[axis] = std::min(tensor.dim[axis], other.dim[axis]);
  }
  return tensor;
}

/// Sets every element to `fill`.
void fill_elements(const tensor_layout& tensor, const fill_value& fill) {
  const std::uint64_t item = tensor.element_bytes;
  const std::uint64_t most_step = item * 2048;  // so the repeated part stays in a cache
  const std::uint64_t bytes = tensor.dim[0] * item;
  for_each_row(tensor, [&](std::uint64_t, std::byte* row) {
    std::memcpy(row, fill.bytes, item);
    for (std::uint64_t done = item; done < bytes;) {
      const std::uint64_t step = std::min({done, most_step, bytes - done});
      std::memcpy(row + done, row, step);
      done += step;
    }
  });
}

/// Copies the source to the low corner and sets the rest to `fill`.
result<void> pad_one(const tensor_pair& pair, const fill_value& fill, const route_options& routes) {
  if (has_no_elements(pair.destination) || !pair.has_destination) return {};
  fill_elements(pair.destination, fill);
  const tensor_layout source = corner(pair.source, pair.destination);
  if (!tmap::detail::is_moved(pair.status.bits, shape_relation::clipped) || has_no_elements(source)) return {};
  return move_elements(source, corner(pair.destination, source), routes);
}

}  // namespace

result<void> copy(const tensor_batch& source, const tensor_batch& destination, const run& with) {
  return for_each_good_pair(batch_call::ragged_copy, source, destination, shape_relation::equal, with, move_good);
}

result<void> pack(const tensor_batch& source, const packed_buffer& destination, const run& with) {
  tensor_reader sources{source};
  pair_terms terms = terms_of(shape_relation::equal, source.element_bytes, source.element_bytes, source.count, with);
  packed_places places{destination, terms.limits, false};
  terms.destination.room = places.room();
  const auto next = [&](tensor_pair& pair) {
    pair.source = sources.next();
    pair.destination = places.next(pair.index, pair.source);
  };
  const auto packed = for_each_pair({batch_call::ragged_pack, source.count}, terms, with, next, move_good);
  if (packed || packed.error().code == status::bad_items) places.note(source.count);
  return packed;
}

result<void> unpack(const packed_buffer& source, const tensor_batch& destination, const run& with) {
  tensor_reader destinations{destination};
  pair_terms terms =
      terms_of(shape_relation::equal, destination.element_bytes, destination.element_bytes, destination.count, with);
  packed_places places{source, terms.limits, true};
  terms.source.room = places.room();
  const auto next = [&](tensor_pair& pair) {
    pair.destination = destinations.next();
    pair.source = places.next(pair.index, pair.destination);
  };
  const auto unpacked = for_each_pair({batch_call::ragged_unpack, destination.count}, terms, with, next, move_good);
  if (unpacked || unpacked.error().code == status::bad_items) places.note(destination.count);
  return unpacked;
}

result<void> pad(const tensor_batch& source, const dense_batch& destination, const fill_value& fill, const run& with) {
  tensor_reader sources{source};
  const auto next = [&](tensor_pair& pair) {
    pair.source = sources.next();
    pair.destination = dense_tensor(destination, source.element_bytes, source.rank, pair.index);
  };
  const auto work = [&](const tensor_pair& pair, const route_options& routes) { return pad_one(pair, fill, routes); };
  const pair_terms terms =
      terms_of(shape_relation::clipped, source.element_bytes, source.element_bytes, source.count, with);
  return for_each_pair({batch_call::ragged_pad, source.count}, terms, with, next, work);
}

result<void> unpad(const dense_batch& source, const tensor_batch& destination, const run& with) {
  tensor_reader destinations{destination};
  const auto next = [&](tensor_pair& pair) {
    pair.source = dense_tensor(source, destination.element_bytes, destination.rank, pair.index);
    pair.destination = destinations.next();
  };
  const auto work = [&](const tensor_pair& pair, const route_options& routes) -> result<void> {
    if (!pair.status.is_good()) return {};
    return move_elements(corner(pair.source, pair.destination), pair.destination, routes);
  };
  const pair_terms terms =
      terms_of(shape_relation::corner, destination.element_bytes, destination.element_bytes, destination.count, with);
  return for_each_pair({batch_call::ragged_unpad, destination.count}, terms, with, next, work);
}

}  // namespace tmap::ragged::simulated
