/** A server with two agents over sandboxes in memory, a stand-in for their model, and the keys of two tenants. */

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Ground, ground, program } from "./ground.js";
import { modelServer } from "./model_server.js";

/** A server with agents: `helper`, and `private`, which no key may start. */
export interface AgentGround extends Ground {
  /** Opens the pool `other`. */
  otherKey: string;
}

/** Starts one. */
export async function agentGround(): Promise<AgentGround> {
  const model = await modelServer();
  const prepare = (folder: string): string[] => {
    const agents = join(folder, "agents");
    mkdirSync(agents);
    writeFileSync(join(agents, "helper.md"), "---\ndescription: Helps\nwebhook: true\n---\n\nYou help.\n");
    writeFileSync(join(agents, "private.md"), "You help nobody.\n");
    return ["--agents", agents, "--model", "openai-completions/stand-in"];
  };
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "none" };
  const here = await ground({ provider: "memory", env, prepare });
  const asked = ["--state", join(here.folder, "state"), "--json", "keys", "create", "other", "--pool", "other"];
  const said = execFileSync(program(), asked, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const close = async (): Promise<void> => {
    model.close();
    await here.close();
  };
  return { ...here, otherKey: (JSON.parse(said) as { secret: string }).secret, close };
}
