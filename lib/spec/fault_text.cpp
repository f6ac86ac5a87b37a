// SPDX-License-Identifier: Apache-2.0
#include "lib/spec/fault_text.hpp"

#include <tmap/faults.hpp>
#include <tmap/rule_info.hpp>

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

constexpr std::array item_names{"map", "tensor", "row number", "group"};
static_assert(item_names.size() == item_kind_count);

struct fault_words {
  std::uint32_t bit;
  const char* name;
  const char* meaning;
};

constexpr fault_words words_of(ragged::fault f, const char* name, const char* meaning) {
  return {static_cast<std::uint32_t>(f), name, meaning};
}
constexpr fault_words words_of(moe::fault f, const char* name, const char* meaning) {
  return {static_cast<std::uint32_t>(f), name, meaning};
}
constexpr fault_words words_of(gemm::fault f, const char* name, const char* meaning) {
  return {static_cast<std::uint32_t>(f), name, meaning};
}

// Only these tables word the faults. Row i words bit i.

// Words the faults of tensors and of rows. Choices of experts count as rows.
constexpr fault_words tensor_faults[] = {
    words_of(ragged::fault::dim, "dim", "a dim, or the tensor as a whole, is larger than the operations take"),
    words_of(ragged::fault::stride, "stride", "a stride reaches too far, or is no multiple of the element's alignment"),
    words_of(ragged::fault::address, "address",
             "the address is null or misaligned, or it has rows that do not exist or reaches beyond all addresses"),
    words_of(ragged::fault::window, "window", "it reaches outside every address window"),
    words_of(ragged::fault::mismatch, "mismatch", "its two sides differ in shape"),
    words_of(ragged::fault::overlap, "overlap", "elements of the destination share bytes"),
    words_of(ragged::fault::truncated, "truncated",
             "it does not fit: it is larger than the dense tensor, or ends after the packed buffer"),
    words_of(ragged::fault::index, "index", "there is no row of this number"),
    words_of(moe::fault::expert, "expert", "there is no expert of this number"),
    words_of(moe::fault::capacity, "capacity", "its row would be past the last one"),
};
constexpr fault_words group_faults[] = {
    words_of(gemm::fault::rows, "rows",
             "it ends before it begins, begins before an earlier group ends, ends after the last row or its slot, "
             "or shares rows with an earlier group; with labels: its rows do not follow each other; with pointers: M "
             "is negative or too large"),
    words_of(gemm::fault::extent, "extent", "N or K is negative, too large, or no multiple of 16 bytes"),
    words_of(gemm::fault::address, "address",
             "an address is null, no multiple of 16, or its matrix reaches beyond all addresses"),
    words_of(gemm::fault::pitch, "pitch", "a pitch is no multiple of 16, below the bytes of a row, or 2^40 and more"),
    words_of(gemm::fault::label, "label", "its label is neither a group nor -1"),
    words_of(gemm::fault::alignment, "alignment",
             "it begins at no multiple of 16 bytes of an operand whose lines run along the ragged dim"),
    words_of(gemm::fault::a_row, "a_row", "A has no row of the number that names its row of A"),
    words_of(gemm::fault::c_row, "c_row", "C has no row of the number that names its row of C"),
};

constexpr bool rows_stand_at_their_bit(const fault_words* begin, const fault_words* end) {
  for (const fault_words* row = begin; row != end; ++row) {
    if (row->bit != 1u << (row - begin)) return false;
  }
  return true;
}
static_assert(rows_stand_at_their_bit(std::begin(tensor_faults), std::end(tensor_faults)));
static_assert(static_cast<std::uint32_t>(moe::fault::row) == static_cast<std::uint32_t>(ragged::fault::index));
static_assert(rows_stand_at_their_bit(std::begin(group_faults), std::end(group_faults)));

/// Returns the bit's name and meaning, as "stride (...)".
template <std::size_t Count>
std::string words(const fault_words (&table)[Count], std::uint32_t bit) {
  return bit < Count ? fmt::format("{} ({})", table[bit].name, table[bit].meaning) : fmt::format("unknown bit {}", bit);
}

std::string words_of_rule(std::uint32_t bit) {
  if (bit >= rule_count) return fmt::format("unknown bit {}", bit);
  const rule_info& row = info(static_cast<rule>(bit));
  std::string_view sentence = row.sentence;
  if (sentence.ends_with('.')) sentence.remove_suffix(1);
  return fmt::format("{} ({})", row.name, sentence);
}

/// `of_bit(i)` of each bit that is set.
template <class OfBit>
std::string all_words(std::uint64_t bits, const OfBit& of_bit) {
  std::string text;
  for (std::uint32_t i = 0; i < 64; ++i) {
    if ((bits >> i & 1) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", of_bit(i));
  }
  return text;
}

std::string words_of_map(std::uint64_t bits) {
  return all_words(bits, words_of_rule);
}
std::string words_of_tensor(std::uint64_t bits) {
  return all_words(bits, [](std::uint32_t bit) { return words(tensor_faults, bit); });
}
std::string words_of_group(std::uint64_t bits) {
  return all_words(bits, [](std::uint32_t bit) { return words(group_faults, bit); });
}

std::string words_of(item_kind kind, std::uint64_t bits) {
  switch (kind) {
    case item_kind::map: return words_of_map(bits);
    case item_kind::group: return words_of_group(bits);
    default: return words_of_tensor(bits);
  }
}

/// Returns whether a call of groups met a row that is bad by itself. Its index is that of the row.
bool is_row_of_groups(const bad_item& item) {
  constexpr auto of_row = static_cast<std::uint64_t>(gemm::fault::label) |
                          static_cast<std::uint64_t>(gemm::fault::a_row) |
                          static_cast<std::uint64_t>(gemm::fault::c_row);
  return items_of(item.call) == item_kind::group && (item.bits & of_row) != 0;
}

/// Returns the noun for an item. Choices are counted as rows, but are none.
const char* item_name(const bad_item& item) {
  if (item.call >= batch_call::moe_route) return "choice";
  const item_kind kind = is_row_of_groups(item) ? item_kind::row : items_of(item.call);
  return item_names[static_cast<std::size_t>(kind)];
}

std::string words_of(const bad_item& item) {
  return fmt::format("{} {}: {}", item_name(item), item.index, words_of(items_of(item.call), item.bits));
}

std::string call_words(const bad_item& item) {
  return fmt::format("{} (call {})", name(item.call), item.number);
}

std::string counted(std::uint64_t count, item_kind kind) {
  return fmt::format("{} bad {}{}", count, item_names[static_cast<std::size_t>(kind)], count == 1 ? "" : "s");
}

std::string counts_of(const fault_report& report) {
  const std::uint64_t counts[]{report.maps, report.tensors, report.rows, report.groups};
  std::string text;
  for (std::uint32_t kind = 0; kind < item_kind_count; ++kind) {
    if (counts[kind] == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", counted(counts[kind], static_cast<item_kind>(kind)));
  }
  return text.empty() ? "no bad items" : text;
}

std::string sentence_of(const bad_item& item) {
  return item.call == batch_call::none ? "none" : fmt::format("{}: {}", call_words(item), words_of(item));
}

template <class Status, class Words>
std::string status_words(Status status, const Words& words) {
  return support::without_throwing([&]() -> std::string {
    if (status.is_good()) return "good";
    return status.is_empty() ? "empty" : words(status.bits);
  });
}

}  // namespace

std::string detail::bad_items_sentence(const error& e) {
  // Bad rows are counted together with bad groups, and not out of a number.
  const std::string count = is_row_of_groups(e.bad) ? fmt::format("{} item{}", e.found, e.found == 1 ? "" : "s")
                                                    : fmt::format("{} of {} {}s", e.found, e.allowed, item_name(e.bad));
  return fmt::format(
      "{}: {} {} bad, among them {}. What is bad was passed over, all else is done; "
      "docs/when_results_look_wrong.md shows how to see each",
      call_words(e.bad), count, e.found == 1 ? "is" : "are", words_of(e.bad));
}

const char* name(batch_call call) {
  const auto row = static_cast<std::size_t>(call);
  return row < batch_call_count ? detail::batch_call_names[row] : "unknown call";
}

std::string to_string(const bad_item& item) {
  return support::without_throwing([&] { return sentence_of(item); });
}

std::string to_string(const fault_report& report) {
  return support::without_throwing([&] {
    if (report.first.call == batch_call::none) return counts_of(report);
    return fmt::format("{}; the first: {}", counts_of(report), sentence_of(report.first));
  });
}

std::string to_string(map_status status) {
  return status_words(status, words_of_map);
}
std::string ragged::to_string(tensor_status status) {
  return status_words(status, words_of_tensor);
}
std::string moe::to_string(choice_status status) {
  return status_words(status, words_of_tensor);
}
std::string gemm::to_string(group_status status) {
  return status_words(status, words_of_group);
}

}  // namespace tmap
