/** A server on native sandboxes with a key, a browser (Debian's chromium, without a screen), and pictures of what it shows. */

import { spawn, execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const EYOT = process.env.EYOT_BIN;
const CHROMIUM = process.env.EYOT_CHROMIUM ?? "/usr/bin/chromium";
const PICTURES = process.env.EYOT_SCREENSHOTS ?? resolve(import.meta.dirname, "../../target/web-screenshots");
/** A folder with a newer build of the page than the program has, for whoever works on it. */
const BUILT = process.env.EYOT_WEB_DIST;
/** How wide the page must look right: a table's and a phone's. */
const SIZES = [{ width: 1280, height: 800 }, { width: 390, height: 844 }];

/** Starts a server; `flags` are those of `eyot serve`, `more` are variables for it, and `before` is one that was killed. */
export async function serve(flags = [], { more = {}, before } = {}) {
  if (!EYOT) throw new Error("EYOT_BIN must name the program eyot");
  const state = before?.state ?? mkdtempSync(join(tmpdir(), "eyot-page-"));
  const env = { PATH: process.env.PATH, HOME: state, EYOT_STATE: join(state, "state"), LANG: "C.UTF-8", ...more };
  const eyot = (...args) => execFileSync(EYOT, args, { env, encoding: "utf8" });
  const key = before?.key ?? (flags.includes("--no-keys") ? undefined : eyot("keys", "create", "page", "--pool", "default").match(/eyot_[0-9a-f]{64}/)[0]);
  const child = spawn(EYOT, ["serve", "--listen", "127.0.0.1:0", ...flags], { env, stdio: ["ignore", "inherit", "pipe"] });
  const lines = createInterface({ input: child.stderr });
  let url;
  for await (const line of lines) {
    url = line.match(/serving at (http:\S+)/)?.[1];
    if (url) break;
  }
  child.stderr.resume();
  /** The API by the key, as any program calls it. */
  const call = async (method, path, body) => {
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const response = await fetch(url + path, { method, headers, body: typeof body === "object" ? JSON.stringify(body) : body });
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
    const text = await response.text();
    return text && response.headers.get("content-type")?.includes("json") ? JSON.parse(text) : text;
  };
  /** Comes back once a started process has written this. */
  const written = async (sandbox, process, text) => {
    const headers = key ? { authorization: `Bearer ${key}` } : {};
    const response = await fetch(`${url}/v1/sandboxes/${sandbox}/processes/${process}/logs?follow=true`, { headers });
    let seen = "";
    let rest = "";
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop();
      const told = lines.filter((line) => line.startsWith("data:")).map((line) => JSON.parse(line.slice(5)).data ?? "");
      seen += told.map((data) => Buffer.from(data, "base64").toString()).join("");
      if (seen.includes(text)) return;
    }
    throw new Error(`it ended without having written ${text}: ${seen}`);
  };
  /** Ends what runs a sandbox, as anybody on the host might. */
  const killGuest = (id) => {
    const [pid] = readlinkSync(join(state, "state/sandboxes", id, "ready")).split(" ");
    process.kill(Number(pid), "SIGKILL");
  };
  /** Writes an agent's file. */
  const writeAgent = (name, text) => {
    mkdirSync(join(state, "state/agents"), { recursive: true });
    writeFileSync(join(state, "state/agents", `${name}.md`), text);
  };
  const removeAgent = (name) => rmSync(join(state, "state/agents", `${name}.md`));
  /** Ends the server at once. Another one may go on with its state. */
  const crash = async () => {
    isStopped = true;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGKILL");
    await ended;
    return { state, key };
  };
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    const { pools } = await call("GET", "/v1/pools");
    for (const pool of pools) {
      const { sandboxes } = await call("GET", `/v1/sandboxes?pool=${pool}`);
      for (const { id } of sandboxes) await call("DELETE", `/v1/sandboxes/${id}`);
    }
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGTERM");
    await ended;
    rmSync(state, { recursive: true, force: true });
  };
  return { url, key, call, written, killGuest, writeAgent, removeAgent, crash, stop };
}

/** A browser, whose pages note what they complain of. */
export async function browse() {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  const open = async (options = {}) => {
    const context = await browser.newContext({ viewport: SIZES[0], ...options });
    const page = await context.newPage();
    if (BUILT) await servedFrom(BUILT, page);
    context.setDefaultTimeout(60_000);
    const complaints = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(`${message.text()} (${message.location().url})`));
    page.on("pageerror", (error) => complaints.push(String(error)));
    const requested = [];
    page.on("request", (request) => requested.push(request.url()));
    return { context, page, complaints, requested };
  };
  return { open, close: () => browser.close() };
}

/** Returns what axe finds serious or critical in what a tab shows. */
async function inaccessible(page) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return bad.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} (${failureSummary})`).join(", ")}`);
}

/** Has a tab take the page's files from a folder, with what the server says of them. */
async function servedFrom(folder, page) {
  await page.route(/^http:\/\/127\.0\.0\.1:\d+\/assets\/.*$/, async (route) => {
    const path = new URL(route.request().url()).pathname;
    const response = await route.fetch();
    const headers = { ...response.headers() };
    delete headers["content-length"];
    await route.fulfill({ response, headers, body: readFileSync(join(folder, path)) });
  });
}

/** Opens the page in a new tab and signs in with the server's key. There is no sandbox yet. */
export async function signedIn(browser, server) {
  const tab = await browser.open();
  const { page } = tab;
  page.setDefaultTimeout(20_000);
  await page.goto(server.url);
  await page.getByLabel("API key").fill(server.key);
  await page.keyboard.press("Enter");
  await page.getByText("There is no sandbox yet.").waitFor();
  return tab;
}

/** Pictures of a view: both sizes, light and dark. Returns what is wider than the page, and what axe finds serious or critical. */
export async function picture(page, name) {
  mkdirSync(PICTURES, { recursive: true });
  const faults = [];
  for (const size of SIZES) {
    await page.setViewportSize(size);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      await page.screenshot({ path: join(PICTURES, `${name}-${size.width}-${colorScheme}.png`) });
      faults.push(...(await inaccessible(page)).map((one) => `${name} at ${size.width}, ${colorScheme}: ${one}`));
    }
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) faults.push(`${name} at ${size.width}: ${over} px too wide`);
  }
  await page.setViewportSize(SIZES[0]);
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  return faults;
}
