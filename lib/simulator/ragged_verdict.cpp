// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ragged_verdict.hpp"

#include "lib/simulator/ragged_tensors.hpp"

#include <algorithm>

namespace tmap::simulator {

pair_terms terms_of(shape_relation relation, std::uint32_t source_element, std::uint32_t destination_element,
                    const ragged::options& with) {
  return {relation, {source_element, {}}, {destination_element, {}}, {with.windows, with.window_count}};
}

void judge(tensor_pair& pair, const pair_terms& terms) {
  const detail::pair_verdict verdict =
      detail::judge_pair<max_rank>(extents_of(pair.source), extents_of(pair.destination), terms);
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
  ++header_.bad_count;
  header_.first_bad = std::min(header_.first_bad, static_cast<std::uint32_t>(index));
}

}  // namespace tmap::simulator
