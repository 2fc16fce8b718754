"""What a program sees of the environment."""

import os

KEPT_VARIABLES = (
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "TERM", "COLUMNS", "LINES",
)  # fmt: skip
KEPT_PREFIXES = (
    "LC_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_", "NCCL_", "GLOO_", "TORCH_", "PYTORCH_", "OMP_",
    "MKL_", "KMP_",
)  # fmt: skip
SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL", "PROXY")


def environment(*, many_runs: bool = False) -> dict[str, str]:
    """Settings of the system, of torch and of CUDA; nothing that is named like a secret.

    many_runs: several programs share the cores. Then OpenMP's threads sleep while they wait,
    unless the environment says otherwise: by default they spin, and take the cores from the other
    programs (verifying a lesson of small matrix products took 160 s, and 24 s without).
    """
    kept = {}
    for name, value in os.environ.items():
        secret = any(word in name.upper() for word in SECRET_WORDS)
        if not secret and (name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)):
            kept[name] = value
    if many_runs:
        kept.setdefault("OMP_WAIT_POLICY", "passive")
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
