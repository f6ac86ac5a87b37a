// SPDX-License-Identifier: Apache-2.0
#include "support/failing_new.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace tmap::testing {
namespace {

struct plan {
  std::uint64_t failing{};
  bool all_after{};
  std::uint64_t made{};
  std::uint64_t exempt{};  ///< how many `uncounted_allocations` live
};
thread_local plan of_thread;

bool has_run_out() {
  if (of_thread.exempt != 0 || of_thread.failing == 0) return false;
  const std::uint64_t n = ++of_thread.made;
  return n == of_thread.failing || (of_thread.all_after && n > of_thread.failing);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (has_run_out()) return nullptr;
  return std::aligned_alloc(alignment, (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc{};
  return memory;
}

constexpr std::size_t usual_alignment = alignof(std::max_align_t);

}  // namespace

void fail_allocation(std::uint64_t n, bool all_after) {
  of_thread.failing = n;
  of_thread.all_after = all_after;
  of_thread.made = 0;
}

std::uint64_t allocations_made() {
  return of_thread.made;
}

uncounted_allocations::uncounted_allocations() {
  ++of_thread.exempt;
}

uncounted_allocations::~uncounted_allocations() {
  --of_thread.exempt;
}

}  // namespace tmap::testing

using tmap::testing::allocate;
using tmap::testing::allocate_or_throw;
using tmap::testing::usual_alignment;

void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, usual_alignment);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes, usual_alignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, usual_alignment);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, usual_alignment);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);
}
