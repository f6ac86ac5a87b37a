// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/nccl_windows.hpp"

#include <atomic>
#include <new>
#include <utility>

#include "lib/peer/local_window.hpp"
#include "lib/support/arguments.hpp"
#include "lib/support/check.hpp"

namespace tmap::peer {
namespace {

constexpr int no_flags = 0;  // NCCL_WIN_DEFAULT: the other flags start what may use multicast

/// A window of this rank. NCCL may still write the handle of one whose registration did not end, so
/// the window of a broken communicator is never destroyed.
class nccl_window {
 public:
  nccl_window(std::shared_ptr<communicator> over, std::uint64_t bytes)
      : over_{std::move(over)}, bytes_{window_bytes(bytes)} {}
  nccl_window(const nccl_window&) = delete;
  nccl_window& operator=(const nccl_window&) = delete;

  ~nccl_window() {
    if (!over_->may_end()) return;
    const device_guard current{over_->calls(), over_->device()};
    if (current.code() != cudaSuccess) return;
    const nccl_functions& nccl = over_->nccl();
    if (handle_ != nullptr) static_cast<void>(over_->settle(nccl.close_window(over_->get(), handle_)));
    if (data_ != nullptr && over_->may_end()) static_cast<void>(nccl.free(data_));
  }

  result<void> allocate() {
    TMAP_TRY_NCCL(over_->nccl().allocate(&data_, bytes_));
    return clear(over_->calls(), data_, peer_header_bytes);
  }

  /// Collective.
  result<void> open() {
    return over_->settle(over_->nccl().open_window(over_->get(), data_, bytes_, &handle_, no_flags));
  }

  result<rank_values> addresses_of_ranks() const {
    const nccl_functions& nccl = over_->nccl();
    if (nccl.window_address == nullptr) return ask();
    rank_values all{};
    for (std::uint32_t i = 0; i < over_->ranks(); ++i) {
      void* found = nullptr;
      const nccl_result code = nccl.window_address(handle_, 0, static_cast<int>(i), &found);
      if (code == nccl_result::invalid_argument || code == nccl_result::invalid_usage) return no_window();
      TMAP_TRY_NCCL(code);
      all[i] = reinterpret_cast<std::uintptr_t>(found);
    }
    return all;
  }

  /// Keeps a window for the rest of the process, where a tool that looks for leaks finds it.
  static void keep(std::shared_ptr<nccl_window> window) {
    static std::atomic<nccl_window*> kept{nullptr};
    window->next_ = kept.exchange(window.get());
    window->self_ = std::move(window);
  }

 private:
  /// Without peer access between all GPUs, NCCL registers a buffer of its own kind, and reports no
  /// failure. Its handle is no device memory.
  result<rank_values> ask() const {
    bool is_window = false;
    TMAP_TRY_CUDA(over_->calls().is_device_memory(&is_window, handle_));
    return is_window ? over_->ask(handle_) : no_window();
  }

  static failure no_window() {
    return failure{error{.code = status::no_peer_access,
                         .reason = "NCCL opens no windows here: not all GPUs of the group can reach each other, or "
                                   "the environment forbids it (NCCL_CUMEM_ENABLE, NCCL_WIN_ENABLE)"}};
  }

  const std::shared_ptr<communicator> over_;
  const std::size_t bytes_;
  void* data_{};
  nccl_window_handle handle_{};
  std::shared_ptr<nccl_window> self_;
  nccl_window* next_{};
};

class nccl_provider final : public provider {
 public:
  explicit nccl_provider(std::shared_ptr<communicator> over) : over_{std::move(over)} {}

  result<void> check() override { return over_->check(); }

  result<window> open(std::uint64_t bytes) override {
    const device_guard current{over_->calls(), over_->device()};
    TMAP_TRY_CUDA(current.code());
    std::shared_ptr<nccl_window> made;
    const result<void> ready = agree(allocate(made, bytes), bytes, "bytes");
    if (!ready) return failure{ready.error()};
    const result<addresses> at = open_all(made);
    if (!at) return failure{at.error()};
    return window{*at, std::move(made)};
  }

  result<window> open_local(std::uint64_t bytes, std::uint64_t pair_bytes) override {
    const device_guard current{over_->calls(), over_->device()};
    TMAP_TRY_CUDA(current.code());
    std::shared_ptr<local_window> made;
    result<void> ready = agree(allocate(made, bytes, pair_bytes), bytes, "bytes");
    if (ready) ready = agree(ready, pair_bytes, "pair_bytes");
    if (ready) ready = made->connect();
    if (!ready) return failure{ready.error()};
    window opened;
    opened.at[over_->rank()] = made->address();
    opened.local = made.get();
    opened.owner = std::move(made);
    return opened;
  }

 private:
  /// Does not throw: the other ranks wait for this one's outcome.
  template <class Window, class... Sizes>
  result<void> allocate(std::shared_ptr<Window>& made, Sizes... sizes) try {
    made = std::make_shared<Window>(over_, sizes...);
    return made->allocate();
  } catch (const std::bad_alloc&) {
    return failure{error{status::out_of_memory}};
  }

  /// Fails on all ranks if one of them failed before, or wants another size. No rank uses the
  /// window before every rank has set its header to zero.
  result<void> agree(const result<void>& mine, std::uint64_t bytes, const char* argument) {
    const result<rank_values> all = over_->exchange(mine ? bytes : 0);
    if (!mine) return mine;
    if (!all) return failure{all.error()};
    for (std::uint32_t i = 0; i < over_->ranks(); ++i) {
      const std::uint64_t other = (*all)[i];
      if (other == bytes) continue;
      const error e{.code = other == 0 ? status::out_of_memory : status::windows_differ,
                    .found = bytes,
                    .allowed = other == 0 ? i : other,
                    .argument = argument,
                    .reason = other == 0 ? "is {found}; rank {allowed} could not allocate its window"
                                         : "is {found}; another rank of the group asked for {allowed}"};
      return failure{e};
    }
    return {};
  }

  /// Opens the window on all ranks, and fails on all of them if it fails on one.
  result<addresses> open_all(std::shared_ptr<nccl_window>& made) {
    const result<void> opened = made->open();
    if (!opened) {
      nccl_window::keep(std::move(made));
      return failure{opened.error()};
    }
    const result<addresses> found = check_reach(made->addresses_of_ranks());
    const result<rank_values> all = over_->exchange(found ? 1 : 0);
    if (!found) return found;
    if (!all) return failure{all.error()};
    for (std::uint32_t i = 0; i < over_->ranks(); ++i) {
      if ((*all)[i] != 0) continue;
      return failure{error{.code = status::no_peer_access,
                           .found = i,
                           .reason = "rank {found} of the group cannot reach the windows of all ranks"}};
    }
    return found;
  }

  result<addresses> check_reach(const result<rank_values>& found) const {
    if (!found) return failure{found.error()};
    addresses all{};
    for (std::uint32_t i = 0; i < over_->ranks(); ++i) {
      all[i] = (*found)[i];
      if ((*found)[i] != 0) continue;
      return failure{error{
          .code = status::no_peer_access, .found = i, .reason = "this GPU cannot reach the window of rank {found}"}};
    }
    return all;
  }

  const std::shared_ptr<communicator> over_;
};

}  // namespace

std::shared_ptr<provider> nccl_windows(std::shared_ptr<communicator> over) {
  return std::make_shared<nccl_provider>(std::move(over));
}

}  // namespace tmap::peer
