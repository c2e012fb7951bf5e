// Plays a scenario in Flue's runtime: `flue.mjs URL`, the scenario as JSON on standard input. Prints the events and the outcome
// of each step as JSON.
import { readFileSync } from 'node:fs';
import { createAgent } from '@flue/runtime';
import { configureProvider, registerProvider } from '@flue/runtime/app';
import {
  Bash,
  InMemoryFs,
  InMemorySessionStore,
  bashFactoryToSessionEnv,
  createFlueContext,
  resolveModel,
} from '@flue/runtime/internal';
import * as v from 'valibot';

const { setup, steps } = JSON.parse(readFileSync(0, 'utf8'));
const url = process.argv[2];

const schemas = {
  number: v.object({ n: v.number() }),
  text: v.string(),
  list: v.array(v.object({ name: v.string() })),
};

const tools = {
  add: {
    name: 'add',
    description: 'Adds two numbers.',
    parameters: {
      type: 'object',
      properties: { a: { type: 'number', description: 'One number' }, b: { type: 'number' } },
      required: ['a', 'b'],
    },
    execute: async ({ a, b }) => String(a + b),
  },
  fails: {
    name: 'fails',
    description: 'Fails.',
    parameters: { type: 'object', properties: {} },
    execute: async () => {
      throw new Error('the tool is broken');
    },
  },
  waits: {
    name: 'waits',
    description: 'Waits.',
    parameters: { type: 'object', properties: {} },
    execute: (_, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  },
};
const toolsOf = (names) => names?.map((name) => tools[name]);

if (setup.vendor === 'openai-completions') {
  const { contextWindow, maxTokens } = setup;
  registerProvider('standin', { api: setup.vendor, baseUrl: url, apiKey: 'sk-standin', contextWindow, maxTokens });
} else {
  configureProvider(setup.provider, { baseUrl: url, apiKey: 'sk-standin' });
}

const context = createFlueContext({
  id: 'instance',
  runId: 'run',
  payload: {},
  env: {},
  agentConfig: { systemPrompt: '', skills: {}, model: undefined, resolveModel },
  createDefaultEnv: () => bashFactoryToSessionEnv(() => new Bash({ fs: new InMemoryFs(setup.files) })),
  defaultStore: new InMemorySessionStore(),
});
const events = [];
let heard = () => {};
context.subscribeEvent((event) => {
  events.push(event);
  heard(event);
});

const model = `${setup.provider}/${setup.model}`;
const subagents = setup.subagents?.map(({ tools, ...agent }) => ({ ...agent, model, tools: toolsOf(tools) }));
const { instructions, thinking: thinkingLevel, compaction, cwd } = setup;
if (compaction?.model) compaction.model = `${setup.provider}/${compaction.model}`;
const options = { model, instructions, subagents, tools: toolsOf(setup.tools), thinkingLevel, compaction, cwd };
const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value != null));
const harness = await context.init(createAgent(() => given));

// Plays one step, and returns its result.
async function play(step) {
  if (step.do === 'create') return void (await harness.sessions.create(step.session));
  if (step.do === 'get') return void (await harness.sessions.get(step.session));
  if (step.do === 'delete') return void (await harness.sessions.delete(step.session));
  const session = await harness.session(step.session);
  const options = { result: schemas[step.result], tools: toolsOf(step.tools), images: step.images };
  if (step.do === 'compact') return session.compact();
  if (step.do === 'shell') return session.shell(step.text, { env: step.env, cwd: step.cwd });
  if (step.do === 'twice') return [session.prompt(step.text), session.prompt(step.text)].map(outcome);
  const named = { ...options, model: step.model && `${setup.provider}/${step.model}`, thinkingLevel: step.thinking };
  const call =
    step.do === 'task'
      ? session.task(step.text, { ...named, agent: step.agent, cwd: step.cwd })
      : step.do === 'skill'
        ? session.skill(step.text, { ...named, args: step.args })
        : session.prompt(step.text, named);
  if (step.abort) heard = (event) => event.type === step.abort && call.abort('enough');
  return call;
}

// The result of a call, or its error.
const outcome = (call) =>
  call.then(
    (result) => ({ result: result ?? null }),
    (error) => ({ error: { name: error.name, message: error.message } }),
  );

const outcomes = [];
for (const step of steps) {
  outcomes.push(await outcome(play(step).then((result) => (Array.isArray(result) ? Promise.all(result) : result))));
  heard = () => {};
}
process.stdout.write(JSON.stringify({ events, outcomes }), () => process.exit(0));
