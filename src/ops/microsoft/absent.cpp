// absent.cpp - operators of com.microsoft that are not converted, with the reason.
#include "ops/frame/op_def.h"

namespace tonnx {
namespace {

constexpr std::string_view kSearch = "a search that calls models inside it: convert these, and search in Python";
constexpr std::string_view kPacked = "works on packed, paged or sparse tokens, which the standard's operators have not";
constexpr std::string_view kShared = "writes into the buffer of its past; MultiHeadAttention says the same without";

constexpr OnnxOp absent(Signature sig, std::string_view note) { return {.sig = sig, .since = 1, .note = note}; }

constexpr OnnxOp kMsAbsentOnnx[] = {
    absent("com.microsoft::BeamSearch(F input_ids, I max_length, I? min_length, I num_beams, I "
           "num_return_sequences, T? length_penalty, T? repetition_penalty, M? vocab_mask, M? "
           "prefix_vocab_mask, I? attention_mask, I? decoder_input_ids, I? logits_processor, *, graph "
           "decoder, int decoder_start_token_id=-1, int early_stopping=0, graph? encoder, int eos_token_id, "
           "graph? init_decoder, int model_type=0, int no_repeat_ngram_size=0, int pad_token_id, int "
           "vocab_size=-1) -> (I sequences, T? sequences_scores, T? scores)",
           kSearch),
    absent("com.microsoft::BifurcationDetector(T src_tokens, T cur_tokens, T prev_suffix_match_idx, T? "
           "pred_tokens, *, int max_ngram_size=3, int min_ngram_size=1) -> (T tokens, T suffix_match_idx)",
           "a loop over the tokens of a search"),
    absent("com.microsoft::DecoderAttention(T query, T key, T q_weight, T kv_weight, T bias, B? "
           "key_padding_mask, T? key_cache, T? value_cache, B static_kv, B use_past, B has_layer_state, B "
           "has_key_padding_mask, *, float? mask_filter_value, int num_heads) -> (T output, T? new_key_cache, "
           "T? new_value_cache)",
           kShared),
    absent("com.microsoft::DecoderMaskedMultiHeadAttention(T query, T? key, T? value, M? mask_index, T? "
           "attention_bias, T? past_key, T? past_value, M? past_sequence_length, M? beam_width, M? "
           "cache_indirection, T? bias, *, float? mask_filter_value, int num_heads, int? output_qk, int? "
           "past_present_share_buffer, float? scale) -> (T output, T? present_key, T? present_value, QK? qk)",
           kShared),
    absent("com.microsoft::DecoderMaskedSelfAttention(T input, T weights, T bias, M? mask_index, T past, T? "
           "attention_bias, M past_sequence_length, M? beam_width, M? cache_indirection, *, int? do_rotary, "
           "float? mask_filter_value, int num_heads, int? past_present_share_buffer, float? scale) -> (T "
           "output, T present)",
           kShared),
    absent("com.microsoft::DynamicTimeWarping(F input) -> I output",
           "a path through a table, which is no work for tensors"),
    absent("com.microsoft::EPContext(T... inputs, *, int embed_mode=1, str? ep_cache_context, str? "
           "ep_sdk_version, str? hardware_architecture, int main_context=1, int max_size=0, str? notes, str? "
           "onnx_model_filename, str? partition_name, str? source) -> T... outputs",
           "holds the compiled code of a device"),
    absent("com.microsoft::GreedySearch(I input_ids, I max_length, I? min_length, T? repetition_penalty, I? "
           "vocab_mask, I? prefix_vocab_mask, I? attention_mask, *, graph decoder, int "
           "decoder_start_token_id=-1, graph? encoder, int eos_token_id, graph? init_decoder, int "
           "model_type=0, int no_repeat_ngram_size=0, int pad_token_id, int vocab_size=-1) -> I sequences",
           kSearch),
    absent("com.microsoft::LongformerAttention(T input, T weight, T bias, T mask, T global_weight, T "
           "global_bias, G global, *, int num_heads, int window) -> T output",
           kPacked),
    absent("com.microsoft::MurmurHash3(T1 X, *, int positive=1, int seed=0) -> T2 Y",
           "hashes in unsigned arithmetic, which is no work for tensors"),
    absent("com.microsoft::NGramRepeatBlock(Tid input_ids, T scores, *, int ngram_size) -> T scores_out",
           "a loop over the tokens of a search"),
    absent("com.microsoft::PackedAttention(T input, T weights, T bias, M token_offset, M "
           "cumulative_sequence_length, T? attention_bias, *, int num_heads, ints? qkv_hidden_sizes, float? "
           "scale) -> T output",
           kPacked),
    absent("com.microsoft::PackedMultiHeadAttention(T query, T? key, T? value, T? bias, M token_offset, M "
           "cumulative_sequence_length, T? attention_bias, *, float? mask_filter_value, int num_heads, float? "
           "scale) -> T output",
           kPacked),
    absent("com.microsoft::PagedAttention(T query, T? key, T? value, T_CACHE key_cache, T_CACHE? value_cache, "
           "S cumulative_sequence_length, S past_seqlens, S block_table, T? cos_cache, T? sin_cache, S? "
           "slot_mapping, T? head_sink, T? q_norm_weight, T? k_norm_weight, T_KV_SCALE? k_scale, T_KV_SCALE? "
           "v_scale, S? attention_metadata, *, int? do_rotary, int is_causal=1, str k_cache_dtype=\"\", str "
           "k_quant_type=\"NONE\", str kv_cache_layout=\"SEPARATE\", int kv_num_heads, int "
           "local_window_size=-1, int num_heads, float? qk_norm_epsilon, int? rotary_interleaved, int? "
           "rotary_offset, float? scale, float? softcap, str v_cache_dtype=\"\", int? v_head_size, str "
           "v_quant_type=\"NONE\") -> (T output, T_CACHE? key_cache_out, T_CACHE? value_cache_out)",
           kPacked),
    absent("com.microsoft::RemovePadding(T input, M sequence_token_count) -> (T output, M token_offset, M "
           "cumulated_seq_len, M max_seq_len)",
           kPacked),
    absent("com.microsoft::RestorePadding(T input, M token_offset) -> T output", kPacked),
    absent("com.microsoft::Sampling(I input_ids, I max_length, I? min_length, T? repetition_penalty, I? "
           "vocab_mask, I? prefix_vocab_mask, I? attention_mask, I? presence_mask, I? seed, *, int custom=0, "
           "graph decoder, int decoder_start_token_id=-1, graph? encoder, int eos_token_id, float "
           "filter_value=-1e+20, graph? init_decoder, int min_tokens_to_keep=0, int model_type=0, int "
           "no_repeat_ngram_size=0, int pad_token_id, float presence_penalty=0.0, float temperature=1.0, "
           "float top_p=0.0, int vocab_size=-1) -> (I sequences, T? filtered_logits)",
           kSearch),
    absent("com.microsoft::Snpe(T... inputs, *, str DLC, str? notes, str? snpe_version, str? target_device) "
           "-> T... outputs",
           "holds the compiled code of a device"),
    absent("com.microsoft::SparseAttention(T query, T? key, T? value, T past_key, T past_value, M "
           "block_row_indices, M block_col_indices, M total_sequence_length, M key_total_sequence_lengths, T? "
           "cos_cache, T? sin_cache, *, int? do_rotary, int kv_num_heads, int num_heads, int? "
           "rotary_interleaved, float? scale, int sparse_block_size) -> (T output, T present_key, T "
           "present_value)",
           kPacked),
    absent("com.microsoft::SparseToDenseMatMul(T A, T1 B, *, float alpha=1.0, int transA=0, int transB=0) -> "
           "T1 Y",
           "its matrix is a sparse tensor, and no value of a graph"),
    absent("com.microsoft::Tokenizer(T X, *, int mark, int mincharnum, str pad_value, strs? separators, str? "
           "tokenexp) -> T Y",
           "PyTorch has no tensors of strings"),
    absent("com.microsoft::WhisperBeamSearch(F input_ids, I max_length, I? min_length, I num_beams, I "
           "num_return_sequences, T? length_penalty, T? repetition_penalty, M? vocab_mask, M? "
           "prefix_vocab_mask, I? attention_mask, I? decoder_input_ids, I? logits_processor, I? "
           "cross_qk_layer_head, I? extra_decoding_ids, T? temperature, *, int? beginning_timestamp_token_id, "
           "graph decoder, int? decoder_output_cross_qk, int decoder_start_token_id=-1, int early_stopping=0, "
           "graph? encoder, int eos_token_id, graph? init_decoder, int model_type=2, int "
           "no_repeat_ngram_size=0, int? no_speech_token_id, int? no_timestamps_token_id, int pad_token_id, "
           "int? start_of_lm_token_id, int? transcribe_token_id, int? translate_token_id, int vocab_size=-1) "
           "-> (I sequences, T? sequences_scores, T? scores, V? cross_qk, T? non_speech_probs)",
           kSearch),
};

}  // namespace

extern const OpFamily kMsAbsentOps;
constinit const OpFamily kMsAbsentOps{"ms_absent", kMsAbsentOnnx, {}};

}  // namespace tonnx
