/** Names and options of other libraries, in programs without types: the error names ours. Nothing is asked of a server. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { EyotClient, EyotError, Sandbox } from "@eyot/client";

const client = new EyotClient({ url: "unix:/nowhere.sock" });
const sandbox = client.sandbox("nobody");

const isInvalid = (field: string | undefined, message: string) => (error: unknown) => {
  assert.ok(error instanceof EyotError, String(error));
  assert.deepEqual([error.kind, error.field], ["invalid", field]);
  assert.ok(error.message.includes(message), error.message);
  return true;
};

for (const [name, ours] of [
  ["commands", "use `exec(command)`"],
  ["files", "`writeFile(path, content)`"],
  ["pty", "use `openTerminal()`"],
  ["getHost", "use `forward(port)`"],
  ["setTimeout", "use `update({ lifecycle: { ttlMs } })`"],
  ["pause", "use `sleep()`"],
  ["isRunning", "use `refresh()`"],
  ["sandboxId", "use `id`"],
] as const) {
  test(`\`${name}\` of another library's sandbox is answered with ours`, () => {
    assert.throws(() => (sandbox as unknown as Record<string, unknown>)[name], isInvalid(name, `a sandbox has no \`${name}\`; `));
    assert.throws(() => (sandbox as unknown as Record<string, unknown>)[name], isInvalid(name, ours));
  });
}

for (const [name, ours] of [["create", "use `client.create()`"], ["connect", "use `client.get(idOrName)`"]] as const) {
  test(`\`${name}\` of another library's class is answered with ours`, () => {
    assert.throws(() => (Sandbox as unknown as Record<string, unknown>)[name], isInvalid(name, `the class \`Sandbox\` has no \`${name}\`; ${ours}`));
  });
}

for (const of of [[], ["base"], [{ template: "base", timeoutMs: 60_000 }]]) {
  test(`\`new Sandbox(${of.map((one) => JSON.stringify(one)).join()})\` of another library says what makes a sandbox`, () => {
    const Called = Sandbox as unknown as new (...of: unknown[]) => Sandbox;
    assert.throws(() => new Called(...of), isInvalid(undefined, "`new Sandbox()` makes no sandbox; use `client.create()`"));
  });
}

test("a kill without a process says what ends the sandbox", async () => {
  const kill = sandbox.kill.bind(sandbox) as () => Promise<void>;
  await assert.rejects(kill(), isInvalid("process", "use `destroy()` to end the sandbox"));
});

test("types do not have these names, and looking at a sandbox does not trip over them", () => {
  // @ts-expect-error A program with types does not compile.
  assert.throws(() => sandbox.commands);
  // @ts-expect-error Neither does this.
  assert.throws(() => Sandbox.create);
  assert.match(inspect(sandbox, { showHidden: true }), /nobody/);
  assert.deepEqual(Object.keys({ ...sandbox }).filter((name) => name === "commands"), []);
});

test("an option of a spec's part that there is not is answered with those that there are, as they are written here", async () => {
  const wrong = { limits: { memory: 1 } } as unknown as { limits: { memoryMib: number } };
  await assert.rejects(client.create(wrong), isInvalid("limits.memory", "there is no option `limits.memory`; there are `timeoutMs`"));
  await assert.rejects(client.create(wrong), isInvalid("limits.memory", "`memoryMib`"));
  const late = { lifecycle: { ttl: 1 } } as unknown as { lifecycle: { ttlMs: number } };
  await assert.rejects(client.create(late), isInvalid("lifecycle.ttl", "there are `ttlMs`, `idleTimeoutMs`"));
});

test("a text instead of options is answered with how an image and a name are given", async () => {
  const create = client.create.bind(client) as unknown as (template: string) => Promise<unknown>;
  await assert.rejects(create("python"), isInvalid(undefined, 'such as `{ image: "node:22" }` or `{ name: "builder" }`, not `python`'));
});

const Client = EyotClient as unknown as new (...given: unknown[]) => EyotClient;
const isTypeError = (message: string) => (error: unknown) => error instanceof TypeError && error.message.includes(message);

for (const name of ["baseUrl", "baseURL", "uri", "host", "server"]) {
  test(`a client that is given \`${name}\` starts no server of its own, but names \`url\``, () => {
    const words = `new EyotClient: there is no option \`${name}\`; use \`url\`; there are \`url\`, \`apiKey\`, \`pool\``;
    assert.throws(() => new Client({ [name]: "http://team:7070" }), isTypeError(words));
  });
}

test("an option of Python's client is answered with ours, and one that nobody has with those that there are", () => {
  assert.throws(() => new Client({ api_key: "x" }), isTypeError("there is no option `api_key`; use `apiKey`"));
  assert.throws(() => new Client("http://team:7070", { agents_dir: "x" }), isTypeError("there is no option `agents_dir`; use `agentsDir`"));
  assert.throws(() => new Client({ colour: "red" }), isTypeError("there is no option `colour`; there are `url`"));
});

test("what is neither a URL nor options makes no client", () => {
  for (const given of [null, 7070, new URL("http://team:7070"), ["http://team:7070"]]) {
    assert.throws(() => new Client(given), isTypeError("the server is a URL as a text, or options such as"));
  }
});

test("a text alone is the URL, and a wrong one is refused at once", () => {
  assert.throws(() => new EyotClient("localhost"), isInvalid("url", "must look like http://host:port"));
});

test("an option that a call does not have is refused before anything is asked", async () => {
  const wrong = { colour: "red" } as object;
  const says = (what: string, first: string) => isInvalid("colour", `${what}: there is no option \`colour\`; there are \`${first}\``);
  await assert.rejects(client.create(wrong), says("create sandbox", "name"));
  await assert.rejects(client.create({}, wrong), says("create sandbox, behind its spec", "signal"));
  await assert.rejects(client.list(wrong), says("list sandboxes", "labels"));
  await assert.rejects(client.events(wrong).next(), says("read events", "sandbox"));
  for (const call of ["exec", "execStream", "keep", "start"] as const) {
    await assert.rejects(sandbox[call]("true", wrong) as Promise<unknown>, says("run a command", "cwd"));
  }
  const snake = { max_output_bytes: 1 } as object;
  await assert.rejects(sandbox.exec("true", snake), isInvalid("max_output_bytes", "use `maxOutputBytes`"));
});

test("an option of a call on files, processes or agents that there is not is refused, too", async () => {
  const wrong = { colour: "red" } as object;
  const calls: Record<string, () => Promise<unknown>> = {
    "read file": () => sandbox.readText("f", wrong),
    "write file": () => sandbox.writeFile("f", "", wrong),
    "list directory": () => sandbox.list(".", wrong),
    "make directory": () => sandbox.mkdir("d", wrong),
    remove: () => sandbox.remove("d", wrong),
    glob: () => sandbox.glob("*", wrong),
    grep: () => sandbox.grep("x", wrong),
    watch: () => sandbox.watch(".", wrong),
    "read log": () => sandbox.logs("p1", wrong).next(),
    "wait for process": () => sandbox.wait("p1", wrong),
    "run an agent": () => client.agents.run("assistant", "ada", wrong),
    "list runs": () => client.runs.list(wrong),
    "follow a run": () => client.runs.follow("r1", wrong),
  };
  for (const [what, call] of Object.entries(calls)) {
    await assert.rejects(call(), isInvalid("colour", `${what}: there is no option \`colour\`; there are \``));
  }
});

test("sandboxes are not listed by metadata, and the error names labels", async () => {
  const metadata = { metadata: { user: "ada" } } as object;
  await assert.rejects(client.list(metadata), isInvalid("metadata", "use `labels`, which `create` takes too"));
});

test("a relative source of a mount is, with a server that the client did not start, answered with whose folder it is", async () => {
  await assert.rejects(client.create({ mounts: [{ source: ".", target: "/x" }] }), (error: unknown) => {
    isInvalid("mounts.source", "`mounts.source` must be absolute: .")(error);
    assert.match((error as EyotError).hint ?? "", /^it is a folder of the server's host/);
    return true;
  });
});

for (const [mounts, right] of [
  [["/data"], "`/data` is no mount; write SOURCE:TARGET:ro, as in ./data:/data:ro"],
  [[":/x"], "`:/x` is no mount; write SOURCE:TARGET:ro"],
  [["/a:relative"], "`/a:relative` is no mount; write SOURCE:TARGET:ro"],
  [["/a:/b:z"], "`z` is not an option of a mount; write /a:/b:ro, or /a:/b:rw"],
  [["/a:/b:rw,z"], "`rw,z` is not an option of a mount; write /a:/b:ro"],
  ["/a:/b", "`mounts` is a list, such as"],
  [{ "/a": "/b" }, "`mounts` is a list"],
] as [unknown, string][]) {
  test(`${JSON.stringify(mounts)} as mounts is answered with the right form`, async () => {
    await assert.rejects(client.create({ mounts } as { mounts: string[] }), isInvalid("mounts", right));
  });
}

for (const [wrong, given] of [[5, "5"], [undefined, "undefined"], [{ a: 1 }, "an object"], [["echo", 5], "an array that has 5"], [[undefined], "an array that has undefined"]]) {
  test(`what is no command, as ${given}, is answered with what one is`, async () => {
    const words = `a command is a text for the shell, or an array of words such as \`["python3", "main.py"]\`, not ${given}`;
    for (const call of ["exec", "execStream", "keep", "start"] as const) {
      await assert.rejects(sandbox[call](wrong as string) as Promise<unknown>, isInvalid("command", words));
    }
    await assert.rejects(sandbox.exec(wrong as string, { signal: AbortSignal.abort() }), isInvalid("command", words));
  });
}

test("input that is neither text nor bytes is refused", async () => {
  for (const wrong of [5, null, {}] as unknown as string[]) {
    for (const call of ["exec", "execStream", "keep", "start"] as const) {
      await assert.rejects(sandbox[call]("cat", { stdin: wrong }) as Promise<unknown>, isInvalid("stdin", "run a command: `stdin` must be a text or bytes"));
    }
  }
  await assert.rejects(sandbox.writeStdin("p1", undefined as unknown as string), isInvalid("data", "write to a process: `data` must be a text or bytes"));
});

test("a name or an id that is empty is asked for", async () => {
  const calls: Record<string, (() => unknown)[]> = {
    "a sandbox": [() => client.get(""), () => client.sandbox("")],
    "a snapshot": [() => client.snapshot(""), () => client.removeSnapshot(""), () => sandbox.rollback("")],
    "a snapshot or a sandbox": [() => client.fork("")],
    "a pool": [() => client.poolEntries(""), () => client.closePool("")],
    "a process": [() => sandbox.wait(""), () => sandbox.kill("")],
    "a command": [() => sandbox.attach("")],
    "a terminal": [() => sandbox.attachTerminal(""), () => sandbox.endTerminal("")],
    "a run": [() => client.runs.get("")],
  };
  for (const [of, ofIt] of Object.entries(calls)) {
    const field = of.split(" ").at(-1);
    for (const call of ofIt) await assert.rejects(async () => call(), isInvalid(field, `the name or the id of ${of} is needed, not an empty text`));
  }
});

test("a path that is no text is refused", async () => {
  for (const wrong of [undefined, null, 5] as unknown as string[]) {
    const calls = [sandbox.readText(wrong), sandbox.readStream(wrong), sandbox.writeFile(wrong, ""), sandbox.stat(wrong), sandbox.exists(wrong), sandbox.mkdir(wrong), sandbox.remove(wrong), sandbox.tarOut(wrong)];
    for (const call of calls) await assert.rejects(call as Promise<unknown>, isInvalid("path", "`path` must be a text, such as `notes.txt`, not "));
    await assert.rejects(sandbox.rename("a", wrong), isInvalid("to", "rename: `to` must be a text"));
  }
});

test("a signal that there is not is refused", async () => {
  await assert.rejects(sandbox.kill("p1", "NOPE"), isInvalid("signal", "kill a process: `signal` is unknown: NOPE; use TERM, KILL, INT, HUP or a number"));
  for (const wrong of [0, 65, 1.5]) await assert.rejects(sandbox.kill("p1", wrong), isInvalid("signal", "must be a name or a number from 1 to 64"));
});

test("a key behind the URL alone is answered with how it is given", () => {
  assert.throws(() => new Client("http://team:7070", "key"), isTypeError("a key is given with its name, as in `new EyotClient({ url, apiKey })`"));
});

for (const [wrong, right] of [
  ["nme", "`name`"],
  ["lables", "`labels`"],
  ["ttlMs", "`lifecycle: { ttlMs }`, in milliseconds"],
  ["ttl_ms", "`lifecycle: { ttlMs }`, in milliseconds"],
  ["idleTimeoutMs", "`lifecycle: { idleTimeoutMs }`"],
  ["idle_timeout_ms", "`lifecycle: { idleTimeoutMs }`"],
  ["files", "`manifest: { files }`"],
  ["directories", "`manifest: { directories }`"],
  ["diskMib", "`limits: { diskMib }`"],
] as const) {
  test(`\`${wrong}\` of a new sandbox is answered with ${right}`, async () => {
    await assert.rejects(client.create({ [wrong]: 1 }), isInvalid(wrong, `there is no option \`${wrong}\`; use ${right}`));
  });
}

test("an option that is misspelt is answered with the nearest one, of a call, a part or a client", async () => {
  await assert.rejects(sandbox.exec("true", { cdw: "/" } as object), isInvalid("cdw", "use `cwd`"));
  await assert.rejects(client.create({ limits: { memoryMb: 1 } } as object), isInvalid("limits.memoryMb", "use `limits: { memoryMib }`"));
  assert.throws(() => new Client({ ulr: "http://team:7070" }), isTypeError("use `url`"));
});

test("a file of a new sandbox without content is refused", async () => {
  for (const wrong of [undefined, null, 5] as unknown as string[]) {
    await assert.rejects(client.create({ manifest: { files: { a: wrong } } }), isInvalid('files["a"]', 'create sandbox: `files["a"]` must be a text or bytes'));
  }
});
