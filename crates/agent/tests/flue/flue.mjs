// Plays scenarios in Flue's runtime. Each line of the standard input is one, as JSON; the answer to it is a line with the events
// and the outcome of each step.
import { connectMcpServer, createAgent } from '@flue/runtime';
import { configureProvider, registerProvider } from '@flue/runtime/app';
import {
  Bash,
  InMemoryFs,
  InMemorySessionStore,
  bashFactoryToSessionEnv,
  createFlueContext,
  invokeWorkflowAttached,
  resolveModel,
} from '@flue/runtime/internal';
import * as v from 'valibot';

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
  silent: {
    name: 'silent',
    description: 'Says nothing.',
    parameters: { type: 'object', properties: {} },
    execute: async () => '',
  },
  waits: {
    name: 'waits',
    description: 'Waits.',
    parameters: { type: 'object', properties: {} },
    execute: (_, signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))),
  },
};
// A tool as one of a sandbox.
const ofSandbox = ({ execute, ...tool }) => ({
  ...tool,
  label: tool.name,
  execute: async (id, args, signal) => ({ content: [{ type: 'text', text: await execute(args, signal) }], details: {} }),
});
const toolsOf = (names) => names?.map((name) => tools[name]);

// Registers the provider of a scenario.
function register({ vendor, provider, url, contextWindow, maxTokens }) {
  const [baseUrl, apiKey] = [url, 'sk-standin'];
  if (vendor !== 'openai-completions') return configureProvider(provider, { baseUrl, apiKey });
  registerProvider(provider, { api: vendor, baseUrl, apiKey, contextWindow, maxTokens });
}

// Returns the options of an agent.
function agentOptions({ provider, model, instructions, thinking: thinkingLevel, cwd, ...setup }, ofServer) {
  const nameOf = (model) => `${provider}/${model}`;
  const subagents = setup.subagents?.map(({ tools, ...agent }) => ({
    ...agent,
    model: nameOf(model),
    tools: toolsOf(tools),
  }));
  const { compaction } = setup;
  if (compaction?.model) compaction.model = nameOf(compaction.model);
  const tools = [...(toolsOf(setup.tools) ?? []), ...ofServer];
  const skills = setup.skills?.map(({ name, description }) => ({
    __flueSkillReference: true,
    id: name,
    name,
    description,
  }));
  const sandbox = setup.sandboxTools && {
    createSessionEnv: () => bashFactoryToSessionEnv(() => new Bash({ fs: new InMemoryFs(setup.files) })),
    tools: () => toolsOf(setup.sandboxTools).map(ofSandbox),
  };
  const names = { model: nameOf(model), instructions, thinkingLevel, cwd };
  const options = { ...names, subagents, tools, compaction, skills, sandbox };
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value != null));
}

// Plays one step, and returns its result. `heard` takes a function that hears the events from now on.
async function play(harness, { provider }, step, heard) {
  if (step.do === 'create') return void (await harness.sessions.create(step.session));
  if (step.do === 'get') return void (await harness.sessions.get(step.session));
  if (step.do === 'delete') return void (await harness.sessions.delete(step.session));
  const session = await harness.session(step.session);
  const options = { result: schemas[step.result], tools: toolsOf(step.tools), images: step.images };
  if (step.do === 'compact') return session.compact();
  if (step.do === 'twice') return Promise.all([session.prompt(step.text), session.prompt(step.text)].map(outcome));
  const named = { ...options, model: step.model && `${provider}/${step.model}`, thinkingLevel: step.thinking };
  const calls = {
    prompt: () => session.prompt(step.text, named),
    shell: () => session.shell(step.text, { env: step.env, cwd: step.cwd }),
    skill: () => session.skill(step.text, { ...named, args: step.args }),
    task: () => session.task(step.text, { ...named, agent: step.agent, cwd: step.cwd }),
  };
  let call;
  const abort = () => call.abort('enough');
  const soon = () => (step.after ? setTimeout(abort, step.after) : queueMicrotask(abort));
  if (step.abort) heard((event) => event.type === step.abort && soon());
  call = calls[step.do]();
  return call;
}

// The result of a call, or its error.
const outcome = (call) =>
  call.then(
    (result) => ({ result: result ?? null }),
    (error) => ({ error: { name: error.name, message: error.message } }),
  );

async function playAll({ setup, steps }) {
  register(setup);
  const [events, outcomes] = [[], []];
  let listener;
  const hear = (event) => {
    events.push(event);
    listener?.(event);
  };
  const createContext = (id, runId, payload) => {
    const context = flueContext(setup, id, runId, payload);
    context.subscribeEvent(hear);
    return context;
  };
  const server = setup.mcp && (await connectMcpServer(setup.mcp, { url: setup.mcpUrl }));
  const ofServer = server?.tools ?? [];
  const playSteps = async (context) => {
    const harness = await context.init(createAgent(() => agentOptions(setup, ofServer)));
    for (const step of steps) {
      if (step.do === 'log') context.log[step.level](step.text, step.attributes);
      else if (step.do === 'fail') throw new Error(step.text);
      else outcomes.push(await outcome(play(harness, setup, step, (heard) => (listener = heard))));
      listener = undefined;
    }
    return outcomes.at(-1)?.result?.text ?? null;
  };
  if (setup.run === undefined) await playSteps(createContext('instance', 'run', {}));
  else {
    const owner = { kind: 'workflow', instanceId: 'instance', workflowName: 'worker' };
    const run = { owner, id: 'instance', runId: 'run', payload: setup.run, handler: playSteps, createContext };
    await invokeWorkflowAttached(run).catch(() => undefined);
  }
  await server?.close();
  return { events, outcomes };
}

// Returns a context with the files and the packaged skills of a scenario.
function flueContext(setup, id, runId, payload) {
  const createDefaultEnv = () => bashFactoryToSessionEnv(() => new Bash({ fs: new InMemoryFs(setup.files) }));
  const skills = setup.skills ?? [];
  const content = (text) => Buffer.from(text).toString('base64');
  const filesOf = (files) =>
    Object.fromEntries(Object.entries(files).map(([path, text]) => [path, { kind: 'text', content: content(text) }]));
  const packagedSkills = Object.fromEntries(skills.map(({ name, files }) => [name, { files: filesOf(files) }]));
  return createFlueContext({
    id,
    runId,
    payload,
    env: {},
    agentConfig: { systemPrompt: '', skills: {}, packagedSkills, model: undefined, resolveModel },
    createDefaultEnv,
    defaultStore: new InMemorySessionStore(),
  });
}

process.stdin.setEncoding('utf8');
let rest = '';
for await (const chunk of process.stdin) {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop();
  for (const line of lines) {
    const answer = await playAll(JSON.parse(line)).catch((error) => ({ broken: error.stack }));
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
}
process.exit(0);
