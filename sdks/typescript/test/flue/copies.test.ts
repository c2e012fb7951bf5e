/** A client that is linked into a project, whose runtime then is another copy than the client's. */

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type Ground, ground } from "../ground.js";
import { standInModel } from "./model.js";

const CLIENT = fileURLToPath(new URL("../..", import.meta.url));

const AGENT = `
import { createProvider } from "@earendil-works/pi-ai";
import { openAICompletionsApi } from "@earendil-works/pi-ai/api/openai-completions.lazy";
import { init, setProvider, useModel, useSandbox } from "@flue/runtime";
import { start } from "@flue/runtime/node";
import { EyotClient } from "@eyot/client";
import { eyotPool } from "@eyot/client/flue";
const [baseUrl] = process.argv.slice(2);
const client = new EyotClient();
const model = { id: "m", name: "m", api: "openai-completions", provider: "stand-in", baseUrl, reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 100000, maxTokens: 1000 };
const auth = { apiKey: { name: "none", resolve: async () => ({ auth: { apiKey: "none" } }) } };
setProvider(createProvider({ id: "stand-in", baseUrl, auth, models: [model], api: openAICompletionsApi() }));
function Coder() {
  useModel("stand-in/m");
  useSandbox(eyotPool(client));
}
const runtime = await start({ agents: [Coder] });
try {
  const agent = init(Coder, { id: "copies" });
  console.log((await agent.read(await agent.dispatch("work"))).text);
} catch (error) {
  for (let next = error; next instanceof Error; next = next.cause) console.log(next.message);
}
await runtime.stop();
await client.close();
process.exit(0);
`;

let here: Ground;

before(async () => {
  here = await ground();
});
after(() => here.close());

/** A project with a runtime of its own. The client is linked, or is there as npm installs what it packs. */
function project(isLinked: boolean): string {
  const folder = mkdtempSync(join(tmpdir(), "eyot-copies-"));
  const put = (name: string, place: (from: string, to: string) => void): void => {
    mkdirSync(dirname(join(folder, "node_modules", name)), { recursive: true });
    place(join(CLIENT, "node_modules", name), join(folder, "node_modules", name));
  };
  for (const name of readdirSync(join(CLIENT, "node_modules"))) {
    if (!name.startsWith(".") && name !== "@flue") put(name, symlinkSync);
  }
  put("@flue/runtime", (from, to) => cpSync(from, to, { recursive: true }));
  const client = join(folder, "node_modules/@eyot/client");
  mkdirSync(dirname(client));
  if (isLinked) symlinkSync(CLIENT, client);
  else for (const part of ["dist", "package.json"]) cpSync(join(CLIENT, part), join(client, part), { recursive: true });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(join(folder, "agent.js"), AGENT);
  return folder;
}

async function said(folder: string): Promise<string> {
  const model = await standInModel(["done"]);
  const env = { ...process.env, EYOT_SERVER: here.socket, EYOT_API_KEY: here.key };
  try {
    return await new Promise((resolve, reject) => {
      execFile(process.execPath, ["agent.js", model.url], { cwd: folder, env, timeout: 60_000 }, (error, stdout, stderr) => {
        if (error) reject(new Error(stderr, { cause: error }));
        else resolve(stdout + stderr);
      });
    });
  } finally {
    model.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

test("an adapter that is linked says that there are two copies of the runtime", async () => {
  assert.match(await said(project(true)), /two copies of @flue\/runtime/);
});

test("an adapter that is installed uses the agent's runtime", async () => {
  assert.equal(await said(project(false)), "done\n");
});
