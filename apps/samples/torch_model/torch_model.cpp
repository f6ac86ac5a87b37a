// SPDX-License-Identifier: Apache-2.0
//
// Runs a model that AOTInductor has compiled, with operators of tmap in it, without Python.
//
//   torch_model MODEL.pt2 INPUTS OUTPUTS [CALLS]
//
// INPUTS is a list of tensors that torch.save has written, OUTPUTS gets the list of results. With
// CALLS it also prints the microseconds that a call takes the calling thread.
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/serialization/pickle.h>

#include <ATen/core/ivalue.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// [operators]
// Defines torch.ops.tmap.*, which has to be done before a model is loaded.
void load_operators() {
  if (dlopen("libtmap_torch.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) throw std::runtime_error(dlerror());
}

std::vector<at::Tensor> run(const std::string& model, const std::vector<at::Tensor>& inputs) {
  load_operators();
  torch::inductor::AOTIModelPackageLoader loader(model);
  return loader.run(inputs);
}
// [operators]

std::vector<at::Tensor> read_tensors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<at::Tensor> tensors;
  const c10::IValue list = torch::jit::pickle_load(bytes);
  for (const c10::IValue& each : list.toListRef()) tensors.push_back(each.toTensor());
  return tensors;
}

void write_tensors(const std::string& path, const std::vector<at::Tensor>& tensors) {
  const std::vector<char> bytes = torch::jit::pickle_save(c10::IValue(tensors));
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void wait_for(const at::Device& device) {
  if (device.is_cuda()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

/// Returns the median of seven rows of calls. The GPU's queue is never full.
double microseconds_of(const std::string& model, const std::vector<at::Tensor>& inputs, int calls) {
  torch::inductor::AOTIModelPackageLoader loader(model, "model", true);
  std::vector<double> times;
  for (int repeat = 0; repeat < 8; ++repeat) {
    wait_for(inputs.at(0).device());
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) loader.run(inputs);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    if (repeat > 0) times.push_back(took.count() / calls);
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  if (count != 4 && count != 5) {
    std::cerr << "usage: torch_model MODEL.pt2 INPUTS OUTPUTS [CALLS]\n";
    return 2;
  }
  try {
    const std::vector<at::Tensor> inputs = read_tensors(words[2]);
    write_tensors(words[3], run(words[1], inputs));
    if (count == 5) std::cout << microseconds_of(words[1], inputs, std::stoi(words[4])) << '\n';
  } catch (const std::exception& failure) {
    std::cerr << failure.what() << '\n';
    return 1;
  }
}
