/**
 * Flue's own client, on the routes that it shares with the server. The client of 0.7 and 0.8 is not on npm; the oldest there is 0.11.1, which
 * reads events of runs and starts workflows at routes that came later.
 */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { FlueApiError, createFlueClient } from "@flue/sdk";
import { type AgentGround, agentGround } from "../agent_ground.js";

/** A run, as Flue 0.7.1 has it. */
interface ShownRun {
  runId: string;
  agentName: string;
  instanceId: string;
  status: string;
  result?: unknown;
}

const shown = (list: { items: unknown[] }): ShownRun[] => list.items as ShownRun[];

let here: AgentGround;
before(async () => void (here = await agentGround()));
after(() => here.close());

test("Flue's client starts an agent, and reads its run and the lists", async () => {
  const flue = createFlueClient({ baseUrl: here.url, token: here.key });
  const { result } = await flue.agents.prompt("helper", "one", { message: "hello" });
  assert.equal((result as { text: string }).text.trim(), "It said: hello");
  const agents = await flue.admin.agents.list();
  assert.deepEqual(agents.items.map(({ name }) => name), ["helper", "private"]);
  const runs = shown(await flue.admin.runs.list({ status: "completed" }));
  assert.deepEqual(runs.map(({ agentName, instanceId }) => [agentName, instanceId]), [["helper", "one"]]);
  const run = (await flue.runs.get(runs[0]!.runId)) as unknown as ShownRun;
  assert.deepEqual([run.status, run.result], ["completed", result]);
});

test("a refusal is an error that Flue's client understands", async () => {
  const stranger = createFlueClient({ baseUrl: here.url, token: here.otherKey });
  const flue = createFlueClient({ baseUrl: here.url, token: here.key });
  const [run] = shown(await flue.admin.runs.list());
  const refused = (status: number, type: string) => (error: unknown) =>
    error instanceof FlueApiError && error.status === status && error.message.includes(`[${type}]`);
  await assert.rejects(stranger.runs.get(run!.runId), refused(404, "run_not_found"));
  await assert.rejects(flue.agents.prompt("nobody", "one", { message: "hello" }), refused(404, "agent_not_found"));
  await assert.rejects(createFlueClient({ baseUrl: here.url }).admin.runs.list(), refused(401, "permission"));
});
