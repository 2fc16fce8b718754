# tries = "To read address 0."
# outcome = ["killed"]
# sentence = ["signal 11 (SIGSEGV)", "segmentation fault"]
import ctypes

ctypes.string_at(0)
