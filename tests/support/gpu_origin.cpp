// SPDX-License-Identifier: Apache-2.0
#include "support/gpu_origin.hpp"

#include <cuda_runtime_api.h>

#include <ctime>
#include <fstream>
#include <sstream>

namespace tmap::testing {
namespace {

/// Returns "580.159.04" from the kernel module, or the driver's CUDA version if that is hidden.
std::string driver_version() {
  std::ifstream file{"/proc/driver/nvidia/version"};
  for (std::string word; file >> word;) {
    if (word.find_first_not_of("0123456789.") == std::string::npos && word.find('.') != std::string::npos) return word;
  }
  int version = 0;
  cudaDriverGetVersion(&version);
  return "for CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string gpu_origin() {
  cudaDeviceProp device{};
  cudaGetDeviceProperties(&device, 0);
  char day[16] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(day, sizeof day, "%Y-%m-%d", std::gmtime(&now));
  std::ostringstream text;
  text << "# GPU: " << device.name << "\n# driver: " << driver_version() << "\n# date: " << day << '\n';
  return text.str();
}

}  // namespace tmap::testing
