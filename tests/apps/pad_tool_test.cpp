// SPDX-License-Identifier: Apache-2.0
// Tests `tmap pad` from the command line: input files, output files, exit codes and messages.
#include "apps/tmap/pad/tensor.hpp"
#include "tests/apps/pad_files.hpp"
#include "tests/apps/run_tool.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <nlohmann/json.hpp>

namespace tmap::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class pad_test : public ::testing::Test {
 protected:
  /// Runs the tool on the simulator, unless the case is about engines, so that its output is the
  /// same on every machine.
  tool_result pad(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"pad", "--out", folder_ / "out", "--engine", "simulator"});
    return run_tmap(arguments);
  }

  nlohmann::json report() const { return nlohmann::json::parse(read_text_file(folder_ / "out/report.json")); }

  temporary_folder folder_;
};

/// Expects a failure: the exit code, one message on standard error only, and no file in the folder.
void expect_failure(const tool_result& result, const std::string& sentence) {
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(StartsWith("tmap pad: "), HasSubstr(sentence)));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST_F(pad_test, twenty_four_pictures_of_every_size) {
  std::filesystem::create_directory(folder_ / "in");
  for (std::uint32_t i = 0; i < 24; ++i) {
    folder_.write("in/picture" + std::to_string(i) + ".png", sample_png(20 + i * 7 % 50, 15 + i * 11 % 60, i));
  }
  folder_.write("in/notes.txt", "not a picture");
  const tool_result result = pad({folder_ / "in"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("engine: simulator (as asked)\nread 24 tensors"));
  EXPECT_THAT(result.out, ::testing::EndsWith("out/contact_sheet.png\n"));
  EXPECT_EQ(result.err, "tmap pad: " + (folder_ / "in") + ": passed over 1 file of another kind\n");
  EXPECT_THAT(folder_.names("out"), UnorderedElementsAre("batch_pictures.npy", "contact_sheet.png", "report.json"));
  const auto batch = report()["batches"][0];
  EXPECT_EQ(batch["shape"], (std::vector<int>{24, 71, 69, 3}));
  EXPECT_EQ(batch["tensors"].size(), 24u);
  EXPECT_EQ(read_text_file(folder_ / "out/batch_pictures.npy").size(), 128 + 24u * 71 * 69 * 3);
}

TEST_F(pad_test, files_and_folders_that_it_passes_over_are_counted) {
  std::filesystem::create_directories(folder_ / "in/inner");
  for (const char* name : {"in/a.txt", "in/b.npz"}) folder_.write(name, "x");
  folder_.write("in/c.npy", npy_of("|u1", "(2,)", "ab"));
  const tool_result result = pad({folder_ / "in"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "tmap pad: " + (folder_ / "in") + ": passed over 2 files of other kinds and 1 folder\n");
  EXPECT_EQ(pad({folder_ / "in", "--quiet"}).err, "");
}

/// Returns one pixel of four channels of 16 bits.
std::string deep_png() {
  constexpr char bytes[] =
      "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\001"
      "\000\000\000\001\020\006\000\000\000\117\205\030\312\000\000\000\014\111\104\101"
      "\124\170\234\143\020\062\201\100\000\004\261\001\031\375\270\252\117\000\000\000"
      "\000\111\105\116\104\256\102\140\202";
  return {bytes, sizeof bytes - 1};
}

TEST_F(pad_test, what_reading_changes_stands_in_the_terminal) {
  const tool_result result = pad({folder_.write("a.png", deep_png()), folder_.write("b.png", deep_png())});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nchanged when read: 2 tensors: transparency dropped, 16 bits reduced to 8\n"));
}

TEST_F(pad_test, fifty_five_tensors_of_mixed_types) {
  const std::string file = folder_.write("model.safetensors", mixed_safetensors());
  const tool_result result = pad({file, "--quiet"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
  std::size_t tensors = 0;
  const nlohmann::json batches = report()["batches"];
  for (const auto& batch : batches) tensors += batch["tensors"].size();
  EXPECT_EQ(tensors, 55u);
  EXPECT_EQ(batches.size(), 44u) << "ranks 0 and 1 share a batch";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out/contact_sheet.png"));
}

TEST_F(pad_test, the_batch_holds_the_padded_arrays) {
  const std::string a = folder_.write("a.npy", npy_of("|u1", "(2, 3)", "abcdef"));
  const std::string b = folder_.write("b.npy", npy_of("|u1", "(3, 2)", "ghijkl"));
  ASSERT_EQ(pad({a, b}).exit_code, 0);
  const std::string header = tool::npy_header(tool::dtype::u8, {2, 3, 3});
  EXPECT_EQ(read_text_file(folder_ / "out/batch_u8_rank2.npy"), header + std::string("abcdef\0\0\0gh\0ij\0kl\0", 18));
  ASSERT_EQ(pad({a, b, "--crop", "min"}).exit_code, 0);
  EXPECT_EQ(read_text_file(folder_ / "out/batch_u8_rank2.npy"),
            tool::npy_header(tool::dtype::u8, {2, 2, 2}) + "abdeghij");
  ASSERT_EQ(pad({a, b, "--crop", "1,4"}).exit_code, 0);
  EXPECT_EQ(read_text_file(folder_ / "out/batch_u8_rank2.npy"),
            tool::npy_header(tool::dtype::u8, {2, 1, 4}) + std::string("abc\0gh\0\0", 8));
}

/// Tests empty tensors in a batch with others, and in a batch that has nothing to copy.
TEST_F(pad_test, a_tensor_without_elements_is_all_padding) {
  const std::string none = folder_.write("none.npy", npy_of("<f4", "(0, 4)", ""));
  const std::string flat = folder_.write("flat.npy", npy_of("<f4", "(3, 0)", ""));
  const std::string data = counting_bytes(2 * 4 * 4);
  const std::string some = folder_.write("some.npy", npy_of("<f4", "(2, 4)", data));
  const std::string header = tool::npy_header(tool::dtype::f32, {3, 3, 4});
  const std::string place(3 * 4 * 4, '\0');
  const tool_result result = pad({none, some, flat});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("read 3 tensors (2 of them empty) in"));
  EXPECT_EQ(read_text_file(folder_ / "out/batch_f32_rank2.npy"),
            header + place + data + place.substr(data.size()) + place);
  const auto tensors = report()["batches"][0]["tensors"];
  EXPECT_EQ(tensors[0]["empty"], true);
  EXPECT_THAT(tensors[0]["note"].get<std::string>(), HasSubstr("all padding"));
  EXPECT_FALSE(tensors[1].contains("empty"));
  const std::string nothing = folder_.write("nothing.npy", npy_of("|u1", "(0,)", ""));
  const std::string five = folder_.write("five.npy", npy_of("|u1", "(5,)", "abcde"));
  ASSERT_EQ(pad({nothing, five}).exit_code, 0);
  EXPECT_EQ(read_text_file(folder_ / "out/batch_u8_rank1.npy"),
            tool::npy_header(tool::dtype::u8, {2, 5}) + std::string("\0\0\0\0\0abcde", 10));
  ASSERT_EQ(pad({none, flat}).exit_code, 0);
  EXPECT_EQ(read_text_file(folder_ / "out/batch_f32_rank2.npy"),
            tool::npy_header(tool::dtype::f32, {2, 3, 4}) + place + place);
}

TEST_F(pad_test, a_batch_without_bytes_is_written) {
  const std::string none = folder_.write("none.npy", npy_of("<f4", "(0, 4)", ""));
  const std::string some = folder_.write("some.npy", npy_of("<f4", "(2, 5)", counting_bytes(40)));
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{none}, {none, none}, {none, some, "--crop", "min"}}) {
    const tool_result result = pad(arguments);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto batch = report()["batches"][0];
    EXPECT_EQ(batch["bytes"], 0);
    EXPECT_EQ(batch["fill"], 0.0) << "not null, which would mean that it is not a number";
    const std::vector<std::uint64_t> shape = batch["shape"];
    EXPECT_EQ(read_text_file(folder_ / "out/batch_f32_rank2.npy"), tool::npy_header(tool::dtype::f32, shape));
  }
}

TEST_F(pad_test, an_earlier_runs_results_go_and_nothing_else) {
  const std::string bytes = folder_.write("a.npy", npy_of("|u1", "(2,)", "ab"));
  const std::string floats = folder_.write("b.npy", npy_of("<f4", "(2, 1)", counting_bytes(8)));
  std::filesystem::create_directory(folder_ / "in");
  folder_.write("in/a.png", sample_png(5, 4));
  ASSERT_EQ(pad({bytes, floats, folder_ / "in"}).exit_code, 0);
  folder_.write("out/batch_notes.npy", "mine");
  folder_.write("out/a.npy", "mine");
  folder_.write("out/batch_f32_rank.npy", "mine");
  folder_.write("out/batch_f32_rank2b.npy", "mine");
  ASSERT_EQ(pad({bytes}).exit_code, 0);
  EXPECT_THAT(folder_.names("out"), UnorderedElementsAre("batch_u8_rank1.npy", "report.json", "batch_notes.npy",
                                                         "a.npy", "batch_f32_rank.npy", "batch_f32_rank2b.npy"));
}

TEST_F(pad_test, a_run_that_fails_early_leaves_the_earlier_results) {
  const std::string bytes = folder_.write("a.npy", npy_of("|u1", "(2,)", "ab"));
  ASSERT_EQ(pad({bytes}).exit_code, 0);
  const std::string before = read_text_file(folder_ / "out/report.json");
  expect_failure(pad({folder_ / "none.npy"}), "no such file");
  EXPECT_EQ(read_text_file(folder_ / "out/report.json"), before);
  EXPECT_THAT(folder_.names("out"), UnorderedElementsAre("batch_u8_rank1.npy", "report.json"));
}

/// A report may have been edited by anybody, so the tool must not trust the file names in it.
TEST_F(pad_test, a_report_cannot_name_files_of_others) {
  const std::string bytes = folder_.write("a.npy", npy_of("|u1", "(2,)", "ab"));
  std::filesystem::create_directory(folder_ / "out");
  folder_.write("batch_f32_rank1.npy", "mine");
  folder_.write("out/mine.npy", "mine");
  folder_.write("out/report.json", R"({"engine":"x","batches":[{"file":"../batch_f32_rank1.npy"},)"
                                   R"({"file":"mine.npy"},{"file":7},{},3],)"
                                   R"("contact_sheet":"../a.npy"})");
  ASSERT_EQ(pad({bytes}).exit_code, 0);
  EXPECT_THAT(folder_.names("out"), UnorderedElementsAre("batch_u8_rank1.npy", "report.json", "mine.npy"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "batch_f32_rank1.npy"));
}

TEST_F(pad_test, files_that_no_report_lists_are_not_replaced) {
  const std::string bytes = folder_.write("a.npy", npy_of("|u1", "(2,)", "ab"));
  std::filesystem::create_directory(folder_ / "out");
  for (const char* name :
       {"batch_u8_rank1.npy", "batch_f8_e4m3_rank12.npy", "batch_pictures.npy", "contact_sheet.png"}) {
    folder_.write(std::string{"out/"} + name, "mine");
    expect_failure(pad({bytes}), std::string{name} + ": it has the name of a result");
    EXPECT_THAT(folder_.names("out"), ElementsAre(name));
    EXPECT_EQ(read_text_file(folder_ / "out/" + name), "mine");
    std::filesystem::remove(folder_ / "out/" + name);
  }
  folder_.write("out/report.json", "{\"mine\": 1}");
  expect_failure(pad({bytes}), "report.json: it is not a report of tmap pad");
  EXPECT_EQ(read_text_file(folder_ / "out/report.json"), "{\"mine\": 1}");
  std::filesystem::remove(folder_ / "out/report.json");
  ASSERT_EQ(mkfifo((folder_ / "out/report.json").c_str(), 0600), 0);
  expect_failure(run_program({"/usr/bin/timeout", "30", TMAP_TOOL, "pad", bytes, "--out", folder_ / "out"}),
                 "report.json: it is not a report of tmap pad");
}

TEST_F(pad_test, no_run_reads_results) {
  const std::string bytes = folder_.write("a.npy", npy_of("|u1", "(2,)", "ab"));
  std::filesystem::create_directory(folder_ / "out");
  folder_.write("out/b.npy", npy_of("|u1", "(2,)", "cd"));
  std::filesystem::create_directory_symlink(folder_ / "out", folder_ / "link");
  for (const std::string& same : {folder_ / "out", folder_ / "out/", folder_ / "link", folder_ / "out/../out/."}) {
    expect_failure(pad({bytes, same}), "--out is this folder");
    EXPECT_THAT(folder_.names("out"), ElementsAre("b.npy"));
  }
  ASSERT_EQ(pad({bytes, folder_ / "out/b.npy"}).exit_code, 0) << "an input next to the results, of another name";
  const std::string result = read_text_file(folder_ / "out/batch_u8_rank1.npy");
  std::filesystem::create_symlink(folder_ / "out/batch_u8_rank1.npy", folder_ / "other.npy");
  for (const std::string& own : {folder_ / "out/batch_u8_rank1.npy", folder_ / "other.npy"}) {
    expect_failure(pad({own}), "it has the name of a result and lies in --out");
    EXPECT_EQ(read_text_file(folder_ / "out/batch_u8_rank1.npy"), result);
  }
}

/// The tool does not read subfolders, so results may lie inside the input folder or above it.
TEST_F(pad_test, results_inside_and_above_the_inputs_are_never_read) {
  std::filesystem::create_directories(folder_ / "out/in/results");
  folder_.write("out/in/a.npy", npy_of("|u1", "(2,)", "ab"));
  for (int run = 0; run < 2; ++run) {
    ASSERT_EQ(pad({folder_ / "out/in"}).exit_code, 0) << "above";
    EXPECT_EQ(report()["batches"][0]["shape"], (std::vector<int>{1, 2}));
    ASSERT_EQ(
        run_tmap({"pad", folder_ / "out/in", "--engine", "simulator", "--out", folder_ / "out/in/results"}).exit_code,
        0)
        << "inside";
    EXPECT_EQ(read_text_file(folder_ / "out/in/results/batch_u8_rank1.npy"),
              read_text_file(folder_ / "out/batch_u8_rank1.npy"));
  }
}

/// The first batch is written. The second exceeds the limit on file sizes.
TEST_F(pad_test, a_failure_after_a_batch_is_in_the_report) {
  const std::string small = folder_.write("a.npy", npy_of("<i2", "(1,)", "ab"));
  const std::string large = folder_.write("b.npy", npy_of("|u1", "(100000,)", counting_bytes(100000)));
  expect_failure(run_program({"/bin/sh", "-c",
                              "ulimit -f 16; exec " TMAP_TOOL " pad " + small + " " + large +
                                  " --quiet --engine simulator --out " + folder_ / "out"}),
                 "File too large");
  EXPECT_THAT(folder_.names("out"), UnorderedElementsAre("batch_i16_rank1.npy", "report.json"));
  EXPECT_EQ(report()["batches"].size(), 1u);
  EXPECT_EQ(report()["failures"].size(), 1u);
}

TEST_F(pad_test, files_of_a_folder_come_in_the_order_of_their_names) {
  std::filesystem::create_directory(folder_ / "in");
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back(folder_ / ("in/" + std::string(1, static_cast<char>('a' + i)) + ".NPY"));
  for (std::size_t i = 0; i < names.size(); ++i) {  // no folder lists its files in this order
    const std::string& name = names[i * 7 % names.size()];
    folder_.write(std::filesystem::relative(name, folder_ / "").string(), npy_of("|u1", "(1,)", "x"));
  }
  ASSERT_EQ(pad({folder_ / "in"}).exit_code, 0);
  std::vector<std::string> padded;
  const nlohmann::json tensors = report()["batches"][0]["tensors"];
  for (const auto& each : tensors) padded.push_back(each["name"]);
  EXPECT_EQ(padded, names);
}

TEST_F(pad_test, keep_going_writes_the_rest) {
  const std::string good = folder_.write("good.npy", npy_of("<f4", "(2,)", "abcdefgh"));
  const std::string bad = folder_.write("bad.png", "no picture");
  const std::string cut = folder_.write("cut.npy", npy_of("<f4", "(3,)", "abcdefgh"));
  expect_failure(pad({good, bad, cut}), "bad.png: it is not a readable PNG");
  EXPECT_THAT(folder_.names("out"), IsEmpty());

  const tool_result result = pad({bad, good, cut, "--keep-going"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("bad.png: it is not a readable PNG"), HasSubstr("cut.npy: it is truncated")));
  EXPECT_THAT(folder_.names("out"), UnorderedElementsAre("batch_f32_rank1.npy", "report.json"));
  EXPECT_EQ(report()["failures"].size(), 2u);
}

TEST_F(pad_test, one_sentence_for_each_bad_input) {
  const std::string good = folder_.write("good.npy", npy_of("<f4", "(2,)", "abcdefgh"));
  std::filesystem::create_directory(folder_ / "empty");
  const std::string entry = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  const std::string twice = safetensors_file("{" + entry + "," + entry + "}", "x");
  const std::pair<std::string, const char*> cases[] = {
      {folder_ / "none.npy", "none.npy: there is no such file"},
      {folder_ / "empty", "empty: the folder itself holds no"},
      {"/dev/null", "/dev/null: it is not a regular file"},
      {folder_.write("a.txt", "text"), "a.txt: this tool does not read files of this kind"},
      {folder_.write("a.png", ""), "a.png: it is empty"},
      {folder_.write("a.jpg", "\xff\xd8\xff\xe0"), "a.jpg: it is not a readable JPEG"},
      {folder_.write("twice.safetensors", twice), "twice.safetensors: its safetensors header has 'a' twice"},
      {folder_.write("a.safetensors", safetensors_file("{]", "")),
       "a.safetensors: its safetensors header is not a JSON object (line 1, column 2)"},
  };
  for (const auto& [input, sentence] : cases) {
    expect_failure(pad({good, input}), sentence);
    EXPECT_THAT(folder_.names("out"), IsEmpty());
  }
  const std::string whole = npy_of("|u1", "(64,)", counting_bytes(64));
  const std::string of_just_the_size = folder_.write("whole.npy", whole);
  expect_failure(pad({of_just_the_size, "--max-bytes", std::to_string(whole.size() - 1)}),
                 "bytes are more than --max-bytes allows");
  EXPECT_THAT(folder_.names("out"), IsEmpty());
  EXPECT_EQ(pad({of_just_the_size, "--max-bytes", std::to_string(whole.size())}).exit_code, 0);
  expect_failure(pad({good, "--max-bytes", "100", "--crop", "26"}), "needs 104 bytes, --max-bytes allows 100");
  expect_failure(pad({good, "--crop", "1,2,3"}), "--crop names 3 dimensions");
}

TEST_F(pad_test, no_space_leaves_no_partial_file) {
  const std::string file = folder_.write("a.npy", npy_of("|u1", "(100000,)", counting_bytes(100000)));
  const tool_result result =
      run_program({"/bin/sh", "-c",
                   "ulimit -f 16; exec " TMAP_TOOL " pad " + file + " --engine simulator --out " + folder_ / "out"});
  expect_failure(result, "out/batch_u8_rank1.npy: it cannot be written (File too large)");
  EXPECT_THAT(folder_.names("out"), IsEmpty());
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // their allocators end the program instead of throwing
TEST_F(pad_test, no_memory_names_the_batch) {
  const std::string file = folder_.write("a.npy", npy_of("|u1", "(1, 1)", "a"));
  const tool_result result = pad({file, "--crop", "1048576,2147483647", "--max-bytes", "1E"});
  expect_failure(result, "tmap pad: batch_u8_rank2: there is not enough memory for it");
  EXPECT_THAT(folder_.names("out"), IsEmpty());
}
#endif

TEST_F(pad_test, says_when_its_output_cannot_be_written) {
  const std::string file = folder_.write("a.npy", npy_of("|u1", "(1,)", "a"));
  const tool_result result =
      run_program({"/bin/sh", "-c", "exec " TMAP_TOOL " pad " + file + " --out " + folder_ / "out" + " > /dev/full"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("standard output cannot be written"));
}

TEST_F(pad_test, the_folder_must_be_one) {
  const std::string file = folder_.write("a.npy", npy_of("|u1", "(1,)", "a"));
  folder_.write("out", "a file");
  expect_failure(pad({file}), "out: ");
}

TEST_F(pad_test, a_wrong_command_line_is_two) {
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"--nonsense"}, {"--crop", "3,x"}, {"--crop", "0"}, {"--engine", "cpu"}}) {
    std::vector<std::string> arguments{"a.npy"};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    const tool_result result = pad(arguments);
    EXPECT_EQ(result.exit_code, 2) << wrong[0] << wrong.back();
    EXPECT_THAT(result.err, StartsWith("tmap: "));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  }
}

TEST_F(pad_test, without_a_gpu_it_says_so_first) {
  const std::string file = folder_.write("a.npy", npy_of("|u1", "(1,)", "a"));
  const tool_result asked = run_tmap({"pad", file, "--out", folder_ / "out", "--engine", "gpu"});
  const tool_result chosen = run_tmap({"pad", file, "--out", folder_ / "out"});
  EXPECT_EQ(chosen.exit_code, 0);
  if (asked.exit_code == 0) {
    EXPECT_THAT(chosen.out, AllOf(StartsWith("engine: gpu, "), HasSubstr("(found)")));
  } else {
    EXPECT_THAT(asked.err, StartsWith("tmap pad: no usable GPU: "));
    EXPECT_THAT(chosen.out, StartsWith("engine: simulator (no usable GPU: "));
  }
}

}  // namespace
}  // namespace tmap::testing
