"""What a program sees of the environment."""

import os

KEPT_VARIABLES = (
    "PATH", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "TERM", "COLUMNS", "LINES",
)  # fmt: skip
KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "NCCL_", "TORCH_", "PYTORCH_", "OMP_", "MKL_", "KMP_")
SECRET_WORDS = ("TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL", "PROXY")


def environment() -> dict[str, str]:
    """Settings of the system, of torch and of CUDA; nothing that is named like a secret."""
    kept = {}
    for name, value in os.environ.items():
        secret = any(word in name.upper() for word in SECRET_WORDS)
        if not secret and (name in KEPT_VARIABLES or name.startswith(KEPT_PREFIXES)):
            kept[name] = value
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "TORCH_CPP_LOG_LEVEL": "ERROR"}
