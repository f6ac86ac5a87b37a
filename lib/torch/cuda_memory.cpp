// SPDX-License-Identifier: Apache-2.0
#include "lib/torch/cuda_memory.hpp"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/headeronly/util/shim_utils.h>

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace tmap::pytorch {
namespace {

constexpr const char* library_name = "libtorch_cuda.so";

/// Returns a function of a library that the process has loaded.
template <class Function>
Function* loaded_function(void* library, const char* name) {
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) {
    throw std::runtime_error(std::string(name) + " is not in this process: PyTorch with CUDA has it in " +
                             library_name);
  }
  return reinterpret_cast<Function*>(found);
}

/// The functions of PyTorch that are for CUDA. A PyTorch without CUDA lacks their library, so this
/// one must load without them. The headers declare them where USE_CUDA is defined.
struct cuda_functions {
  void* library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
  decltype(aoti_torch_get_current_cuda_stream)* get_stream =
      loaded_function<decltype(aoti_torch_get_current_cuda_stream)>(library, "aoti_torch_get_current_cuda_stream");
  decltype(aoti_torch_cuda_caching_allocator_raw_alloc)* allocate =
      loaded_function<decltype(aoti_torch_cuda_caching_allocator_raw_alloc)>(
          library, "aoti_torch_cuda_caching_allocator_raw_alloc");
  decltype(aoti_torch_cuda_caching_allocator_raw_delete)* free =
      loaded_function<decltype(aoti_torch_cuda_caching_allocator_raw_delete)>(
          library, "aoti_torch_cuda_caching_allocator_raw_delete");
};

const cuda_functions& cuda() {
  static const cuda_functions found;
  return found;
}

}  // namespace

tmap_stream current_stream(std::int32_t device) {
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(cuda().get_stream(device, &stream));
  return static_cast<tmap_stream>(stream);
}

lent_memory::lent_memory(std::uint64_t bytes) {
  TORCH_ERROR_CODE_CHECK(cuda().allocate(bytes, &address_));
}

lent_memory::~lent_memory() {
  cuda().free(address_);
}

}  // namespace tmap::pytorch
