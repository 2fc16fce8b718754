# says = "Nothing of the machinery is in the way: names and modules that a program might use."
import sys

import queue  # noqa: E402
import statistics  # noqa: E402
import types  # noqa: E402

print(isinstance(sys.modules["__main__"], types.ModuleType), statistics.mean([1, 2]), queue.Queue().empty())
print(sorted(name for name in globals() if not name.startswith("_") and name != "device"))
