/** Rules 27 to 29 of the contract of `@anvia/sandbox`: which paths there are, and what is said of those that are none. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { SandboxError, SandboxPathError } from "../../dist/anvia/errors.js";
import { containerPath, normalizeSandboxPath, parentSandboxPath } from "../../dist/anvia/paths.js";

const refuses = (path: string, message: string, rules = {}): void =>
  assert.throws(
    () => normalizeSandboxPath(path, rules),
    (error) => {
      assert.ok(error instanceof SandboxPathError && error instanceof SandboxError);
      assert.equal(error.message, message);
      assert.equal(error.name, "SandboxPathError");
      return true;
    },
  );

test("rule 27: an empty path is refused", () => {
  refuses("", "Sandbox path cannot be empty.");
  refuses("", "Sandbox path cannot be empty.", { allowRoot: true });
});

test("rule 27: a null byte is refused, before anything else is looked at", () => {
  refuses("a\0b", "Sandbox path cannot contain null bytes.");
  refuses("/a\0b", "Sandbox path cannot contain null bytes.");
});

test("rule 27: an absolute path is refused, and named as it was given", () => {
  refuses("/etc/passwd", "Sandbox path must be relative: /etc/passwd");
  refuses("\\etc\\passwd", "Sandbox path must be relative: \\etc\\passwd");
  refuses("//a", "Sandbox path must be relative: //a");
  refuses("/", "Sandbox path must be relative: /", { allowRoot: true });
});

test("rule 27: a path that leads out of the workspace is refused, and named as it was given", () => {
  for (const path of ["..", "../", "../a", "a/../../b", "a\\..\\..\\b"]) {
    refuses(path, `Sandbox path cannot leave the workspace: ${path}`);
    refuses(path, `Sandbox path cannot leave the workspace: ${path}`, { allowRoot: true });
  }
});

test("rule 27: the workspace itself is no file, but can be listed and worked in", () => {
  for (const path of [".", "a/..", "a/b/../.."]) {
    refuses(path, "Sandbox path must refer to a file or directory inside the workspace.");
    assert.equal(normalizeSandboxPath(path, { allowRoot: true }), ".");
  }
});

test("rule 28: a backslash is a slash, and detours are taken out", () => {
  assert.equal(normalizeSandboxPath("a\\b.txt"), "a/b.txt");
  assert.equal(normalizeSandboxPath("..."), "...");
  assert.equal(normalizeSandboxPath("..a/b"), "..a/b");
  assert.equal(normalizeSandboxPath("a//b"), "a/b");
  assert.equal(normalizeSandboxPath("safe/../x"), "x");
  assert.equal(normalizeSandboxPath("./x"), "x");
});

test("rule 28, mended: the workspace with a slash behind it is the workspace", () => {
  for (const path of ["./", "a/../", ".\\"]) {
    refuses(path, "Sandbox path must refer to a file or directory inside the workspace.");
    assert.equal(normalizeSandboxPath(path, { allowRoot: true }), ".");
  }
});

test("rule 28: a slash behind another name stays", () => {
  assert.equal(normalizeSandboxPath("dir/"), "dir/");
  assert.equal(normalizeSandboxPath("dir//"), "dir/");
});

test("rule 29: paths are read as text, whatever there is in a sandbox", () => {
  assert.equal(normalizeSandboxPath("link/../file"), "file");
});

test("a path inside the sandbox is the workspace's and the relative one behind it", () => {
  assert.equal(containerPath("/workspace", "a/b"), "/workspace/a/b");
  assert.equal(containerPath("/workspace/x/..", "."), "/workspace");
  assert.throws(() => containerPath("/workspace", "../etc"), SandboxPathError);
});

test("a path's parent is relative to the workspace", () => {
  assert.equal(parentSandboxPath("a.txt"), ".");
  assert.equal(parentSandboxPath("a/b/c.txt"), "a/b");
  assert.throws(() => parentSandboxPath("."), SandboxPathError);
});
