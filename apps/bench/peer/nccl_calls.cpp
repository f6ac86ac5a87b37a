// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/peer/nccl_calls.hpp"

#include <dlfcn.h>

#include "apps/support/require.hpp"

namespace tmap::apps::bench {
namespace {

constexpr int bytes_type = 0;  // ncclInt8

void require_nccl(int code) {
  if (code != 0) fail(("NCCL returned " + std::to_string(code)).c_str(), std::source_location::current());
}

template <class Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

}  // namespace

bool nccl_calls::find_functions(void* library) {
  find(library, "ncclAlltoAll", all_to_all_);  // since 2.28
  return find(library, "ncclGetVersion", get_version_) && find(library, "ncclCommInitAll", init_all_) &&
         find(library, "ncclCommDestroy", destroy_) && find(library, "ncclGroupStart", begin_) &&
         find(library, "ncclGroupEnd", end_) && find(library, "ncclSend", send_) && find(library, "ncclRecv", receive_);
}

std::unique_ptr<nccl_calls> nccl_calls::open(std::string& missing) {
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  std::unique_ptr<nccl_calls> made{library == nullptr ? nullptr : new nccl_calls};
  if (made == nullptr) {
    missing = dlerror();
    return nullptr;
  }
  constexpr int devices[]{0, 1};
  int code = -1;
  if (made->find_functions(library)) {
    require_nccl(made->get_version_(&made->version_));
    code = made->init_all_(made->communicators_.data(), 2, devices);
  }
  if (code == 0) return made;
  made->communicators_ = {};
  missing = code < 0 ? "libnccl.so.2 lacks a function" : "ncclCommInitAll returned " + std::to_string(code);
  return nullptr;
}

nccl_calls::~nccl_calls() {
  for (ncclComm* const each : communicators_) {
    if (each != nullptr) destroy_(each);
  }
}

void nccl_calls::send_and_receive(const addresses& from, const addresses& to, std::size_t bytes,
                                  const streams& on) const {
  require_nccl(begin_());
  for (int rank = 0; rank < 2; ++rank) {
    require(cudaSetDevice(rank));
    require_nccl(send_(from[rank], bytes, bytes_type, 1 - rank, communicators_[rank], on[rank]));
    require_nccl(receive_(to[rank], bytes, bytes_type, 1 - rank, communicators_[rank], on[rank]));
  }
  require_nccl(end_());
}

void nccl_calls::all_to_all(const addresses& from, const addresses& to, std::size_t bytes, const streams& on) const {
  require_nccl(begin_());
  for (int rank = 0; rank < 2; ++rank) {
    require(cudaSetDevice(rank));
    require_nccl(all_to_all_(from[rank], to[rank], bytes, bytes_type, communicators_[rank], on[rank]));
  }
  require_nccl(end_());
}

}  // namespace tmap::apps::bench
