# tries = "Terminal escapes: clear, title, clipboard, alternate screen, answers to the keyboard."
# output = ["before", "after"]
print("before")
print("\x1b[2J\x1b[H\x1b]0;owned\x07\x1b]52;c;cm0gLXJm\x07\x1b[?1049h\x1b[?1000h\x1b[6n\x1b[c")
print("\x9b2J\x90q\x9c\x1bP\x1b\\\x1b[8;1;1t\x1b]8;;file:///etc/passwd\x1b\\link\x1b]8;;\x1b\\")
print("after")
