// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/encode_batch.hpp>
#include <tmap/map_batch.hpp>
#include <tmap/slot_record.hpp>

#include <atomic>
#include <chrono>
#include <numeric>
#include <vector>

#include "device/gpu_fixture.hpp"
#include "kernels/launch.hpp"

// Lends and encodes slots with their records by hand, in any order, right or wrong.

namespace tmap::testing {

/// Holds some slots that were lent once.
struct slot_lease {
  std::uint64_t first;
  std::uint32_t count;
  std::uint32_t generation;
};

/// Owns a stream that waits for no other.
class cuda_stream {
 public:
  cuda_stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  cuda_stream(const cuda_stream&) = delete;
  cuda_stream& operator=(const cuda_stream&) = delete;
  ~cuda_stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void finish() const { EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

 private:
  cudaStream_t stream_{};
};

class cuda_event {
 public:
  cuda_event() { EXPECT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess); }
  cuda_event(const cuda_event&) = delete;
  cuda_event& operator=(const cuda_event&) = delete;
  ~cuda_event() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) const { EXPECT_EQ(cudaEventRecord(event_, stream), cudaSuccess); }
  /// Does not wait if the event was never recorded.
  void hold(cudaStream_t stream) const { EXPECT_EQ(cudaStreamWaitEvent(stream, event_), cudaSuccess); }

 private:
  cudaEvent_t event_{};
};

/// Owns a zeroed `T` in pinned host memory that kernels can access.
template <class T>
class pinned {
 public:
  pinned() {
    EXPECT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&value_), sizeof(T), cudaHostAllocMapped), cudaSuccess);
    *value_ = T{};
  }
  pinned(const pinned&) = delete;
  pinned& operator=(const pinned&) = delete;
  ~pinned() { cudaFreeHost(value_); }
  T* get() const { return value_; }
  T* operator->() const { return value_; }

 private:
  T* value_{};
};

/// Holds a number that kernels and the host wait for.
class flag {
 public:
  std::uint32_t* word() const { return word_.get(); }
  void set(std::uint32_t value) const { std::atomic_ref(*word_.get()).store(value, std::memory_order_release); }
  bool wait_for(std::uint32_t value) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::atomic_ref(*word_.get()).load(std::memory_order_acquire) < value) {
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }

 private:
  pinned<std::uint32_t> word_;
};

class lent_slots {
 public:
  static constexpr std::uint32_t lines = 64;
  static constexpr std::uint32_t line_elements = 32;

  /// The records begin as in a new slab, which belongs to nobody.
  explicit lent_slots(std::uint64_t count)
      : slots_(count), records_(std::vector<slot_record>(count)), contents_(line_numbers()), patches_(patches(count)) {
    const std::uint64_t dims[] = {line_elements};
    const std::uint32_t box[] = {line_elements};
    const auto base = make_template(packed_spec(element_type::i32, contents_.address(), dims, box), patch_address);
    EXPECT_TRUE(base.has_value());
    if (base.has_value()) base_ = *base;
    EXPECT_EQ(kernels::launch_open_slots(records_.data(), count, 0, log_.get(), nullptr), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  }

  void open(const slot_lease& lease, cudaStream_t stream) const {
    EXPECT_EQ(
        kernels::launch_open_slots(records_.data() + lease.first, lease.count, lease.generation, log_.get(), stream),
        cudaSuccess);
  }
  /// Map i leads to line (`line` + i) mod `lines`, whose elements all hold that number.
  void encode(const slot_lease& lease, std::uint32_t line, cudaStream_t stream) const {
    const auto done =
        encode_batch(base_, patch_array{patches_.data() + line}, slots_.data() + lease.first, lease.count, {stream});
    EXPECT_TRUE(done.has_value());
  }
  void publish(const slot_lease& lease, cudaStream_t stream) const {
    EXPECT_EQ(kernels::launch_publish_slots(records_.data() + lease.first, lease.count, lease.generation, stream),
              cudaSuccess);
  }
  /// Does all three steps, as the service does.
  void lend(const slot_lease& lease, std::uint32_t line, cudaStream_t stream) const {
    open(lease, stream);
    encode(lease, line, stream);
    publish(lease, stream);
  }

  map_batch_ref ref(const slot_lease& lease) const {
    map_batch_ref ref;
    ref.slots = slots_.data() + lease.first;
    ref.count = lease.count;
    ref.generation = lease.generation;
    ref.records = records_.data() + lease.first;
    return ref;
  }
  map_batch_writer writer(const slot_lease& lease) const {
    return {slots_.data() + lease.first, nullptr, lease.count, lease.generation, records_.data() + lease.first};
  }

  const map_template& base() const { return base_; }
  const map_patch* patches() const { return patches_.data(); }
  const device_array<tensor_map>& slots() const { return slots_; }
  const device_array<slot_record>& records() const { return records_; }

  const hazard_log& log() const { return *log_.get(); }
  std::uint64_t reports() const { return std::accumulate(log().counts, log().counts + hazard_count, std::uint64_t{0}); }
  std::uint64_t reports(hazard kind) const { return log().counts[static_cast<std::uint32_t>(kind)]; }
  void clear_log() const { *log_.get() = hazard_log{}; }

 private:
  static std::vector<int> line_numbers() {
    std::vector<int> numbers(lines * line_elements);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i / line_elements);
    return numbers;
  }
  std::vector<map_patch> patches(std::uint64_t slots) const {
    std::vector<map_patch> all(slots + lines);
    for (std::uint64_t i = 0; i < all.size(); ++i) {
      all[i].global_address = contents_.address() + i % lines * line_elements * sizeof(int);
    }
    return all;
  }

  device_array<tensor_map> slots_;
  device_array<slot_record> records_;
  device_array<int> contents_;
  device_array<map_patch> patches_;
  map_template base_{};
  pinned<hazard_log> log_;
};

}  // namespace tmap::testing
