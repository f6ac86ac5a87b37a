// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_verdict.hpp"

#include "lib/simulator/ragged_tensors.hpp"

#include <algorithm>

namespace tmap::simulator {

pair_terms terms_of(shape_relation relation, std::uint32_t source_element, std::uint32_t destination_element,
                    std::uint64_t count, const ragged::run& with) {
  const detail::tensor_limits limits{with.windows.data(), static_cast<std::uint32_t>(with.windows.size()),
                                     detail::most_tensor_bytes(count)};
  return {relation, {source_element, {}}, {destination_element, {}}, limits};
}

void judge(tensor_pair& pair, const pair_terms& terms, const detail::scale_grid* grid) {
  const detail::side_extents source = extents_of(pair.source);
  detail::pair_verdict verdict = detail::judge_pair<max_rank>(source, extents_of(pair.destination), terms);
  if (grid != nullptr) {
    verdict.bits =
        detail::add_scale_faults<max_rank>(verdict.bits, source, extents_of(pair.scales), *grid, terms.limits);
  }
  pair.status = {verdict.bits};
  pair.has_destination = verdict.has_destination;
}

ragged::tensor_status judge_row(std::int64_t row, std::uint64_t rows) {
  const bool exists = row >= 0 && static_cast<std::uint64_t>(row) < rows;
  return {exists ? 0 : detail::bit(ragged::fault::index)};
}

void verdict_writer::write(std::uint64_t index, ragged::tensor_status status) {
  if (with_.statuses != nullptr) with_.statuses[index] = status;
  header_.empty_count += status.is_empty() ? 1 : 0;
  if (!status.is_bad()) return;
  if (header_.bad_count == 0) first_bad_ = status;
  header_.bad_count += header_.bad_count == ~0u ? 0 : 1;
  header_.first_bad = std::min(header_.first_bad, detail::header_index(index));
}

result<void> verdict_writer::close() const {
  if (header_.bad_count == 0 || !support::is_checked(with_.check)) return {};
  error e{status::bad_items};
  e.found = header_.bad_count;
  e.allowed = call_.items;
  e.bad = {call_.which, number_, header_.first_bad, first_bad_.bits};
  return failure(e);
}

}  // namespace tmap::simulator
