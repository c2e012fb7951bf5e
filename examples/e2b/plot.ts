import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "e2b";

const sandbox = await Sandbox.create();
try {
  const entries = await readdir("project", { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  await sandbox.files.write(await Promise.all(paths.map(async (path) => ({ path, data: new Blob([await readFile(path)]) }))));
  await sandbox.commands.run("pip install --quiet --no-build-isolation ./project/chart");
  await sandbox.commands.run("python3 project/main.py", { onStdout: (text) => void process.stdout.write(text) });
  await writeFile("plot.png", await sandbox.files.read("plot.png", { format: "bytes" }));
} finally {
  await sandbox.kill();
}
