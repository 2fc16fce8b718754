# says = "Objects of the program's own classes are pickled as __main__'s."
import pickle
from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int = 2


data = pickle.dumps(Point(1))
print(b"__main__" in data, pickle.loads(data), Point.__module__, Point)
