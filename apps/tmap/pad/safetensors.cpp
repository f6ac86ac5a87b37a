// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/tensor.hpp"
#include "apps/tmap/text_position.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>

namespace tmap::tool {
namespace {

using nlohmann::json;

/// The format's own bound, so that a corrupt length is refused before anything is parsed.
constexpr std::uint64_t most_header_bytes = 100'000'000;

std::optional<shape_t> numbers(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return std::nullopt;
  shape_t values;
  for (const json& item : *found) {
    if (!item.is_number_unsigned()) return std::nullopt;
    values.push_back(item.get<std::uint64_t>());
  }
  return values;
}

outcome<tensor> read_entry(const json& entry, const byte_storage& file, std::uint64_t data_start) {
  const auto dtype_name = entry.is_object() ? entry.find("dtype") : entry.end();
  if (dtype_name == entry.end() || !dtype_name->is_string()) return refuse("its header entry is corrupt");
  const auto shape = numbers(entry, "shape");
  const auto offsets = numbers(entry, "data_offsets");
  if (!shape || !offsets || offsets->size() != 2) return refuse("its header entry is corrupt");
  const auto type = dtype_of_safetensors(dtype_name->get_ref<const std::string&>());
  if (!type) return refuse("dtype {} is not supported", dtype_name->get_ref<const std::string&>());

  const std::uint64_t begin = (*offsets)[0];
  const std::uint64_t end = (*offsets)[1];
  const std::uint64_t data_bytes = file->size() - data_start;
  if (begin > end) return refuse("its data offsets [{}, {}] are corrupt", begin, end);
  if (end > data_bytes) {
    return refuse("the file is truncated: the tensor ends at byte {} of {} bytes of data", end, data_bytes);
  }
  const auto size = check_shape(*shape, *type, end - begin);
  if (!size) return refusal{size.error()};
  tensor read;
  read.type = *type;
  read.shape = *shape;
  read.storage = file;
  read.bytes = std::span{*file}.subspan(data_start + begin, *size);
  return read;
}

/// Sees each key as it is parsed, since of two equal ones the parser keeps the last. Those of the
/// header itself and of its entries matter; what lies deeper is no tensor.
class repeated_key {
 public:
  /// `depth`: the objects and arrays around it. Keeps every value.
  bool look(int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::object_start && depth < levels) keys_[depth].clear();
    if (event != json::parse_event_t::key || depth > levels || found_) return true;
    const auto& key = parsed.get_ref<const std::string&>();
    if (!keys_[depth - 1].insert(key).second) found_ = key;
    return true;
  }
  const std::optional<std::string>& found() const { return found_; }

 private:
  static constexpr int levels = 2;
  std::set<std::string> keys_[levels];
  std::optional<std::string> found_;
};

outcome<json> read_header(const std::vector<std::byte>& file) {
  std::uint64_t length = 0;
  if (file.size() < sizeof length) return refuse("it is truncated inside the safetensors header");
  std::memcpy(&length, file.data(), sizeof length);
  if (length > most_header_bytes) return refuse("its safetensors header is corrupt: a length of {} bytes", length);
  if (length > file.size() - sizeof length) return refuse("it is truncated inside the safetensors header");
  const char* text = reinterpret_cast<const char*>(file.data()) + sizeof length;
  repeated_key repeated;
  const auto look = [&](int depth, json::parse_event_t event, json& parsed) {
    return repeated.look(depth, event, parsed);
  };
  json header;
  try {
    header = json::parse(text, text + length, look);
  } catch (const json::parse_error& e) {
    return refuse("its safetensors header is not a JSON object ({})",
                  position_in({text, length}, e.byte - (e.byte != 0)));
  }
  if (!header.is_object()) return refuse("its safetensors header is not a JSON object");
  if (repeated.found()) return refuse("its safetensors header has '{}' twice", *repeated.found());
  return header;
}

/// Each byte of the file belongs to one tensor.
outcome<void> check_apart(const std::vector<outcome<tensor>>& tensors) {
  std::vector<const tensor*> filled;
  for (const outcome<tensor>& read : tensors) {
    if (read && !read->bytes.empty()) filled.push_back(&*read);
  }
  std::sort(filled.begin(), filled.end(),
            [](const tensor* a, const tensor* b) { return a->bytes.data() < b->bytes.data(); });
  for (std::size_t i = 1; i < filled.size(); ++i) {
    const tensor& before = *filled[i - 1];
    if (filled[i]->bytes.data() < before.bytes.data() + before.bytes.size()) {
      return refuse("its tensors '{}' and '{}' share bytes", before.name, filled[i]->name);
    }
  }
  return {};
}

}  // namespace

outcome<std::vector<outcome<tensor>>> read_safetensors(byte_storage file) {
  const auto header = read_header(*file);
  if (!header) return refusal{header.error()};
  std::uint64_t length = 0;
  std::memcpy(&length, file->data(), sizeof length);
  std::vector<outcome<tensor>> tensors;
  for (const auto& [name, entry] : header->items()) {
    if (name == "__metadata__") continue;
    auto read = read_entry(entry, file, sizeof length + length);
    if (read) read->name = name;
    tensors.push_back(read ? std::move(read) : refuse("tensor '{}': {}", name, read.error()));
  }
  if (tensors.empty()) return refuse("it holds no tensor");
  if (const auto apart = check_apart(tensors); !apart) return refusal{apart.error()};
  return tensors;
}

}  // namespace tmap::tool
