// SPDX-License-Identifier: Apache-2.0
// Tests calls that break the contract. Each must return an error code and leave what its pointers
// lead to unchanged.
#include "interop/c_service_fixture.hpp"
#include "interop/refuses_bad_structs.hpp"
#include "interop/sized.hpp"

namespace tmap::testing {
namespace {

/// Returns a struct whose bytes are all poison, except for its size and reserved member.
template <class Struct>
Struct poisoned() {
  Struct made;
  std::memset(&made, 0x5a, sizeof made);
  made.struct_size = sizeof made;
  if constexpr (requires { made.reserved; }) made.reserved = 0;
  return made;
}

tmap_tensor_spec good_spec() {
  const std::uint64_t dims[] = {64, 8};
  const std::uint32_t box[] = {32, 8};
  tmap_tensor_spec spec{};
  EXPECT_EQ(tmap_packed_spec(TMAP_F32, 4096, 2, dims, box, &spec), TMAP_OK);
  return spec;
}

TEST(hostile_spec, packed_spec) {
  const std::uint64_t dims[] = {64, 8};
  const std::uint32_t box[] = {32, 8};
  tmap_tensor_spec spec = poisoned<tmap_tensor_spec>();
  const tmap_tensor_spec before = spec;
  EXPECT_EQ(refused(tmap_packed_spec(16, 0, 2, dims, box, &spec)), "element_type");
  EXPECT_EQ(refused(tmap_packed_spec(~0u, 0, 2, dims, box, &spec)), "element_type");
  for (const std::uint32_t rank : {0u, 6u, ~0u}) {
    EXPECT_EQ(refused(tmap_packed_spec(TMAP_U8, 0, rank, dims, box, &spec)), "rank");
  }
  EXPECT_EQ(refused(tmap_packed_spec(TMAP_U8, 0, 2, nullptr, box, &spec)), "dims");
  EXPECT_EQ(refused(tmap_packed_spec(TMAP_U8, 0, 2, misaligned(dims), box, &spec)), "dims");
  EXPECT_EQ(refused(tmap_packed_spec(TMAP_U8, 0, 2, dims, nullptr, &spec)), "box");
  EXPECT_EQ(refused(tmap_packed_spec(TMAP_U8, 0, 2, dims, box, nullptr)), "spec");
  EXPECT_EQ(std::memcmp(&spec, &before, sizeof spec), 0);
}

TEST(hostile_spec, structs) {
  std::uint32_t count = 77;
  tmap_tensor_map map{{77}};
  char text[4] = "abc";
  std::size_t length = 77;
  using spec = tmap_tensor_spec;
  refuses_bad_structs<spec>(good_spec(), [&](spec* s) { return tmap_validate(s, nullptr, nullptr, 0, &count); });
  refuses_bad_structs<spec>(good_spec(), [&](spec* s) { return tmap_explain(s, nullptr, text, 4, &length); });
  refuses_bad_structs<spec>(good_spec(), [&](spec* s) { return tmap_encode(s, &map); });
  refuses_bad_structs<spec>(good_spec(), [&](spec* s) { return tmap_encode_bits(s, &map); });
  tmap_im2col_spec im2col{};
  im2col.struct_size = sizeof im2col;
  im2col.tensor = good_spec();
  refuses_bad_structs<tmap_im2col_spec>(im2col, [&](auto* s) { return tmap_encode_im2col(s, &map); });
  refuses_bad_structs<tmap_im2col_spec>(im2col,
                                        [&](auto* s) { return tmap_validate_im2col(s, nullptr, nullptr, 0, &count); });
  refuses_bad_structs<tmap_im2col_spec>(im2col,
                                        [&](auto* s) { return tmap_explain_im2col(s, nullptr, text, 4, &length); });
  refuses_bad_structs<spec>(
      good_spec(),
      [&](spec* inner) {
        const bool has_place = inner != nullptr && reinterpret_cast<std::uintptr_t>(inner) % alignof(spec) == 0;
        if (!has_place) return tmap_status{TMAP_INVALID_ARGUMENT};  // a member is never null or misaligned
        im2col.tensor = *inner;
        return tmap_encode_im2col(&im2col, &map);
      },
      false, false);
  EXPECT_EQ(refused(tmap_encode_im2col(&im2col, &map)), "spec.tensor.reserved");
  const tmap_tensor_spec checked = good_spec();
  refuses_bad_structs<tmap_device_limits>(
      {sizeof(tmap_device_limits), 90, 232448, 0},
      [&](auto* l) { return tmap_validate(&checked, l, nullptr, 0, &count); }, true);
  refuses_bad_structs<tmap_device_limits>(poisoned<tmap_device_limits>(), &tmap_query_device_limits);
  const tmap_tensor_map zeros{};
  refuses_bad_structs<tmap_decoded_map>(poisoned<tmap_decoded_map>(), [&](auto* d) { return tmap_decode(&zeros, d); });
  refuses_bad_structs<tmap_error>(poisoned<tmap_error>(), &tmap_last_error, false, false);
  EXPECT_EQ(count, 77u);
  EXPECT_EQ(length, 77u);
  EXPECT_EQ(map.words[0], 77u);
  EXPECT_STREQ(text, "abc");
}

TEST(hostile_spec, pointers) {
  const tmap_tensor_spec spec = good_spec();
  tmap_tensor_map map{{77}};
  std::uint32_t count = 77;
  std::size_t length = 77;
  tmap_decoded_map decoded = poisoned<tmap_decoded_map>();
  const tmap_decoded_map before = decoded;
  EXPECT_EQ(refused(tmap_validate(&spec, nullptr, nullptr, 1, &count)), "violations");
  EXPECT_EQ(refused(tmap_validate(&spec, nullptr, nullptr, 0, nullptr)), "count");
  EXPECT_EQ(refused(tmap_explain(&spec, nullptr, nullptr, 1, &length)), "text");
  EXPECT_EQ(refused(tmap_explain(&spec, nullptr, nullptr, 0, misaligned(&length))), "length");
  EXPECT_EQ(refused(tmap_encode(&spec, nullptr)), "map");
  EXPECT_EQ(refused(tmap_encode_bits(&spec, misaligned(&map))), "map");
  EXPECT_EQ(refused(tmap_replace_address(nullptr, 4096, &map)), "map");
  EXPECT_EQ(refused(tmap_replace_address(&map, 4096, nullptr)), "moved");
  EXPECT_EQ(refused(tmap_decode(nullptr, &decoded)), "map");
  EXPECT_EQ(refused(tmap_decode(misaligned(&map), &decoded)), "map");
  EXPECT_EQ(refused(tmap_describe(nullptr, nullptr, 0, &length)), "map");
  EXPECT_EQ(refused(tmap_describe_json(&map, nullptr, 5, &length)), "text");
  EXPECT_EQ(map.words[0], 77u);
  EXPECT_EQ(count, 77u);
  EXPECT_EQ(length, 77u);
  EXPECT_EQ(std::memcmp(&decoded, &before, sizeof before), 0);
}

class hostile_service : public c_service_fixture {
 protected:
  void TearDown() override {
    EXPECT_EQ(machine.all_calls(), calls_);
    EXPECT_EQ(batch_.value, 77u);
    EXPECT_EQ(tmap_service_destroy(service_), TMAP_OK);
    EXPECT_TRUE(machine.is_clean());
  }

  tmap_status encode(const tmap_patch_source* source, const tmap_call* call = nullptr, std::uint64_t count = 4) {
    return tmap_service_encode(service_, c_base, source, count, &batch_, call);
  }

  const tensor_list tensors_{4};
  tmap_service service_ = make_c();
  tmap_batch batch_{77};
  alignas(16) tmap_batch_header header_{};
  std::uint64_t calls_ = machine.all_calls();
};

TEST_F(hostile_service, sources) {
  const tmap_patch_source good = source_of(tensors_);
  refuses_bad_structs<tmap_patch_source>(good, [&](auto* source) { return encode(source); });
  tmap_patch_source source = good;
  for (const std::uint32_t kind : {4u, ~0u}) {
    source.kind = kind;
    EXPECT_EQ(refused(encode(&source)), "source.kind");
  }
  source.kind = TMAP_SOURCE_ROWS;
  const tmap_template rows_base = make_template(codec_template(rows_spec(), patch_address | patch_dim(1)).value());
  const auto encode_rows = [&] { return tmap_service_encode(service_, rows_base, &source, 4, &batch_, nullptr); };
  for (const std::uint32_t format : {std::uint32_t{TMAP_OFFSETS_LABELS}, ~0u}) {
    source.of.rows = {4096, 256, {tensors_.patches.data(), format, 4, nullptr, 0}, 0, 0, 0};
    EXPECT_EQ(refused(encode_rows()), "source.offsets.format");
  }
  source.of.rows = {4096, 256, {tensors_.patches.data(), TMAP_OFFSETS_BEGINS_AND_COUNTS, 4, nullptr, 0}, 0, 0, 0};
  EXPECT_EQ(refused(encode_rows()), "source.offsets.counts");
  source.of.rows = {4096, 256, {tensors_.patches.data(), TMAP_OFFSETS_SLOTS, 4, nullptr, 0}, 0, 0, 0};
  EXPECT_EQ(refused(encode_rows()), "source.offsets.slot_rows");
  for (const std::uint32_t bytes : {0u, 1u, 16u, ~0u}) {
    source.of.rows = {4096, 256, {tensors_.patches.data(), TMAP_OFFSETS_ENDS, bytes, nullptr, 0}, 0, 0, 0};
    EXPECT_EQ(refused(encode_rows()), "source.offsets.bytes");
  }
  calls_ = machine.all_calls();  // the service queries its context before it checks offsets
  EXPECT_EQ(tmap_template_destroy(rows_base), TMAP_OK);
  source.of.rows = {4096, 256, {tensors_.patches.data(), TMAP_OFFSETS_ENDS, 4, nullptr, 0}, 8, 2, 0};
  EXPECT_EQ(refused(encode(&source)), "source.is_bounded");
  source.of.rows = {4096, 256, {tensors_.patches.data(), TMAP_OFFSETS_ENDS, 4, nullptr, 0}, 8, 1, 1};
  EXPECT_EQ(refused(encode(&source)), "source.reserved");
}

TEST_F(hostile_service, calls) {
  const tmap_patch_source source = source_of(tensors_);
  refuses_bad_structs<tmap_call>(
      sized<tmap_call>(), [&](auto* c) { return encode(&source, c); }, true);
  const auto refusal = [&](const auto& use) {
    tmap_call call = sized<tmap_call>();
    use(call);
    const std::string name = refused(encode(&source, &call));
    calls_ = machine.all_calls();  // the service queries its context before its own checks
    return name;
  };
  EXPECT_EQ(refusal([](tmap_call& c) { c.trusted = ~0u; }), "call.trusted");
  EXPECT_EQ(refusal([](tmap_call& c) { c.publish = TMAP_PUBLISH_COPY_FENCE + 1; }), "call.publish");
  EXPECT_EQ(refusal([](tmap_call& c) { c.check = TMAP_CHECK_SYNC + 1; }), "call.check");
  EXPECT_EQ(refusal([](tmap_call& c) { c.window_count = 1; }), "call.windows");
  EXPECT_EQ(refusal([](tmap_call& c) { c.engine = TMAP_ON_HOST; }), "call.engine");
  EXPECT_EQ(refusal([](tmap_call& c) { c.policy = 1; }), "call.policy");
  EXPECT_EQ(refusal([](tmap_call& c) { c.allowed = 1; }), "call.allowed");
  EXPECT_EQ(refusal([](tmap_call& c) { c.plan = 1; }), "call.plan");
  std::uint64_t statuses[4];
  EXPECT_EQ(refusal([&](tmap_call& c) { c.statuses = statuses; }), "call.statuses");
  for (const std::uint64_t count : {std::uint64_t{0}, max_batch + 1, ~std::uint64_t{0}}) {
    calls_ = machine.all_calls();
    EXPECT_EQ(refused(encode(&source, nullptr, count)), "count");
    calls_ = machine.all_calls();  // the service queries its context first
  }
  EXPECT_EQ(refused(tmap_service_encode(service_, c_base, &source, 4, nullptr, nullptr)), "batch");
}

TEST_F(hostile_service, handles) {
  const tmap_patch_source source = source_of(tensors_);
  for (const std::uint64_t wild : {std::uint64_t{0}, c_base.value, service_.value + 1, ~std::uint64_t{0}}) {
    EXPECT_EQ(tmap_service_encode({wild}, c_base, &source, 4, &batch_, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_service_reserve({wild}, 4, &batch_, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_service_destroy({wild}), TMAP_INVALID_HANDLE);
    std::size_t length = 77;
    EXPECT_EQ(tmap_service_statistics({wild}, nullptr, 0, &length), TMAP_INVALID_HANDLE);
    EXPECT_EQ(length, 77u);
  }
  for (const std::uint64_t wild : {std::uint64_t{0}, service_.value, c_base.value + 1, ~std::uint64_t{0}}) {
    EXPECT_EQ(tmap_service_encode(service_, {wild}, &source, 4, &batch_, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_template_destroy({wild}), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_encode_batch({wild}, &source, nullptr, 4, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_batch_release({wild}), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_batch_use_on({wild}, nullptr), TMAP_INVALID_HANDLE);
    EXPECT_EQ(tmap_service_update(service_, {wild}, nullptr, 0, c_base, &source, &batch_, nullptr),
              TMAP_INVALID_HANDLE);
    refuses_bad_structs<tmap_batch_info>(poisoned<tmap_batch_info>(),
                                         [&](auto* info) { return tmap_batch_query({wild}, info); });
  }
}

TEST_F(hostile_service, updates) {
  const tmap_patch_source source = source_of(tensors_);
  tmap_batch old{};
  ASSERT_EQ(tmap_service_encode(service_, c_base, &source, 4, &old, nullptr), TMAP_OK);
  const std::uint32_t changed[] = {1, 2};
  const auto update = [&](const tmap_patch_source* from, const tmap_call* call, tmap_batch* batch,
                          std::uint64_t count = 2) {
    return tmap_service_update(service_, old, changed, count, c_base, from, batch, call);
  };
  refuses_bad_structs<tmap_patch_source>(source, [&](auto* s) { return update(s, nullptr, &batch_); });
  tmap_call call = sized<tmap_call>();
  refuses_bad_structs<tmap_call>(
      call, [&](auto* c) { return update(&source, c, &batch_); }, true);
  call.trusted = 2;
  EXPECT_EQ(refused(update(&source, &call, &batch_)), "call.trusted");
  EXPECT_EQ(refused(update(&source, nullptr, nullptr)), "batch");
  for (const std::uint64_t count : {max_batch + 1, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    EXPECT_EQ(refused(update(&source, nullptr, &batch_, count)), "changed_count");
  }
  EXPECT_EQ(info_of(old).ref.count, 4u) << "the old batch is as it was";
  EXPECT_EQ(tmap_batch_release(old), TMAP_OK);
  EXPECT_EQ(refused(tmap_service_reserve(service_, 4, nullptr, nullptr)), "batch");
  EXPECT_EQ(refused(tmap_service_reserve(service_, 4, misaligned(&batch_), nullptr)), "batch");
  EXPECT_EQ(refused(tmap_service_reserve(service_, 0, &batch_, nullptr)), "count");
  calls_ = machine.all_calls();
}

TEST_F(hostile_service, other_calls) {
  const tmap_patch_source source = source_of(tensors_);
  auto* const slots = reinterpret_cast<tmap_tensor_map*>(std::uintptr_t{0x10000});
  const auto encode_slots = [&](const tmap_call* call) { return tmap_encode_batch(c_base, &source, slots, 4, call); };
  refuses_bad_structs<tmap_call>(sized<tmap_call>(), encode_slots, true);
  const auto refusal = [&](const auto& use) {
    tmap_call call = sized<tmap_call>();
    use(call);
    return refused(encode_slots(&call));
  };
  EXPECT_EQ(refusal([](tmap_call& c) { c.trusted = 2; }), "call.trusted");
  EXPECT_EQ(refusal([](tmap_call& c) { c.publish = ~0u; }), "call.publish");
  EXPECT_EQ(refusal([](tmap_call& c) { c.engine = TMAP_ON_HOST; }), "call.engine");
  EXPECT_EQ(refusal([](tmap_call& c) { c.policy = 1; }), "call.policy");
  EXPECT_EQ(refusal([](tmap_call& c) { c.allowed = 1; }), "call.allowed");
  EXPECT_EQ(refusal([](tmap_call& c) { c.plan = 1; }), "call.plan");
  EXPECT_EQ(refused(tmap_encode_batch(c_base, &source, nullptr, 4, nullptr)), "slots");
  EXPECT_EQ(refused(tmap_encode_batch(c_base, &source, slots, max_batch + 1, nullptr)), "count");
  tmap_service_options wanted{};
  wanted.struct_size = sizeof wanted;
  tmap_service made{77};
  refuses_bad_structs<tmap_service_options>(
      wanted, [&](auto* o) { return tmap_service_create(o, &made); }, true);
  wanted.skip_self_test = 2;
  EXPECT_EQ(refused(tmap_service_create(&wanted, &made)), "options.skip_self_test");
  EXPECT_EQ(refused(tmap_service_create(nullptr, nullptr)), "service");
  wanted.skip_self_test = 0;
  wanted.capacity = 8;
  wanted.max_capacity = 7;
  EXPECT_EQ(refused(tmap_service_create(&wanted, &made)), "options.max_capacity") << "both reach the service";
  EXPECT_EQ(made.value, 77u);
}

TEST_F(hostile_service, templates) {
  tmap_template made{77};
  using make_call = tmap_status (*)(const tmap_tensor_spec*, std::uint32_t, tmap_template*);
  for (const make_call create : {make_call{&tmap_template_create}, make_call{&tmap_template_create_zeroed}}) {
    refuses_bad_structs<tmap_tensor_spec>(good_spec(), [&](auto* spec) { return create(spec, 1, &made); });
    const tmap_tensor_spec spec = good_spec();
    EXPECT_EQ(refused(create(&spec, 1, nullptr)), "made");
    EXPECT_EQ(refused(create(&spec, TMAP_PATCH_DIM(2), &made)), "fields");
    EXPECT_EQ(refused(create(&spec, ~0u, &made)), "fields");
    for (const int axis : {5, 8, 30, 32, -1}) {
      for (const std::uint32_t field :
           {TMAP_PATCH_DIM(axis), TMAP_PATCH_STRIDE(axis), TMAP_PATCH_BOX(axis), TMAP_PATCH_ELEMENT_STRIDE(axis)}) {
        EXPECT_EQ(refused(create(&spec, field, &made)), "fields") << axis;
      }
    }
  }
  EXPECT_EQ(made.value, 77u);
  std::uint64_t bytes = 77;
  EXPECT_EQ(refused(tmap_rows_workspace_bytes(4, 3, &bytes)), "offset_bytes");
  EXPECT_EQ(refused(tmap_rows_workspace_bytes(4, 4, nullptr)), "bytes");
  EXPECT_EQ(bytes, 77u);
}

}  // namespace
}  // namespace tmap::testing
