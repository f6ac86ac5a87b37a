// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/expert_requests.hpp"

#include <algorithm>
#include <initializer_list>

namespace tmap::expert_parallel {

using kernels::peer::exchange_request;
using kernels::peer::fetch_request;

kernels::peer::pending_groups call_parts::pending_of(const std::uint32_t* words) const {
  return {reinterpret_cast<std::uintptr_t>(words), sizes_.experts / ranks(), with_.blocks};
}

kernels::peer::expert_arrays call_parts::arrays(const std::uint32_t* pending) const {
  kernels::peer::expert_arrays at{};
  at.tokens = static_cast<std::uint32_t>(sizes_.tokens);
  at.k = sizes_.k;
  at.experts = sizes_.experts / ranks();
  at.scales = sizes_.scales;
  at.arrivals = static_cast<std::uint32_t>(sizes_.arrivals);
  at.rank_of_choice = offset(at_.rank_of_choice);
  at.record_of_choice = offset(at_.record_of_choice);
  at.token_of_record = offset(at_.token_of_record);
  at.departing = offset(at_.departing);
  at.arriving = offset(at_.arriving);
  at.arrived = offset(at_.arrived);
  at.total = offset(at_.total);
  at.ids = offset(at_.ids);
  at.weights = offset(at_.weights);
  at.places = offset(at_.row_of_choice);
  at.first_ids = offset(at_.first_ids);
  at.order = offset(at_.order);
  at.list = offset(at_.list);
  at.list_parts = with_.blocks;
  at.pending = pending_of(pending);
  at.returned = offset(at_.returned);
  at.place = place_of_sum(sizes_);
  at.targets = offset(at_.targets);
  at.departed = offset(at_.departed);
  at.sent_places = offset(at_.sent_places);
  at.returned_places = offset(at_.returned_places);
  at.return_list = offset(at_.return_list);
  at.return_count = offset(at_.return_count);
  at.landed = offset(at_.row_of_landed);
  return at;
}

namespace {

/// Mixes numbers into one, in which lists of them differ.
std::uint32_t mixed(std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t mix = 0;
  for (const std::uint64_t each : numbers) mix = (mix ^ each) * 0x9E3779B97F4A7C15u + 1;
  return static_cast<std::uint32_t>(mix >> 32);
}

/// Returns a number in which shapes differ of ranks that do not belong together.
std::uint32_t salt_of(const shape& sizes) {
  return mixed({sizes.k, sizes.experts, sizes.scales, static_cast<std::uint64_t>(sizes.result_type),
                static_cast<std::uint64_t>(sizes.returned)});
}

}  // namespace

std::uint32_t shape_word(const shape& sizes) {
  return mixed({salt_of(sizes), sizes.tokens, sizes.arrivals, sizes.rows, sizes.alignment, sizes.row_bytes,
                sizes.columns}) >>
         8;
}

/// Returns what all requests of the call have in common.
exchange_request call_parts::request() const {
  exchange_request made{};
  made.groups = 1;
  made.salt = salt_of(sizes_);
  made.staging_bytes = peer::staging_bytes;
  made.stages = peer::stages;
  made.blocks = with_.blocks;
  made.after = offsetof(detail::peer::window_header, verdict);
  return made;
}

exchange_request call_parts::records() const {
  exchange_request made = request();
  made.rows = offset(at_.departing);
  made.splits = offset(at_.departed);
  made.out = offset(at_.arriving);
  made.out_splits = offset(at_.arrived);
  made.row_bytes = 4 * kernels::peer::record_words(sizes_.k, sizes_.scales);
  made.sent_rows = static_cast<std::uint32_t>(departures(sizes_, ranks()));
  made.capacity = static_cast<std::uint32_t>(sizes_.arrivals);
  return made;
}

exchange_request call_parts::few_records() const {
  exchange_request made = records();
  made.blocks = with_.blocks + 1;
  made.is_eager = true;
  made.after = 0;  // no kernel has waited for credits before
  return made;
}

/// Returns what all fetches have in common. Rows are smaller than the pieces of an exchange, so
/// there are more stages.
fetch_request call_parts::fetching(std::uint32_t row_bytes) const {
  constexpr std::uint32_t most_piece = 16384;
  fetch_request made{};
  made.call = request();
  made.call.kind = kernels::peer::call_kind::fetch;
  made.call.groups = 0;
  made.call.row_bytes = row_bytes;
  made.call.staging_bytes = std::min(row_bytes, most_piece);
  made.call.stages =
      std::min(kernels::peer::most_staging_bytes / made.call.staging_bytes, kernels::peer::most_fetch_stages);
  made.entries = kernels::peer::most_fetch_entries;
  return made;
}

fetch_request call_parts::few_rows_of(const dispatch_problem& problem) const {
  // A part of the records drains all rows before the next one. So it should have all of a block,
  // but leave room for some rows.
  constexpr std::uint32_t most_records = 64, wanted_stages = 6;
  using kernels::peer::few_tokens_layout, kernels::peer::most_few_bytes;
  fetch_request made = rows_of(problem);
  made.call.blocks = with_.blocks + 1;
  const auto of_block = static_cast<std::uint32_t>((sizes_.arrivals + with_.blocks - 1) / with_.blocks);
  made.entries = std::clamp(of_block, 1u, most_records);
  const auto stages = [&] {
    fetch_request without = made;
    without.call.stages = 0;
    const std::uint32_t part = few_tokens_layout(arrays(problem.pending), without).end();
    return part < most_few_bytes ? (most_few_bytes - part) / made.call.staging_bytes : 0;
  };
  while (made.entries > 1 && stages() < wanted_stages) made.entries /= 2;
  made.call.stages = std::min(stages(), made.call.stages);
  return made;
}

fetch_request call_parts::rows_of(const dispatch_problem& problem) const {
  fetch_request made = fetching(sizes_.row_bytes);
  made.call.rows = offset(problem.x);
  made.call.sent_rows = static_cast<std::uint32_t>(sizes_.tokens);
  made.call.sent_pitch = static_cast<std::uint32_t>(problem.x.pitch_bytes);
  made.call.out = offset(problem.out);
  made.call.capacity = static_cast<std::uint32_t>(rows());
  made.call.outcome = offset(at_.outcome);
  made.call.outcome_shape = shape_word(sizes_);
  made.call.is_announced = has_all_rows(sizes_, ranks());
  if (!made.call.is_announced) made.call.lacking = offset(at_.header) + offsetof(batch_header, bad_count);
  made.listed = offset(at_.total);
  made.list = offset(at_.list);
  made.places = sizes_.k;
  made.out_pitch = static_cast<std::uint32_t>(problem.out.pitch_bytes);
  made.pending = pending_of(problem.pending);
  return made;
}

kernels::peer::sums_request call_parts::sums() const {
  return {.outcome = offset(at_.outcome),
          .total = offset(at_.total),
          .shape = shape_word(sizes_),
          .blocks = 0,
          .place = place_of_sum(sizes_)};
}

exchange_request call_parts::places_of_rows() const {
  exchange_request made = request();
  made.after = offset(at_.outcome);
  made.after_shape = shape_word(sizes_);
  made.rows = offset(at_.sent_places);
  made.splits = offset(at_.arrived);
  made.out = offset(at_.returned_places);
  made.out_splits = offset(at_.place_counts);
  made.row_bytes = 4 * kernels::peer::place_words(sizes_.k);
  made.sent_rows = static_cast<std::uint32_t>(sizes_.arrivals);
  made.capacity = static_cast<std::uint32_t>(departures(sizes_, ranks()));
  made.is_eager = true;
  return made;
}

fetch_request call_parts::results_of(const combine_problem& problem) const {
  fetch_request made = fetching(static_cast<std::uint32_t>(sum_bytes(sizes_)));
  made.call.rows = offset(problem.values);
  made.call.sent_rows = static_cast<std::uint32_t>(rows());
  made.call.sent_pitch = static_cast<std::uint32_t>(problem.values.pitch_bytes);
  made.call.out = offset(at_.landed);
  made.call.capacity = static_cast<std::uint32_t>(sizes_.tokens * sizes_.k);
  made.listed = offset(at_.return_count);
  made.list = offset(at_.return_list);
  made.places = 1;
  made.out_pitch = static_cast<std::uint32_t>(sum_bytes(sizes_));
  return made;
}

}  // namespace tmap::expert_parallel
