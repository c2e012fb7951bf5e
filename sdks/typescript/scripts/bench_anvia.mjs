/**
 * What the operations of `@anvia/sandbox` cost through the drop-in, as a table of Markdown:
 *
 *     EYOT_BIN=/path/to/eyot npm run bench:anvia              on Docker, with the image eyot-test-node:22
 *     EYOT_BIN=/path/to/eyot npm run bench:anvia -- native
 *     EYOT_BIN=/path/to/eyot npm run bench:anvia -- docker IMAGE
 *
 * It starts a server of its own, and measures each operation after one that is not counted. On Docker the command lines that the
 * original runs for the same are measured in turn with them: what it adds itself is little, so they are what it costs on this
 * machine at this hour.
 */

import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { EyotClient } from "@eyot/client";
import { DockerSandbox } from "@eyot/client/anvia";

const [provider = "docker", image = provider === "docker" ? "eyot-test-node:22" : undefined] = process.argv.slice(2);
const SESSIONS = 15;
const CALLS_EACH = 2;
const CREATE = "createSession()";
const EXEC = "exec('true')";
const WRITE = "writeFile 1 KiB";
const READ = "readFile 1 KiB";
const DESTROY = "destroy()";

const folder = mkdtempSync(join(tmpdir(), "eyot-bench-"));
const content = "x".repeat(1024);

/** The drop-in. */
async function dropIn(client) {
  const sandbox = new DockerSandbox({ provider, eyot: client, pull: "never", ...(image === undefined ? {} : { image }) });
  let session;
  return {
    [CREATE]: async () => void (session = await sandbox.createSession()),
    [EXEC]: () => session.exec({ command: "true" }),
    [WRITE]: () => session.writeFile("file", content),
    [READ]: () => session.readFile("file"),
    [DESTROY]: () => session.destroy(),
  };
}

/** The original's command lines: rules 8, 12, 17, 30, 33 and 40 of the list. */
function commandLines() {
  const run = promisify(execFile);
  const docker = (...args) => run("docker", args);
  const file = join(folder, "file");
  writeFileSync(file, content);
  const keepAlive = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait $!; done";
  const held = ["--network", "none", "--security-opt", "no-new-privileges", "--cap-drop", "ALL"];
  let name;
  return {
    [CREATE]: async () => {
      name = `eyot-bench-${randomUUID()}`;
      await docker("image", "inspect", image);
      await docker("volume", "create", name);
      await docker("run", "-d", "--name", name, "-v", `${name}:/workspace`, "-w", "/workspace", ...held, image, "sh", "-c", keepAlive);
    },
    [EXEC]: () => docker("exec", "-w", "/workspace", name, "true"),
    [WRITE]: async () => {
      await docker("exec", "-w", "/workspace", name, "mkdir", "-p", "/workspace");
      await docker("cp", file, `${name}:/workspace/file`);
    },
    [READ]: () => docker("cp", `${name}:/workspace/file`, join(folder, "read")),
    [DESTROY]: async () => {
      await docker("rm", "-f", name);
      await docker("volume", "rm", "-f", name);
    },
  };
}

/** One session of each, operation by operation in turn. */
async function round(sides) {
  const each = async (operation) => {
    for (const { operations, times } of sides) {
      const begun = performance.now();
      await operations[operation]();
      (times[operation] ??= []).push(performance.now() - begun);
    }
  };
  await each(CREATE);
  for (const { operations } of sides) await operations[EXEC]();
  for (let call = 0; call < CALLS_EACH; call += 1) {
    for (const operation of [EXEC, WRITE, READ]) await each(operation);
  }
  await each(DESTROY);
}

const ms = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));
const median = (sorted) => sorted[Math.floor(sorted.length / 2)];
const told = (times) => {
  const sorted = [...times].sort((one, other) => one - other);
  return `${ms(median(sorted))} / ${ms(sorted[0])}`;
};

const client = new EyotClient({ provider, stateDir: join(folder, "state") });
try {
  const sides = [{ name: "drop-in", operations: await dropIn(client), times: {} }];
  if (provider === "docker") sides.push({ name: "the original's command lines", operations: commandLines(), times: {} });
  await round(sides.map((side) => ({ ...side, times: {} })));
  for (let count = 0; count < SESSIONS; count += 1) await round(sides);
  const names = sides.map(({ name }) => `${name}, median / min`);
  console.log(`| ms, on ${provider}${image === undefined ? "" : ` (${image})`} | n | ${names.join(" | ")} |\n|---|---|${"---|".repeat(sides.length)}`);
  for (const [operation, times] of Object.entries(sides[0].times)) {
    console.log(`| ${operation} | ${times.length} | ${sides.map((side) => told(side.times[operation])).join(" | ")} |`);
  }
} finally {
  await client.close();
  rmSync(folder, { recursive: true, force: true });
}
