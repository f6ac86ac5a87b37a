// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/tensor.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace tmap::tool {

/// The tensors of all inputs of one run. `failures` has a sentence for each input, or tensor of a
/// file, that failed. `notes` has one for each folder in which something was passed over.
struct loaded_inputs {
  std::vector<tensor> tensors;
  std::vector<std::string> failures;
  std::vector<std::string> notes;
};

/// Reads every input: a picture, a .npy array, the tensors of a .safetensors file, or a folder. The
/// files of these kinds in a folder are read in the order of their names, but not those of its
/// folders. Goes on after a failure if `keep_going`. No input, and no decoded picture, may take
/// more than `most_bytes`.
loaded_inputs read_inputs(const std::vector<std::string>& inputs, std::uint64_t most_bytes, bool keep_going);

/// Reads the tensors of one file in memory. `path` gives the name and, if the bytes do not show it,
/// the kind.
loaded_inputs read_tensors(const std::filesystem::path& path, std::vector<std::byte> bytes, std::uint64_t most_bytes);

}  // namespace tmap::tool
