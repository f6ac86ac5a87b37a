// SPDX-License-Identifier: Apache-2.0
#include "lib/simulator/ranks/fiber.hpp"

#include <cstdlib>
#include <utility>

// The sanitizers follow the stack of a thread, so they must hear of each switch.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace tmap::ranks {
namespace {

thread_local fiber* left = nullptr;      ///< the fiber that handed over control
thread_local fiber* entering = nullptr;  ///< the fiber that got it

}  // namespace

fiber::~fiber() {
#if defined(__SANITIZE_THREAD__)
  if (stack_ && sanitizer_ != nullptr) __tsan_destroy_fiber(sanitizer_);
#endif
}

void fiber::start(std::function<void()> body) {
  if (!stack_) {
    stack_.reset(new std::byte[stack_bytes]);  // not filled: most of it is never touched
    bottom_ = stack_.get();
    bytes_ = stack_bytes;
#if defined(__SANITIZE_THREAD__)
    sanitizer_ = __tsan_create_fiber(0);
#endif
  }
#if defined(__SANITIZE_ADDRESS__)
  sanitizer_ = nullptr;
#endif
  body_ = std::move(body);
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = stack_bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, &fiber::enter, 0);
}

void fiber::enter() {
  entering->arrive();
  entering->body_();
  std::abort();  // a body ends by leave_for
}

void fiber::hand_over(fiber& other, [[maybe_unused]] bool for_good) {
  left = this;
  entering = &other;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(for_good ? nullptr : &sanitizer_, other.bottom_, other.bytes_);
#elif defined(__SANITIZE_THREAD__)
  if (!stack_) sanitizer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(other.sanitizer_, 0);
#endif
  swapcontext(&context_, &other.context_);
  arrive();
}

void fiber::arrive() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(sanitizer_, &left->bottom_, &left->bytes_);
#endif
}

void fiber::switch_to(fiber& other) {
  hand_over(other, false);
}

void fiber::leave_for(fiber& other) {
  hand_over(other, true);
  std::abort();
}

}  // namespace tmap::ranks
