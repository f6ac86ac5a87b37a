// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/faults.h>
#include <tmap/faults.hpp>

#include <string>
#include <utility>

#include "lib/interop/convert.hpp"
#include "lib/interop/inputs.hpp"

namespace tmap::interop {
tmap_bad_item c_of(const bad_item& from) {
  return {static_cast<std::uint32_t>(from.call), 0, from.number, from.index, from.bits};
}

fault_report library_of(const tmap_fault_report& from) {
  const tmap_bad_item& first = from.first;
  return {from.maps,
          from.tensors,
          from.rows,
          from.groups,
          {static_cast<batch_call>(first.call), first.number, first.index, first.bits}};
}

tmap_fault_report c_of(const fault_report& from) {
  return {sizeof(tmap_fault_report), 0, from.maps, from.tensors, from.rows, from.groups, c_of(from.first)};
}

namespace {

static_assert(mirrors(TMAP_ITEM_MAP, item_kind::map) && mirrors(TMAP_ITEM_TENSOR, item_kind::tensor));
static_assert(mirrors(TMAP_ITEM_ROW, item_kind::row) && mirrors(TMAP_ITEM_GROUP, item_kind::group));

std::string words_of(item_kind kind, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (kind) {
    case item_kind::map: return to_string(map_status{bits});
    case item_kind::group: return gemm::to_string(gemm::group_status{low});
    default: return ragged::to_string(ragged::tensor_status{low});
  }
}

/// A status of this kind.
struct status_input {
  void check(arguments& all) const {
    all.enumerator(kind, TMAP_ITEM_GROUP, "kind");
    if (all && kind != TMAP_ITEM_MAP) all.at_most(bits, UINT32_MAX, "bits");
  }
  std::string value() const { return words_of(static_cast<item_kind>(kind), bits); }

  std::uint32_t kind;
  std::uint64_t bits;
};

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_faults(tmap_fault_report* report) {
  return ask(__func__, sized_output{"report", report}, tmap::faults);
}

tmap_status tmap_reset_faults(tmap_fault_report* report) {
  return ask(__func__, sized_output{"report", report}, tmap::reset_faults);
}

tmap_status tmap_fault_report_text(const tmap_fault_report* report, char* text, size_t capacity, size_t* length) {
  return run(
      __func__, [](const auto& from, const auto& to) { return to.write_made(to_string(from)); },
      input{"report", report}, text_output{text, capacity, length});
}

const char* tmap_call_name(uint32_t call) {
  return tmap::name(static_cast<tmap::batch_call>(call));
}

tmap_status tmap_item_text(uint32_t kind, uint64_t bits, char* text, size_t capacity, size_t* length) {
  return run(
      __func__, [](std::string words, const auto& to) { return to.write_made(std::move(words)); },
      status_input{kind, bits}, text_output{text, capacity, length});
}
