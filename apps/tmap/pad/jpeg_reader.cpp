// SPDX-License-Identifier: Apache-2.0
#include <cstdio>  // jpeglib.h needs FILE and does not include it

#include <jerror.h>
#include <jpeglib.h>

#include "apps/tmap/pad/tensor.hpp"

#include <csetjmp>

namespace tmap::tool {
namespace {

/// A progressive picture of one colour packs thousands of pixels into a byte; more than this is a
/// corrupt header.
constexpr std::uint64_t most_pixels_per_file_byte = 4096;

/// libjpeg reports a fatal error by a call that must not return: it jumps back into the function
/// that set `back`. Such a function holds plain data only, so that no destructor is jumped over.
struct jpeg_session {
  jpeg_error_mgr errors;  // first: libjpeg hands its address back
  std::jmp_buf back;
  char message[JMSG_LENGTH_MAX];
  jpeg_decompress_struct decoder;
};

[[noreturn]] void fail(j_common_ptr decoder) {
  auto* session = reinterpret_cast<jpeg_session*>(decoder->err);
  session->errors.format_message(decoder, session->message);
  std::longjmp(session->back, 1);
}

/// Warnings of damaged data are failures: libjpeg would go on and fill the rest with grey.
void stop_at_damage(j_common_ptr decoder, int level) {
  if (level >= 0) return;
  const int code = decoder->err->msg_code;
  if (code != JWRN_EXTRANEOUS_DATA && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM) fail(decoder);
}

bool open(jpeg_session& session, std::span<const std::byte> file) {
  session.decoder.err = jpeg_std_error(&session.errors);
  session.errors.error_exit = fail;
  session.errors.emit_message = stop_at_damage;
  if (setjmp(session.back) != 0) return false;
  jpeg_create_decompress(&session.decoder);
  jpeg_mem_src(&session.decoder, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&session.decoder, TRUE);
  session.decoder.out_color_space = JCS_RGB;
  return true;
}

bool decode(jpeg_session& session, std::byte* samples) {
  if (setjmp(session.back) != 0) return false;
  jpeg_start_decompress(&session.decoder);
  while (session.decoder.output_scanline < session.decoder.output_height) {
    const std::size_t row_bytes = std::size_t{session.decoder.output_width} * 3;
    auto* row = reinterpret_cast<unsigned char*>(samples + session.decoder.output_scanline * row_bytes);
    jpeg_read_scanlines(&session.decoder, &row, 1);
  }
  jpeg_finish_decompress(&session.decoder);
  return true;
}

struct session_guard {
  jpeg_session& session;
  ~session_guard() { jpeg_destroy_decompress(&session.decoder); }
};

}  // namespace

outcome<tensor> read_jpeg(std::span<const std::byte> file, std::uint64_t most_bytes) {
  if (file.empty()) return refuse("it is empty");
  jpeg_session session{};
  const session_guard guard{session};
  if (!open(session, file)) return refuse("it is not a readable JPEG ({})", session.message);
  const std::uint64_t width = session.decoder.image_width;
  const std::uint64_t height = session.decoder.image_height;
  if (width * height / most_pixels_per_file_byte > file.size()) {
    return refuse("its header promises {} x {} pixels, far more than the file holds", width, height);
  }
  if (width * height > most_bytes / 3) {
    return refuse("its {} x {} pixels take more memory than --max-bytes allows", width, height);
  }
  const J_COLOR_SPACE colours = session.decoder.jpeg_color_space;
  if (colours == JCS_CMYK || colours == JCS_YCCK)
    return refuse("it has the four colours of print (CMYK); save it as RGB");
  const bool grey = session.decoder.num_components == 1;
  std::vector<std::byte> samples(width * height * 3);
  if (!decode(session, samples.data())) return refuse("it is a truncated or corrupt JPEG ({})", session.message);

  tensor read;
  read.type = dtype::u8;
  read.shape = {height, width, 3};
  read.storage = std::make_shared<const std::vector<std::byte>>(std::move(samples));
  read.bytes = *read.storage;
  read.picture = true;
  read.note = grey ? "grey expanded to RGB" : "";
  return read;
}

}  // namespace tmap::tool
