/** Agents as somebody uses them: a run from its start to its end, and what comes before and after. The model is a stand-in. */

import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { after, before, test as usual } from "node:test";
import { browse, picture, serve, signedIn } from "./ground.mjs";
import { standIn } from "./standin.mjs";

let model;
let server;
let browser;
let tab;
let page;

const HOSTILE = "<img src=x onerror=\"document.title='broken in'\">";
const FILE = ["fn main() {", "    let name = \"world\";", "    println!(\"hello, {name}\");", "}", ""].join("\n");
const EDIT = { path: "main.rs", oldText: "    let name = \"world\";\n    println!(\"hello, {name}\");\n", newText: "    let name = std::env::args().nth(1).unwrap_or(\"world\".into());\n    println!(\"hello, {name}\");\n    println!(\"bye\");\n" };
const bash = (command) => ({ name: "bash", args: { command } });
const plan = (...all) => model.plan(...all);

const dialog = () => page.getByRole("dialog");
const timeline = () => page.getByRole("region", { name: "Timeline" });
const call = (tool) => timeline().getByRole("article", { name: `Call of ${tool}` });
const status = (name) => page.locator("h1 .state", { hasText: name }).waitFor();
const rows = () => page.locator(".runs tbody tr");
const list = () => page.getByRole("link", { name: "Agents", exact: true }).click();
const hasTitle = (title) => page.waitForFunction((wanted) => document.title === wanted, `${title} – Eyot`);
const shot = async (name) => assert.deepEqual(await picture(page, name), []);
/** Starts a run by the API. */
const begin = (instance, prompt, agent = "helper") => server.call("POST", `/v1/agents/${agent}/${instance}/runs`, { payload: { prompt } });
const open = async ({ id }) => {
  await page.goto(`${server.url}/#/runs/${id}`);
  await page.locator("#run-title").waitFor();
};
const ended = async ({ id }) => {
  for (;;) {
    const run = await server.call("GET", `/v1/runs/${id}`);
    if (run.status !== "active") return run;
    await new Promise((done) => setTimeout(done, 50));
  }
};

function test(name, work) {
  usual(name, async (context) => {
    try {
      await work(context);
    } catch (error) {
      console.error(`the page complained: ${tab?.complaints.join("\n")}`);
      await picture(page, "agents-failed").catch(() => {});
      throw error;
    }
  });
}

before(async () => {
  model = await standIn();
  server = await serve([], { more: model.env });
  browser = await browse();
  tab = await signedIn(browser, server);
  page = tab.page;
});

after(async () => {
  await browser?.close();
  model?.release();
  await server?.stop();
  model?.stop();
});

test("without an agent the page says how to add one, and its example is one", async () => {
  await list();
  await page.getByText("There is no agent yet.").waitFor();
  await hasTitle("Agents");
  assert.equal(await page.evaluate(() => document.activeElement.id), "content");
  await shot("agents-none");
  const example = await page.locator(".example").textContent();
  server.writeAgent("helper", example.replace(/model: .*/, "model: openai-completions/gpt-4.1"));
  await page.getByRole("button", { name: "Look again" }).click();
  await page.getByText("No agent has run yet.").waitFor();
  await shot("agents-no-runs");
});

test("a run is started from the form, seen as it goes on, and seen in the same way afterwards", async () => {
  server.writeAgent("inner", "---\nmodel: openai-completions/gpt-4.1\n---\nOnly the server's own.\n");
  await page.reload();
  await page.getByRole("button", { name: "Start an agent" }).first().click();
  assert.deepEqual(await dialog().getByLabel("Agent").locator("option").allTextContents(), ["helper"]);
  await dialog().getByLabel("Instance").fill("pr7");
  const prompt = plan("Write a program that greets whom one names.\nCount its lines, too.",
    { think: "I look at the folder first.\nThen I write.", say: "I look around first.", calls: [bash("ls; echo careful >&2; seq 1 60")] },
    { calls: [{ name: "write", args: { path: "main.rs", content: FILE } }] },
    { calls: [{ name: "edit", args: EDIT }] },
    { calls: [bash(`echo '${HOSTILE.replaceAll("'", "'\\''")}'; exit 3`), { name: "read", args: { path: "nowhere.txt" } }] },
    { calls: [{ name: "task", args: { description: "count lines", prompt: plan("Count the lines of main.rs.", { say: "I count.", calls: [bash("wc -l main.rs")] }, { say: "It has 5 lines." }) } }] },
    { say: ["The program ", `greets whom you name. ${HOSTILE}`, "HOLD", " That is all."] },
  );
  await dialog().getByLabel("Prompt").fill(prompt);
  await shot("agents-start");
  await dialog().getByRole("button", { name: "Start" }).click();
  await page.getByRole("heading", { name: "helper pr7" }).waitFor();
  await hasTitle("helper pr7: Run");
  assert.equal(await page.evaluate(() => document.activeElement.id), "content");
  await timeline().getByText("greets whom you name.").waitFor();
  await status("running");
  await page.getByText("live", { exact: true }).waitFor();
  assert.equal(await timeline().getByText("That is all.").count(), 0);
  await shot("run-live");
  model.release();
  await timeline().getByLabel("Model").filter({ hasText: "That is all." }).waitFor();
  await status("completed");
  await page.getByText("Completed after").waitFor();
  await page.getByLabel("Continue the conversation").waitFor();

  const live = await timeline().textContent();
  await page.reload();
  await page.getByText("Completed after").waitFor();
  assert.equal(await timeline().textContent(), live);
  // The turns of the task count too.
  await page.getByText("9,600 tokens in, 640 out, $").waitFor();
  await page.evaluate(() => scrollTo(0, 0));
  await shot("run-ended");
});

test("calls show their input and their output, an edit is a diff, and a task is within its call's run", async () => {
  const ls = call("bash").first();
  await ls.getByText("seq 1 60").waitFor();
  const output = ls.getByLabel("Answer");
  assert.ok(!(await output.textContent()).includes("careful"));
  await ls.getByRole("button", { name: /Show all/ }).click();
  await output.filter({ hasText: "careful" }).waitFor();
  assert.match(await output.textContent(), /^1\n2\n[^]*\n60\n/);
  const write = call("write");
  await write.getByText("Content, 4 lines").click();
  await write.getByText("fn main()").waitFor();
  const lines = await call("edit").locator(".diff-line").evaluateAll((all) => all.map((line) => line.className.replace("diff-line ", "") + line.lastChild.textContent));
  assert.deepEqual(lines, ["out    let name = \"world\";", "in    let name = std::env::args().nth(1).unwrap_or(\"world\".into());", "same    println!(\"hello, {name}\");", "in    println!(\"bye\");"]);
  await call("read").getByText("failed", { exact: true }).waitFor();
  const task = page.locator("details.task");
  await task.getByText("wc -l main.rs").waitFor();
  await task.getByText("It has 5 lines.").waitFor();
  await timeline().getByText("Thinking", { exact: true }).click();
  await timeline().getByText("I look at the folder first.").waitFor();
  await call("edit").scrollIntoViewIfNeeded();
  await shot("run-diff");
  await task.scrollIntoViewIfNeeded();
  await shot("run-task");
  // What a tool and the model wrote is text.
  await timeline().getByText(HOSTILE).last().waitFor();
  assert.equal(await timeline().locator("img").count(), 0);
  await hasTitle("helper pr7: Run");
});

test("the sandbox of a run is one click away", async () => {
  await page.getByRole("link", { name: "Sandbox helper-pr7" }).click();
  await page.getByRole("heading", { name: "helper-pr7" }).waitFor();
  await page.getByRole("tree").getByText("main.rs").waitFor();
  const { sandboxes: [{ id }] } = await server.call("GET", "/v1/sandboxes");
  assert.equal(new URL(page.url()).hash, `#/sandboxes/${id}/files`);
  await page.goBack();
  await page.getByRole("heading", { name: "helper pr7" }).waitFor();
});

test("a conversation is continued in a new run, which remembers it", async () => {
  await page.getByLabel("Continue the conversation").fill("And what did I ask?");
  const first = page.url();
  await page.keyboard.press("Control+Enter");
  await page.waitForURL((url) => url.href !== first);
  await timeline().getByText("I remember: Write a program that greets whom one names. Count its lines, too. / And what did I ask?").waitFor();
  await status("completed");
  await page.getByRole("link", { name: "All runs of pr7" }).click();
  await rows().nth(1).waitFor();
  assert.equal(await page.getByLabel("Instance, as it is called").inputValue(), "pr7");
});

test("a run is aborted after a question", async () => {
  const run = await begin("slow", plan("Wait.", { say: "I wait.", calls: [bash("echo begun; sleep 1000")] }));
  await open(run);
  await call("bash").getByText("runs", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Abort" }).click();
  await dialog().getByText("Abort the run?").waitFor();
  await shot("run-abort");
  await page.keyboard.press("Escape");
  await status("running");
  await page.getByRole("button", { name: "Abort" }).click();
  await dialog().getByRole("button", { name: "Abort" }).click();
  await status("aborted");
  await page.getByText("Aborted after").waitFor();
  const { error } = await server.call("GET", `/v1/runs/${run.id}`);
  assert.equal(error.name, "AbortError");
  await page.evaluate(() => scrollTo(0, 0));
  await shot("run-aborted");
});

test("a call that waits for an answer of the run's caller is seen to wait", async () => {
  const tools = [{ name: "weather", description: "Tells the weather.", parameters: { type: "object", properties: { city: { type: "string" } } } }];
  const prompt = plan("How is the weather?", { calls: [{ name: "weather", args: { city: "Kiel" } }] }, { say: "It rains." });
  const run = await server.call("POST", "/v1/agents/helper/weather/runs", { payload: { prompt }, tools });
  await open(run);
  await call("weather").getByText("waits for the caller").waitFor();
  const { tool_calls: [waiting] } = await server.call("GET", `/v1/runs/${run.id}/tool_calls`);
  await server.call("POST", `/v1/runs/${run.id}/tool_calls/${waiting.id}`, { content: "Rain, 9 degrees." });
  await call("weather").getByText("Rain, 9 degrees.").waitFor();
  await call("weather").getByText("done", { exact: true }).waitFor();
  await status("completed");
});

test("a run that fails says why", async () => {
  await open(await begin("broken", plan("Look at /nowhere.", { say: "Let me see.", calls: [bash("cat /nowhere")] }, { status: 400, say: "this model does not exist" })));
  await status("failed");
  await timeline().getByText("this model does not exist").first().waitFor();
  await shot("run-failed");
});

test("a stream that is cut goes on without a loss and without anything twice", async (context) => {
  const words = Array.from({ length: 400 }, (_, at) => `word${at} `);
  const run = await begin("cut", plan("Count.", { say: [...words.slice(0, 200), "HOLD", ...words.slice(200, 300), "HOLD", ...words.slice(300)] }));
  const line = await cuttable(Number(new URL(server.url).port));
  context.after(line.close);
  const { page: other } = await browser.open({ storageState: undefined });
  context.after(() => other.close());
  const asked = [];
  other.on("request", (request) => request.url().endsWith("/stream") && asked.push(request.headers()["last-event-id"]));
  await other.goto(line.url);
  await other.getByLabel("API key").fill(server.key);
  await other.keyboard.press("Enter");
  await other.getByRole("link", { name: "Agents" }).click();
  await other.goto(`${line.url}/#/runs/${run.id}`);
  const said = other.getByRole("region", { name: "Timeline" }).getByLabel("Model");
  await said.getByText("word199").waitFor();
  line.cut();
  model.release();
  await said.getByText("word299").waitFor();
  line.cut();
  await model.held();
  model.release();
  await other.getByText("Completed after").waitFor();
  assert.equal((await said.locator(".prose").textContent()).trim(), words.join("").trim());
  assert.equal(asked[0], undefined);
  assert.ok(asked.slice(1).length >= 2 && asked.slice(1).every((id) => Number(id) > 200), asked.join());
});

test("runs are filtered by agent, instance and status, and the list keeps itself up to date", async () => {
  await list();
  await rows().nth(5).waitFor();
  await shot("runs");
  const names = () => rows().evaluateAll((all) => all.map((row) => `${row.querySelector("th").textContent} ${row.querySelector(".instance").textContent}`));
  const shows = (wanted) => page.waitForFunction((text) => [...document.querySelectorAll(".runs .instance")].map((cell) => cell.textContent).join() === text, wanted.join());
  assert.deepEqual(await names(), ["helper cut", "helper broken", "helper weather", "helper slow", "helper pr7", "helper pr7"]);
  await page.getByLabel("Status").selectOption("failed or aborted");
  await shows(["broken", "slow"]);
  await page.getByLabel("Instance, as it is called").pressSequentially("slow", { delay: 400 });
  await shows(["slow"]);
  assert.equal(await page.evaluate(() => document.activeElement.placeholder), "Instance");
  await rows().getByRole("link").click();
  await status("aborted");
  // The way back keeps the filters.
  await page.getByRole("link", { name: "All runs", exact: true }).click();
  await shows(["slow"]);
  await page.getByLabel("Instance, as it is called").fill("nobody");
  await page.getByText("No run matches.").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await shows(["cut", "broken", "weather", "slow", "pr7", "pr7"]);
  await page.getByLabel("Agent", { exact: true }).selectOption("inner");
  await page.getByText("No run matches.").waitFor();
  await page.getByLabel("Agent", { exact: true }).selectOption("helper");
  await page.getByLabel("Status").selectOption("running");
  await page.getByText("No run matches.").waitFor();
  const run = await begin("new", plan("Be done soon.", { say: ["I am ", "HOLD", "done."] }));
  await shows(["new"]);
  await model.held();
  model.release();
  await ended(run);
  await page.getByText("No run matches.").waitFor();
});

test("more runs than a page of the list come when they are asked for", async () => {
  for (let turn = 0; turn < 50; turn += 1) await ended(await begin(`many${turn % 2}`, "Say hello."));
  await list();
  await page.waitForFunction(() => document.querySelectorAll(".runs tbody tr").length === 50);
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll(".runs tbody tr").length === 57);
  await begin("many0", "Say hello.");
  await page.waitForFunction(() => document.querySelectorAll(".runs tbody tr").length === 58);
});

test("ten thousand events do not freeze the page", async () => {
  const [run] = (await server.call("GET", "/v1/runs?instance=pr7")).runs;
  await page.route(`**/v1/runs/${run.id}/stream`, (route) => route.fulfill({ contentType: "text/event-stream", body: manyEvents(10_002) }));
  await page.goto("about:blank");
  await page.addInitScript(() => {
    window.longest = 0;
    new PerformanceObserver((list) => { for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration); }).observe({ type: "longtask" });
  });
  const started = Date.now();
  await open(run);
  await page.getByText("Completed after").waitFor();
  const longest = await page.evaluate(() => window.longest);
  console.log(`10,000 events: ${Date.now() - started} ms, the longest task ${Math.round(longest)} ms`);
  assert.equal(await page.locator(".call").count(), 2500);
  assert.ok(longest < 1000, `${longest} ms`);
  await page.unroute(`**/v1/runs/${run.id}/stream`);
});

test("without keys every agent may be started, in any pool, and runs are filtered by it", async (context) => {
  const free = await serve(["--no-keys"], { more: model.env });
  context.after(free.stop);
  free.writeAgent("inner", "---\nmodel: openai-completions/gpt-4.1\n---\nOnly the server's own.\n");
  await free.call("POST", "/v1/sandboxes", { pool: "team", spec: { name: "there" } });
  await free.call("POST", "/v1/agents/inner/one/runs", { payload: { prompt: "Say hello." } });
  const { page: other, context: window } = await browser.open();
  context.after(() => window.close());
  await other.goto(`${free.url}/#/agents`);
  await other.getByRole("button", { name: "Start an agent" }).click();
  const form = other.getByRole("dialog");
  await form.getByLabel("Pool").selectOption("team");
  await form.getByLabel("Instance").fill("two");
  await form.getByLabel("Prompt").fill("Say hello.");
  await form.getByLabel("Session").fill("second");
  assert.deepEqual(await picture(other, "agents-start-pool"), []);
  await form.getByRole("button", { name: "Start" }).click();
  await other.getByText("Prompt, session second").waitFor();
  await other.getByText("Completed after").waitFor();
  await other.getByRole("link", { name: "Agents", exact: true }).click();
  const rows = other.locator(".runs tbody tr");
  await rows.nth(1).waitFor();
  assert.deepEqual(await picture(other, "runs-pools"), []);
  await other.getByLabel("Pool").selectOption("team");
  await rows.nth(1).waitFor({ state: "detached" });
  assert.equal(await rows.locator(".instance").textContent(), "two");
});

test("a run whose server was killed is interrupted, and goes on when it is resumed", async (context) => {
  await begin("later", plan("Begin, and go on later.", { say: "I begin.", calls: [bash("echo once >> count.txt")] }, { say: ["I go ", "HOLD", "on."] }));
  await model.held();
  const before = await server.crash();
  model.release();
  // Without its file the agent is not known, so the new server leaves the run alone.
  server.removeAgent("helper");
  server = await serve([], { more: model.env, before });
  tab = await browser.open();
  context.after(() => tab.context.close());
  page = tab.page;
  page.setDefaultTimeout(20_000);
  await page.goto(server.url);
  await page.getByLabel("API key").fill(server.key);
  await page.keyboard.press("Enter");
  await list();
  await page.getByLabel("Status").selectOption("interrupted");
  await rows().getByRole("link").click();
  await status("interrupted");
  await page.getByText("The process that ran it is gone.").waitFor();
  await shot("run-interrupted");
  server.writeAgent("helper", "---\nmodel: openai-completions/gpt-4.1\nwebhook: true\n---\nGo on.\n");
  await page.getByRole("button", { name: "Resume" }).click();
  await model.held();
  await status("running");
  model.release();
  await status("completed");
  await timeline().getByText("on.", { exact: false }).last().waitFor();
});

/** A line to a port of this host that can be cut. */
async function cuttable(port) {
  const open = new Set();
  const listening = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [one, other] of [[near, far], [far, near]]) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => { open.delete(one); other.destroy(); });
    }
  });
  await new Promise((done) => listening.listen(0, "127.0.0.1", done));
  const cut = () => { for (const one of open) one.destroy(); };
  return { url: `http://127.0.0.1:${listening.address().port}`, cut, close: () => { cut(); listening.close(); } };
}

/** A stream of so many events: texts, and calls with outputs. */
function manyEvents(count) {
  const blocks = [];
  const push = (event) => blocks.push(`event: ${event.type}\nid: ${blocks.length}\ndata: ${JSON.stringify({ ...event, eventIndex: blocks.length, timestamp: "2026-11-25T00:00:00.000Z", session: "default", harness: "default" })}\n\n`);
  push({ type: "run_start", payload: { prompt: "Work." } });
  for (let turn = 0; turn < (count - 2) / 4; turn += 1) {
    push({ type: "text_delta", text: `Step ${turn} ` });
    push({ type: "tool_start", toolName: "bash", toolCallId: `c${turn}`, args: { command: `echo ${turn}` } });
    push({ type: "tool_call", toolName: "bash", toolCallId: `c${turn}`, isError: false, result: { content: [{ type: "text", text: "line\n".repeat(40) }] }, durationMs: 5 });
    push({ type: "turn", durationMs: 10, model: "m", usage: { input: 10, output: 5, cacheRead: 0, cacheWrite: 0, totalTokens: 15, cost: { total: 0 } }, stopReason: "toolUse", isError: false });
  }
  push({ type: "run_end", result: null, isError: false, durationMs: 1000 });
  return blocks.join("");
}
