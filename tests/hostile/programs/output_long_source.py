# tries = "An exception in a line of 3 MB, in a function whose name is as long."
# outcome = ["raised"]
# limits = {output_bytes = 100_000}
exec(compile(f"def f{'f' * 3_000_000}():\n    raise ValueError\n\nf{'f' * 3_000_000}()\n", __file__, "exec"))
