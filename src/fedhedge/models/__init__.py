"""Models: linear, MLP, CNN, and any set of pure functions a user brings."""

from fedhedge.models.base import Architecture, Functional
from fedhedge.models.cnn import CNN
from fedhedge.models.crammer_singer import CrammerSinger
from fedhedge.models.linear import Linear
from fedhedge.models.mlp import MLP

Model = Functional | Architecture
ARCHITECTURES: dict[str, type[Architecture]] = {
    "Linear": Linear,
    "MLP": MLP,
    "CNN": CNN,
    "CrammerSinger": CrammerSinger,
}

__all__ = ["ARCHITECTURES", "CNN", "MLP", "Architecture", "CrammerSinger", "Functional", "Linear", "Model"]
