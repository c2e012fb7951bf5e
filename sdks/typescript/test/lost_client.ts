/** A program that is killed while its tool works: `node lost_client.js URL KEY`. It says the run's id when the tool was called. */

import { EyotClient } from "@eyot/client";

const [url = "", apiKey = ""] = process.argv.slice(2);
const client = new EyotClient({ url, apiKey });
const slow = {
  name: "slow",
  description: "Takes for ever",
  parameters: { type: "object", properties: {} },
  execute: (): Promise<string> => {
    process.stdout.write(`${run.id}\n`);
    return new Promise(() => setInterval(() => {}, 60_000));
  },
};
const run = await client.agents.run("helper", "lost", { prompt: "call slow {}", tools: [slow], toolTimeoutMs: 1_500 });
await run.result();
