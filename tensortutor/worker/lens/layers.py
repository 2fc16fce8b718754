"""What torch's own modules do to a shape, remembered without the module."""

from typing import Any, NamedTuple

import torch

from tensortutor.worker.lens import peek

SAME = (
    "ReLU", "ReLU6", "GELU", "SiLU", "Mish", "ELU", "SELU", "CELU", "LeakyReLU", "PReLU", "Sigmoid",
    "LogSigmoid", "Tanh", "Softplus", "Softsign", "Hardtanh", "Hardswish", "Hardsigmoid", "Softmax",
    "LogSoftmax", "Dropout", "Dropout1d", "Dropout2d", "AlphaDropout", "Identity", "LayerNorm",
    "RMSNorm", "GroupNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm2d",
)  # fmt: skip
LOSSES = {
    "MSELoss": "mse_loss", "L1Loss": "l1_loss", "SmoothL1Loss": "smooth_l1_loss",
    "HuberLoss": "huber_loss", "BCELoss": "binary_cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
}  # fmt: skip


class Layer(NamedTuple):
    """kind: "same", "linear", "flatten", "chain", "embedding" or "loss" with what it needs."""

    kind: str
    needs: Any = None


def layer_of(module: Any) -> Layer | None:
    """What a module of torch.nn does to a shape; None where it is not one of the simple ones."""
    kind = type(module)
    if not str(kind.__module__).startswith("torch.nn.modules"):
        return None
    own = peek.attributes(module)
    name = kind.__name__
    if name in SAME:
        return Layer("same")
    if name == "Linear":
        return Layer("linear", (own.get("in_features"), own.get("out_features")))
    if name == "Embedding":
        return Layer("embedding", (own.get("embedding_dim"), torch.get_default_dtype()))
    if name == "Flatten":
        return Layer("flatten", (own.get("start_dim"), own.get("end_dim")))
    if name in LOSSES:
        return Layer("loss", (LOSSES[name], own.get("reduction")))
    if name == "Sequential":
        inner = [layer_of(one) for one in (own.get("_modules") or {}).values()]
        return None if None in inner else Layer("chain", tuple(inner))
    return None
