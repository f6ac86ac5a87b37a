// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/tmap/pad/dtype.hpp"
#include "apps/tmap/pad/outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tmap::tool {

using shape_t = std::vector<std::uint64_t>;  ///< as files write it: outermost dimension first
using byte_storage = std::shared_ptr<const std::vector<std::byte>>;

/// One dense tensor read from a file. Shares the file's bytes with the file's other tensors; read
/// only.
struct tensor {
  std::string name;
  dtype type{};
  shape_t shape;
  byte_storage storage;
  std::span<const std::byte> bytes;  ///< inside `storage`
  bool picture{};
  std::string note;  ///< what reading it changed ("16 bits reduced to 8"), or empty
};

/// Returns "[480, 640, 3]".
std::string to_string(const shape_t& shape);

/// Returns the bytes of a tensor of this shape, 0 for one without elements. Fails unless they are
/// exactly `file_bytes`.
outcome<std::uint64_t> check_shape(const shape_t& shape, dtype type, std::uint64_t file_bytes);

// The readers: whole files in memory in, tensors out. Any bytes are a legal argument: each reader
// compares what a header promises with what is there before it allocates, and returns the
// cause (without the file's name).

/// Decodes a picture. `most_bytes` bounds the memory of the decoded one.
outcome<tensor> read_png(std::span<const std::byte> file, std::uint64_t most_bytes);
outcome<tensor> read_jpeg(std::span<const std::byte> file, std::uint64_t most_bytes);

/// Reads versions 1 to 3 of the format, little endian, C order.
outcome<tensor> read_npy(byte_storage file);

/// Returns one entry for each tensor of the file: the tensor, or why it cannot be used. Names are
/// those of the header. Fails as a whole if the header is corrupt, has a name twice, or gives bytes
/// to two tensors. Nobody can know then which are meant.
outcome<std::vector<outcome<tensor>>> read_safetensors(byte_storage file);

/// Returns the header that numpy reads (version 1, padded to 64 bytes). The data follow.
std::string npy_header(dtype type, const shape_t& shape);

}  // namespace tmap::tool
