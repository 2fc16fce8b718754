# says = "logging goes to standard error, or to standard output when asked."
# stderr = ["WARNING:root:careful"]
import logging
import sys

logging.warning("careful")
handler = logging.StreamHandler(sys.stdout)
logging.getLogger("x").addHandler(handler)
logging.getLogger("x").error("to stdout")
