/** Rule 55 of the contract of `@anvia/sandbox`: what a session can do is told by what it has. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { isSandboxPortSession, isSandboxProcessSession, isSandboxTextPageSession } from "../../dist/anvia/guards.js";
import type { SandboxSession } from "../../dist/anvia/types.js";
import { managedSession, plainSession } from "./plain_session.js";

/** A session with one of its members taken away. */
const without = (name: string): SandboxSession => ({ ...managedSession().session, [name]: undefined });

test("rule 55: a session has ports that has a list of them and waits for one", () => {
  assert.equal(isSandboxPortSession(managedSession().session), true);
  assert.equal(isSandboxPortSession(managedSession({ ports: [] }).session), true);
  assert.equal(isSandboxPortSession(plainSession().session), false);
  for (const name of ["publishedPorts", "waitForPort"]) assert.equal(isSandboxPortSession(without(name)), false, name);
  assert.equal(isSandboxPortSession(without("startProcess")), true);
});

test("rule 55: a session has processes that has all four methods of them", () => {
  assert.equal(isSandboxProcessSession(managedSession().session), true);
  assert.equal(isSandboxProcessSession(plainSession().session), false);
  for (const name of ["startProcess", "listProcesses", "readProcessLogs", "stopProcess"]) {
    assert.equal(isSandboxProcessSession(without(name)), false, name);
  }
  assert.equal(isSandboxProcessSession(without("waitForPort")), true);
});

test("a session has text pages that has their method", () => {
  assert.equal(isSandboxTextPageSession(plainSession().session), false);
  const paging = { ...plainSession().session, readTextFilePage: () => Promise.reject(new Error("not asked")) };
  assert.equal(isSandboxTextPageSession(paging), true);
});
