// SPDX-License-Identifier: Apache-2.0
#include "apps/tmap/pad/tensor.hpp"
#include "apps/tmap/text_position.hpp"

#include <fmt/ranges.h>

#include <charconv>
#include <string_view>

namespace tmap::tool {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

/// The members of the header's Python dictionary.
struct npy_fields {
  std::string_view descr;
  std::string_view fortran_order;
  std::optional<shape_t> shape;
};

/// Walks over a Python literal. Each step returns whether it found what it was asked for.
class literal_reader {
 public:
  explicit literal_reader(std::string_view text) : text_{text} {}

  bool take(char wanted) {
    skip_space();
    if (text_.empty() || text_.front() != wanted) return false;
    text_.remove_prefix(1);
    return true;
  }

  /// Returns the length of the text that was not read yet.
  std::size_t left() const { return text_.size(); }

  std::optional<std::string_view> quoted() {
    if (take('\'')) return until('\'');
    if (take('"')) return until('"');
    return std::nullopt;
  }

  std::string_view word() {
    skip_space();
    return prefix(text_.find_first_not_of("TrueFalse"));
  }

  std::optional<std::uint64_t> number() {
    skip_space();
    std::uint64_t value = 0;
    const auto [end, fault] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (fault != std::errc{}) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
    return value;
  }

 private:
  void skip_space() { prefix(text_.find_first_not_of(" \t\n")); }

  std::string_view prefix(std::size_t length) {
    const std::string_view head = text_.substr(0, length);
    text_.remove_prefix(head.size());
    return head;
  }

  std::optional<std::string_view> until(char end) {
    const std::size_t length = text_.find(end);
    if (length == std::string_view::npos) return std::nullopt;
    const std::string_view head = prefix(length);
    text_.remove_prefix(1);
    return head;
  }

  std::string_view text_;
};

/// A tuple of one needs its comma, as Python has it: "(5)" is a number.
std::optional<shape_t> read_shape(literal_reader& reader) {
  if (!reader.take('(')) return std::nullopt;
  shape_t shape;
  while (!reader.take(')')) {
    const auto dim = reader.number();
    if (!dim) return std::nullopt;
    shape.push_back(*dim);
    if (!reader.take(',')) return shape.size() > 1 && reader.take(')') ? std::optional{shape} : std::nullopt;
  }
  return shape;
}

bool read_field(literal_reader& reader, npy_fields& fields) {
  const auto key = reader.quoted();
  if (!key || !reader.take(':')) return false;
  if (*key == "descr") {
    // A structured type is a list; any text that is not a known type is refused later by its name.
    fields.descr = reader.quoted().value_or("structured");
    return fields.descr != "structured";
  }
  if (*key == "fortran_order") {
    fields.fortran_order = reader.word();
    return true;
  }
  return *key == "shape" && (fields.shape = read_shape(reader));
}

outcome<npy_fields> read_dictionary(std::string_view text) {
  if (text.find("'descr': [") != std::string_view::npos) return refuse("structured dtypes are not supported");
  literal_reader reader{text};
  npy_fields fields;
  bool whole = reader.take('{');
  while (whole && !reader.take('}')) {
    whole = read_field(reader, fields);
    if (whole && !reader.take(',')) {
      whole = reader.take('}');
      break;
    }
  }
  const bool ordered = fields.fortran_order == "True" || fields.fortran_order == "False";
  if (!whole) {
    return refuse("its .npy header is corrupt ({} of the header)", position_in(text, text.size() - reader.left()));
  }
  if (!ordered || !fields.shape || fields.descr.empty()) return refuse("its .npy header is corrupt");
  return fields;
}

outcome<dtype> read_dtype(const npy_fields& fields) {
  if (fields.fortran_order == "True" && fields.shape->size() > 1) {
    return refuse("Fortran order is not supported; save it in C order (numpy.ascontiguousarray)");
  }
  if (fields.descr.front() == '>') return refuse("big-endian data ('{}') are not supported", fields.descr);
  const auto type = dtype_of_npy(fields.descr);
  if (!type) return refuse("dtype '{}' is not supported", fields.descr);
  return *type;
}

/// Returns the header's text, and how many bytes stand before the data.
outcome<std::pair<std::string_view, std::size_t>> find_header(std::string_view file) {
  if (!file.starts_with(magic)) return refuse("it is not a .npy file: the signature is missing");
  if (file.size() < 12) return refuse("it is truncated inside the .npy header");
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(file[i])); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3) return refuse("version {} of the .npy format is not known", version);
  const std::size_t start = version == 1 ? 10 : 12;
  const std::size_t length = byte(8) | byte(9) << 8 | (version == 1 ? 0 : byte(10) << 16 | byte(11) << 24);
  if (length > file.size() - start) return refuse("it is truncated inside the .npy header");
  return std::pair{file.substr(start, length), start + length};
}

}  // namespace

outcome<tensor> read_npy(byte_storage file) {
  const auto header = find_header({reinterpret_cast<const char*>(file->data()), file->size()});
  if (!header) return refusal{header.error()};
  const auto fields = read_dictionary(header->first);
  if (!fields) return refusal{fields.error()};
  const auto type = read_dtype(*fields);
  if (!type) return refusal{type.error()};
  const auto size = check_shape(*fields->shape, *type, file->size() - header->second);
  if (!size) return refusal{size.error()};

  tensor read;
  read.type = *type;
  read.shape = *fields->shape;
  read.bytes = std::span{*file}.subspan(header->second, *size);
  read.storage = std::move(file);
  return read;
}

std::string npy_header(dtype type, const shape_t& shape) {
  const std::string dims = fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", info(type).npy, dims);
  constexpr std::size_t fixed = 10;
  const std::size_t total = (fixed + text.size() + 1 + 63) / 64 * 64;
  text.resize(total - fixed - 1, ' ');
  text += '\n';
  std::string header{magic};
  for (const std::size_t value : {std::size_t{1}, std::size_t{0}, text.size() & 255, text.size() >> 8}) {
    header += static_cast<char>(value);
  }
  return header + text;
}

}  // namespace tmap::tool
