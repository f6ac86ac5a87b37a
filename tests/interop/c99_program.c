// SPDX-License-Identifier: Apache-2.0
#include <tmap/tmap.h>

/* Calls the functions that need no GPU, as a C program would. */

#define MUST(condition)                \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)

int c99_program(void);

/* Layouts are a promise: a struct that changes size must keep the old size legal. */
static int see_sizes(void) {
  MUST(sizeof(tmap_error) == 184);
  MUST(sizeof(tmap_bad_item) == 32);
  MUST(sizeof(tmap_fault_report) == 72);
  MUST(sizeof(tmap_tensor_spec) == 152);
  MUST(sizeof(tmap_im2col_spec) == 192);
  MUST(sizeof(tmap_device_limits) == 16);
  MUST(sizeof(tmap_violation) == 24);
  MUST(sizeof(tmap_decoded_map) == 216);
  MUST(sizeof(tmap_map_patch) == 112);
  MUST(sizeof(tmap_patch_source) == 96);
  MUST(sizeof(tmap_call) == 104);
  MUST(sizeof(tmap_row_offsets) == 32);
  MUST(sizeof(tmap_ragged_rows) == 64);
  MUST(sizeof(tmap_service_options) == 40);
  MUST(sizeof(tmap_batch_info) == 80);
  MUST(sizeof(tmap_tensor_layout) == 96);
  MUST(sizeof(tmap_tensor_batch) == 176);
  MUST(sizeof(tmap_dense_batch) == 96);
  MUST(sizeof(tmap_packed_buffer) == 40);
  MUST(sizeof(tmap_row_matrix) == 40);
  MUST(sizeof(tmap_row_index) == 24);
  MUST(sizeof(tmap_padded_rows) == 88);
  MUST(sizeof(tmap_cast_values) == 40);
  MUST(sizeof(tmap_quantize_values) == 24);
  MUST(sizeof(tmap_gate) == 40);
  MUST(sizeof(tmap_result_scales) == 32);
  MUST(sizeof(tmap_block_scales) == 40);
  MUST(sizeof(tmap_row_problem) == 392);
  MUST(sizeof(tmap_weight_problem) == 232);
  MUST(sizeof(tmap_column_problem) == 136);
  MUST(sizeof(tmap_pointer_problem) == 104);
  MUST(sizeof(tmap_choices) == 80);
  MUST(sizeof(tmap_route_problem) == 112);
  MUST(sizeof(tmap_route_results) == 72);
  MUST(sizeof(tmap_combine_problem) == 104);
  MUST(sizeof(tmap_expert_weights) == 80);
  MUST(sizeof(tmap_layer_problem) == 392);
  MUST(sizeof(tmap_layer_results) == 160);
  MUST(sizeof(tmap_combine_gradients) == 112);
  MUST(sizeof(tmap_peer_id) == 128);
  MUST(sizeof(tmap_peer_start) == 168);
  MUST(sizeof(tmap_peer_memory_ref) == 272);
  MUST(sizeof(tmap_exchange_problem) == 96);
  MUST(sizeof(tmap_expert_shape) == 64);
  MUST(sizeof(tmap_peer_dispatch_problem) == 216);
  MUST(sizeof(tmap_peer_combine_problem) == 152);
  MUST(sizeof(tmap_memory_window) == 24);
  MUST(sizeof(tmap_tile) == 48);
  return 0;
}

// [rules]
static int make_spec(tmap_tensor_spec* spec) {
  const uint64_t dims[2] = {64, 100};
  const uint32_t box[2] = {32, 8};
  MUST(tmap_packed_spec(TMAP_F32, 4096, 2, dims, box, spec) == TMAP_OK);
  MUST(spec->struct_size == sizeof *spec && spec->global_stride_bytes[0] == 256);
  spec->swizzle = TMAP_SWIZZLE_128B;
  return 0;
}

static int see_rules(tmap_tensor_spec spec) {
  char text[512];
  size_t length = 0;
  uint32_t count = 77;
  tmap_violation found = {0, 0, 0, 0};
  MUST(tmap_validate(&spec, NULL, NULL, 0, &count) == TMAP_OK && count == 0);
  spec.box_dim[1] = 257;
  MUST(tmap_validate(&spec, NULL, &found, 1, &count) == TMAP_RULE_BROKEN && count >= 1);
  MUST(tmap_rule_name(found.rule) != NULL && found.axis == 1 && found.found == 257 && found.allowed == 256);
  MUST(tmap_explain(&spec, NULL, text, sizeof text, &length) == TMAP_OK && length > 0 && text[length] == '\0');
  return 0;
}
// [rules]

static int see_bits(const tmap_tensor_spec* spec) {
  tmap_tensor_map map;
  tmap_decoded_map decoded;
  size_t length = 0;
  MUST(tmap_encode_bits(spec, &map) == TMAP_OK);
  decoded.struct_size = sizeof decoded;
  decoded.reserved = 0;
  MUST(tmap_decode(&map, &decoded) == TMAP_OK);
  MUST(decoded.kind == TMAP_MAP_TILED && decoded.tensor.global_dim[1] == 100 && decoded.tensor.box_dim[0] == 32);
  MUST(tmap_describe(&map, NULL, 0, &length) == TMAP_OK && length > 0);
  return 0;
}

static int see_handles(const tmap_tensor_spec* spec) {
  const tmap_service no_service = {0};
  tmap_template base = {0};
  tmap_batch batch = {5};
  tmap_patch_source source;
  char text[256];
  const uint32_t fields = TMAP_PATCH_ADDRESS | TMAP_PATCH_DIM(1);
  MUST(tmap_template_create_zeroed(spec, fields, &base) == TMAP_OK && base.value != 0);
  source.struct_size = sizeof source;
  source.kind = TMAP_SOURCE_PATCHES;
  source.of.patches = NULL;
  MUST(tmap_service_encode(no_service, base, &source, 1, &batch, NULL) == TMAP_INVALID_HANDLE);
  MUST(batch.value == 5);
  MUST(tmap_last_message(text, sizeof text, NULL) == TMAP_OK && text[0] == 't');
  MUST(tmap_encode_batch(base, &source, NULL, 1, NULL) == TMAP_INVALID_ARGUMENT);
  MUST(tmap_template_destroy(base) == TMAP_OK);
  MUST(tmap_template_destroy(base) == TMAP_INVALID_HANDLE);
  return 0;
}

// [peers]
/* buffers[r] is the zeroed memory of rank r as the GPU of this rank sees it. */
static tmap_status open_window(uint32_t rank, const uint64_t* buffers, uint32_t ranks, uint64_t buffer_bytes,
                               tmap_peer_memory* window) {
  tmap_peer_group group;
  tmap_status code = tmap_peer_group_from_addresses(rank, buffers, ranks, buffer_bytes, &group);
  if (code != TMAP_OK) return code;
  code = tmap_peer_group_allocate(group, buffer_bytes - TMAP_PEER_HEADER_BYTES, window);
  tmap_peer_group_destroy(group); /* the window stays */
  return code;
}

/* The window begins with the counts, [ranks, experts], which kernels of this stream have made. */
static tmap_status exchange_tokens(tmap_peer_memory window, uint32_t experts, uint64_t most_rows, uint32_t row_bytes,
                                   tmap_stream stream) {
  tmap_peer_memory_ref ref;
  tmap_exchange_problem problem = {0};
  const tmap_status code = tmap_peer_memory_query(window, &ref);
  const uint64_t begin = code == TMAP_OK ? ref.windows[ref.rank] + TMAP_PEER_HEADER_BYTES : 0;
  if (code != TMAP_OK) return code;
  problem.struct_size = sizeof problem;
  problem.groups = experts;
  problem.row_bytes = row_bytes;
  problem.splits = (const uint32_t*)begin;
  problem.out_splits = (uint32_t*)(begin + 4096);
  problem.rows = (const void*)(begin + 8192);
  problem.out = (void*)(begin + 8192 + most_rows * row_bytes);
  problem.sent_rows = problem.capacity = most_rows;
  problem.placed = TMAP_GROUP_MAJOR; /* by expert */
  return tmap_peer_exchange_rows(window, &problem, stream);
}
// [peers]

// [experts]
/* Bytes of a window, of which the tokens come first. */
typedef struct expert_places {
  uint64_t rows; /* by expert; the last product may write over them */
  uint64_t workspace;
  uint64_t end; /* the bytes of the window */
} expert_places;

static tmap_status place_experts(const tmap_expert_shape* sizes, uint32_t ranks, expert_places* at) {
  const uint64_t unit = 256;
  uint64_t rows, bytes;
  tmap_status code = tmap_peer_expert_rows(sizes, ranks, &rows);
  if (code == TMAP_OK) code = tmap_peer_workspace_bytes(sizes, ranks, &bytes);
  if (code != TMAP_OK) return code;
  at->rows = (sizes->tokens * sizes->row_bytes + unit - 1) / unit * unit;
  at->workspace = at->rows + (rows * sizes->row_bytes + unit - 1) / unit * unit;
  at->end = at->workspace + bytes;
  return TMAP_OK;
}

/* `ids` and `weights` come from tmap_moe_route. `begins` cuts the rows into this rank's experts. */
static tmap_status send_to_experts(tmap_peer_memory window, const tmap_expert_shape* sizes, const int32_t* ids,
                                   const float* weights, int32_t* begins, tmap_stream stream) {
  tmap_peer_memory_ref ref;
  expert_places at;
  tmap_peer_dispatch_problem problem = {0};
  tmap_status code = tmap_peer_memory_query(window, &ref);
  if (code == TMAP_OK) code = place_experts(sizes, ref.ranks, &at);
  if (code != TMAP_OK) return code;
  const uint64_t begin = ref.windows[ref.rank] + TMAP_PEER_HEADER_BYTES;
  problem.struct_size = sizeof problem;
  problem.sizes = *sizes;
  problem.x.address = begin;
  problem.out.address = begin + at.rows;
  problem.x.pitch_bytes = problem.out.pitch_bytes = sizes->row_bytes;
  problem.ids = ids;
  problem.weights = weights;
  problem.begins = begins;
  problem.workspace = (void*)(begin + at.workspace);
  problem.workspace_bytes = at.end - at.workspace;
  return tmap_peer_dispatch(window, &problem, stream);
}

/* `out` gets the results of this rank's tokens, with the pitch of a token. */
static tmap_status bring_home(tmap_peer_memory window, const tmap_expert_shape* sizes, void* out, tmap_stream stream) {
  tmap_peer_memory_ref ref;
  expert_places at;
  tmap_peer_combine_problem problem = {0};
  tmap_status code = tmap_peer_memory_query(window, &ref);
  if (code == TMAP_OK) code = place_experts(sizes, ref.ranks, &at);
  if (code != TMAP_OK) return code;
  const uint64_t begin = ref.windows[ref.rank] + TMAP_PEER_HEADER_BYTES;
  problem.struct_size = sizeof problem;
  problem.sizes = *sizes;
  problem.values.address = begin + at.rows;
  problem.out.address = (uint64_t)out;
  problem.values.pitch_bytes = problem.out.pitch_bytes = sizes->row_bytes;
  problem.workspace = (void*)(begin + at.workspace);
  problem.workspace_bytes = at.end - at.workspace;
  return tmap_peer_combine(window, &problem, stream);
}
// [experts]

static int see_experts(tmap_peer_memory window) {
  tmap_expert_shape sizes = {0};
  expert_places at = {0, 0, 0};
  sizes.struct_size = sizeof sizes;
  sizes.k = 2;
  sizes.tokens = 16;
  sizes.arrivals = 32;
  sizes.experts = 8;
  sizes.row_bytes = 256;
  sizes.columns = 128;
  sizes.result_type = TMAP_FLOAT_BF16;
  MUST(place_experts(&sizes, 2, &at) == TMAP_OK);
  MUST(at.rows == 16 * 256 && at.workspace == at.rows + 64 * 256 && at.end > at.workspace);
  MUST(send_to_experts(window, &sizes, NULL, NULL, NULL, NULL) == TMAP_INVALID_ARGUMENT); /* no ids */
  MUST(bring_home(window, &sizes, NULL, NULL) == TMAP_INVALID_ARGUMENT);                  /* no room for results */
  sizes.experts = 7;
  MUST(place_experts(&sizes, 2, &at) == TMAP_INVALID_ARGUMENT);
  return 0;
}

static int see_peers(void) {
  const uint64_t buffers[2] = {1 << 20, 1 << 21};
  tmap_peer_memory window = {0};
  tmap_peer_memory_ref ref;
  MUST(open_window(2, buffers, 2, 1 << 20, &window) == TMAP_INVALID_ARGUMENT && window.value == 0);
  MUST(exchange_tokens(window, 8, 16, 64, NULL) == TMAP_INVALID_HANDLE);
  MUST(open_window(1, buffers, 2, 1 << 20, &window) == TMAP_OK);
  MUST(tmap_peer_memory_query(window, &ref) == TMAP_OK);
  MUST(ref.rank == 1 && ref.ranks == 2 && ref.windows[0] == buffers[0]);
  MUST(exchange_tokens(window, 8, 16, 0, NULL) == TMAP_INVALID_ARGUMENT); /* rows have at least a byte */
  MUST(see_experts(window) == 0);
  MUST(tmap_peer_memory_destroy(window) == TMAP_OK);
  return 0;
}

int c99_program(void) {
  tmap_tensor_spec spec;
  int line = 0;
  MUST(tmap_version() == TMAP_VERSION);
  line = see_sizes();
  if (line == 0) line = make_spec(&spec);
  if (line == 0) line = see_rules(spec);
  if (line == 0) line = see_bits(&spec);
  if (line == 0) line = see_handles(&spec);
  if (line == 0) line = see_peers();
  return line;
}
