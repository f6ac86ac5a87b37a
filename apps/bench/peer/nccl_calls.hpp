// SPDX-License-Identifier: Apache-2.0
#pragma once

// NCCL between the GPUs of this process, opened at run time.

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

struct ncclComm;

namespace tmap::apps::bench {

/// Holds a communicator for each of two GPUs. NCCL_NVLS_ENABLE must be 0: nothing here may use
/// multicast.
class nccl_calls {
 public:
  /// Opens NCCL and makes communicators for GPUs 0 and 1. Returns the reason in `missing` if it
  /// cannot.
  static std::unique_ptr<nccl_calls> open(std::string& missing);
  ~nccl_calls();
  nccl_calls(const nccl_calls&) = delete;
  nccl_calls& operator=(const nccl_calls&) = delete;

  int version() const { return version_; }
  bool has_all_to_all() const { return all_to_all_ != nullptr; }

  using addresses = std::array<void*, 2>;
  using streams = std::array<cudaStream_t, 2>;
  /// Each rank sends `bytes` to the other one.
  void send_and_receive(const addresses& from, const addresses& to, std::size_t bytes, const streams& on) const;
  /// Each rank sends `bytes` to each rank, also to itself.
  void all_to_all(const addresses& from, const addresses& to, std::size_t bytes, const streams& on) const;

 private:
  nccl_calls() = default;
  bool find_functions(void* library);

  using group_call = int();
  using transfer = int(void* data, std::size_t count, int type, int peer, ncclComm* over, cudaStream_t stream);
  using exchange = int(const void* from, void* to, std::size_t count, int type, ncclComm* over, cudaStream_t stream);

  int (*get_version_)(int* version){};
  int (*init_all_)(ncclComm** made, int count, const int* devices){};
  int (*destroy_)(ncclComm* communicator){};
  group_call* begin_{};
  group_call* end_{};
  transfer* send_{};
  transfer* receive_{};
  exchange* all_to_all_{};
  int version_{};
  std::array<ncclComm*, 2> communicators_{};
};

}  // namespace tmap::apps::bench
