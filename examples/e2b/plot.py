from pathlib import Path

from e2b import Sandbox

with Sandbox.create() as sandbox:
    files = [path for path in Path("project").rglob("*") if path.is_file()]
    sandbox.files.write_files([{"path": str(path), "data": path.read_bytes()} for path in files])
    sandbox.commands.run("pip install --quiet --no-build-isolation ./project/chart")
    sandbox.commands.run("python3 project/main.py", on_stdout=lambda text: print(text, end=""))
    Path("plot.png").write_bytes(sandbox.files.read("plot.png", format="bytes"))
