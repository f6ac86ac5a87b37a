// SPDX-License-Identifier: Apache-2.0
// Tests the forms in which debuggers and people write the bytes of a map.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/run_tool.hpp"
#include "apps/sample_maps.hpp"

namespace tmap {
namespace {

using namespace testing;

/// Returns the map's bytes, each printed by `form`.
std::string each_byte(const tensor_map& map, fmt::format_string<unsigned char> form) {
  std::string text;
  for (const char byte : bytes_of(map)) text += fmt::format(form, static_cast<unsigned char>(byte));
  return text;
}

std::vector<std::uint32_t> halves_of(const tensor_map& map) {
  std::vector<std::uint32_t> halves;
  for (const std::uint64_t word : map.words) {
    halves.push_back(static_cast<std::uint32_t>(word));
    halves.push_back(static_cast<std::uint32_t>(word >> 32));
  }
  return halves;
}

/// Returns what `xxd`, `hexdump -C` and others print for the bytes on their standard input.
std::string printed_by(const std::string& command, const std::string& bytes) {
  return run_program({"/bin/sh", "-c", command}, bytes).out;
}

void expect_map(const std::string& text, const tensor_map& map = sample_map()) {
  for (const tool_result& run : {run_tmap({"inspect", "-"}, text), run_tmap({"inspect", text})}) {
    EXPECT_EQ(run.exit_code, 0) << text << run.err;
    EXPECT_EQ(run.err, "") << text;
    EXPECT_EQ(run.out, describe(map)) << text;
  }
}

TEST(map_forms, hex_with_any_separators) {
  const tensor_map map = sample_map();
  expect_map("\xef\xbb\xbf" + hex_of(map));
  expect_map(each_byte(map, "{:02x}:"));
  expect_map(each_byte(map, "{:02X}, "));
  expect_map(each_byte(map, "{:02x}-"));
  expect_map("{" + each_byte(map, "0x{:02x}, ") + "}");
  expect_map(each_byte(map, "{:02x}\r\n"));
}

TEST(map_forms, words_of_32_bits) {
  std::string filled;
  std::string of_c;
  for (const std::uint32_t half : halves_of(sample_map())) {
    filled += fmt::format("0x{:08x} ", half);
    of_c += fmt::format("0x{:08x}u, ", half);
  }
  expect_map(filled);
  expect_map("words[] = {" + of_c + "};");
}

TEST(map_forms, words_of_64_bits_with_a_suffix_and_without_a_prefix) {
  std::string of_c;
  std::string bare;
  for (const std::uint64_t word : sample_map().words) {
    of_c += fmt::format("{:#x}ULL, ", word);
    bare += fmt::format("{:x} ", word);
  }
  expect_map(of_c);
  expect_map(bare);
}

TEST(map_forms, a_text_with_two_meanings_is_read_as_a_map_and_said_so) {
  std::string bare;
  std::string unfilled;
  for (const std::uint64_t word : sample_map().words) bare += fmt::format("{:016x} ", word);
  for (const std::uint32_t half : halves_of(sample_map())) unfilled += fmt::format("{:#x} ", half);
  const tool_result words = run_tmap({"inspect", "-"}, bare);
  EXPECT_EQ(words.out, describe(sample_map()));
  EXPECT_EQ(words.err, "tmap: standard input: read as 16 words of 64 bits\n");
  const tool_result halves = run_tmap({"inspect", "-"}, unfilled);
  EXPECT_EQ(halves.out, describe(sample_map()));
  EXPECT_EQ(halves.err, "tmap: standard input: read as 32 words of 32 bits\n");
}

TEST(map_forms, separate_arguments_and_files) {
  const temporary_folder folder;
  std::vector<std::string> words{"inspect"};
  for (const std::uint64_t word : sample_map().words) words.push_back(fmt::format("{:#018x}", word));
  EXPECT_EQ(run_tmap(words).out, describe(sample_map()));
  const tool_result files =
      run_tmap({"inspect", folder.file("1.bin", bytes_of(sample_map(1))), folder.file("2.txt", hex_of(sample_map(2)))});
  EXPECT_EQ(files.out, "map 0\n" + describe(sample_map(1)) + "\nmap 1\n" + describe(sample_map(2)));
}

TEST(map_forms, dumps_of_gdb) {
  const tensor_map map = sample_map();
  std::string giants;
  std::string words;
  const auto halves = halves_of(map);
  for (int i = 0; i < 16; i += 2) {
    giants +=
        fmt::format("0x7ffe{:04x} <maps+{}>:\t{:#018x}\t{:#018x}\n", 8 * i, 8 * i, map.words[i], map.words[i + 1]);
  }
  for (std::size_t i = 0; i < 32; i += 4) {
    words += fmt::format("0x7ffe{:04x}:\t0x{:08x}\t0x{:08x}\t0x{:08x}\t0x{:08x}\n", 4 * i, halves[i], halves[i + 1],
                         halves[i + 2], halves[i + 3]);
  }
  expect_map(giants);
  expect_map(words);
  std::string printed = "$1 = {words = {";
  for (int i = 0; i < 10; ++i) printed += fmt::format("{:#x}, ", map.words[i]);
  expect_map(printed + "0x0 <repeats 6 times>}}");
}

TEST(map_forms, dumps_of_xxd_and_hexdump) {
  for (const char* command : {"xxd", "xxd -p", "xxd -g 1", "hexdump -C", "od -v -A n -t x1"}) {
    const std::string whole{command};
    const std::string name = whole.substr(0, whole.find(' '));
    if (std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) != 0) continue;
    expect_map(printed_by(command, bytes_of(sample_map())));
  }
}

/// Tests the output of xxd and hexdump -C, also on machines that lack them.
TEST(map_forms, dumps_with_offsets) {
  const std::string bytes = bytes_of(sample_map());
  std::string xxd;
  std::string hexdump;
  for (std::size_t line = 0; line < 128; line += 16) {
    xxd += fmt::format("{:08x}:", line);
    hexdump += fmt::format("{:08x} ", line);
    for (std::size_t i = line; i < line + 16; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      xxd += fmt::format("{}{:02x}", i % 2 == 0 ? " " : "", byte);
      hexdump += fmt::format("{}{:02x}", i % 8 == 0 ? "  " : " ", byte).substr(i == line ? 1 : 0);
    }
    xxd += "  deadbeef.abc  0a\n";
    hexdump += "  |deadbeef.abc  0a|\n";
  }
  expect_map(xxd);
  expect_map(hexdump + "00000080\n");
}

TEST(map_forms, a_star_repeats_lines) {
  const tool_result run = run_tmap({"inspect", "-"},
                                   "00000000  00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00  |................|\n"
                                   "*\n00000100\n");
  EXPECT_EQ(run.exit_code, 1) << run.err;
  EXPECT_THAT(run.out, ::testing::HasSubstr("map 1\n")) << "256 zeros form two maps";
}

TEST(map_forms, bytes_of_python) {
  const tensor_map map = sample_map();
  std::string literal = "b'";
  for (const char byte : bytes_of(map)) {
    const bool is_plain = byte >= ' ' && byte <= '~' && byte != '\'' && byte != '\\';
    literal += is_plain ? std::string{byte} : fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
  expect_map(literal + "'");
  expect_map("bytes(" + literal + "')");
  const tool_result two = run_tmap({"inspect", "-"}, "[" + literal + "', " + literal + "']");
  EXPECT_EQ(two.out, "map 0\n" + describe(map) + "\nmap 1\n" + describe(map));
}

}  // namespace
}  // namespace tmap
