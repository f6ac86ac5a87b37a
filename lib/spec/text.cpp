// SPDX-License-Identifier: Apache-2.0
#include <tmap/error.hpp>
#include <tmap/validate.hpp>

#include <fmt/format.h>

#include "lib/spec/fault_text.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap {
namespace {

std::string sentence_of(const violation& v) {
  const rule_info& row = info(v.id);
  return fmt::format(
      "{} {}", row.name,
      fmt::format(fmt::runtime(row.message), fmt::arg("axis", v.axis), fmt::arg("found", v.found),
                  fmt::arg("signed_found", static_cast<std::int64_t>(v.found)), fmt::arg("allowed", v.allowed)));
}

std::string names_except(rule_set rules, rule first) {
  std::string names;
  for (std::uint32_t i = 0; i < rule_count; ++i) {
    const auto id = static_cast<rule>(i);
    if (id != first && rules.contains(id)) names += fmt::format("{}{}", names.empty() ? "" : ", ", info(id).name);
  }
  return names;
}

struct status_text {
  const char* name;
  const char* sentence;
};

status_text text_of(status code) {
  switch (code) {
    case status::rule_broken: return {"rule_broken", "the spec breaks a rule"};
    case status::invalid_argument: return {"invalid_argument", "an argument lies outside the function's contract"};
    case status::no_driver: return {"no_driver", "this machine has no CUDA driver"};
    case status::no_device: return {"no_device", "the CUDA driver sees no GPU"};
    case status::compute_capability_too_low:
      return {"compute_capability_too_low", "the GPU has no copy engine: compute capability 9.0 or higher is needed"};
    case status::driver_too_old:
      return {"driver_too_old", "the CUDA driver is too old for this function: update the driver"};
    case status::symbol_missing: return {"symbol_missing", "the CUDA driver does not have this function"};
    case status::driver_refused: return {"driver_refused", "the CUDA driver refused the arguments"};
    case status::no_context: return {"no_context", "the calling thread has no usable CUDA context"};
    case status::earlier_asynchronous_error:
      return {"earlier_asynchronous_error",
              "an earlier kernel broke the CUDA context; the process must be started again"};
    case status::no_kernel_image: return {"no_kernel_image", "tmap was not built for this GPU"};
    case status::out_of_memory: return {"out_of_memory", "an allocation failed"};
    case status::cuda_failure: return {"cuda_failure", "a CUDA call failed"};
    case status::not_a_tensor_map: return {"not_a_tensor_map", "the 128 bytes are no tensor map"};
    case status::illegal_instruction:
      return {"illegal_instruction", "the copy engine would raise an illegal instruction"};
    case status::misaligned_address: return {"misaligned_address", "the copy engine would raise a misaligned address"};
    case status::illegal_memory_access:
      return {"illegal_memory_access", "the copy engine would raise an illegal memory access"};
    case status::unsupported: return {"unsupported", "the combination is documented but not supported here"};
    case status::pool_exhausted: return {"pool_exhausted", "the service has too few free slots in one piece"};
    case status::service_dead:
      return {"service_dead", "the CUDA context was lost or broken: make a new service in a new context"};
    case status::forked:
      return {"forked", "the service was made before this process was forked off: CUDA works in the parent only"};
    case status::wrong_context:
      return {"wrong_context", "another CUDA context is current than the one the service was made in"};
    case status::self_test_failed:
      return {"self_test_failed", "a map made on this GPU differs from the driver's: nothing can be encoded here"};
    case status::pageable_memory_in_capture:
      return {"pageable_memory_in_capture",
              "an array lies in pageable host memory, which a graph would read again at each replay: use pinned memory "
              "that outlives the graph, or device memory"};
    case status::bad_items: return {"bad_items", "a checked call met bad items"};
  }
  return {"unknown", "an unknown status"};
}

/// Returns what is wrong with an argument or, if none is named, with the machine.
std::string reason_sentence(const error& e) {
  const std::string reason =
      fmt::format(fmt::runtime(e.reason), fmt::arg("found", e.found), fmt::arg("allowed", e.allowed));
  return e.argument.empty() ? reason : fmt::format("`{}` {}", e.argument.view(), reason);
}

std::string sentence_of(const error& e) {
  if (e.code == status::bad_items) return detail::bad_items_sentence(e);
  if (e.reason != nullptr) return reason_sentence(e);
  std::string text = text_of(e.code).sentence;
  if (!e.argument.empty()) text = fmt::format("`{}`: {}", e.argument.view(), text);
  if (e.code == status::pageable_memory_in_capture) {
    text += fmt::format(" (the array at {:#x})", e.found);
  } else if (e.found != 0 || e.allowed != 0) {
    if (e.rules.empty() && e.code != status::pool_exhausted)
      text += fmt::format(" (found {}, allowed {})", e.found, e.allowed);
  }
  if (!e.rules.empty()) {
    text += fmt::format(": {}", sentence_of(violation{e.first, e.axis, e.found, e.allowed}));
    const std::string others = names_except(e.rules, e.first);
    if (!others.empty()) text += fmt::format(" (also broken: {})", others);
  }
  if (e.code == status::pool_exhausted) {
    text += fmt::format(": {} asked for; of {} slots {} are free, {} leased, {} pending, {} captured", e.found,
                        e.slots.capacity, e.slots.free, e.slots.leased, e.slots.pending, e.slots.captured);
  }
  if (e.cuda_code != 0) text += fmt::format(" [CUDA code {}]", e.cuda_code);
  return text;
}

}  // namespace

std::string to_string(const violation& v) {
  return support::without_throwing([&] { return sentence_of(v); });
}

std::string to_string(const violations& v) {
  return support::without_throwing([&] {
    if (v.empty()) return std::string{"no rule broken"};
    std::string lines;
    for (const violation& each : v) lines += fmt::format("{}{}", lines.empty() ? "" : "\n", sentence_of(each));
    return lines;
  });
}

std::string to_string(const error& e) {
  return support::without_throwing([&] { return sentence_of(e); });
}

const char* name(status code) {
  return text_of(code).name;
}

}  // namespace tmap
