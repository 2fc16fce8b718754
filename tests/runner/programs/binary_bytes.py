# says = "Bytes that are no text arrive as they are."
import sys

sys.stdout.buffer.write(bytes(range(256)))
sys.stdout.buffer.write(b"\xff\xfe half of a sign: \xe2\x82")
sys.stdout.flush()
