// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/tensor.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace tmap::tool {

/// The tensors of all inputs of one run, a sentence for each input (or tensor of a file) that
/// failed, and one for each folder of which something was passed over.
struct loaded_inputs {
  std::vector<tensor> tensors;
  std::vector<std::string> failures;
  std::vector<std::string> notes;
};

/// Reads every input: a picture, a .npy array, the tensors of a .safetensors file, or a folder,
/// whose files of these kinds (not those of its folders) are read in the order of their names. Goes
/// on after a failure when `keep_going`. No input, and no decoded picture, may take more than
/// `most_bytes`.
loaded_inputs read_inputs(const std::vector<std::string>& inputs, std::uint64_t most_bytes, bool keep_going);

/// The tensors of one file in memory; `path` gives the name and, where the bytes do not show it,
/// the kind.
loaded_inputs read_tensors(const std::filesystem::path& path, std::vector<std::byte> bytes, std::uint64_t most_bytes);

}  // namespace tmap::tool
