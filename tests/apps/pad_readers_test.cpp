// SPDX-License-Identifier: Apache-2.0
// Tests the readers of `tmap pad`: what each format yields, and that malformed input is refused.
#include "apps/tmap/pad/inputs.hpp"
#include "apps/tmap/pad/tensor.hpp"
#include "tests/apps/pad_files.hpp"
#include "tests/apps/sample_jpeg.hpp"

#include <gmock/gmock.h>
#include <png.h>

#include <cstring>

namespace tmap::tool {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace tmap::testing;

outcome<tensor> npy(const std::string& file) {
  return read_npy(stored(to_bytes(file)));
}

std::string text_of(const tensor& t) {
  return {reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()};
}

TEST(npy, reads_every_version_of_the_header) {
  const std::string data = counting_bytes(24);
  for (int version = 1; version <= 3; ++version) {
    const auto read = npy(npy_file(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data));
    ASSERT_TRUE(read) << read.error();
    EXPECT_EQ(read->type, dtype::f32);
    EXPECT_THAT(read->shape, ElementsAre(2, 3));
    EXPECT_EQ(text_of(*read), data);
  }
}

TEST(npy, reads_every_type_it_writes) {
  for (std::uint8_t i = 0; i <= static_cast<std::uint8_t>(dtype::c64); ++i) {
    const auto type = static_cast<dtype>(i);
    const std::string file = npy_header(type, {3}) + counting_bytes(3 * bytes(type));
    const auto read = npy(file);
    ASSERT_TRUE(read) << info(type).name << ": " << read.error();
    EXPECT_EQ(bytes(read->type), bytes(type));
    EXPECT_EQ(read->type == type, !info(type).npy_is_bits) << info(type).name;
    EXPECT_EQ(text_of(*read), counting_bytes(3 * bytes(type)));
  }
}

/// Version 2 uses four bytes for the length of the header, and the third one matters from 64 KiB
/// on.
TEST(npy, reads_a_header_of_more_than64_ki_b) {
  const std::string padding(70000, ' ');
  const auto read = npy(npy_file(2, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }" + padding, "abc"));
  ASSERT_TRUE(read) << read.error();
  EXPECT_THAT(read->shape, ElementsAre(3));
  EXPECT_EQ(text_of(*read), "abc");
  const auto cut = npy(std::string("\x93NUMPY\x02\x00\x01\x00\x00\x01", 12) + std::string(100, ' '));
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error(), HasSubstr("truncated inside")) << "the fourth byte makes it 16 MiB";
}

TEST(npy, scalars_and_one_dimension) {
  EXPECT_THAT(npy(npy_of("<i2", "()", "ab"))->shape, ElementsAre());
  EXPECT_THAT(npy(npy_of("<i2", "(1,)", "ab"))->shape, ElementsAre(1));
  EXPECT_THAT(npy(npy_file(1, "{\"shape\":(2,),\"fortran_order\":True,\"descr\":\"|u1\"}", "ab"))->shape,
              ElementsAre(2));
}

TEST(npy, the_header_is_numpys_own) {
  const std::string header = npy_header(dtype::u8, {2, 3});
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(header.substr(10, 56), "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)");
  EXPECT_EQ(header.back(), '\n');
  EXPECT_THAT(npy_header(dtype::u8, {5}), HasSubstr("'shape': (5,)")) << "(5) is a number in Python";
  EXPECT_THAT(npy_header(dtype::u8, {}), HasSubstr("'shape': ()"));
}

TEST(npy, tensors_without_elements) {
  const auto read = npy(npy_of("<f4", "(0, 3)", ""));
  ASSERT_TRUE(read) << read.error();
  EXPECT_THAT(read->shape, ElementsAre(0, 3));
  EXPECT_TRUE(read->bytes.empty());
}

struct refused_npy {
  const char* cause;
  std::string file;
};

TEST(npy, refuses_with_the_cause) {
  const std::string dims = ", 'fortran_order': False, 'shape': (2, 2)}";
  const refused_npy cases[] = {
      {"signature is missing", "NUMPY, but not quite"},
      {"truncated inside", std::string("\x93NUMPY\x01\x00", 8)},
      {"truncated inside", npy_file(1, "{}", "").substr(0, 12)},
      {"version 0", npy_file(0, "{'descr': '<f4'" + dims, counting_bytes(16))},
      {"version 4", npy_file(4, "{'descr': '<f4'" + dims, counting_bytes(16))},
      {"header is corrupt", npy_file(1, "{'descr': '<f4'}", "")},
      {"header is corrupt", npy_file(1, "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,)}", "")},
      {"header is corrupt (line 1, column 55 of the header)", npy_of("<f4", "(2, x)", "")},
      {"header is corrupt", npy_of("<f4", "(-2,)", "")},
      {"header is corrupt", npy_of("<f4", "(2", "")},
      {"structured", npy_file(1, "{'descr': [('a', '<i4')]" + dims, "")},
      {"Fortran order", npy_file(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", counting_bytes(16))},
      {"big-endian data ('>f4')", npy_of(">f4", "(2,)", counting_bytes(8))},
      {"dtype '<c16' is not supported", npy_of("<c16", "(1,)", counting_bytes(16))},
      {"dtype '|O' is not supported", npy_of("|O", "(1,)", counting_bytes(8))},
      {"header is corrupt", npy_of("|u1", "(2)", "ab")},
      {"header is corrupt", npy_of("|u1", "(,)", "")},
      {"4 bytes of data, its shape needs 0", npy_of("<f4", "(0, 3)", counting_bytes(4))},
      {"truncated: 7 of 8 bytes", npy_of("<f4", "(2,)", counting_bytes(7))},
      {"9 bytes of data, its shape needs 8", npy_of("<f4", "(2,)", counting_bytes(9))},
      {"larger than any memory", npy_of("<f4", "(4294967296, 4294967296)", "")},
      {"header is corrupt", npy_of("<f4", "(99999999999999999999,)", "")},
  };
  for (const refused_npy& c : cases) {
    const auto read = npy(c.file);
    ASSERT_FALSE(read) << c.cause;
    EXPECT_THAT(read.error(), HasSubstr(c.cause));
  }
}

TEST(safetensors, reads_tensors_and_refuses_the_broken_ones_alone) {
  const std::string header = R"({"__metadata__":{"a":"b"},"bad":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},)"
                             R"("cut":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},)"
                             R"("good":{"dtype":"BF16","shape":[2,1],"data_offsets":[2,6]},)"
                             R"("none":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                             R"("odd":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]},)"
                             R"("over":{"dtype":"F64","shape":[1],"data_offsets":[4,2]}})";
  const auto read = read_safetensors(stored(to_bytes(safetensors_file(header, "abCDEFgh"))));
  ASSERT_TRUE(read) << read.error();
  ASSERT_EQ(read->size(), 6u);
  EXPECT_THAT((*read)[0].error(), HasSubstr("tensor 'bad': dtype F4 is not supported"));
  EXPECT_THAT((*read)[1].error(), HasSubstr("ends at byte 9 of 8"));
  ASSERT_TRUE((*read)[2]);
  EXPECT_EQ((*read)[2]->name, "good");
  EXPECT_EQ(text_of(*(*read)[2]), "CDEF");
  ASSERT_TRUE((*read)[3]) << "a tensor without elements is no error";
  EXPECT_THAT((*read)[3]->shape, ElementsAre(0));
  EXPECT_THAT((*read)[4].error(), HasSubstr("corrupt"));
  EXPECT_THAT((*read)[5].error(), HasSubstr("offsets [4, 2] are corrupt"));
}

TEST(safetensors, refuses_a_corrupt_header) {
  const std::pair<const char*, std::string> cases[] = {
      {"truncated", "abc"},
      {"truncated", safetensors_file("{}", "").substr(0, 9)},
      {"corrupt: a length of", std::string(16, '\xff')},
      {"not a JSON object", safetensors_file("[1,2]", "")},
      {"not a JSON object", safetensors_file("{\"a\":", "")},
      {"holds no tensor", safetensors_file("{}", "")},
      {"not a JSON object", safetensors_file(std::string(100000, '['), "")},
  };
  for (const auto& [cause, file] : cases) {
    const auto read = read_safetensors(stored(to_bytes(file)));
    ASSERT_FALSE(read) << cause;
    EXPECT_THAT(read.error(), HasSubstr(cause));
  }
}

/// Returns the header entry of a tensor of bytes.
std::string u8_entry(const std::string& name, std::uint64_t begin, std::uint64_t end) {
  return fmt::format(R"("{}":{{"dtype":"U8","shape":[{}],"data_offsets":[{},{}]}})", name, end - begin, begin, end);
}

TEST(safetensors, refuses_a_name_that_stands_twice) {
  const std::pair<std::string, const char*> cases[] = {
      {"{" + u8_entry("a", 0, 4) + "," + u8_entry("a", 4, 8) + "}", "has 'a' twice"},
      {"{" + u8_entry("a", 0, 4) + "," + u8_entry("b", 4, 8) + "," + u8_entry("\\u0061", 4, 8) + "}", "has 'a' twice"},
      {R"({"a":{"dtype":"U8","shape":[4],"shape":[8],"data_offsets":[0,8]}})", "has 'shape' twice"},
      {R"({"__metadata__":{"x":"1","x":"2"},)" + u8_entry("a", 0, 8) + "}", "has 'x' twice"},
      {R"({"__metadata__":{},"__metadata__":{},)" + u8_entry("a", 0, 8) + "}", "has '__metadata__' twice"},
  };
  for (const auto& [header, cause] : cases) {
    const auto read = read_safetensors(stored(to_bytes(safetensors_file(header, "abcdefgh"))));
    ASSERT_FALSE(read) << header;
    EXPECT_THAT(read.error(), HasSubstr(cause));
  }
  const std::string same_keys = "{" + u8_entry("a", 0, 4) + "," + u8_entry("b", 4, 8) + R"(,"__metadata__":{"a":"b"}})";
  EXPECT_TRUE(read_safetensors(stored(to_bytes(safetensors_file(same_keys, "abcdefgh")))))
      << "each object has names of its own";
}

TEST(safetensors, refuses_tensors_that_share_bytes) {
  const auto reads = [](const std::string& entries) {
    return read_safetensors(stored(to_bytes(safetensors_file("{" + entries + "}", "abcdefgh"))));
  };
  const auto a = u8_entry("a", 0, 4);
  for (const auto& [begin, end] : {std::pair{2, 6}, {3, 4}, {3, 8}, {0, 4}, {1, 2}, {0, 8}}) {
    const auto read =
        reads(a + "," + u8_entry("b", static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)));
    ASSERT_FALSE(read) << begin;
    EXPECT_THAT(read.error(), ::testing::AllOf(HasSubstr("share bytes"), HasSubstr("'a'"), HasSubstr("'b'")));
  }
  EXPECT_FALSE(reads(u8_entry("z", 4, 8) + "," + a + "," + u8_entry("m", 3, 5))) << "in any order of the names";
  EXPECT_TRUE(reads(a + "," + u8_entry("b", 4, 8)));
  EXPECT_TRUE(reads(u8_entry("a", 4, 8) + "," + u8_entry("b", 0, 4))) << "in another order than their names";
  EXPECT_TRUE(reads(u8_entry("b", 5, 8) + "," + a)) << "bytes that belong to none do no harm";
  EXPECT_TRUE(reads(a + "," + u8_entry("none", 2, 2))) << "a tensor without elements shares no bytes";
}

constexpr std::uint64_t reader_budget = 1 << 26;

TEST(png, gives_the_pixels_that_were_drawn) {
  const auto read = read_png(sample_png(9, 4, 3), reader_budget);
  ASSERT_TRUE(read) << read.error();
  EXPECT_THAT(read->shape, ElementsAre(4, 9, 3));
  const auto* pixel = reinterpret_cast<const std::uint8_t*>(read->bytes.data()) + (2 * 9 + 5) * 3;
  EXPECT_THAT(std::vector(pixel, pixel + 3), ElementsAre(28, 7, 10));
  EXPECT_TRUE(read->picture);
}

/// Returns a PNG of one row in one of libpng's formats.
bytes_t png_row(png_uint_32 format, std::uint32_t width, const std::vector<std::uint8_t>& samples) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = width;
  image.height = 1;
  image.format = format;
  png_alloc_size_t size = 4096;
  bytes_t file(size);
  EXPECT_NE(png_image_write_to_memory(&image, file.data(), &size, 0, samples.data(), 0, nullptr), 0) << image.message;
  file.resize(size);
  return file;
}

TEST(png, every_kind_becomes_rgb_and_the_note_says_how) {
  const auto grey = read_png(png_row(PNG_FORMAT_GRAY, 3, {1, 128, 255}), reader_budget);
  ASSERT_TRUE(grey) << grey.error();
  EXPECT_EQ(text_of(*grey), "\x01\x01\x01\x80\x80\x80\xff\xff\xff");
  EXPECT_EQ(grey->note, "grey expanded to RGB");
  const auto transparent = read_png(png_row(PNG_FORMAT_RGBA, 2, {10, 20, 30, 255, 40, 50, 60, 0}), reader_budget);
  ASSERT_TRUE(transparent) << transparent.error();
  EXPECT_EQ(text_of(*transparent), "\x0a\x14\x1e\x28\x32\x3c");
  EXPECT_EQ(transparent->note, "transparency dropped");
  const auto deep = read_png(png_row(PNG_FORMAT_LINEAR_RGB, 1, {0, 0, 255, 255, 255, 255}), reader_budget);
  ASSERT_TRUE(deep) << deep.error();
  EXPECT_EQ(text_of(*deep), std::string("\0\xff\xff", 3));
  EXPECT_EQ(deep->note, "16 bits reduced to 8");
}

TEST(png, refuses_a_header_that_promises_too_much) {
  auto file = sample_png(9, 4);
  EXPECT_THAT(read_png(file, 30).error(), HasSubstr("--max-bytes"));
  EXPECT_THAT(read_png(file, 9 * 4 * 4 - 1).error(), HasSubstr("--max-bytes")) << "decoding takes four bytes a pixel";
  EXPECT_TRUE(read_png(file, 9 * 4 * 4));
  file[18] = file[22] = std::byte{0x7f};  // 32,521 x 32,516: the checksum is wrong too, which libpng reports first
  EXPECT_FALSE(read_png(file, reader_budget));
}

TEST(jpeg, gives_pixels_near_the_ones_that_were_drawn) {
  const auto read = read_jpeg(sample_jpeg(16, 8, {200, 100, 50}), reader_budget);
  ASSERT_TRUE(read) << read.error();
  EXPECT_THAT(read->shape, ElementsAre(8, 16, 3));
  for (std::size_t i = 0; i < read->bytes.size(); ++i) {
    const int drawn[] = {200, 100, 50};
    EXPECT_NEAR(std::to_integer<int>(read->bytes[i]), drawn[i % 3], 3);
  }
}

TEST(jpeg, grey_becomes_rgb_and_cmyk_is_refused) {
  const auto grey = read_jpeg(sample_jpeg(8, 8, {128}, JCS_GRAYSCALE), reader_budget);
  ASSERT_TRUE(grey) << grey.error();
  EXPECT_EQ(text_of(*grey), std::string(8 * 8 * 3, '\x80'));
  EXPECT_EQ(grey->note, "grey expanded to RGB");
  const auto cmyk = read_jpeg(sample_jpeg(8, 8, {1, 2, 3, 4}, JCS_CMYK), reader_budget);
  ASSERT_FALSE(cmyk);
  EXPECT_THAT(cmyk.error(), HasSubstr("CMYK"));
}

TEST(jpeg, refuses_a_header_that_promises_too_much) {
  auto file = sample_jpeg(16, 8, {1, 2, 3});
  EXPECT_THAT(read_jpeg(file, 16 * 8 * 3 - 1).error(), HasSubstr("--max-bytes"));
  EXPECT_TRUE(read_jpeg(file, 16 * 8 * 3));
  const auto frame = std::search(file.begin(), file.end(), std::begin(jpeg_frame), std::end(jpeg_frame));
  ASSERT_NE(frame, file.end());
  frame[5] = frame[7] = std::byte{0xf0};
  EXPECT_THAT(read_jpeg(file, ~std::uint64_t{0}).error(), HasSubstr("far more than the file holds"));
}

}  // namespace
}  // namespace tmap::tool
