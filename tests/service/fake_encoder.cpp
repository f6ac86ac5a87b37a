// SPDX-License-Identifier: Apache-2.0
#include "service/fake_encoder.hpp"

#include <tmap/decode.hpp>
#include <tmap/patch_rules.hpp>

#include <algorithm>
#include <atomic>
#include <variant>

namespace tmap::testing {
namespace {

map_patch patch_at(const patch_array& source, const map_template&, std::uint64_t i) {
  return source.patches[i];
}

map_patch patch_at(const patch_columns& source, const map_template& base, std::uint64_t i) {
  map_patch patch{};
  if (has_any(base.fields, patch_address)) patch.global_address = source.global_address[i];
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (has_any(base.fields, patch_dim(axis))) patch.global_dim[axis] = source.global_dim[axis][i];
    if (axis + 1 < max_rank && has_any(base.fields, patch_stride(axis))) {
      patch.global_stride_bytes[axis] = source.global_stride_bytes[axis][i];
    }
  }
  return patch;
}

map_patch patch_at(const compact_columns& source, const map_template& base, std::uint64_t i) {
  map_patch patch{};
  if (has_any(base.fields, patch_address)) patch.global_address = source.base_address + 16ull * source.address_units[i];
  for (std::uint32_t axis = 0; axis < max_rank; ++axis) {
    if (has_any(base.fields, patch_dim(axis))) patch.global_dim[axis] = source.global_dim[axis][i];
    if (axis + 1 < max_rank && has_any(base.fields, patch_stride(axis))) {
      patch.global_stride_bytes[axis] = 16ull * source.global_stride_units[axis][i];
    }
  }
  return patch;
}

map_patch patch_at(const ragged_rows& source, const map_template& base, std::uint64_t i) {
  const auto value = [&](const void* values, std::uint64_t at) -> std::uint64_t {
    if (source.offsets.bytes == 8) return static_cast<const std::uint64_t*>(values)[at];
    return static_cast<std::uint64_t>(std::int64_t{static_cast<const std::int32_t*>(values)[at]});
  };
  const auto offset = [&](std::uint64_t at) { return value(source.offsets.values, at); };
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  switch (source.offsets.format) {
    case offset_format::ends:
      begin = i == 0 ? 0 : offset(i - 1);
      end = offset(i);
      break;
    case offset_format::prefix:
      begin = offset(i);
      end = offset(i + 1);
      break;
    case offset_format::sizes:
      for (std::uint64_t before = 0; before < i; ++before) begin += offset(before);
      end = begin + offset(i);
      break;
    case offset_format::begins_and_counts:
      begin = offset(i);
      end = begin + value(source.offsets.counts, i);
      break;
    case offset_format::slots:
      begin = i * source.offsets.slot_rows;
      end = begin + offset(i);
      break;
    case offset_format::labels: break;  // no source of maps has labels
  }
  map_patch patch{};
  patch.global_address = source.base_address + begin * source.row_pitch_bytes;
  patch.global_dim[base.spec.rank - 1] = end - begin;
  return patch;
}

}  // namespace

map_patch patch_at(const tensor_source& source, const map_template& base, std::uint64_t i) {
  return std::visit([&](const auto& from) { return patch_at(from, base, i); }, source);
}

encoded_map encode_one(const map_template& base, const map_patch& patch, const kernels::encode_terms& terms) {
  const tensor_spec wanted = patched_spec(base, patch);
  map_status status;
  if (!terms.trusted) status = judge_patched(wanted, base.fields, terms.windows, terms.window_count);
  const tensor_spec spec = status.is_good() ? wanted : empty_spec(base.spec, fake_page);
  tensor_map map = encode_bits(spec).value_or(tensor_map{});
  if (base.map == tensor_map{}) map.words[9] = 0;
  map.words[8] = base.map.words[8];
  return {map, status};
}

void count_verdict(map_status status, std::uint32_t map, const kernels::encode_terms& terms) {
  if (terms.totals != nullptr) {
    std::atomic_ref{terms.totals->bad_maps} += status.is_bad() ? 1 : 0;
    std::atomic_ref{terms.totals->empty_maps} += status.is_empty() ? 1 : 0;
  }
  if (terms.header == nullptr) return;
  terms.header->empty_count += status.is_empty() ? 1 : 0;
  if (!status.is_bad()) return;
  ++terms.header->bad_count;
  terms.header->first_bad = std::min(terms.header->first_bad, map);
}

void encode_all(const map_template& base, const tensor_source& source, tensor_map* slots, std::uint64_t count,
                const kernels::encode_terms& terms) {
  if (terms.header != nullptr) *terms.header = batch_header{};
  for (std::uint64_t i = 0; i < count; ++i) {
    const encoded_map made = encode_one(base, patch_at(source, base, i), terms);
    slots[i] = made.map;
    if (terms.statuses != nullptr) terms.statuses[i] = made.status;
    count_verdict(made.status, static_cast<std::uint32_t>(i), terms);
  }
}

void encode_changed(const map_template& base, const tensor_source& source, const kernels::update_target& target,
                    const kernels::encode_terms& terms) {
  if (terms.header != nullptr) *terms.header = batch_header{};
  for (std::uint32_t j = 0; j < target.change_count; ++j) {
    const std::uint32_t map = target.changes[j];
    if (map >= target.map_count) continue;
    const encoded_map made = encode_one(base, patch_at(source, base, map), terms);
    const std::uint32_t slot = target.table == nullptr ? map : j;
    target.slots[slot] = made.map;
    if (target.table != nullptr) target.table[map] = target.first_slot + j;
    if (target.statuses != nullptr) target.statuses[slot] = made.status;
    count_verdict(made.status, map, terms);
  }
}

result<map_template> codec_template(const tensor_spec& spec, patch_fields fields) {
  result<map_template> base = make_zeroed_template(spec, fields);
  if (!base) return base;
  base->spec.l2_promotion = spec.l2_promotion;
  const result<tensor_map> map = encode_bits(base->spec);
  if (!map) return failure{map.error()};
  base->map = *map;
  return base;
}

}  // namespace tmap::testing
