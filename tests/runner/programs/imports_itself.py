# says = "The program can import its own file as a module."
import os

print(__name__)
if __name__ == "__main__":
    import lesson_code

    print(lesson_code.__name__, os.path.basename(lesson_code.__file__))
