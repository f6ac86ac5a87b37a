// SPDX-License-Identifier: Apache-2.0
#include "lib/peer/nccl.hpp"

#include <dlfcn.h>

#include <string_view>

namespace tmap::peer {
namespace {

constexpr const char* library_name = "libnccl.so.2";
constexpr int first_with_window_address = 22902;

/// Looks up functions, and remembers whether all were there.
class lookup {
 public:
  lookup(const peer_calls& calls, void* library) : calls_{calls}, library_{library} {}

  template <class Function>
  void find(Function*& function, const char* name) {
    find_if_there(function, name);
    has_all_ = has_all_ && function != nullptr;
  }
  template <class Function>
  void find_if_there(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(calls_.find_function(library_, name));
  }
  bool has_all() const { return has_all_; }

 private:
  const peer_calls& calls_;
  void* const library_;
  bool has_all_{true};
};

failure wrong_version(int found) {
  return failure{error{.code = status::nccl_version,
                       .found = static_cast<std::uint64_t>(found),
                       .allowed = first_with_window_address,
                       .reason = "NCCL has version {found}; a group needs {allowed} or newer, or the version that tmap "
                                 "was built with"}};
}

bool find_all(nccl_functions& nccl, lookup& from) {
  from.find(nccl.new_id, "ncclGetUniqueId");
  from.find(nccl.init_rank, "ncclCommInitRankConfig");
  from.find(nccl.abort, "ncclCommAbort");
  from.find(nccl.state, "ncclCommGetAsyncError");
  from.find(nccl.count, "ncclCommCount");
  from.find(nccl.rank, "ncclCommUserRank");
  from.find(nccl.device, "ncclCommCuDevice");
  from.find(nccl.all_gather, "ncclAllGather");
  from.find(nccl.all_to_all, "ncclAlltoAll");
  from.find(nccl.allocate, "ncclMemAlloc");
  from.find(nccl.free, "ncclMemFree");
  from.find(nccl.open_window, "ncclCommWindowRegister");
  from.find(nccl.close_window, "ncclCommWindowDeregister");
  from.find_if_there(nccl.window_address, "ncclGetPeerDevicePointer");
  return from.has_all();
}

result<int> version_of(lookup& from) {
  nccl_result (*get_version)(int*) = nullptr;
  from.find(get_version, "ncclGetVersion");
  if (get_version == nullptr) return wrong_version(0);
  int version = 0;
  TMAP_TRY_NCCL(get_version(&version));
  return version;
}

bool is_multicast_off(const peer_calls& calls) {
  const char* const setting = calls.environment("NCCL_NVLS_ENABLE");
  return setting != nullptr && std::string_view{setting} == "0";
}

}  // namespace

result<nccl_functions> find_nccl(const peer_calls& calls) {
  if (!is_multicast_off(calls)) return failure{error{status::multicast_not_off}};
  void* library = calls.open_library(library_name, RTLD_NOLOAD | RTLD_NOW);
  if (library == nullptr) library = calls.open_library(library_name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failure{error{status::nccl_missing}};
  lookup functions{calls, library};
  const result<int> version = version_of(functions);
  if (!version) return failure{version.error()};
  nccl_functions nccl{.version = *version};
  const bool has_all = find_all(nccl, functions);
  const bool has_addresses = nccl.window_address != nullptr || calls.ask_window_version() == *version;
  if (!has_all || !has_addresses) return wrong_version(*version);
  return nccl;
}

result<void> outcome_of(nccl_result code) {
  switch (code) {
    case nccl_result::success: return {};
    case nccl_result::remote_error: return failure{error{status::peer_lost}};
    default:
      return failure{error{.code = status::nccl_failure,
                           .found = static_cast<std::uint64_t>(code),
                           .reason = "a call of NCCL failed with ncclResult_t {found}; NCCL_DEBUG=WARN has NCCL print "
                                     "the reason"}};
  }
}

}  // namespace tmap::peer
