// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tmap/config.hpp>
#include <tmap/device_address.hpp>
#include <tmap/error.hpp>
#include <tmap/peer_memory.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

struct ncclComm;  // as nccl.h declares it: ncclComm_t is a pointer to it

namespace tmap {

namespace peer {
struct access;
class provider;
}  // namespace peer

/// The name of a group that is being made. One rank makes it, and all ranks need the same one.
struct peer_id {
  std::uint8_t bytes[128]{};
};

/// Holds what `peer_group::create` needs: this rank, the number of ranks, and an id that all ranks
/// share.
struct peer_start {
  std::uint32_t rank{};
  std::uint32_t ranks{};
  peer_id id{};  ///< of `peer_group::new_id`, brought to every rank by any means; unused with `id_file`
  /// A path in a folder that all ranks share, if not empty. Rank 0 makes the id, writes it to
  /// `id_file` + ".tmp" and renames that file. The other ranks wait for the file. Rank 0 removes it
  /// when the group is made, or could not be made. Two groups that start at the same time need two
  /// paths.
  std::string id_file{};
  /// A number that all ranks of this start share and that no earlier start with this `id_file` had,
  /// such as a job's number. A rank waits over a file with another number, which a start that
  /// crashed has left. It may be 0 if nothing is ever left at the path.
  std::uint64_t run{};
  /// How long a call waits for the other ranks, here and in the group's later calls.
  std::chrono::milliseconds patience{30000};
  bool self_test{true};  ///< whether the group is tested before `create` returns; all ranks agree
};

/// A peer_group knows this *rank*, one GPU of a group, and its *peers*, the others. It makes
/// *windows*: memory of equal size on every rank that all ranks reach by plain addresses.
///
/// A group comes from one of four functions, and behaves the same afterwards. There is a group
/// object for each rank. It is move-only and may be destroyed before its windows.
///
/// `allocate` is collective: all ranks must call it, with the same size, in the same order. Calls
/// of groups of `create` and `from_nccl` wait for the other ranks, so each rank needs a thread or
/// process of its own. They run on the group's GPU and leave the current device of the thread as it
/// was. No call may be made while this thread captures a stream. Different groups may be used by
/// different threads at once, but not the same group.
///
/// When a rank does not come before the deadline, the call fails with `peer_timeout`. If NCCL
/// reports that a peer ended, it fails with `peer_lost`. From then on the group is *broken*, and
/// later calls fail with `group_broken` at once. In a forked child every call fails with `forked`.
///
/// No group uses NVLink multicast. `new_id`, `create` and `from_nccl` fail with `multicast_not_off`
/// unless the environment has NCCL_NVLS_ENABLE=0.
class TMAP_API peer_group {
 public:
  /// Makes a group from addresses that anything else has found: `windows[r]` is where the memory of
  /// rank r begins, as the GPU of this rank sees it, a multiple of 256. Each rank has
  /// `window_bytes` there. All must be zero on every rank before any rank uses a window. They stay
  /// the caller's. Calls no CUDA. `allocate` takes windows from the beginning of the memory, and
  /// never the same bytes twice. The group cannot compare the sizes that ranks ask for.
  /// @fails `invalid_argument`.
  [[nodiscard]] static result<peer_group> from_addresses(std::uint32_t rank, const std::vector<device_address>& windows,
                                                         std::uint64_t window_bytes);

  /// Makes the groups of all ranks for GPUs of this process: rank i is GPU `devices[i]`. Opens the
  /// memory of each GPU to all others (cudaDeviceEnablePeerAccess). The first rank that calls
  /// `allocate` makes the windows of all ranks, and the others get theirs. No call waits for
  /// another rank, so one thread may serve all of them. Calls of several ranks may run at once.
  /// @fails `invalid_argument` (a GPU that is not there, or named twice), `no_peer_access`,
  /// `no_driver`, `no_device`, `out_of_memory`, `cuda_failure`.
  [[nodiscard]] static result<std::vector<peer_group>> of_process(const std::vector<int>& devices);

  /// Makes a group of the ranks of an existing communicator, PyTorch's for example. The group never
  /// destroys it. It must outlive the group and its windows, and no other thread may use it during
  /// a call of the group. If it is a blocking one, NCCL opens windows without a deadline.
  /// @fails `invalid_argument`, `nccl_missing`, `nccl_version`, `nccl_failure`,
  /// `multicast_not_off`, `out_of_memory`, `cuda_failure`.
  [[nodiscard]] static result<peer_group> from_nccl(ncclComm* communicator,
                                                    std::chrono::milliseconds patience = peer_start{}.patience);

  /// Makes an id for `create`. Call it on one rank.
  /// @fails `nccl_missing`, `nccl_version`, `nccl_failure`, `multicast_not_off`.
  [[nodiscard]] static result<peer_id> new_id();

  /// Makes a group with a communicator of its own, on the current device of this thread. Waits for
  /// the other ranks. Unless `start.self_test` is false, it then makes a small window, runs
  /// `self_test_async` on it, and frees it. There is no such test if ranks do not reach each
  /// other's memory.
  /// @fails as `from_nccl`, and with `peer_timeout`, `peer_lost`, `self_test_failed`.
  [[nodiscard]] static result<peer_group> create(const peer_start& start);

  peer_group(peer_group&& other) noexcept;
  peer_group& operator=(peer_group&& other) noexcept;
  ~peer_group();

  std::uint32_t rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }

  /// Makes a window of `bytes` bytes for each rank, with a header of `peer_header_bytes` in front,
  /// which is zero. The user's bytes begin at a multiple of 256. They are not set, except for those
  /// of `from_addresses`. If it fails with `windows_differ` or `out_of_memory`, no rank has a
  /// window, and the group is whole.
  /// @fails `invalid_argument`, `out_of_memory`, `windows_differ`, `no_peer_access`,
  /// `peer_timeout`, `peer_lost`, `group_broken`, `nccl_failure`, `forked`, `cuda_failure`.
  [[nodiscard]] result<peer_memory> allocate(std::uint64_t bytes);

  /// Makes a window for ranks that do not reach each other's memory, where `allocate` fails with
  /// `no_peer_access`. `exchange_rows_async` moves the same bytes with it, through ncclAlltoAll.
  ///
  /// `pair_bytes` bounds the rows that one rank sends another in a call. So many bytes cross for
  /// each pair in every call, however few rows there are. The window takes `2 * ranks()` times as
  /// many bytes of memory in addition to its own, and about 256 KiB more.
  ///
  /// Collective like `allocate`, with the same sizes on all ranks. Needs a group of `create` or
  /// `from_nccl`. NCCL connects the ranks now, so that graphs may capture the first exchange.
  /// @fails as `allocate`.
  [[nodiscard]] result<peer_memory> allocate_local(std::uint64_t bytes, std::uint64_t pair_bytes);

  /// Asks NCCL whether a peer was lost, if the group has a communicator. Waits for nothing.
  /// @fails `peer_lost`, `group_broken`, `nccl_failure`, `forked`.
  [[nodiscard]] result<void> check();

 private:
  friend struct peer::access;
  peer_group(std::shared_ptr<peer::provider> provider, std::uint32_t rank, std::uint32_t ranks);

  std::shared_ptr<peer::provider> provider_;
  std::uint32_t rank_;
  std::uint32_t ranks_;
};

}  // namespace tmap
