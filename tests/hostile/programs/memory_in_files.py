# tries = "To take memory with files in /dev/shm, each of them within the limit."
# outcome = ["raised"]
# output = ["Errno"]
# limits = {file_bytes = 16_777_216}
# layers = ["full"]
for number in range(5):
    with open(f"/dev/shm/{number}", "wb") as file:
        file.write(bytes(12_000_000))
