// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/peer/two_ranks.hpp"

#include <algorithm>
#include <utility>

#include "apps/bench/peer/peer_kernels.hpp"
#include "apps/support/require.hpp"
#include "apps/support/timing.hpp"

namespace tmap::apps::bench {
namespace {

/// Makes groups over buffers on GPU 0.
std::vector<peer_group> virtual_groups(std::vector<device_memory>& buffers, std::uint64_t bytes) {
  std::vector<device_address> at;
  for (std::uint32_t i = 0; i < two_ranks::count; ++i) {
    buffers.push_back(value_of(device_memory::allocate(bytes + peer_header_bytes)));
    require(buffers.back().fill(0));
    at.emplace_back(buffers.back().address());
  }
  require(cudaDeviceSynchronize());
  std::vector<peer_group> groups;
  for (std::uint32_t i = 0; i < two_ranks::count; ++i) {
    groups.push_back(value_of(peer_group::from_addresses(i, at, bytes + peer_header_bytes)));
  }
  return groups;
}

}  // namespace

two_ranks::two_ranks(std::uint64_t bytes, bool are_virtual) : are_virtual_{are_virtual}, ranks_(count) {
  std::vector<peer_group> groups =
      are_virtual ? virtual_groups(buffers_, bytes) : value_of(peer_group::of_process({0, 1}));
  for_each([&](std::uint32_t rank) {
    rank_state& made = ranks_[rank];
    made.window = value_of(groups[rank].allocate(bytes));
    require(cudaMemset(made.window.data(), 0, bytes));
    require(prepare_kernels());
    require(cudaStreamCreateWithFlags(&made.stream, cudaStreamNonBlocking));
    require(cudaEventCreate(&made.begin));
    require(cudaEventCreate(&made.end));
    require(cudaDeviceSynchronize());
  });
  for_each([&](std::uint32_t rank) { require(self_test_async(window(rank), cuda::stream_ref{stream(rank)})); });
  for_each([&](std::uint32_t rank) { require(last_outcome(window(rank), cuda::stream_ref{stream(rank)})); });
}

two_ranks::~two_ranks() {
  for_each([&](std::uint32_t rank) {
    static_cast<void>(cudaDeviceSynchronize());
    static_cast<void>(cudaEventDestroy(ranks_[rank].begin));
    static_cast<void>(cudaEventDestroy(ranks_[rank].end));
    static_cast<void>(cudaStreamDestroy(ranks_[rank].stream));
  });
}

void* two_ranks::at(std::uint32_t rank, std::uint64_t offset) const {
  return static_cast<unsigned char*>(window(rank).data()) + offset;
}

void two_ranks::use(std::uint32_t rank) const {
  require(cudaSetDevice(gpu(rank)));
}

void two_ranks::for_each(const std::function<void(std::uint32_t)>& function) const {
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    use(rank);
    function(rank);
  }
}

void two_ranks::drain() const {
  for_each([&](std::uint32_t rank) { require(cudaStreamSynchronize(stream(rank))); });
}

double two_ranks::once(const std::function<void()>& enqueue, std::uint64_t delay) const {
  for_each([&](std::uint32_t rank) {
    require(launch_delay(delay, stream(rank)));
    require(barrier_async(window(rank), cuda::stream_ref{stream(rank)}));
    require(cudaEventRecord(ranks_[rank].begin, stream(rank)));
  });
  enqueue();
  for_each([&](std::uint32_t rank) { require(cudaEventRecord(ranks_[rank].end, stream(rank))); });
  double longest = 0;
  for_each([&](std::uint32_t rank) {
    float milliseconds = 0;
    require(cudaEventSynchronize(ranks_[rank].end));
    require(cudaEventElapsedTime(&milliseconds, ranks_[rank].begin, ranks_[rank].end));
    longest = std::max(longest, 1000.0 * milliseconds);
  });
  return longest;
}

double two_ranks::microseconds(const std::function<void()>& enqueue, std::uint64_t delay, int repeats) const {
  enqueue();
  drain();
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(once(enqueue, delay));
  for_each([&](std::uint32_t rank) { require(last_outcome(window(rank), cuda::stream_ref{stream(rank)})); });
  return median(std::move(times));
}

void two_ranks::fill(std::uint32_t rank, std::uint64_t offset, int byte, std::uint64_t bytes) const {
  use(rank);
  require(cudaMemset(at(rank, offset), byte, bytes));
  require(cudaDeviceSynchronize());
}

std::vector<unsigned char> two_ranks::read(std::uint32_t rank, std::uint64_t offset, std::uint64_t bytes) const {
  use(rank);
  std::vector<unsigned char> values(bytes);
  require(cudaDeviceSynchronize());
  require(copy_bytes(values.data(), at(rank, offset), bytes));
  return values;
}

void two_ranks::write(std::uint32_t rank, std::uint64_t offset, const void* data, std::uint64_t bytes) const {
  use(rank);
  require(copy_bytes(at(rank, offset), data, bytes));
  require(cudaDeviceSynchronize());
}

}  // namespace tmap::apps::bench
