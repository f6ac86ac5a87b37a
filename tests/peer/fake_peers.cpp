// SPDX-License-Identifier: Apache-2.0
#include "peer/fake_peers.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "support/failing_new.hpp"

namespace tmap::testing {
namespace {

using peer::nccl_result;

fake_peers* the_machine{};
thread_local int current_gpu{};

}  // namespace

/// Implements the table's functions, as a friend of the machine.
struct fake_peer_calls {
  static fake_peers& machine() { return *the_machine; }

  template <class What>
  static cudaError_t cuda(const What& what) {
    const uncounted_allocations exempt;
    const std::lock_guard lock{machine().mutex_};
    if (machine().cuda_.fails()) return static_cast<cudaError_t>(machine().cuda_.code);
    what();
    return cudaSuccess;
  }

  template <class What>
  static nccl_result nccl(const What& what) {
    const uncounted_allocations exempt;
    const std::lock_guard lock{machine().mutex_};
    if (machine().nccl_.fails()) return static_cast<nccl_result>(machine().nccl_.code);
    what();
    return nccl_result::success;
  }
  /// Does the same for work that a communicator does in the background, and reports so. Calls for
  /// windows report success instead, before they have ended.
  template <class What>
  static nccl_result nccl_job(const What& what) {
    const nccl_result code = nccl(what);
    return code == nccl_result::success && machine().polls_in_progress > 0 ? nccl_result::in_progress : code;
  }

  static const char* environment(const char* name) {
    const bool is_set = std::string_view{name} == "NCCL_NVLS_ENABLE" && machine().multicast;
    return is_set ? machine().multicast->c_str() : nullptr;
  }

  static void nap() {
    const uncounted_allocations exempt;
    machine().clock += 10;
    if (machine().on_nap) machine().on_nap();
  }

  static void* open_library(const char* name, int mode) {
    const bool only_loaded = (mode & RTLD_NOLOAD) != 0;
    const bool is_there = only_loaded ? machine().is_nccl_loaded : machine().is_nccl_installed;
    return is_there && std::string_view{name} == "libnccl.so.2" ? &machine() : nullptr;
  }

  // CUDA.

  static cudaError_t allocate(void** data, std::size_t bytes) {
    return cuda([&] {
      *data = std::malloc(bytes);
      std::memset(*data, 0xab, bytes);
      machine().memory[*data] = current_gpu;
    });
  }
  static cudaError_t free(void* data) {
    return cuda([&] {
      if (machine().memory.erase(data) == 1) std::free(data);
    });
  }
  static cudaError_t query(cudaStream_t) {
    const cudaError_t code = cuda([] {});
    return code == cudaSuccess && machine().is_stream_stuck ? cudaErrorNotReady : code;
  }
  static cudaError_t enable_peer_access(int peer) {
    bool is_new = false;
    const cudaError_t code = cuda([&] { is_new = machine().opened.insert({current_gpu, peer}).second; });
    return code == cudaSuccess && !is_new ? cudaErrorPeerAccessAlreadyEnabled : code;
  }
  static cudaError_t ask_window(const void* window, std::uint32_t ranks, std::uint64_t* addresses, cudaStream_t) {
    return cuda([&] {
      for (std::uint32_t i = 0; i < ranks; ++i) addresses[i] = address(window, static_cast<int>(i));
    });
  }

  static result<void> test_window(const peer_memory&, std::chrono::milliseconds) {
    machine().done.emplace_back("test");
    if (machine().has_bad_links) return failure{error{.code = status::self_test_failed, .found = 2}};
    return {};
  }

  // NCCL.

  static std::uint64_t address(const void* window, int rank) {
    if (machine().ranks_out_of_reach.count(rank) != 0) return 0;
    return reinterpret_cast<std::uintptr_t>(window) + static_cast<std::uint64_t>(rank) * fake_peers::stride;
  }

  static nccl_result get_version(int* version) {
    return nccl([&] { *version = machine().nccl_version; });
  }
  static nccl_result new_id(peer_id* id) {
    return nccl([&] { std::memset(id->bytes, 7, sizeof id->bytes); });
  }
  static nccl_result init_rank(ncclComm** made, int ranks, peer_id id, int rank, peer::nccl_config* config) {
    return nccl_job([&] {
      *made = new ncclComm{rank, ranks, current_gpu};
      machine().communicators.insert(*made);
      machine().done.push_back("init with id " + std::to_string(id.bytes[127]) +
                               (config->blocking == 0 ? ", not blocking" : ""));
    });
  }
  static nccl_result abort(ncclComm* communicator) {
    return nccl([&] {
      machine().done.emplace_back("abort");
      if (machine().communicators.erase(communicator) == 1) delete communicator;
    });
  }
  static nccl_result ask_state(ncclComm*, nccl_result* state) {
    fake_peers& m = machine();
    *state = m.polls_in_progress > 0 ? nccl_result::in_progress : m.state;
    if (m.polls_in_progress > 0) --m.polls_in_progress;
    if (*state != nccl_result::in_progress && m.end_of_job_) std::exchange(m.end_of_job_, {})();
    return nccl_result::success;
  }
  static nccl_result all_gather(const void* from, void* to, std::size_t count, int type, ncclComm* communicator,
                                cudaStream_t) {
    return nccl_job([&] {
      fake_peers& m = machine();
      std::uint64_t mine = 0;
      std::memcpy(&mine, from, sizeof mine);
      auto* const all = static_cast<std::uint64_t*>(to);
      const int n = m.exchanges_++;
      for (int i = 0; i < communicator->ranks; ++i) {
        all[i] = i == communicator->rank || !m.other_ranks ? mine : m.other_ranks(n, i, mine);
      }
      m.done.push_back("gather " + std::to_string(mine) + (count == 1 && type == 5 ? "" : " of another type"));
    });
  }
  static nccl_result all_to_all(const void* from, void* to, std::size_t count, int type, ncclComm* communicator,
                                cudaStream_t) {
    return nccl_job([&] {
      const std::size_t bytes = 8 * count * static_cast<std::size_t>(communicator->ranks);
      std::memset(to, static_cast<const unsigned char*>(from)[bytes - 1], bytes);  // reads and writes all of both
      machine().done.push_back("all to all of " + std::to_string(count) + (type == 5 ? "" : " of another type"));
    });
  }
  static nccl_result allocate_memory(void** data, std::size_t bytes) {
    return nccl([&] {
      *data = std::malloc(bytes);
      std::memset(*data, 0xab, bytes);
      machine().nccl_memory.insert(*data);
    });
  }
  static nccl_result free_memory(void* data) {
    return nccl([&] {
      if (machine().nccl_memory.erase(data) == 1) std::free(data);
    });
  }
  static nccl_result open_window(ncclComm*, void* data, std::size_t bytes, void** window, int flags) {
    return nccl([&] {
      machine().done.push_back("open window of " + std::to_string(bytes) + ", flags " + std::to_string(flags));
      machine().end_of_job_ = [=] { machine().windows.insert(*window = data); };
    });
  }
  static nccl_result close_window(ncclComm*, void* window) {
    return nccl([&] { machine().end_of_job_ = [=] { machine().windows.erase(window); }; });
  }
  static nccl_result window_address(void* window, std::size_t offset, int rank, void** found) {
    if (machine().are_windows_refused) return nccl_result::invalid_argument;
    return nccl([&] {
      const std::uint64_t at = address(window, rank);
      *found = reinterpret_cast<void*>(at == 0 ? 0 : at + offset);
    });
  }

  static void* find_function(void*, const char* name);
};

void* fake_peer_calls::find_function(void*, const char* name) {
  using self = fake_peer_calls;
  const auto any = [](auto* function) { return reinterpret_cast<void*>(function); };
  const uncounted_allocations exempt;
  const std::map<std::string, void*> all{
      {"ncclGetVersion", any(&self::get_version)},
      {"ncclGetUniqueId", any(&self::new_id)},
      {"ncclCommInitRankConfig", any(&self::init_rank)},
      {"ncclCommAbort", any(&self::abort)},
      {"ncclCommGetAsyncError", any(&self::ask_state)},
      {"ncclCommCount", any(+[](const ncclComm* c, int* n) { return nccl([&] { *n = c->ranks; }); })},
      {"ncclCommUserRank", any(+[](const ncclComm* c, int* n) { return nccl([&] { *n = c->rank; }); })},
      {"ncclCommCuDevice", any(+[](const ncclComm* c, int* n) { return nccl([&] { *n = c->device; }); })},
      {"ncclAllGather", any(&self::all_gather)},
      {"ncclAlltoAll", any(&self::all_to_all)},
      {"ncclMemAlloc", any(&self::allocate_memory)},
      {"ncclMemFree", any(&self::free_memory)},
      {"ncclCommWindowRegister", any(&self::open_window)},
      {"ncclCommWindowDeregister", any(&self::close_window)},
      {"ncclGetPeerDevicePointer", any(&self::window_address)},
  };
  const bool is_too_old = machine().nccl_version < 22902 && std::string{name} == "ncclGetPeerDevicePointer";
  const auto found = all.find(name);
  return is_too_old || found == all.end() || machine().missing_functions.count(name) != 0 ? nullptr : found->second;
}

const peer::peer_calls& fake_peers::calls() {
  using self = fake_peer_calls;
  static constexpr peer::peer_calls all{
      .is_exiting = [] { return self::machine().is_exiting; },
      .process_id = [] { return self::machine().process; },
      .environment = &self::environment,
      .milliseconds = [] { return self::machine().clock; },
      .nap = &self::nap,
      .open_library = &self::open_library,
      .find_function = &self::find_function,
      .device_count = [](int* count) { return self::cuda([&] { *count = self::machine().devices; }); },
      .current_device = [](int* device) { return self::cuda([&] { *device = current_gpu; }); },
      .set_device = [](int device) { return self::cuda([&] { current_gpu = device; }); },
      .can_access_peer =
          [](int* can, int device, int peer) {
            return self::cuda([&] { *can = self::machine().unreachable.count({device, peer}) == 0 ? 1 : 0; });
          },
      .enable_peer_access = &self::enable_peer_access,
      .allocate = &self::allocate,
      .free = &self::free,
      .open_stream =
          [](cudaStream_t* stream) {
            return self::cuda([&] {
              ++self::machine().open_streams;
              *stream = reinterpret_cast<cudaStream_t>(&self::machine());
            });
          },
      .close_stream = [](cudaStream_t) { return self::cuda([] { --self::machine().open_streams; }); },
      .clear = [](void* data, std::size_t bytes,
                  cudaStream_t) { return self::cuda([&] { std::memset(data, 0, bytes); }); },
      .copy = [](void* to, const void* from, std::size_t bytes,
                 cudaStream_t) { return self::cuda([&] { std::memcpy(to, from, bytes); }); },
      .query = &self::query,
      .wait = [](cudaStream_t) { return self::cuda([] {}); },
      .is_device_memory = [](bool* is,
                             const void*) { return self::cuda([&] { *is = !self::machine().are_windows_refused; }); },
      .ask_window_version = [] { return self::machine().kernel_version; },
      .ask_window = &self::ask_window,
      .pack_parcels = [](const peer_memory_ref&, const kernels::peer::exchange_request&,
                         const kernels::peer::parcel_layout&,
                         cudaStream_t) { return self::cuda([] { self::machine().done.emplace_back("pack"); }); },
      .deliver_parcels = [](const peer_memory_ref&, const kernels::peer::exchange_request&,
                            const kernels::peer::parcel_layout&,
                            cudaStream_t) { return self::cuda([] { self::machine().done.emplace_back("deliver"); }); },
      .exchange = [](const peer_memory_ref&, const kernels::peer::exchange_request&, std::uint64_t,
                     cudaStream_t) { return self::cuda([] { self::machine().done.emplace_back("exchange"); }); },
      .test_window = &self::test_window,
  };
  return all;
}

fake_peers::fake_peers() {
  before_ = std::exchange(the_machine, this);
  current_gpu = 0;
}

/// Frees what a test left on purpose.
fake_peers::~fake_peers() {
  for (const auto& [data, device] : memory) std::free(data);
  for (void* const data : nccl_memory) std::free(data);
  for (ncclComm* const each : communicators) delete each;
  the_machine = before_;
}

fake_peers& fake_peers::current() {
  return *the_machine;
}

void fake_peers::fail_cuda(std::uint64_t n, cudaError_t code) {
  cuda_ = {0, n, static_cast<int>(code)};
}

void fake_peers::fail_nccl(std::uint64_t n, peer::nccl_result code) {
  nccl_ = {0, n, static_cast<int>(code)};
}

bool fake_peers::is_clean() const {
  return memory.empty() && nccl_memory.empty() && windows.empty() && communicators.empty() && open_streams == 0;
}

int fake_peers::device_of(const void* data) const {
  for (const auto& [begin, device] : memory) {
    if (data == begin) return device;
  }
  return -1;
}

ncclComm* fake_peers::program_communicator(int rank, int ranks, int device) {
  const uncounted_allocations exempt;
  of_program_.push_back(std::make_unique<ncclComm>(ncclComm{rank, ranks, device}));
  return of_program_.back().get();
}

}  // namespace tmap::testing
