from eyot import Client

with Client() as client, client.create(network="egress") as sandbox:
    sandbox.upload("project", "project")
    sandbox.exec("pip install --quiet --no-build-isolation ./project/chart").check()
    sandbox.exec("python3 project/main.py", on_stdout=lambda text: print(text, end="")).check()
    sandbox.download("plot.png", "plot.png")
