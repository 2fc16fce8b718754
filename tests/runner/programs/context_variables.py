# says = "Context variables are the program's own."
import contextvars

step = contextvars.ContextVar("step", default=0)
token = step.set(3)
print(step.get(), contextvars.copy_context()[step])
step.reset(token)
print(step.get(), len([v for v in contextvars.copy_context() if v is step]))
