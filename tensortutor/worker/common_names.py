"""The names of PyTorch that programs use most, to be offered before the others."""

NAMES = """
    abs accelerator Adam AdamW add add_ affine_grid all all_gather all_gather_object all_reduce
    allclose amax amin amp any apply arange argmax argmin argsort as_strided as_tensor autocast
    autograd backward barrier BatchNorm1d BatchNorm2d bfloat16 binary_cross_entropy
    binary_cross_entropy_with_logits bincount bool broadcast broadcast_shapes broadcast_tensors
    buffers cat cdist channels_last children cholesky chunk clamp clone compile cond conj
    constant_ contiguous conv2d Conv2d copy_ cos cpu cross_entropy cuda cumprod cumsum data_ptr
    destroy_process_group detach detect_anomaly device diag diagonal diff dim dot double Dropout
    dropout dtype eigh einsum element_size Embedding empty empty_cache empty_like enable_grad
    equal eval Event exp expand expm1 export eye fft fill_ finfo flatten Flatten flip float
    float16 float32 float64 forward from_numpy full full_like Function functional gather gelu
    GELU Generator get_rank get_rng_state get_submodule get_world_size grad grad_fn GradScaler
    grid_sample GroupNorm half HashStore huber_loss Identity index index_add index_add_ indices
    inf inference_mode init init_process_group initial_seed int int32 int64 int8 is_available
    is_contiguous is_floating_point is_grad_enabled is_inference is_leaf is_meta isfinite isin
    isnan item kaiming_normal_ kl_div l1_loss layer_norm LayerNorm linalg linear Linear linspace
    load load_state_dict log log10 log1p log_softmax logsigmoid logsumexp long lr_scheduler LSTM
    lstsq manual_seed masked_fill matrix_power matrix_rank max max_memory_allocated MaxPool2d
    mean median memory_allocated memory_reserved min minimum Module ModuleDict ModuleList
    modules monitored_barrier movedim mse_loss mT mul_ MultiheadAttention multinomial
    named_buffers named_children named_modules named_parameters nanmean nbytes ndim new_group
    new_zeros nll_loss nn no_grad nonzero norm normal_ numel numpy one_hot ones ones_ ones_like
    onnx optim pad Parameter parameters permute pi prod rand randint randn random randperm
    ReduceOp register_buffer register_forward_hook register_forward_pre_hook
    register_full_backward_hook register_hook register_post_accumulate_grad_hook ReLU relu
    repeat repeat_interleave requires_grad requires_grad_ reset_peak_memory_stats reshape
    retain_grad rms_norm roll round save scaled_dot_product_attention scatter scatter_add_ seed
    Sequential set_debug_level set_detect_anomaly set_float32_matmul_precision set_num_threads
    set_rng_state SGD shape sigmoid silu sin size softmax Softmax solve sort split sqrt square
    squeeze stack state_dict std storage_offset stride sum svd svdvals synchronize T
    take_along_dim Tanh tanh tensor Tensor tensor_split to to_empty tolist topk train
    TransformerEncoderLayer transpose tril triu type uint8 unbind unflatten unfold unique
    unsqueeze untyped_storage use_deterministic_algorithms utils values var vector_norm view
    view_as wait where xavier_uniform_ zero_ zero_grad zeros zeros_ zeros_like
"""
COMMON = frozenset(NAMES.split())
"""What at least two lessons of the course use."""


def by_use(name: str) -> tuple[bool, str]:
    """A key to sort names by: common ones first, then by letters, whatever their case."""
    return name not in COMMON, name.lower()
