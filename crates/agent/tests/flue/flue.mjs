// Plays a scenario in Flue's runtime: `flue.mjs URL`, the steps as JSON on standard input. Prints the events as JSON.
import { readFileSync } from 'node:fs';
import { createAgent } from '@flue/runtime';
import { registerProvider } from '@flue/runtime/app';
import {
  Bash,
  InMemoryFs,
  InMemorySessionStore,
  bashFactoryToSessionEnv,
  createFlueContext,
  resolveModel,
} from '@flue/runtime/internal';
import * as v from 'valibot';

const steps = JSON.parse(readFileSync(0, 'utf8'));
registerProvider('standin', { api: 'openai-completions', baseUrl: process.argv[2], apiKey: 'sk-standin' });

const context = createFlueContext({
  id: 'instance',
  runId: 'run',
  payload: {},
  env: {},
  agentConfig: { systemPrompt: '', skills: {}, model: undefined, resolveModel },
  createDefaultEnv: () => bashFactoryToSessionEnv(() => new Bash({ fs: new InMemoryFs() })),
  defaultStore: new InMemorySessionStore(),
});
const events = [];
context.subscribeEvent((event) => void events.push(event));
const subagents = [{ name: 'helper', model: 'standin/m', instructions: 'Help.' }];
const agent = createAgent(() => ({ model: 'standin/m', instructions: 'Be brief.', subagents }));
const session = await (await context.init(agent)).session();
for (const step of steps) {
  if (step.shell) await session.shell(step.shell, { env: step.env });
  else if (step.task) await session.task(step.task);
  else if (step.result) await session.prompt(step.prompt, { result: v.object({ n: v.number() }) });
  else await session.prompt(step.prompt).then(undefined, () => undefined);
}
process.stdout.write(JSON.stringify(events), () => process.exit(0));
