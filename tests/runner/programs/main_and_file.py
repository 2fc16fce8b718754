# says = "The program is __main__, in a file of its own name."
import os
import sys

import __main__

print(__name__, os.path.basename(__file__), os.path.isfile(__file__))
print(sys.modules["__main__"] is __main__, hasattr(__main__, "os"))
print(os.path.basename(sys.argv[0]), sys.path[0] == os.path.dirname(os.path.abspath(__file__)))
if __name__ == "__main__":
    print("runs as the main program")
