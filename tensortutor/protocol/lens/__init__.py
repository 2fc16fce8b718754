"""What the lens saw inside a run: lines, names, modules, the autograd graph, time and memory.

Every event is data alone, made in the worker and bounded there: at most MOST_LINES lines,
MOST_TENSORS tensors and so on, texts of at most LONGEST_TEXT characters. What was left out is
counted in `left_out`; what is missing for another reason is told in `note`. An event comes at
most once in a run, after the program's own end and before `Finished`.

"Words" are a tensor in short: `f32[64, 1]`, with the device behind it where that is not the CPU.
Norms, minima and the like are None where there is no such number: nothing to take it of, values
that are not finite, a tensor that has no values.
"""

from tensortutor.protocol.lens.graph import Graph, GraphEdge, GraphNode, GraphRoot, Saved
from tensortutor.protocol.lens.lines import (
    Broadcast,
    Broadcasts,
    Line,
    Made,
    Mark,
    Operand,
    ShapeError,
    Trace,
)
from tensortutor.protocol.lens.names import (
    Group,
    ModuleInfo,
    Modules,
    OptimizerInfo,
    Optimizers,
    ParameterInfo,
    Sample,
    Scope,
    Setting,
    State,
    Stats,
    Storage,
    TensorInfo,
    Tensors,
)
from tensortutor.protocol.lens.profile import Allocator, Peak, Profile, ProfileRow, Share

__all__ = [
    "Allocator",
    "Broadcast",
    "Broadcasts",
    "Graph",
    "GraphEdge",
    "GraphNode",
    "GraphRoot",
    "Group",
    "Line",
    "Made",
    "Mark",
    "ModuleInfo",
    "Modules",
    "Operand",
    "OptimizerInfo",
    "Optimizers",
    "ParameterInfo",
    "Peak",
    "Profile",
    "ProfileRow",
    "Sample",
    "Saved",
    "Scope",
    "Setting",
    "ShapeError",
    "Share",
    "State",
    "Stats",
    "Storage",
    "TensorInfo",
    "Tensors",
    "Trace",
]

LONGEST_TEXT = 200
MOST_LINES = 2000
MOST_TENSORS = 300
MOST_MODULES = 1000
MOST_NODES = 400
MOST_BROADCASTS = 500
MOST_ROWS = 60
SIDE = 32
"""A heat map has at most so many rows and so many columns."""
CELLS = 256
"""A storage shows the values of at most so many cells, from its first."""

LENS = (Trace, Broadcasts, Tensors, Modules, Optimizers, Graph, Profile)
"""The lens's events, in the order in which they come."""
