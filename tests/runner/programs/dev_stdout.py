# says = "/dev/stdout and /dev/fd/1 can be opened."
with open("/dev/stdout", "w") as file:
    file.write("one\n")
with open("/dev/fd/1", "w") as file:
    file.write("two\n")
with open("/proc/self/fd/1", "w") as file:
    file.write("three\n")
