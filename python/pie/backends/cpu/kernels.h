/* The C symbols of the kernels, as cffi reads them. rust/kernels/src/ffi.rs documents and defines them. */

typedef struct pie_k_plan pie_k_plan;

typedef struct {
    uint32_t dtype;
    uint32_t isa;
    uint32_t n_threads;
    uint32_t max_tokens;
    uint32_t vocab_size;
    uint32_t max_positions;
    uint32_t page_size;
    uint32_t n_pages;
    uint32_t n_layers;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim;
} pie_k_options;

typedef struct {
    const void *data;
    uint64_t n_bytes;
    uint32_t n_rows;
    uint32_t dtype;
} pie_k_part;

typedef struct {
    uint32_t width;
    uint32_t kind;
    uint32_t rows;
} pie_k_buffer;

typedef struct {
    uint32_t kind;
    uint32_t src;
    uint32_t dst;
    uint32_t layer;
    uint32_t weight;
    uint32_t weight_2;
    float value;
} pie_k_op;

typedef struct {
    uint32_t code;
    char message[508];
} pie_k_error;

typedef struct {
    const void *a;
    const void *b;
    uint64_t a_bytes;
    uint64_t b_bytes;
    uint32_t slot;
    uint32_t rank;
    float scale;
    uint32_t dtype;
} pie_k_low_rank;

uint32_t pie_k_abi_version(void);
uint32_t pie_k_struct_bytes(uint32_t which);

uint32_t pie_k_plan_new(const pie_k_options *options, pie_k_plan **plan, pie_k_error *error);
void pie_k_plan_free(pie_k_plan *plan);
uint32_t pie_k_plan_isa(pie_k_plan *plan, uint32_t *isa, pie_k_error *error);
uint32_t pie_k_plan_add_linear(pie_k_plan *plan, const pie_k_part *parts, uint32_t n_parts, uint32_t n_inputs, uint32_t *weight, pie_k_error *error);
uint32_t pie_k_plan_add_vector(pie_k_plan *plan, const pie_k_part *part, uint32_t *weight, pie_k_error *error);
uint32_t pie_k_plan_set_table(pie_k_plan *plan, const pie_k_part *part, uint32_t width, pie_k_error *error);
uint32_t pie_k_plan_set_rotary(pie_k_plan *plan, const float *cos, const float *sin, uint64_t n, pie_k_error *error);
uint32_t pie_k_plan_set_kv(pie_k_plan *plan, void *start, uint64_t n_bytes, pie_k_error *error);
uint32_t pie_k_plan_set_host(pie_k_plan *plan, void *start, uint64_t n_bytes, pie_k_error *error);
uint32_t pie_k_plan_seal(pie_k_plan *plan, const pie_k_buffer *buffers, uint32_t n_buffers, const pie_k_op *ops, uint32_t n_ops, pie_k_error *error);
uint32_t pie_k_plan_put_adapter(pie_k_plan *plan, uint64_t id, uint32_t version, float sigma, const pie_k_low_rank *parts, uint32_t n_parts, pie_k_error *error);
uint32_t pie_k_plan_forget_adapter(pie_k_plan *plan, uint64_t id, uint32_t version, pie_k_error *error);
uint32_t pie_k_noise(uint64_t seed, uint32_t stream, uint64_t first, float *out, uint64_t n, pie_k_error *error);
uint32_t pie_k_read_memory(pie_k_plan *plan, const void *start, uint64_t n_bytes, uint32_t *parity, pie_k_error *error);
uint32_t pie_k_plan_read(pie_k_plan *plan, uint32_t buffer, float *out, uint64_t n, uint64_t *written, pie_k_error *error);

uint32_t pie_k_step(pie_k_plan *plan, const uint32_t *arena, uint64_t n_words, float *logits, uint64_t n_logits, pie_k_error *error);
uint32_t pie_k_linear(pie_k_plan *plan, uint32_t weight, uint32_t n_rows, const float *x, uint64_t n_x, float *y, uint64_t n_y, pie_k_error *error);
