# says = "Redirected standard output is not printed; sys.__stdout__ is."
import contextlib
import io
import sys

with contextlib.redirect_stdout(io.StringIO()) as caught:
    print("caught")
print(repr(caught.getvalue()), file=sys.__stdout__)
sys.stdout.reconfigure(line_buffering=False)
print("buffered until the end")
