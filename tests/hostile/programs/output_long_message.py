# tries = "An exception with a message of 50 MB, and one whose str() raises."
# outcome = ["raised"]
# limits = {output_bytes = 100_000}
# sentence = ["Awful in line"]
class Awful(Exception):
    def __str__(self):
        raise RuntimeError("x" * 50_000_000)


raise Awful("y" * 50_000_000)
