/** Single properties of the views, each on a page of its own sandbox. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { arch } from "node:os";
import { after, before, test } from "node:test";
import { deflateSync, crc32, gzipSync } from "node:zlib";
import { browse, picture, serve } from "./ground.mjs";

let server;
let browser;
let page;
let complaints;

const dialog = () => page.getByRole("dialog");
const to = async (sandbox, view) => {
  await page.goto(`${server.url}/#/sandboxes/${sandbox.id}/${view}`);
  await page.getByRole("heading", { name: sandbox.name }).waitFor();
};
const make = (spec) => server.call("POST", "/v1/sandboxes", { spec });
const put = (sandbox, path, body) => fetch(`${server.url}/v1/sandboxes/${sandbox.id}/files?path=${path}`, { method: "PUT", body });
const prompt = () => page.waitForFunction(() => /[$#]/.test(document.querySelector(".screen:not([hidden]) .xterm-rows")?.textContent ?? ""));
const run = async (command) => {
  await page.locator(".screen:not([hidden]) .xterm-place").click();
  await page.keyboard.type(`${command}\n`);
};

before(async () => {
  server = await serve(["--no-keys"]);
  browser = await browse();
  ({ page, complaints } = await browser.open());
  page.setDefaultTimeout(20_000);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A picture in one colour, as PNG. */
function png(width, height) {
  const piece = (kind, data) => {
    const body = Buffer.concat([Buffer.from(kind), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const line = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, 0x80)]);
  const lines = deflateSync(Buffer.concat(Array.from({ length: height }, () => line)));
  return Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), piece("IHDR", head), piece("IDAT", lines), piece("IEND", Buffer.alloc(0))]);
}

test("the last row of a terminal is whole at every height", async () => {
  await to(await make({ name: "rows" }), "terminal");
  await prompt();
  const cut = [];
  for (let height = 640; height < 664; height += 2) {
    await page.setViewportSize({ width: 1000, height });
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => requestAnimationFrame(done)))));
    const below = await page.evaluate(() => {
      const place = document.querySelector(".xterm-place").getBoundingClientRect();
      const row = document.querySelector(".xterm-rows").lastElementChild.getBoundingClientRect();
      return row.bottom - (place.bottom - 1);
    });
    if (below > 0) cut.push(`${height}: ${below} px`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  assert.deepEqual(cut, []);
});

test("pale text in a terminal is made readable, and colours of 24 bits are shown", async () => {
  await run("clear; printf '\\033[93;47mpale\\033[0m \\033[38;2;200;30;40mred\\033[0m\\n'");
  await page.waitForFunction(() => [...document.querySelectorAll(".xterm-rows span")].some((span) => span.textContent === "red"));
  const colours = await page.evaluate(() => Object.fromEntries([...document.querySelectorAll(".xterm-rows span")].filter((span) => /^(pale|red)$/.test(span.textContent)).map((span) => {
    const { color, backgroundColor } = getComputedStyle(span);
    return [span.textContent, { color, backgroundColor }];
  })));
  assert.equal(colours.red.color, "rgb(200, 30, 40)");
  const shine = (text) => {
    const [r, g, b] = text.match(/\d+/g).map((part) => { const c = part / 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [dark, light] = [shine(colours.pale.color), shine(colours.pale.backgroundColor)].sort((one, other) => one - other);
  assert.ok((light + 0.05) / (dark + 0.05) >= 4.4, JSON.stringify(colours));
  assert.deepEqual(complaints.filter((one) => one.includes("inline style")), []);
});

test("a phone has a bar with the keys that its keyboard lacks", async () => {
  await page.setViewportSize({ width: 390, height: 844 });
  const bar = page.getByRole("group", { name: "Keys" });
  await run("clear; cat -v");
  await bar.getByRole("button", { name: "Esc" }).click();
  await bar.getByRole("button", { name: "Up" }).click();
  await bar.getByRole("button", { name: "Pipe" }).click();
  await page.keyboard.type("\n");
  await page.locator(".xterm-rows").filter({ hasText: "^[^[[A|" }).waitFor();
  await bar.getByRole("button", { name: "Ctrl" }).click();
  await page.keyboard.type("c");
  await bar.getByRole("button", { name: "Ctrl", pressed: false }).waitFor();
  await page.keyboard.type("echo after=$?\n");
  await page.locator(".xterm-rows").filter({ hasText: "after=130" }).waitFor();
  assert.deepEqual(await picture(page, "terminal-keys"), []);
  await page.setViewportSize({ width: 390, height: 844 });
  await page.setViewportSize({ width: 1280, height: 800 });
  await bar.waitFor({ state: "hidden" });
});

test("terminals are a list of tabs for assistive technology, and ending one asks", async () => {
  await page.getByRole("button", { name: "New terminal" }).click();
  const second = page.getByRole("tab", { name: "shell 2", selected: true });
  await second.waitFor();
  assert.equal(await page.getByRole("tablist").locator("> :not([role=tab])").count(), 0);
  await second.focus();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("tab", { name: "shell 1", selected: true }).waitFor();
  await page.getByRole("tabpanel", { name: "shell 1" }).waitFor();
  // The tab keeps the keyboard until it is clicked.
  await page.keyboard.press("ArrowRight");
  await second.waitFor();
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("tab", { name: "shell 1", selected: true }).click();
  await page.keyboard.type("echo typed-after-a-click\n");
  await page.locator(".xterm-rows").filter({ hasText: "typed-after-a-click" }).waitFor();
  await page.getByRole("button", { name: "End shell 1" }).click();
  await dialog().getByText("everything that runs in it ends").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("tab", { name: "shell 1", selected: true }).waitFor();
});

test("files that are dropped beside the tree do not take the page away", async () => {
  await to(await make({ name: "drops" }), "files");
  await page.getByText("No file is open.").waitFor();
  const isOpened = await page.evaluate(() => ["dragover", "drop"].some((kind) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(["x"], "x.html", { type: "text/html" }));
    return document.querySelector(".content").dispatchEvent(new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer }));
  }));
  assert.equal(isOpened, false);
});

test("a picture is shown", async () => {
  const sandbox = await make({ name: "pictures" });
  assert.equal((await put(sandbox, "plot.png", png(320, 200))).ok, true);
  await to(sandbox, "files");
  await page.getByRole("treeitem", { name: "plot.png" }).click();
  const shown = page.getByRole("img", { name: /plot.png/ });
  await shown.waitFor();
  await page.getByText("320 × 200 pixels").waitFor();
  const pixel = await shown.evaluate((canvas) => [...canvas.getContext("2d").getImageData(100, 100, 1, 1).data]);
  assert.deepEqual(pixel, [128, 128, 128, 255]);
  assert.deepEqual(await picture(page, "picture"), []);
});

test("sleep and kill are asked about first", async () => {
  const sandbox = await make({ name: "asked" });
  const started = await server.call("POST", `/v1/sandboxes/${sandbox.id}/processes`, { command: "exec sleep 1000" });
  const process = async () => (await server.call("GET", `/v1/sandboxes/${sandbox.id}/processes`)).processes.find(({ id }) => id === started.id);
  await to(sandbox, "processes");
  for (const verb of ["Kill", "End"]) {
    await page.getByRole("button", { name: new RegExp(`^${verb} `) }).click();
    await dialog().getByText(`${verb} the process?`).waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "hidden" });
  }
  assert.equal((await process()).status, "running");
  await page.getByRole("button", { name: "Sleep asked" }).click();
  await dialog().getByText("What runs in it ends").waitFor();
  assert.deepEqual(await picture(page, "sleep"), []);
  await dialog().getByRole("button", { name: "Sleep" }).click();
  await page.getByText("The sandbox sleeps.").waitFor();
});

test("the form offers variables, a lifetime, a disk limit and network rules, and the details show them", async () => {
  await page.goto(`${server.url}/#/`);
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  await dialog().getByLabel("Name").fill("detailed");
  await dialog().getByLabel("Network").selectOption("egress");
  await dialog().getByLabel("Allowed hosts").fill("example.com\n*.example.org:443");
  await dialog().getByLabel("Memory, MiB").fill("512");
  await dialog().getByLabel("Destroy after, minutes").fill("90");
  await dialog().getByLabel("Idle after, minutes").fill("10");
  await dialog().getByLabel("Variables").fill("SECRET=not-shown\nMODE=test");
  await dialog().getByLabel("Labels").fill("team=web");
  const faults = await picture(page, "create-full");
  await dialog().getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "detailed" }).waitFor();
  await page.getByText("Details", { exact: true }).click();
  const facts = await page.locator(".about dl > div").evaluateAll((all) => Object.fromEntries(all.map((one) => [one.querySelector("dt").textContent, one.querySelector("dd").textContent])));
  assert.equal(facts["Memory limit"].startsWith("512 MiB"), true, facts["Memory limit"]);
  assert.match(facts.Expires, /in 1 h/);
  assert.equal(facts["When idle"], "sleeps after 10 min");
  assert.equal(facts["Allowed hosts"], "example.com*.example.org:443");
  assert.equal(facts.Labels, "team=web");
  assert.equal(facts.Variables, "MODESECRET");
  assert.ok(facts.Image && facts["Process limit"] && facts["Disk limit"], JSON.stringify(facts));
  faults.push(...(await picture(page, "details")));
  assert.deepEqual(faults, []);
});

test("charts have a scale", async () => {
  await page.getByRole("link", { name: "Usage", exact: true }).click();
  await page.locator(".chart .plot").first().waitFor();
  const scale = await page.locator(".chart").first().locator(".scale span").allTextContents();
  assert.equal(scale.length, 3);
  assert.match(scale[0], /^\d+(\.\d)? [KMG]iB$/);
  assert.equal(scale[2], "0 B");
});

test("the title names the view, and the focus follows to another page", async () => {
  await page.waitForFunction(() => document.title === "detailed: Usage – Eyot");
  await page.getByRole("link", { name: "All sandboxes" }).click();
  await page.getByRole("heading", { name: /^Sandboxes/ }).waitFor();
  // Both follow once the view is drawn.
  await page.waitForFunction(() => document.title === "Sandboxes – Eyot" && document.activeElement?.id === "content");
});

test("the list is sorted by its headings, and many are destroyed at once after a question", async () => {
  const names = () => page.locator(".sandboxes tbody th a").allTextContents();
  await page.getByRole("button", { name: "Name" }).click();
  const sorted = await names();
  assert.deepEqual(sorted, [...sorted].sort());
  await page.getByRole("columnheader", { name: /Name/, exact: false }).and(page.locator("[aria-sort=ascending]")).waitFor();
  await page.getByRole("button", { name: "Name" }).click();
  assert.deepEqual(await names(), sorted.toReversed());
  await page.getByLabel("Select rows").check();
  await page.getByLabel("Select drops").check();
  await page.getByText("2 selected").waitFor();
  const faults = await picture(page, "list-selected");
  await page.getByRole("button", { name: "Destroy selected" }).click();
  await dialog().getByText("Destroy 2 sandboxes?").waitFor();
  faults.push(...(await picture(page, "list-destroy")));
  await dialog().getByRole("button", { name: "Destroy" }).click();
  await page.getByRole("link", { name: "rows", exact: true }).waitFor({ state: "detached" });
  assert.deepEqual((await names()).toSorted(), ["asked", "detailed", "pictures"]);
  assert.deepEqual(faults, []);
});

test("the page about the API is compressed, keeps to its policy, and shows the operations", async () => {
  const noted = complaints.length;
  const [bundle] = await Promise.all([page.waitForResponse(/swagger-ui-bundle\.js$/), page.goto(`${server.url}/docs/`)]);
  const headers = await bundle.allHeaders();
  assert.equal(headers["content-encoding"], "gzip");
  assert.match(headers["content-security-policy"], /default-src 'none'/);
  await page.locator(".opblock-tag").filter({ hasText: "sandboxes" }).click();
  await page.locator(".opblock-summary").first().click();
  await page.locator(".opblock-body").first().waitFor();
  assert.deepEqual(complaints.slice(noted), []);
});

/** A registry on this host with the image `app:1`; it never answers for any other. */
async function registry() {
  const digest = (content) => `sha256:${createHash("sha256").update(content).digest("hex")}`;
  const layer = gzipSync(tarOf("bin/sh", "#!"));
  const diff = digest(tarOf("bin/sh", "#!"));
  const architecture = arch() === "arm64" ? "arm64" : "amd64";
  const config = Buffer.from(JSON.stringify({ architecture, os: "linux", created: "2026-01-02T03:04:05Z", config: {}, rootfs: { type: "layers", diff_ids: [diff] } }));
  const described = (content, kind) => ({ mediaType: `application/vnd.oci.image.${kind}`, digest: digest(content), size: content.length });
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType, config: described(config, "config.v1+json"), layers: [described(layer, "layer.v1.tar+gzip")] }));
  const served = new Map([["/v2/", Buffer.from("{}")], ["/v2/app/manifests/1", manifest], ...[config, layer].map((blob) => [`/v2/app/blobs/${digest(blob)}`, blob])]);
  const listening = createServer((request, response) => {
    const content = served.get(request.url);
    if (content) response.writeHead(200, { "content-type": mediaType, "content-length": content.length }).end(request.method === "HEAD" ? undefined : content);
  });
  await new Promise((done) => listening.listen(0, "127.0.0.1", done));
  const stop = () => {
    listening.closeAllConnections();
    listening.close();
  };
  return { listening, host: `127.0.0.1:${listening.address().port}`, stop };
}

/** A tar with one file. */
function tarOf(name, content) {
  const head = Buffer.alloc(512);
  const put = (text, at) => head.write(text, at);
  put(name, 0); put("0000755\0", 100); put("0000000\0", 108); put("0000000\0", 116);
  put(`${content.length.toString(8).padStart(11, "0")}\0`, 124); put("00000000000\0", 136); put("        ", 148); put("0", 156); put("ustar\x0000", 257);
  put(`${head.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0")}\0 `, 148);
  const body = Buffer.alloc(Math.ceil(content.length / 512) * 512);
  body.write(content);
  return Buffer.concat([head, body, Buffer.alloc(1024)]);
}

test("images are pulled, offered to a new sandbox, and removed unless a sandbox is made over them", async (context) => {
  const { host, stop } = await registry();
  context.after(stop);
  const name = `${host}/app:1`;
  await page.goto(`${server.url}/#/images`);
  await page.getByText("There is no image yet.").waitFor();
  assert.deepEqual(await picture(page, "images-none"), []);
  const field = page.getByLabel("Pull an image");
  // One that does not come is given up. That the server gives it up, too, is a test of its own.
  await field.fill(`${host}/none:1`);
  await page.getByRole("button", { name: "Pull", exact: true }).click();
  await page.getByRole("progressbar").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Pull", exact: true }).waitFor();
  await field.fill(name);
  await page.getByRole("button", { name: "Pull", exact: true }).click();
  const row = page.getByRole("row").filter({ hasText: name });
  await row.filter({ hasText: "2026-01-02" }).waitFor();
  assert.deepEqual(await picture(page, "images"), []);

  await page.goto(`${server.url}/#/`);
  await page.getByRole("button", { name: "New sandbox" }).first().click();
  const image = dialog().getByLabel("Image");
  await dialog().locator("datalist option").first().waitFor({ state: "attached" });
  assert.deepEqual(await image.evaluate((input) => [...input.list.options].map(({ value }) => value)), [name]);
  await dialog().getByLabel("Name").fill("over");
  await image.fill(name);
  await dialog().getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "over" }).waitFor();

  await page.goto(`${server.url}/#/images`);
  const remove = async () => {
    await page.getByRole("button", { name: `Remove ${name}` }).click();
    await dialog().getByRole("button", { name: "Remove" }).click();
  };
  await remove();
  await dialog().getByText("sandboxes are made over it: over").waitFor();
  await dialog().getByRole("button", { name: "Cancel" }).click();
  const { sandboxes } = await server.call("GET", "/v1/sandboxes");
  await server.call("DELETE", `/v1/sandboxes/${sandboxes.find((one) => one.name === "over").id}`);
  await remove();
  await page.getByText("There is no image yet.").waitFor();
});
