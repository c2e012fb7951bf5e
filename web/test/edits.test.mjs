/** An edit that is not saved survives every click, or the page asks first. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { browse, picture, serve, signedIn } from "./ground.mjs";

let server;
let browser;
let tab;
let page;
let sandbox;

const FILES = ["a.txt", "b.txt", "folder/c.txt"];
const tree = () => page.getByRole("tree");
const editor = () => page.locator("textarea.editor");
const dialog = () => page.getByRole("dialog");
const view = (name) => page.locator(".tabs").getByText(name, { exact: false }).first().click();
const holds = (text) => page.waitForFunction((wanted) => document.querySelector("textarea.editor")?.value === wanted, text);
const read = (path) => server.call("GET", `/v1/sandboxes/${sandbox.id}/files?path=${path}`);

async function openFile(name) {
  await tree().getByRole("treeitem", { name }).click();
  await editor().waitFor();
}

async function edit(name, text) {
  await openFile(name);
  await holds(`${name}\n`);
  await editor().fill(text);
}

before(async () => {
  server = await serve();
  browser = await browse();
  tab = await signedIn(browser, server);
  page = tab.page;
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

test("the command of the empty list makes a sandbox that the list then shows", async () => {
  const [eyot, ...words] = (await page.locator(".empty code").textContent()).split(" ");
  assert.equal(eyot, "eyot");
  execFileSync(process.env.EYOT_BIN, words, { env: { PATH: process.env.PATH, HOME: "/nonexistent", EYOT_API_KEY: server.key, EYOT_STATE: "/nonexistent" } });
  await page.getByRole("link", { name: "dev", exact: true }).waitFor();
});

test("an edit is there again after another file, another view and another page", async () => {
  sandbox = await server.call("POST", "/v1/sandboxes", { spec: { name: "edits" } });
  for (const path of FILES) await server.call("PUT", `/v1/sandboxes/${sandbox.id}/files?path=${path}`, `${path.split("/").pop()}\n`);
  await page.getByRole("link", { name: "edits", exact: true }).click();
  await edit("a.txt", "my edit\n");
  await openFile("b.txt");
  await holds("b.txt\n");
  await openFile("a.txt");
  await holds("my edit\n");
  await view("Events");
  await view("Files");
  await holds("my edit\n");
  await page.getByRole("link", { name: "Sandboxes", exact: true }).click();
  await page.getByRole("link", { name: "1 not saved" }).click();
  await holds("my edit\n");
  await page.getByRole("button", { name: "The directory above" }).click();
  await tree().getByRole("treeitem", { name: "workspace" }).waitFor();
  await holds("my edit\n");
  await page.getByLabel("Directory", { exact: true }).fill("/workspace");
  await page.keyboard.press("Enter");
  await tree().getByRole("treeitem", { name: "a.txt" }).getByText("not saved").waitFor({ state: "attached" });
  assert.equal(await read("a.txt"), "a.txt\n");
});

test("what the page asks by itself does not wake a sandbox that somebody puts to sleep", async () => {
  const file = (name) => tree().getByRole("treeitem", { name });
  const asked = [
    ["**/list?*", () => page.getByRole("button", { name: "Look again" }).click()],
    ["**/stat?*", () => file("b.txt").click()],
    ["**/terminals", () => view("Terminal"), "POST"],
  ];
  for (const [path, act, method = "GET"] of asked) {
    let goOn;
    const held = new Promise((done) => { goOn = done; });
    const isAsked = (request) => request.method() === method;
    await page.route(path, async (route) => {
      if (isAsked(route.request())) await held;
      await route.continue();
    });
    const [request] = await Promise.all([page.waitForRequest((request) => isAsked(request) && request.url().includes(path.slice(3).split("?")[0])), act()]);
    await server.call("POST", `/v1/sandboxes/${sandbox.id}/sleep`);
    goOn();
    assert.equal((await request.response()).status(), 503, path);
    assert.equal((await server.call("GET", `/v1/sandboxes/${sandbox.id}`)).status, "sleeping", path);
    await page.unroute(path);
    await page.getByText("The sandbox sleeps.").waitFor();
    await server.call("POST", `/v1/sandboxes/${sandbox.id}/wake`);
    await page.getByText("The sandbox sleeps.").waitFor({ state: "detached" });
  }
  await view("Files");
  await openFile("a.txt");
  await holds("my edit\n");
});

test("an edit is there again after the sandbox has slept, and is saved then", async () => {
  await server.call("POST", `/v1/sandboxes/${sandbox.id}/sleep`);
  await page.getByText("The sandbox sleeps.").waitFor();
  await server.call("POST", `/v1/sandboxes/${sandbox.id}/wake`);
  await holds("my edit\n");
  await editor().press("Control+s");
  await page.getByText("Saved, 8 B").waitFor();
  assert.equal(await read("a.txt"), "my edit\n");
  await page.getByRole("link", { name: "1 not saved" }).waitFor({ state: "detached" });
});

test("an edit moves with a file that is renamed", async () => {
  await edit("b.txt", "edit of b\n");
  await tree().getByRole("treeitem", { name: "b.txt" }).press("F2");
  await dialog().getByRole("textbox").fill("/workspace/moved.txt");
  await page.keyboard.press("Enter");
  await dialog().waitFor({ state: "hidden" });
  await holds("edit of b\n");
  await page.getByText("/workspace/moved.txt", { exact: true }).waitFor();
});

test("removing, discarding and destroying name the edits that are lost", async () => {
  await page.getByRole("button", { name: "Discard" }).click();
  await dialog().getByText("Discard the edit?").waitFor();
  await page.keyboard.press("Escape");
  await holds("edit of b\n");
  await tree().getByRole("treeitem", { name: "moved.txt" }).press("Delete");
  await dialog().getByText("An edit that is not saved is lost:").waitFor();
  assert.deepEqual(await picture(page, "edit-lost"), []);
  await page.keyboard.press("Escape");
  await holds("edit of b\n");
  await page.getByRole("button", { name: "Destroy" }).click();
  await dialog().getByText("An edit that is not saved is lost:").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Discard" }).click();
  await dialog().getByRole("button", { name: "Discard" }).click();
  await holds("b.txt\n");
});

test("the browser asks before it closes or loads again a page with an edit", async () => {
  await openFile("moved.txt");
  await editor().fill("an edit again\n");
  await page.getByRole("link", { name: "Events", exact: true }).first().click();
  await page.getByRole("heading", { name: "Events" }).waitFor();
  const asked = new Promise((done) => page.once("dialog", async (question) => {
    await question.dismiss();
    done(question.type());
  }));
  await page.evaluate(() => { location.reload(); });
  assert.equal(await asked, "beforeunload");
});

test("signing out asks while there is an edit", async () => {
  await page.getByRole("button", { name: "Sign out" }).click();
  await dialog().getByText("moved.txt").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "1 not saved" }).click();
  await holds("an edit again\n");
});

test("the edit of a sandbox that somebody else has destroyed can be downloaded", async () => {
  await server.call("DELETE", `/v1/sandboxes/${sandbox.id}`);
  await page.getByText("This sandbox does not exist.").waitFor();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
  assert.equal(download.suggestedFilename(), "moved.txt");
  assert.deepEqual(await picture(page, "edit-left-over"), []);
});

test("a click beside the form for a new sandbox keeps what was typed", async () => {
  await page.getByRole("link", { name: "All sandboxes" }).click();
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  await dialog().getByLabel("Name").fill("kept");
  await page.mouse.click(5, 5);
  assert.equal(await dialog().getByLabel("Name").inputValue(), "kept");
});
