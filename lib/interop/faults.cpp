// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/faults.h>
#include <tmap/faults.hpp>

#include <string>

#include "lib/interop/bad_item.hpp"
#include "lib/interop/text.hpp"

namespace tmap::interop {
namespace {

constexpr bool same(int number, item_kind kind) {
  return number == static_cast<int>(kind);
}
static_assert(same(TMAP_ITEM_MAP, item_kind::map) && same(TMAP_ITEM_TENSOR, item_kind::tensor));
static_assert(same(TMAP_ITEM_ROW, item_kind::row) && same(TMAP_ITEM_GROUP, item_kind::group));

answer report_of(tmap_fault_report* report, result<fault_report> (*ask)()) {
  arguments given;
  given.structure(report, "report");
  if (!given) return given.complaint();
  const result<fault_report> told = ask();
  if (!told) return told.error();
  *report = {sizeof(tmap_fault_report), 0, told->maps, told->tensors, told->rows, told->groups, c_item_of(told->first)};
  return {};
}

answer report_text(const tmap_fault_report* report, char* text, size_t capacity, size_t* length) {
  arguments given;
  given.structure(report, "report");
  check_text(given, text, capacity, length);
  if (!given) return given.complaint();
  const fault_report told{report->maps, report->tensors, report->rows, report->groups, item_of(report->first)};
  return write_made_text(to_string(told), text, capacity, length);
}

std::string words_of(item_kind kind, std::uint64_t bits) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (kind) {
    case item_kind::map: return to_string(map_status{bits});
    case item_kind::group: return gemm::to_string(gemm::group_status{low});
    default: return ragged::to_string(ragged::tensor_status{low});
  }
}

answer item_text(uint32_t kind, uint64_t bits, char* text, size_t capacity, size_t* length) {
  arguments given;
  given.enumerator(kind, TMAP_ITEM_GROUP, "kind");
  if (given && kind != TMAP_ITEM_MAP) given.at_most(bits, UINT32_MAX, "bits");
  check_text(given, text, capacity, length);
  if (!given) return given.complaint();
  return write_made_text(words_of(static_cast<item_kind>(kind), bits), text, capacity, length);
}

}  // namespace
}  // namespace tmap::interop

using namespace tmap::interop;

tmap_status tmap_faults(tmap_fault_report* report) {
  return call(__func__, [&] { return report_of(report, &tmap::faults); });
}

tmap_status tmap_reset_faults(tmap_fault_report* report) {
  return call(__func__, [&] { return report_of(report, &tmap::reset_faults); });
}

tmap_status tmap_fault_report_text(const tmap_fault_report* report, char* text, size_t capacity, size_t* length) {
  return call(__func__, [&] { return report_text(report, text, capacity, length); });
}

const char* tmap_call_name(uint32_t call) {
  return tmap::name(static_cast<tmap::batch_call>(call));
}

tmap_status tmap_item_text(uint32_t kind, uint64_t bits, char* text, size_t capacity, size_t* length) {
  return call(__func__, [&] { return item_text(kind, bits, text, capacity, length); });
}
