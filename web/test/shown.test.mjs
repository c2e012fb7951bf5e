/** How the page shows names, times, limits and terminals: as the command line does, and so that nothing is to be guessed. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, picture, serve } from "./ground.mjs";
import { standIn } from "./standin.mjs";

const MIB = 1024 * 1024;
const DAY_MS = 86_400_000;

let model;
let server;
let browser;
let page;
/** A sandbox of a pool, whose name is that of one in the pool `default`. */
let pooled;

const make = (name, pool) => server.call("POST", "/v1/sandboxes", { pool, spec: { name } });
const to = (address) => page.goto(`${server.url}/#/${address}`);
const chart = (title) => page.locator(".chart").filter({ hasText: title });

before(async () => {
  model = await standIn();
  server = await serve(["--no-keys"], { more: model.env });
  browser = await browse();
  ({ page } = await browser.open({ locale: "en-US", timezoneId: "UTC" }));
  page.setDefaultTimeout(20_000);
  await make("dev");
  pooled = await make("dev", "team");
});

after(async () => {
  await browser?.close();
  await server?.stop();
  model?.stop();
});

test("a sandbox is shown with its pool, unless that is the pool default", async () => {
  await to("");
  await page.getByRole("link", { name: "team/dev", exact: true }).waitFor();
  await page.getByRole("button", { name: "Name" }).click();
  assert.deepEqual(await page.locator(".sandboxes tbody th a").allTextContents(), ["dev", "team/dev"]);
  const faults = await picture(page, "list-pools");
  await page.getByLabel("Filter by name").fill("team/d");
  await page.getByLabel("Select team/dev").check();
  await page.getByRole("button", { name: "Destroy selected" }).click();
  await page.getByRole("dialog").getByText("team/dev", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "team/dev", exact: true }).click();
  await page.getByRole("heading", { name: "team/dev" }).waitFor();
  await page.waitForFunction(() => document.title === "team/dev: Files – Eyot");
  await to("events");
  await page.getByRole("row").filter({ hasText: "created" }).getByRole("link", { name: "team/dev", exact: true }).waitFor();
  assert.deepEqual(faults, []);
});

test("the bar of a sandbox's views has no scrollbar beside it", async () => {
  await to(`sandboxes/${pooled.id}/files`);
  const bar = page.getByRole("navigation", { name: "Views of the sandbox" });
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await bar.waitFor();
    assert.deepEqual(await bar.evaluate((it) => [it.scrollHeight - it.clientHeight, it.scrollWidth - it.clientWidth]), [0, 0], `at ${width}`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
});

/** Shows the usage of a sandbox whose host holds limits by these means, or not. */
async function showUsage(held) {
  const address = `**/v1/sandboxes/${pooled.id}`;
  await page.unroute(address);
  await page.route(address, async (route) => {
    const sandbox = await (await route.fetch()).json();
    sandbox.spec.limits = { memory_mib: 512, disk_mib: 1024, pids: 6 };
    sandbox.isolation.limits = { ...sandbox.isolation.limits, memory: held, disk: held };
    await route.fulfill({ json: sandbox });
  });
  await to("");
  await to(`sandboxes/${pooled.id}/usage`);
  await page.locator(".chart .plot").first().waitFor();
}

test("the charts say which limits are not enforced, and draw a line for those that are", async () => {
  const usage = { memory_bytes: 300 * MIB, memory_peak_bytes: null, cpu_ms: 0, processes: 2, disk_bytes: null, uptime_ms: 5000, idle_ms: 0 };
  await page.route(`**/v1/sandboxes/${pooled.id}/usage*`, (route) => route.fulfill({ json: { usage } }));
  await showUsage("cgroup");
  await chart("Memory").getByText(/limit 512 MiB$/).waitFor();
  await chart("Disk").getByText(/limit 1\.0 GiB$/).waitFor();
  assert.equal(await chart("Memory").locator("line.limit").count(), 1);
  await showUsage("none");
  await chart("Memory").getByText(/limit 512 MiB, not enforced here$/).waitFor();
  await chart("Disk").getByText(/limit 1\.0 GiB, not enforced here$/).waitFor();
  await chart("Processes").getByText(/limit 6$/).waitFor();
  assert.equal(await chart("Memory").locator("line.limit").count(), 0);
  await page.getByText("Details", { exact: true }).click();
  await page.locator(".about").getByText("512 MiB, not enforced here").waitFor();
  await page.getByText("Details", { exact: true }).click();
  assert.deepEqual(await picture(page, "usage-not-enforced"), []);
});

test("the ticks of a count are whole", async () => {
  const ticks = () => chart("Processes").locator(".scale span").allTextContents();
  assert.deepEqual(await ticks(), ["10", "5", "0"]);
  const figures = { memory_bytes: 0, cpu_ms: 0, uptime_ms: 5000, idle_ms: 0 };
  for (const [processes, wanted] of [[1, ["2", "1", "0"]], [2, ["4", "2", "0"]], [3, ["4", "2", "0"]], [70, ["100", "50", "0"]]]) {
    const sandbox = await make(`busy-${processes}`);
    await page.route(`**/v1/sandboxes/${sandbox.id}/usage*`, (route) => route.fulfill({ json: { usage: { ...figures, processes } } }));
    await to(`sandboxes/${sandbox.id}/usage`);
    await page.getByRole("heading", { name: sandbox.name }).waitFor();
    await chart("Processes").locator(".plot").waitFor();
    assert.deepEqual(await ticks(), wanted, `of ${processes}`);
  }
});

test("a terminal is an event by its name, and the log has its command", async () => {
  await server.call("POST", `/v1/sandboxes/${pooled.id}/terminals`, { size: { rows: 24, cols: 80 } });
  await to(`sandboxes/${pooled.id}/events`);
  await page.getByRole("row").filter({ hasText: "command started" }).getByRole("cell", { name: "a terminal", exact: true }).waitFor();
  assert.equal(await page.getByText("command -v bash").count(), 0);
  assert.match(await server.call("GET", "/v1/events"), /"command":"if command -v bash/);
  assert.deepEqual(await picture(page, "events-terminal"), []);
});

test("times of other days have their date, and a tooltip has all of it", async () => {
  server.writeAgent("greeter", "---\nmodel: openai-completions/gpt-4.1\n---\nGreet.\n");
  const run = await server.call("POST", "/v1/agents/greeter/one/runs", { payload: { prompt: "Say hello." } });
  const at = run.started_ms;
  const day = (ms, more) => new Date(ms).toLocaleDateString("en-US", { timeZone: "UTC", day: "numeric", month: "short", ...more });
  const views = { agents: page.locator("table.runs time").first(), [`runs/${run.id}`]: page.locator(".run .facts time"), events: page.locator("table.events time").first() };
  for (const [address, time] of Object.entries(views)) {
    const shown = async (now) => {
      await page.clock.setFixedTime(now);
      await page.goto("about:blank");
      await to(address);
      return time.textContent();
    };
    assert.match(await shown(at), /^\d\d:\d\d:\d\d [AP]M$/, address);
    const later = await shown(at + 2 * DAY_MS);
    const isSameYear = new Date(at).getUTCFullYear() === new Date(at + 2 * DAY_MS).getUTCFullYear();
    assert.ok(later.startsWith(day(at, isSameYear ? {} : { year: "numeric" })) && / \d\d:\d\d:\d\d [AP]M$/.test(later), `${address}: ${later}`);
    assert.ok((await shown(at + 400 * DAY_MS)).startsWith(day(at, { year: "numeric" })), address);
    assert.match(await time.getAttribute("title"), /^[A-Z][a-z]+day, [A-Z][a-z]+ \d+, \d{4} at \d+:\d\d:\d\d [AP]M UTC$/, address);
  }
  await to("agents");
  await page.locator("table.runs").waitFor();
  assert.deepEqual(await picture(page, "agents-of-another-day"), []);
});
