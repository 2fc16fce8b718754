# tries = "An exception whose type has a name of 3 MB."
# outcome = ["raised", "exited"]
# limits = {output_bytes = 100_000}
raise type("E" * 3_000_000, (Exception,), {})("short")
