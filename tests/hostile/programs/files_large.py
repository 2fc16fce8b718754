# tries = "A file that grows without end."
# outcome = ["raised", "killed", "files"]
# limits = {file_bytes = 4_194_304}
with open("large", "wb") as file:
    while True:
        file.write(bytes(1 << 20))
