/** The page as somebody uses it, from signing in to destroying a sandbox, with a picture of each view. */

import assert from "node:assert/strict";
import { after, before, test as usual } from "node:test";
import { browse, picture, serve } from "./ground.mjs";

let server;
let browser;
let tab;
let page;
/** What pictures have found: axe's faults, and what is wider than the page. */
const faults = [];

const shot = async (name) => faults.push(...(await picture(page, name)));
const view = (name) => page.getByRole("navigation", { name: "Views of the sandbox" }).getByRole("link", { name, exact: true }).click();
const screen = () => page.locator(".screen:not([hidden]) .xterm-rows");
const shows = (place, text) => place.filter({ hasText: text }).first().waitFor();

let hasFailed = false;
/** Each step goes on where the one before has left the page; behind one that failed there is nothing to see. */
function test(name, work) {
  usual(name, async () => {
    assert.ok(!hasFailed, "a step before this one has failed");
    hasFailed = true;
    try {
      await work();
    } catch (error) {
      console.error(`the page complained: ${tab?.complaints.join("\n")}`);
      await picture(page, "failed").catch(() => {});
      throw error;
    }
    hasFailed = false;
  });
}

before(async () => {
  server = await serve();
  browser = await browse();
  tab = await browser.open();
  page = tab.page;
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

test("a wrong key is told, and the right one lets in by the keyboard alone", async () => {
  await page.goto(server.url);
  await page.getByLabel("API key").waitFor();
  await shot("login");
  await page.keyboard.type("eyot_wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: "the key is wrong" }).waitFor();
  await shot("login-refused");
  await page.getByLabel("API key").fill(server.key);
  await page.keyboard.press("Enter");
  await page.getByText("There is no sandbox yet.").waitFor();
  await shot("list-empty");
  const [cookie] = await tab.context.cookies();
  assert.deepEqual([cookie.name, cookie.httpOnly, cookie.sameSite], ["eyot_session", true, "Strict"]);
  // A complaint of the refused sign-in is the browser's own.
  assert.ok(tab.complaints.every((one) => one.includes("401")), tab.complaints.join("\n"));
  tab.complaints.length = 0;
});

test("a sandbox is created from the form, and a mistake in it is told in words", async () => {
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("dev");
  await dialog.getByLabel("Labels").fill("team");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByRole("alert").filter({ hasText: "not of the form key=value" }).waitFor();
  await dialog.getByLabel("Labels").fill("team=web\nfor=the test");
  await shot("create");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  await dialog.getByLabel("Name").fill("dev");
  await dialog.getByLabel("Labels").fill("team=web");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await dialog.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "dev" }).waitFor();
});

test("ls in the terminal shows the files, and a page that is loaded again finds the terminal as it was", async () => {
  const [{ id }] = (await server.call("GET", "/v1/sandboxes")).sandboxes;
  await server.call("PUT", `/v1/sandboxes/${id}/files?path=greeting.txt`, "hello\n");
  await view("Terminal");
  await screen().waitFor();
  await page.waitForFunction(() => /[$#]/.test(document.querySelector(".screen:not([hidden]) .xterm-rows")?.textContent ?? ""));
  await page.locator(".screen:not([hidden]) .xterm-place").click();
  await page.keyboard.type("kept=still-here; ls\n");
  await shows(screen(), "greeting.txt");
  await shot("terminal");
  await page.reload();
  await shows(screen(), "greeting.txt");
  await page.waitForFunction(() => document.activeElement?.classList.contains("xterm-helper-textarea"));
  await page.keyboard.type("echo it is $kept; stty size\n");
  await shows(screen(), "it is still-here");
  // A second one beside it.
  await page.getByRole("button", { name: "New terminal" }).click();
  await page.getByRole("tab", { name: "shell 2", selected: true }).waitFor();
  await page.waitForFunction(() => /[$#]/.test(document.querySelector(".screen:not([hidden]) .xterm-rows")?.textContent ?? ""));
  await page.keyboard.type("exit 7\n");
  await page.getByText("ended with exit code 7").waitFor();
  await shot("terminal-ended");
  await page.getByRole("button", { name: "Close the tab" }).click();
  await shows(screen(), "it is still-here");
});

test("a file is uploaded by a drop, opened, edited, saved and downloaded", async () => {
  await view("Files");
  const tree = page.getByRole("tree");
  await tree.getByText("greeting.txt").waitFor();
  const data = await page.evaluateHandle(() => {
    const transfer = new DataTransfer();
    transfer.items.add(new File(["print('dropped')\n"], "dropped.py", { type: "text/x-python" }));
    return transfer;
  });
  await page.getByTestId("drop").dispatchEvent("drop", { dataTransfer: data });
  await tree.getByText("dropped.py").waitFor();
  await page.getByTestId("picker").setInputFiles({ name: "chosen.bin", mimeType: "application/octet-stream", buffer: Buffer.from([0, 1, 2, 255]) });
  await tree.getByText("chosen.bin").waitFor();
  await shot("files");
  await tree.getByText("chosen.bin").click();
  await page.getByText("Binary file (").waitFor();
  await tree.getByText("dropped.py").click();
  const editor = page.locator("textarea.editor");
  await editor.waitFor();
  await editor.fill("print('edited')\n");
  await editor.press("Control+s");
  await page.getByText("Saved, 16 B").waitFor();
  await shot("file");
  const [{ id }] = (await server.call("GET", "/v1/sandboxes")).sandboxes;
  assert.equal(await server.call("GET", `/v1/sandboxes/${id}/files?path=dropped.py`), "print('edited')\n");
  // Somebody else writes meanwhile.
  await editor.fill("mine\n");
  await server.call("PUT", `/v1/sandboxes/${id}/files?path=dropped.py`, "theirs, which is longer\n");
  await editor.press("Control+s");
  await page.getByRole("dialog").getByText("Overwrite the newer file?").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await server.call("GET", `/v1/sandboxes/${id}/files?path=dropped.py`), "theirs, which is longer\n");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("group", { name: /dropped.py/ }).getByRole("button", { name: "Download" }).click()]);
  assert.equal(download.suggestedFilename(), "dropped.py");
});

test("the tree is gone through by the keyboard", async () => {
  const [{ id }] = (await server.call("GET", "/v1/sandboxes")).sandboxes;
  await server.call("PUT", `/v1/sandboxes/${id}/files?path=aaa/inner/deep.txt`, "deep\n");
  await page.getByRole("button", { name: "Look again" }).click();
  const tree = page.getByRole("tree");
  const folder = tree.getByRole("treeitem", { name: "aaa" });
  await folder.waitFor();
  await folder.focus();
  await page.keyboard.press("ArrowRight");
  await tree.getByText("inner").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await tree.getByText("deep.txt").waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("textarea.editor")?.value === "deep\n");
});

test("a folder and a file are made, renamed and removed by the keyboard", async () => {
  const tree = page.getByRole("tree");
  const dialog = page.getByRole("dialog");
  const answer = async (text) => {
    if (text) await dialog.getByRole("textbox").fill(text);
    else await dialog.getByRole("button", { name: "Remove" }).focus();
    await page.keyboard.press("Enter");
    await dialog.waitFor({ state: "hidden" });
  };
  await tree.getByRole("treeitem", { name: "greeting.txt" }).focus();
  await page.getByRole("button", { name: "New folder" }).press("Enter");
  await answer("made");
  await tree.getByRole("treeitem", { name: "made" }).focus();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("button", { name: "New file" }).press("Enter");
  await answer("inside.txt");
  await page.locator("textarea.editor").waitFor();
  await tree.getByRole("treeitem", { name: "inside.txt" }).focus();
  await page.keyboard.press("F2");
  await answer("/workspace/made/other.txt");
  await tree.getByRole("treeitem", { name: "other.txt" }).waitFor();
  await tree.getByRole("treeitem", { name: "made" }).focus();
  await page.keyboard.press("Delete");
  await dialog.getByText("and everything in it").waitFor();
  await answer();
  await tree.getByRole("treeitem", { name: "made" }).waitFor({ state: "detached" });
});

test("a file that is there is replaced only after a question", async () => {
  const [{ id }] = (await server.call("GET", "/v1/sandboxes")).sandboxes;
  const picked = { name: "greeting.txt", mimeType: "text/plain", buffer: Buffer.from("replaced\n") };
  const read = () => server.call("GET", `/v1/sandboxes/${id}/files?path=greeting.txt`);
  await page.getByRole("tree").getByRole("treeitem", { name: "greeting.txt" }).focus();
  await page.getByTestId("picker").setInputFiles(picked);
  await page.getByRole("dialog").getByText("Replace the file?").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await read(), "hello\n");
  await page.getByTestId("picker").setInputFiles(picked);
  await page.getByRole("dialog").getByRole("button", { name: "Replace" }).click();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  assert.equal(await read(), "replaced\n");
});

test("whatever Tab comes to has a name and is seen to have the focus", async () => {
  await page.reload();
  await page.getByRole("tree").getByText("greeting.txt").waitFor();
  const seen = [];
  for (let turn = 0; turn < 40; turn += 1) {
    await page.keyboard.press("Tab");
    const now = await page.evaluate(() => {
      const it = document.activeElement;
      const name = it.getAttribute("aria-label") ?? it.labels?.[0]?.textContent ?? it.textContent;
      const { outlineStyle, outlineWidth } = getComputedStyle(it);
      const { width, height } = it.getBoundingClientRect();
      return { tag: it.tagName, name: name?.trim(), outline: outlineStyle !== "none" && outlineWidth !== "0px", drawn: width > 1 && height > 1 };
    });
    if (now.tag === "BODY") break;
    seen.push(now);
  }
  assert.ok(seen.length > 15, JSON.stringify(seen));
  assert.deepEqual(seen.filter((one) => !one.name || !one.outline || !one.drawn), []);
  assert.equal(seen[0].name, "To the content");
});

test("names, labels, output and commands are shown as text, whatever they say", async () => {
  const hostile = "<img src=x onerror=\"document.title='broken in'\">";
  const [{ id }] = (await server.call("GET", "/v1/sandboxes")).sandboxes;
  await server.call("PATCH", `/v1/sandboxes/${id}`, { labels: { hostile } });
  await server.call("PUT", `/v1/sandboxes/${id}/files?${new URLSearchParams({ path: hostile.replaceAll("/", "") })}`, "<script>document.title='broken in'</script>");
  const started = await server.call("POST", `/v1/sandboxes/${id}/processes`, { command: `echo "${hostile.replaceAll('"', '\\"')}"` });
  await page.getByRole("button", { name: "Look again" }).click();
  await page.getByRole("tree").getByText("<img src=x").click();
  await page.waitForFunction(() => document.querySelector("textarea.editor")?.value.startsWith("<script>"));
  await view("Processes");
  await page.getByRole("row").filter({ hasText: started.command }).getByRole("button", { name: "Log" }).click();
  await page.getByRole("log").filter({ hasText: "<img src=x" }).waitFor();
  await view("Events");
  await page.getByRole("cell").filter({ hasText: "<img src=x" }).first().waitFor();
  await page.getByRole("link", { name: "Sandboxes", exact: true }).click();
  await page.getByText("hostile=<img").waitFor();
  await shot("list");
  await page.waitForFunction(() => document.title === "Sandboxes – Eyot");
  await page.getByRole("link", { name: "dev", exact: true }).click();
});

test("a process is started, its log is followed, its port is seen in a preview, and it is killed", async () => {
  await view("Processes");
  const command = "echo serving; echo careful >&2; exec python3 -u -m http.server 8000 --bind 127.0.0.1";
  await page.getByLabel("Start a process that outlives the page").fill(command);
  await page.keyboard.press("Enter");
  await page.getByRole("log").filter({ hasText: "careful" }).waitFor();
  await page.getByRole("log").filter({ hasText: "Serving HTTP" }).waitFor();
  await shot("processes");
  await view("Ports");
  const card = page.getByRole("listitem").filter({ hasText: "8000" });
  await card.getByText("listens", { exact: true }).waitFor();
  await card.getByRole("button", { name: "Make a link" }).click();
  const link = card.getByRole("link", { name: "Open the preview" });
  await link.waitFor();
  await shot("ports");
  const [preview] = await Promise.all([tab.context.waitForEvent("page"), link.click()]);
  await preview.getByText("greeting.txt").waitFor();
  assert.match(new URL(preview.url()).host, /^8000-sb-[0-9a-f]{32}\.localhost:/);
  await preview.close();
  await view("Processes");
  const row = page.getByRole("row").filter({ hasText: "http.server" }).first();
  await row.getByRole("button", { name: /^Kill/ }).click();
  await shot("kill");
  await page.getByRole("dialog").getByRole("button", { name: "Kill" }).click();
  await row.getByText("signaled 9").waitFor();
});

test("a preview below a path is shown apart: it can neither use the page nor the API", async () => {
  const [{ id }] = (await server.call("GET", "/v1/sandboxes")).sandboxes;
  const attack = `<!doctype html><title>attack</title><pre id=out>trying</pre><script>
    const out = {};
    const say = () => { document.getElementById("out").textContent = JSON.stringify(out); };
    const attempt = async (name, act) => { try { out[name] = String(await act()); } catch (error) { out[name] = "refused"; } };
    (async () => {
      out.origin = String(self.origin);
      await attempt("storage", () => localStorage.getItem("eyot.proof"));
      await attempt("cookie", () => document.cookie);
      await attempt("session", async () => (await fetch("/v1/session", { headers: { "eyot-page": "1" } })).status);
      await attempt("list", async () => (await fetch("/v1/sandboxes", { credentials: "include" })).text());
      await attempt("worker", async () => navigator.serviceWorker.register("/preview/${id}/9000/worker.js"));
      await attempt("socket", () => new Promise((done, failed) => { const line = new WebSocket("ws://" + location.host + "/v1/sandboxes/${id}/terminals/x/socket", "eyot-page"); line.onopen = () => done("open"); line.onerror = failed; }));
      // Until it has gone there, it is an empty page of ours.
      await attempt("window", () => new Promise((done) => { const other = open("/"); const end = Date.now() + 15000; const look = () => { let title; try { title = other.document.title; } catch { return done("refused"); } if (title || Date.now() > end) return done(title); setTimeout(look, 100); }; look(); }));
      out.done = true;
      say();
    })();
  </script>`;
  await server.call("PUT", `/v1/sandboxes/${id}/files?path=www/index.html`, attack);
  const command = "exec python3 -u -m http.server 9000 --bind 127.0.0.1 --directory www";
  const { id: started } = await server.call("POST", `/v1/sandboxes/${id}/processes`, { command });
  await server.written(id, started, "Serving HTTP");
  const { path_url: opened } = await server.call("POST", `/v1/sandboxes/${id}/ports/9000/preview`, { public: true });
  const visit = async (prepare) => {
    const hostile = await tab.context.newPage();
    await prepare?.(hostile);
    await hostile.goto(opened);
    await hostile.waitForFunction(() => document.getElementById("out").textContent.includes("done"));
    const seen = JSON.parse(await hostile.locator("#out").textContent());
    await hostile.close();
    return seen;
  };
  const seen = await visit();
  assert.deepEqual(seen, {
    origin: "null", storage: "refused", cookie: "refused", session: "refused", list: "refused", worker: "refused", socket: "refused", window: "refused", done: true,
  });
  // The same page without what sets it apart: so the attack is one.
  const bare = await visit((hostile) => hostile.route(opened, async (route) => {
    const response = await route.fetch();
    const headers = Object.fromEntries(Object.entries(response.headers()).filter(([name]) => name !== "content-security-policy"));
    await route.fulfill({ response, headers });
  }));
  assert.deepEqual([bare.origin, bare.session], [server.url, "200"]);
  assert.match(bare.storage, /^[0-9a-f]{64}$/);
});

test("events are filtered, and usage is drawn", async () => {
  await page.bringToFront();
  await view("Events");
  await page.getByLabel("Kind").selectOption("created");
  await page.waitForFunction(() => document.querySelectorAll("table.events tbody tr").length === 1);
  await page.getByLabel("Text").fill("nothing has this in it");
  await page.getByText("No event matches.").waitFor();
  await page.getByRole("button", { name: "Show all" }).click();
  await page.getByRole("cell", { name: "command ended" }).first().waitFor();
  await shot("events-of-sandbox");
  await view("Usage");
  await page.getByRole("img", { name: /^Memory/ }).waitFor();
  await page.getByRole("img", { name: /^CPU/ }).waitFor();
  await shot("usage");
  await page.getByRole("link", { name: "Events", exact: true }).first().click();
  await page.getByRole("heading", { name: "Events" }).waitFor();
  await page.getByRole("cell", { name: "command ended" }).first().waitFor();
  await shot("events");
});

test("what others do appears by itself: a sandbox that is made, sleeps, and is woken", async () => {
  await page.getByRole("link", { name: "Sandboxes", exact: true }).click();
  const made = await server.call("POST", "/v1/sandboxes", { spec: { name: "from-elsewhere" } });
  const row = page.getByRole("row").filter({ hasText: "from-elsewhere" });
  await row.getByText("running").waitFor();
  await server.call("POST", `/v1/sandboxes/${made.id}/sleep`);
  await row.getByText("sleeping").waitFor();
  await page.getByRole("link", { name: "from-elsewhere" }).click();
  await page.getByText("The sandbox sleeps.").waitFor();
  await shot("sleeping");
  await page.getByRole("button", { name: "Wake" }).first().click();
  await page.getByText("This directory is empty.").waitFor();
});

test("a sandbox that has lost its processes is dead, and is woken like one that sleeps", async () => {
  const { sandboxes } = await server.call("GET", "/v1/sandboxes");
  server.killGuest(sandboxes.find(({ name }) => name === "from-elsewhere").id);
  await page.getByText("The sandbox ended unexpectedly.").waitFor();
  await shot("dead");
  await page.getByRole("button", { name: "Wake" }).first().click();
  await page.getByText("This directory is empty.").waitFor();
});

test("a sandbox is destroyed after a question, and one that is gone says so", async () => {
  await page.getByRole("button", { name: "Destroy" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("There is no way back.").waitFor();
  await shot("destroy");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  await page.getByRole("button", { name: "Destroy" }).click();
  const gone = page.url();
  await dialog.getByRole("button", { name: "Destroy" }).click();
  await page.getByRole("heading", { name: /^Sandboxes/ }).waitFor();
  await page.getByRole("row").filter({ hasText: "from-elsewhere" }).waitFor({ state: "detached" });
  await page.goto(gone);
  await page.getByText("This sandbox does not exist.").waitFor();
  await shot("gone");
});

test("a sign-out that the server refuses says that one may still be signed in", async () => {
  const session = "**/v1/session";
  await page.route(session, (route) => (route.request().method() === "DELETE" ? route.fulfill({ status: 503 }) : route.continue()));
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("alert").filter({ hasText: "You may still be signed in" }).waitFor();
  await page.unroute(session);
  await page.getByRole("button", { name: "Stay signed in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
});

test("who signs out is out, and nothing was asked of another server or against the policy", async () => {
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("API key").waitFor();
  assert.deepEqual(await tab.context.cookies().then((all) => all.filter((one) => one.name === "eyot_session")), []);
  const elsewhere = tab.requested.filter((url) => !url.startsWith(server.url) && !url.startsWith("blob:"));
  assert.deepEqual(elsewhere, []);
  // A sandbox that is gone is asked for in vain, and the browser notes it.
  const complaints = tab.complaints.filter((one) => !/status of (404|409|503)/.test(one));
  assert.deepEqual(complaints, []);
  assert.deepEqual(faults, []);
});

test("a server without keys shows its page to whoever reaches it", async () => {
  const open = await serve(["--no-keys"]);
  const other = await browser.open();
  try {
    await other.page.goto(open.url);
    await other.page.getByText("There is no sandbox yet.").waitFor();
    await other.page.getByRole("button", { name: "New sandbox" }).first().click();
    await other.page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await other.page.locator(".screen:not([hidden]) .xterm-rows").waitFor();
    await other.page.waitForFunction(() => /[$#]/.test(document.querySelector(".xterm-rows")?.textContent ?? ""));
    assert.deepEqual(other.complaints, []);
    await other.page.getByRole("link", { name: "Sandboxes", exact: true }).click();
    await other.page.getByRole("row").filter({ hasText: "running" }).waitFor();
    await open.stop();
    await other.page.getByRole("alert").filter({ hasText: "the server does not answer" }).waitFor();
    faults.length = 0;
    faults.push(...(await picture(other.page, "unreachable")));
    assert.deepEqual(faults, []);
  } finally {
    await other.context.close();
    await open.stop();
  }
});
