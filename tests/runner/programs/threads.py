# says = "The interpreter waits for threads, and an exception in one does not end the program."
# stderr = ["ValueError: in a thread"]
import threading


def fail():
    raise ValueError("in a thread")


def work(done):
    done.wait()
    print("the thread ends last", threading.current_thread().name)


thread = threading.Thread(target=fail)
thread.start()
thread.join()
done = threading.Event()
threading.Thread(target=work, args=(done,), name="worker").start()
threading.Thread(target=threading.Event().wait, daemon=True).start()
print("the main program ends", threading.current_thread() is threading.main_thread())
done.set()
