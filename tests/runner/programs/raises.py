# says = "An exception that nobody catches: status 1, handlers run."
# stderr = ["ZeroDivisionError: division by zero", 'File "lesson_code.py", line 10, in share']
import atexit

atexit.register(print, "handler")
print("before")


def share(total, people):
    return total / people


share(1, 0)
print("never")
