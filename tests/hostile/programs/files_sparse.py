# tries = "A file of a terabyte that is a hole."
# outcome = ["raised", "killed"]
# limits = {file_bytes = 4_194_304}
with open("sparse", "wb") as file:
    file.truncate(1 << 40)
