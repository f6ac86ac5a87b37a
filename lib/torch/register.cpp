// SPDX-License-Identifier: Apache-2.0

// Registers the operators when the library is loaded. Python defines them, with their fakes and
// gradients, and gives way to the kernels here. A process without Python finds them defined.

#include <tmap/c/status.h>

#include "lib/torch/operators.hpp"
#include "lib/torch/schemas.hpp"

#include <torch/csrc/stable/library.h>

#include <dlfcn.h>

#include <memory>
#include <string>
#include <vector>

namespace tmap::pytorch {
namespace {

using torch::stable::detail::StableLibrary;

/// Libraries built of different versions agree on no struct.
bool has_its_own_version_of_tmap() {
  return tmap_version() == TMAP_VERSION;
}

bool is_in_python() {
  using is_initialized = int (*)();
  void* const found = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
  return found != nullptr && reinterpret_cast<is_initialized>(found)() != 0;
}

struct registration {
  std::unique_ptr<StableLibrary> schemas;
  std::vector<std::unique_ptr<StableLibrary>> kernels;  // of CUDA and of the CPU

  registration() {
    if (!has_its_own_version_of_tmap()) return;
    if (!is_in_python()) {
      schemas = std::make_unique<StableLibrary>(StableLibrary::Kind::FRAGMENT, "tmap", nullptr, __FILE__, __LINE__);
      for (const char* schema : operator_schemas) schemas->def(schema);
    }
    for (const char* key : {"CUDA", "CPU"}) {
      kernels.push_back(std::make_unique<StableLibrary>(StableLibrary::Kind::IMPL, "tmap", key, __FILE__, __LINE__));
      kernels.back()->impl("pad_ragged", TORCH_BOX(&pad_ragged)).impl("unpad_ragged", TORCH_BOX(&unpad_ragged));
    }
    kernels.front()->impl("grouped_mm", TORCH_BOX(&grouped_mm));
    kernels.front()->impl("grouped_scaled_mm", TORCH_BOX(&grouped_scaled_mm));
  }
};

const registration registered;

}  // namespace
}  // namespace tmap::pytorch

/// Returns the version of tmap that this library was built with. With any other it registers
/// nothing.
extern "C" __attribute__((visibility("default"))) std::uint32_t tmap_torch_version() {
  return TMAP_VERSION;
}
/// Returns the schemas of the operators that have kernels here, each on a line.
extern "C" __attribute__((visibility("default"))) const char* tmap_torch_schemas() {
  static const std::string lines = [] {
    std::string joined;
    for (const char* schema : tmap::pytorch::operator_schemas) joined.append(schema).append("\n");
    return joined;
  }();
  return lines.c_str();
}
