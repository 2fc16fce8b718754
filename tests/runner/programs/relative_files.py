# says = "Files are written into the folder that one works in, and temporary ones elsewhere."
import os
import pathlib
import tempfile

os.makedirs("runs/a")
pathlib.Path("runs/a/log.txt").write_text("grüße\n")
print(sorted(os.listdir("runs")), pathlib.Path("runs/a/log.txt").read_text().strip())
os.chdir("runs")
print(os.path.basename(os.getcwd()), os.listdir("a"))
with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder:
    file.write(b"x")
    print(os.path.exists(file.name), os.path.isdir(folder))
print(os.path.isdir(os.path.expanduser("~")), os.access(os.path.expanduser("~"), os.W_OK))
