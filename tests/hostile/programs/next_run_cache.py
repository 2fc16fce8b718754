# tries = "To poison the caches of compilers for another lesson."
import json
import os
import sys

import torch

world = json.loads(sys.argv[1])
names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH")
folders = [os.environ.get(n) for n in names] + ["~/.cache/torch", "~/.triton", "~/.nv", "/tmp/torchinductor_root"]
for folder in filter(None, folders):
    folder = os.path.expanduser(folder)
    try:
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, world["token"] + ".py"), "w") as file:
            file.write("print('got')")
    except OSError as error:
        print(error)
# ---
# tries = "To find the poison there."
# other_lesson = true
# absent = ["got"]
# output = ["tried"]
import json
import os
import sys

import torch

world = json.loads(sys.argv[1])
names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_EXTENSIONS_DIR", "XDG_CACHE_HOME", "CUDA_CACHE_PATH")
folders = [os.environ.get(n) for n in names] + ["~/.cache/torch", "~/.triton", "~/.nv", "/tmp/torchinductor_root"]
for folder in filter(None, folders):
    if os.path.exists(os.path.join(os.path.expanduser(folder), world["token"] + ".py")):
        print("got", folder)
print("tried")
