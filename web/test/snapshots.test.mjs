/** Snapshots on the page: taken, compared with, gone back to, forked and removed. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { browse, picture, serve } from "./ground.mjs";

let server;
let browser;
let page;
let sandbox;

const dialog = () => page.getByRole("dialog");
const row = (name) => page.getByRole("row").filter({ has: page.getByRole("button", { name: `Remove ${name}` }) });
const put = (path, body) => fetch(`${server.url}/v1/sandboxes/${sandbox.id}/files?path=${path}`, { method: "PUT", body });
const read = async (path) => (await fetch(`${server.url}/v1/sandboxes/${sandbox.id}/files?path=${path}`)).text();
const take = async (name) => {
  await page.getByRole("button", { name: "Take a snapshot" }).click();
  await dialog().getByLabel("Name").fill(name);
  await dialog().getByRole("button", { name: "Take" }).click();
  await row(name).waitFor();
};

before(async () => {
  server = await serve(["--no-keys"]);
  browser = await browse();
  ({ page } = await browser.open());
  page.setDefaultTimeout(20_000);
  sandbox = await server.call("POST", "/v1/sandboxes", { spec: { name: "dev" } });
  await put("notes.txt", "one\n");
  await page.goto(`${server.url}/#/sandboxes/${sandbox.id}/snapshots`);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

test("a snapshot is taken, and what has changed since is shown line by line", async () => {
  await page.getByText("There is no snapshot yet.").waitFor();
  assert.deepEqual(await picture(page, "snapshots-none"), []);
  await take("good");
  await row("good").getByText("this sandbox").waitFor();
  await put("notes.txt", "one\ntwo\n");
  await put("new.bin", "more");
  await page.getByRole("button", { name: "Compare with good" }).click();
  const changed = page.locator(".change").filter({ hasText: "/workspace/notes.txt" });
  await changed.locator("summary").click();
  await changed.locator(".diff-line.in").getByText("two").waitFor();
  await page.locator(".change").filter({ hasText: "/workspace/new.bin" }).getByText("4 B").waitFor();
  assert.deepEqual(await picture(page, "snapshots"), []);
  // The other way round, what was added was removed.
  await page.getByLabel("Compare from").selectOption({ label: "the present files" });
  await page.getByLabel("Compare to").selectOption({ label: "good" });
  await page.locator(".change .removed").first().waitFor();
  await page.getByRole("button", { name: "Close" }).click();
});

test("going back is asked about, and ends what runs only if that is wanted", async () => {
  await server.call("POST", `/v1/sandboxes/${sandbox.id}/processes`, { command: "sleep 1000" });
  await page.getByRole("button", { name: "Go back to good" }).click();
  await dialog().getByRole("button", { name: "Go back" }).click();
  await dialog().getByRole("alert").getByText("sleep 1000").waitFor();
  assert.equal(await read("notes.txt"), "one\ntwo\n");
  await dialog().getByLabel("End the commands that run.").check();
  await dialog().getByRole("button", { name: "Go back" }).click();
  await page.getByText("The files are those of good again.").waitFor();
  assert.equal(await read("notes.txt"), "one\n");
});

test("a snapshot above another is shown below it, and stays when that is removed", async () => {
  await page.getByRole("button", { name: "Show what has changed" }).click();
  await page.getByText("Nothing differs.").waitFor();
  await take("better");
  await row("better").getByText("└").waitFor({ state: "attached" });
  await page.getByRole("button", { name: "Remove good" }).click();
  await dialog().getByRole("button", { name: "Remove" }).click();
  await row("good").waitFor({ state: "detached" });
  await row("better").waitFor();
});

test("a fork begins with the files of its snapshot, and is opened", async () => {
  await put("notes.txt", "later\n");
  await page.getByRole("button", { name: "Fork better" }).click();
  await dialog().getByLabel("Name of the new sandbox").fill("attempt");
  await dialog().getByRole("button", { name: "Fork" }).click();
  await page.getByRole("heading", { name: "attempt" }).waitFor();
  const fork = await fetch(`${server.url}/v1/sandboxes/attempt/files?path=notes.txt`);
  assert.equal(await fork.text(), "one\n");
});
