# says = "Finalizers of weakref run at the end; gc is enabled."
import gc
import weakref


class Thing:
    pass


thing = Thing()
weakref.finalize(thing, print, "finalized")
cycle = [thing]
cycle.append(cycle)
print(gc.isenabled(), gc.get_threshold() == gc.get_threshold())
