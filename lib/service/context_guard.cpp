// SPDX-License-Identifier: Apache-2.0
#include "lib/service/context_guard.hpp"

#include <fmt/format.h>

#include "lib/support/check.hpp"
#include "lib/support/log.hpp"

namespace tmap::service {
namespace {

result<std::uint64_t> current_context(const service_calls& calls) {
  std::uint64_t id = 0;
  TMAP_TRY_CUDA(calls.current_context(&id));
  return id;
}

failure wrong_context(std::uint64_t current, std::uint64_t home) {
  return failure{error{.code = status::wrong_context, .found = current, .allowed = home}};
}

}  // namespace

result<home_context> find_home_context(const service_calls& calls) {
  home_context home;
  TMAP_TRY_CUDA(calls.current_device(&home.device));
  result<std::uint64_t> current = current_context(calls);
  if (current && *current == 0) {
    TMAP_TRY_CUDA(calls.bind_primary_context(home.device));
    current = current_context(calls);
  }
  if (!current) return failure{current.error()};
  if (*current == 0) return failure{error{.code = status::no_context}};
  std::uint64_t primary = 0;
  TMAP_TRY_CUDA(calls.primary_context(home.device, &primary));
  home.id = *current;
  home.is_primary = primary == home.id;
  return home;
}

result<void> context_guard::check() {
  if (is_forked()) return failure{error{.code = status::forked}};
  if (is_dead()) return failure{death()};
  const result<std::uint64_t> current = current_context(calls_);
  if (!current) return failure{judge(current.error())};
  if (*current == home_.id) return {};
  return check_other(*current);
}

result<void> context_guard::check_other(std::uint64_t current) {
  if (!home_.is_primary) return wrong_context(current, home_.id);
  std::uint64_t primary = 0;
  const result<void> asked = as_result(calls_.primary_context(home_.device, &primary));
  if (!asked) return asked;
  if (primary != home_.id) return failure{die({.cuda_code = cudaErrorContextIsDestroyed})};
  return enter_home(current);
}

result<void> context_guard::enter_home(std::uint64_t current) {
  int device = -1;
  if (current == 0) {
    const result<void> asked = as_result(calls_.current_device(&device));
    if (!asked) return asked;
  }
  if (device != home_.device) return wrong_context(current, home_.id);
  return as_result(calls_.bind_primary_context(device));
}

result<void> context_guard::as_result(cudaError_t code) {
  return code == cudaSuccess ? result<void>{} : failure{judge(support::runtime_error(code))};
}

error context_guard::judge(const error& e) {
  return e.code == status::earlier_asynchronous_error ? die(e) : e;
}

error context_guard::die(const error& reason) {
  const std::lock_guard lock{dying_};
  if (!is_dead()) {
    cuda_code_ = reason.cuda_code;
    is_dead_.store(true, std::memory_order_release);
    support::log_made(log_level::error, [&] { return to_string(death()); });
  }
  return death();
}

error context_guard::death() const {
  return {.code = status::service_dead, .cuda_code = cuda_code_};
}

}  // namespace tmap::service
