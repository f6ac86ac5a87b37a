// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode.hpp>

#include <atomic>
#include <mutex>
#include <sstream>
#include <string>

#include "device/gpu_fixture.hpp"
#include "lib/driver/map_driver.hpp"
#include "lib/driver/raw_calls.hpp"
#include "verdicts/populations.hpp"
#include "verdicts/verdict_book.hpp"

// Compares the verdicts of host, device and driver on one population. The host's threads make
// items, judge them and ask the driver, one chunk at a time, while the device judges the previous
// chunk.

namespace tmap::testing {

inline constexpr std::uint64_t chunk_blocks = 256;
inline constexpr std::uint64_t chunk_items = chunk_blocks * block_items;

/// The rules that a judge overlooks, to check that the other judges detect it.
struct blindness {
  rule_set host{};
  rule_set device{};
  rule_set driver{};
};

template <class Population>
__global__ void judge_items(const typename Population::context* shared, const typename Population::item* items,
                            rule_set overlooked, std::uint64_t* verdicts) {
  const std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  verdicts[i] = Population::judge(shared[i / block_items], items[i]) & ~overlooked.bits;
}

class driver_judge {
 public:
  driver_judge()
      : tiled_{driver::process_driver().functions().encode_tiled().value()},
        im2col_{driver::process_driver().functions().encode_im2col().value()} {}

  bool refuses(const tensor_spec& spec) const { return driver::raw_encode(tiled_, spec, unused()) != CUDA_SUCCESS; }
  bool refuses(const im2col_spec& spec) const { return driver::raw_encode(im2col_, spec, unused()) != CUDA_SUCCESS; }

 private:
  static tensor_map& unused() {
    thread_local tensor_map map;
    return map;
  }

  driver::encode_tiled_function tiled_;
  driver::encode_im2col_function im2col_;
};

/// Page-locked host memory, for copies to and from the device without a wait.
template <class T>
class pinned_array {
 public:
  explicit pinned_array(std::uint64_t count) : count_{count} {
    EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes()), cudaSuccess);
  }
  pinned_array(const pinned_array&) = delete;
  pinned_array& operator=(const pinned_array&) = delete;
  ~pinned_array() { cudaFreeHost(data_); }

  T* data() const { return data_; }
  T& operator[](std::uint64_t i) const { return data_[i]; }
  std::uint64_t bytes() const { return count_ * sizeof(T); }

 private:
  T* data_{};
  std::uint64_t count_;
};

/// Holds a chunk in progress: the host's items and verdicts, and the device's verdicts.
template <class Population>
struct chunk {
  using context = typename Population::context;
  using item = typename Population::item;

  chunk() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess); }
  ~chunk() { cudaStreamDestroy(stream); }

  void send_to_device(rule_set overlooked) {
    constexpr unsigned int threads = 128;
    EXPECT_EQ(cudaMemcpyAsync(device_shared.data(), shared.data(), shared.bytes(), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(device_items.data(), items.data(), items.bytes(), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    judge_items<Population><<<chunk_items / threads, threads, 0, stream>>>(device_shared.data(), device_items.data(),
                                                                           overlooked, device_verdicts.data());
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(found.data(), device_verdicts.data(), found.bytes(), cudaMemcpyDeviceToHost, stream),
              cudaSuccess);
    is_judged = true;
  }

  std::uint64_t number{};
  bool is_judged{};
  pinned_array<context> shared{chunk_blocks};
  pinned_array<item> items{chunk_items};
  pinned_array<std::uint64_t> verdicts{chunk_items};  // the host's
  pinned_array<std::uint64_t> found{chunk_items};     // the device's
  device_array<context> device_shared{chunk_blocks};
  device_array<item> device_items{chunk_items};
  device_array<std::uint64_t> device_verdicts{chunk_items};
  cudaStream_t stream{};
};

template <class Population>
class judgement {
 public:
  judgement(const device_limits& limits, const blindness& blind) : limits_{limits}, blind_{blind} {}

  /// Judges `chunks` chunks, or stops at the first unexpected verdict.
  void run(std::uint64_t chunks) {
    for (std::uint64_t number = 0; number < chunks && !is_over_; ++number) {
      chunk<Population>& next = chunks_[number % 2];
      compare_with_device(next);
      next.number = number;
      on_all_threads(chunk_blocks, [&](std::uint64_t begin, std::uint64_t end) { judge_blocks(next, begin, end); });
      if (!is_over_) next.send_to_device(blind_.device);
    }
    for (chunk<Population>& last : chunks_) compare_with_device(last);
  }

  const verdict_book& book() const { return book_; }
  /// Returns the unexpected verdict; empty if there is none.
  const std::string& surprise() const { return surprise_; }

 private:
  void judge_blocks(chunk<Population>& into, std::uint64_t begin, std::uint64_t end) {
    cudaSetDevice(0);  // the driver gives no verdict to a thread without a context
    verdict_book book;
    for (std::uint64_t block = begin; block < end && !is_over_; ++block) judge_block(into, block, book);
    const std::lock_guard<std::mutex> lock{mutex_};
    book_.add(book);
  }

  void judge_block(chunk<Population>& into, std::uint64_t block, verdict_book& book) {
    block_source<Population> source{into.number * chunk_blocks + block};
    const auto& shared = into.shared[block] = source.shared();
    const bool driver_knows = Population::driver_knows(shared, limits_);
    for (std::uint64_t i = block * block_items; i < (block + 1) * block_items; ++i) {
      const auto& item = into.items[i] = source.next();
      const std::uint64_t verdict = into.verdicts[i] = Population::judge(shared, item) & ~blind_.host.bits;
      const std::uint64_t whole = Population::judge_whole(shared, item);
      if (verdict != whole) return stop(into, i, "the host, judging the whole, finds " + rule_names(whole));
      if (!driver_knows) {
        book.add(verdict);
        continue;
      }
      const bool refused = driver_refuses(shared, item, verdict);
      if (!book.add(verdict, refused)) return stop(into, i, refused ? "the driver refuses" : "the driver accepts");
    }
  }

  bool driver_refuses(const typename Population::context& shared, const typename Population::item& item,
                      std::uint64_t verdict) const {
    const bool overlooks = verdict != 0 && (verdict & ~blind_.driver.bits) == 0;
    return !overlooks && driver_.refuses(Population::question(shared, item));
  }

  void compare_with_device(chunk<Population>& judged) {
    if (!judged.is_judged) return;
    judged.is_judged = false;
    EXPECT_EQ(cudaStreamSynchronize(judged.stream), cudaSuccess);
    if (is_over_) return;
    for (std::uint64_t i = 0; i < chunk_items; ++i) {
      if (judged.verdicts[i] == judged.found[i]) continue;
      return stop(judged, i, "the device finds " + rule_names(judged.found[i]));
    }
  }

  void stop(const chunk<Population>& where, std::uint64_t i, const std::string& finding) {
    const std::lock_guard<std::mutex> lock{mutex_};
    if (is_over_.exchange(true)) return;
    std::ostringstream text;
    text << finding << ", the host " << rule_names(where.verdicts[i]) << "; " << Population::name << ", block "
         << where.number * chunk_blocks + i / block_items << ", item " << i % block_items << "\n  "
         << Population::text(where.shared[i / block_items], where.items[i]);
    surprise_ = text.str();
  }

  device_limits limits_;
  blindness blind_;
  driver_judge driver_;
  chunk<Population> chunks_[2];
  std::mutex mutex_;
  std::atomic<bool> is_over_{};
  verdict_book book_;
  std::string surprise_;
};

}  // namespace tmap::testing
