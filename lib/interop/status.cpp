// SPDX-License-Identifier: Apache-2.0
#include <tmap/c/status.h>
#include <tmap/log.hpp>
#include <tmap/rule.hpp>
#include <tmap/rule_info.hpp>

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "lib/interop/convert.hpp"
#include "lib/interop/inputs.hpp"
#include "lib/support/without_throwing.hpp"

namespace tmap::interop {
namespace {

static_assert(mirrors(TMAP_RULE_BROKEN, status::rule_broken));
static_assert(mirrors(TMAP_INVALID_ARGUMENT, status::invalid_argument) && mirrors(TMAP_NO_DRIVER, status::no_driver));
static_assert(mirrors(TMAP_NO_DEVICE, status::no_device));
static_assert(mirrors(TMAP_COMPUTE_CAPABILITY_TOO_LOW, status::compute_capability_too_low));
static_assert(mirrors(TMAP_DRIVER_TOO_OLD, status::driver_too_old));
static_assert(mirrors(TMAP_SYMBOL_MISSING, status::symbol_missing));
static_assert(mirrors(TMAP_DRIVER_REFUSED, status::driver_refused) && mirrors(TMAP_NO_CONTEXT, status::no_context));
static_assert(mirrors(TMAP_EARLIER_ASYNCHRONOUS_ERROR, status::earlier_asynchronous_error));
static_assert(mirrors(TMAP_NO_KERNEL_IMAGE, status::no_kernel_image));
static_assert(mirrors(TMAP_OUT_OF_MEMORY, status::out_of_memory) && mirrors(TMAP_CUDA_FAILURE, status::cuda_failure));
static_assert(mirrors(TMAP_NOT_A_TENSOR_MAP, status::not_a_tensor_map));
static_assert(mirrors(TMAP_ILLEGAL_INSTRUCTION, status::illegal_instruction));
static_assert(mirrors(TMAP_ILLEGAL_MEMORY_ACCESS, status::illegal_memory_access));
static_assert(mirrors(TMAP_MISALIGNED_ADDRESS, status::misaligned_address));
static_assert(mirrors(TMAP_UNSUPPORTED, status::unsupported) && mirrors(TMAP_POOL_EXHAUSTED, status::pool_exhausted));
static_assert(mirrors(TMAP_SERVICE_DEAD, status::service_dead) && mirrors(TMAP_FORKED, status::forked));
static_assert(mirrors(TMAP_WRONG_CONTEXT, status::wrong_context));
static_assert(mirrors(TMAP_SELF_TEST_FAILED, status::self_test_failed));
static_assert(mirrors(TMAP_PAGEABLE_MEMORY_IN_CAPTURE, status::pageable_memory_in_capture));
static_assert(mirrors(TMAP_BAD_ITEMS, status::bad_items));
static_assert(mirrors(TMAP_NO_PEER_ACCESS, status::no_peer_access));
static_assert(mirrors(TMAP_NCCL_MISSING, status::nccl_missing) && mirrors(TMAP_NCCL_VERSION, status::nccl_version));
static_assert(mirrors(TMAP_NCCL_FAILURE, status::nccl_failure));
static_assert(mirrors(TMAP_MULTICAST_NOT_OFF, status::multicast_not_off));
static_assert(mirrors(TMAP_WINDOWS_DIFFER, status::windows_differ));
static_assert(mirrors(TMAP_PEER_TIMEOUT, status::peer_timeout) && mirrors(TMAP_GROUP_BROKEN, status::group_broken));
static_assert(mirrors(TMAP_PEER_LOST, status::peer_lost) && mirrors(TMAP_PEER_MISMATCH, status::peer_mismatch));
static_assert(mirrors(TMAP_PEER_OVERFLOW, status::peer_overflow));
static_assert(TMAP_ARGUMENT_CAPACITY == argument_name::capacity + 1);

struct noted_failure {
  const char* function;
  answer ended;
};

thread_local noted_failure last{};

std::string message_of(const noted_failure& failed) {
  if (failed.ended.is_ok()) return {};
  return fmt::format("{}: {}", failed.function, support::or_throw(to_string(failed.ended.details)));
}

/// C's callback for lines of the log. The log takes a callback of its own type, so it gets
/// `forward`.
struct c_destination {
  tmap_log_callback callback;
  void* user;
};

void forward(log_level level, const char* text, void* user) {
  const auto& to = *static_cast<const c_destination*>(user);
  to.callback(static_cast<tmap_log_level>(level), text, to.user);
}

/// Is never destroyed: threads may log while the process exits.
struct c_log {
  std::mutex mutex;
  std::unique_ptr<c_destination> destination;
};

c_log& current_log() {
  static c_log& log = *new c_log;
  return log;
}

answer set_callback(tmap_log_callback callback, void* user) {
  c_log& log = current_log();
  auto fresh = callback == nullptr ? nullptr : std::make_unique<c_destination>(c_destination{callback, user});
  const std::lock_guard lock{log.mutex};
  set_log_callback(fresh == nullptr ? nullptr : &forward, fresh.get());
  log.destination.swap(fresh);
  return {};
}

}  // namespace

argument_name c_name_of(const argument_name& name) {
  struct other_name {
    std::string_view library;
    std::string_view c;
  };
  static constexpr other_name beginnings[] = {
      {"scratch.memory", "call.workspace"},
      {"scratch.bytes", "call.workspace_bytes"},
      {"statuses", "call.statuses"},
      {"header", "call.header"},
      {"windows", "call.windows"},
      {"check", "call.check"},
      {"choices.published_by", "call.publish"},
      {"choices.owners.ranks", "call.owners"},
      {"choices.owners.memory", "call.owner_window"},
      {"choices.", "call."},
      {"problem.type", "problem.operand"},
      {"problem.epilogue.", "problem."},
      {"changed.indices", "changed"},
      {"changed.count", "changed_count"},
      {"map_batch", "batch"},
      {"batch", "old"},
  };
  for (const other_name& other : beginnings) {
    if (name.view().substr(0, other.library.size()) != other.library) continue;
    argument_name made{other.c};
    made.append(name.view().substr(other.library.size()));
    return made;
  }
  return name;
}

tmap_status note(const char* function, const answer& ended) noexcept {
  last = {function, ended};
  return ended.code;
}

}  // namespace tmap::interop

using namespace tmap::interop;

uint32_t tmap_version(void) {
  return TMAP_VERSION;
}

const char* tmap_status_name(tmap_status code) {
  switch (code) {
    case TMAP_OK: return "ok";
    case TMAP_INVALID_HANDLE: return "invalid_handle";
    case TMAP_BUFFER_TOO_SMALL: return "buffer_too_small";
    case TMAP_BATCH_BUSY: return "batch_busy";
    case TMAP_INTERNAL_ERROR: return "internal_error";
    case TMAP_GROUP_BUSY: return "group_busy";
    default: return code > 0 && code < 256 ? tmap::name(static_cast<tmap::status>(code)) : "unknown";
  }
}

tmap_status tmap_last_error(tmap_error* out) {
  arguments given;
  given.structure(out, "last");
  if (!given) return TMAP_INVALID_ARGUMENT;
  const tmap::error& e = last.ended.details;
  const tmap_slot_counts slots{e.slots.capacity, e.slots.free, e.slots.leased, e.slots.pending, e.slots.captured};
  *out = {sizeof(tmap_error),
          last.ended.code,
          e.rules.bits,
          static_cast<std::int32_t>(e.first),
          e.axis,
          e.found,
          e.allowed,
          e.cuda_code,
          0,
          slots,
          c_of(e.bad),
          {}};
  std::memcpy(out->argument, e.argument.c_str(), sizeof out->argument);
  return TMAP_OK;
}

tmap_status tmap_last_message(char* text, size_t capacity, size_t* length) {
  const text_output to{text, capacity, length};
  arguments given;
  to.check(given);
  if (!given) return TMAP_INVALID_ARGUMENT;
  const std::string message = tmap::support::without_throwing([] { return message_of(last); });
  if (message.empty() && !last.ended.is_ok()) return TMAP_OUT_OF_MEMORY;
  return to.write(message).code;
}

uint32_t tmap_rule_count(void) {
  return tmap::rule_count;
}

const char* tmap_rule_name(uint32_t rule) {
  return rule < tmap::rule_count ? tmap::info(static_cast<tmap::rule>(rule)).name : nullptr;
}

const char* tmap_rule_sentence(uint32_t rule) {
  return rule < tmap::rule_count ? tmap::info(static_cast<tmap::rule>(rule)).sentence : nullptr;
}

tmap_status tmap_set_log_callback(tmap_log_callback callback, void* user) {
  return call(__func__, [&] { return set_callback(callback, user); });
}
