# tries = "To reach the network through the proxy of the environment, by the tools that use it."
# output = ["tried"]
# absent = ["got"]
import subprocess
import sys
import urllib.request

import torch

try:
    print("got", urllib.request.urlopen("http://example.com", timeout=1))
except OSError:
    print("refused")
try:
    print("got", torch.hub.load_state_dict_from_url("https://example.com/model.pt", model_dir="."))
except OSError:
    print("refused")
if subprocess.run(["curl", "-s", "-m", "1", "http://example.com"], capture_output=True).stdout:
    print("got by curl")
print("tried")
