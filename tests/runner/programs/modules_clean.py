# says = "Nothing of the machinery is in the way: names and modules that a program might use."
import queue
import statistics
import sys
import types

print(isinstance(sys.modules["__main__"], types.ModuleType))
print(statistics.mean([1, 2]), queue.Queue().empty())
print(sorted(name for name in globals() if not name.startswith("_") and name != "device"))
