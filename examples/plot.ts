import { EyotClient } from "@eyot/client";

await using client = new EyotClient();
await using sandbox = await client.create({ network: "egress" });
await sandbox.upload("project", "project");
(await sandbox.exec("pip install --quiet --no-build-isolation ./project/chart")).check();
(await sandbox.exec("python3 project/main.py", { onStdout: (text) => void process.stdout.write(text) })).check();
await sandbox.download("plot.png", "plot.png");
