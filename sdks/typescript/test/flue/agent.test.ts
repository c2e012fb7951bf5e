/** An agent on the real runtime 2.1.0, with its own tools, over a sandbox of Eyot's; only the model is a stand-in. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createProvider } from "@earendil-works/pi-ai";
import { openAICompletionsApi } from "@earendil-works/pi-ai/api/openai-completions.lazy";
import { init, setProvider, useModel, useSandbox } from "@flue/runtime";
import { start } from "@flue/runtime/node";
import { EyotClient } from "@eyot/client";
import { eyotPool } from "@eyot/client/flue";
import { type Ground, ground } from "../ground.js";
import { type Message, standInModel } from "./model.js";

let here: Ground;
let client: EyotClient;

before(async () => {
  here = await ground();
  client = new EyotClient({ url: here.socket, apiKey: here.key });
});
after(async () => {
  await client.close();
  await here.close();
});

const text = ({ content }: Message): string => (typeof content === "string" ? content : (content as { text: string }[]).map(({ text }) => text).join(""));

test("an agent writes, reads, edits, searches and runs commands in its own sandbox, which keeps its files between messages", async () => {
  const model = await standInModel([
    [{ name: "write", input: { path: "src/a.txt", content: "hello world\n" } }],
    [{ name: "read", input: { path: "src/a.txt" } }],
    [{ name: "edit", input: { path: "src/a.txt", oldText: "world", newText: "sandbox" } }],
    [
      { name: "grep", input: { pattern: "s[a-z]+box", path: "src" } },
      { name: "glob", input: { pattern: "*.txt" } },
      { name: "bash", input: { command: "cat src/a.txt; pwd; echo oops >&2; exit 4" } },
      { name: "bash", input: { command: "sleep 20", timeout: 0.5 } },
    ],
    "done",
    [{ name: "bash", input: { command: "cat src/a.txt" } }],
    "done again",
  ]);
  const one = { id: "m", name: "m", api: "openai-completions", provider: "stand-in", baseUrl: model.url, reasoning: false, input: ["text"], cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }, contextWindow: 100_000, maxTokens: 1000 };
  const auth = { apiKey: { name: "none", resolve: async () => ({ auth: { apiKey: "none" } }) } };
  setProvider(createProvider({ id: "stand-in", baseUrl: model.url, auth, models: [one as never], api: openAICompletionsApi() }) as never);
  function Coder() {
    useModel("stand-in/m");
    useSandbox(eyotPool(client));
  }
  const runtime = await start({ agents: [Coder] });
  try {
    const agent = init(Coder, { id: "coder-1" });
    assert.equal((await agent.read(await agent.dispatch("work"))).text, "done");
    assert.equal((await agent.read(await agent.dispatch("again"))).text, "done again");
  } finally {
    await runtime.stop();
    model.close();
  }
  const answers = (model.asked.at(-1)?.messages ?? []).filter(({ role }) => role === "tool").map(text);
  const [written, read, edited, found, globbed, ran, ...rest] = answers;
  assert.equal(written, "Successfully wrote 12 bytes to src/a.txt");
  assert.equal(read, "hello world\n");
  assert.equal(edited, "Successfully edited src/a.txt");
  assert.match(found ?? "", /src\/a\.txt:1:hello sandbox$/);
  assert.match(globbed ?? "", /src\/a\.txt$/);
  assert.equal(ran, "hello sandbox\n/workspace\n\noops\n\nCommand exited with code 4");
  // By whoever tells it first: the runtime has a deadline of its own, and the sandbox the same.
  assert.match(rest[0] ?? "", /timed out after (0\.5 seconds|500 milliseconds)[^]*Command exited with code 124$/);
  assert.match(rest[1] ?? "", /^hello sandbox/);
  assert.equal(await client.sandbox("coder-1").readText("src/a.txt"), "hello sandbox\n");
});
