// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace tmap::ranks {

/// Runs a function on a stack of its own and hands control over only by its own calls. A fiber that
/// was never started stands for the stack of the caller.
class fiber {
 public:
  fiber() = default;
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;
  ~fiber();

  /// Makes the next switch to this fiber call `body`, which must end by `leave_for`.
  void start(std::function<void()> body);
  /// Hands control to `other` until something switches back.
  void switch_to(fiber& other);
  /// The same from the end of a body. The fiber may be started again.
  [[noreturn]] void leave_for(fiber& other);

 private:
  static void enter();
  void hand_over(fiber& other, bool for_good);
  void arrive();

  static constexpr std::size_t stack_bytes = 256 * 1024;
  ucontext_t context_{};
  std::unique_ptr<std::byte[]> stack_;
  std::function<void()> body_;
  const void* bottom_{nullptr};  ///< the stack as the address sanitizer knows it
  std::size_t bytes_{0};
  void* sanitizer_{nullptr};  ///< the sanitizers' own state of this fiber
};

}  // namespace tmap::ranks
