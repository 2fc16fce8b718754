# tries = "To fork without end, whatever is refused; here 200 processes at most, which spin."
# outcome = ["processes"]
# sentence = ["more than 20 processes"]
# limits = {processes = 20}
import os

left, put = os.pipe()
os.set_blocking(left, False)
os.write(put, bytes(200))
while True:
    try:
        os.read(left, 1)
        os.fork()
    except OSError:
        continue
