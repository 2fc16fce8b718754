# says = "Dataclasses, enums, named tuples and generics of the program work."
import enum
import typing
from dataclasses import asdict, dataclass, field


class Kind(enum.Enum):
    RELU = "relu"


@dataclass(frozen=True)
class Config:
    width: int = 8
    kinds: list[Kind] = field(default_factory=lambda: [Kind.RELU])


class Pair(typing.NamedTuple):
    a: int
    b: "Config"


print(Config(), asdict(Config()), Pair(1, Config()), typing.get_type_hints(Pair))
