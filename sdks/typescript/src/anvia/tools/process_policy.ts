/** What a process policy may say, checked when the tools are made. */

import { SandboxToolPolicyError } from "../errors.js";
import type { SandboxProcessToolPolicy } from "../types.js";

/** The most of a stream's log that a call may ask for. */
export const MAX_LOG_BYTES = 1_048_576;
/** The longest that a call may wait for a port. */
export const MAX_WAIT_TIMEOUT_MS = 300_000;

/**
 * Refuses limits that make no sense.
 *
 * @throws {SandboxToolPolicyError} naming the limit and what it may be.
 */
export function checkProcessPolicy(policy: SandboxProcessToolPolicy = {}): void {
  const { maxLogBytes = 0, maxWaitTimeoutMs = MAX_WAIT_TIMEOUT_MS, defaultWaitTimeoutMs = 1, stopGracePeriodMs = 0 } = policy;
  if (!isWhole(maxLogBytes, 0, MAX_LOG_BYTES)) refuse(`Process maxLogBytes must be an integer from 0 to ${MAX_LOG_BYTES}.`);
  if (!isWhole(maxWaitTimeoutMs, 1, MAX_WAIT_TIMEOUT_MS)) {
    refuse(`Process maxWaitTimeoutMs must be an integer from 1 to ${MAX_WAIT_TIMEOUT_MS}.`);
  }
  if (!isWhole(defaultWaitTimeoutMs, 1, maxWaitTimeoutMs)) {
    refuse("Process defaultWaitTimeoutMs must be positive and no greater than maxWaitTimeoutMs.");
  }
  if (!isWhole(stopGracePeriodMs, 0, Infinity)) refuse("Process stopGracePeriodMs must be a non-negative integer.");
}

function isWhole(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

function refuse(message: string): never {
  throw new SandboxToolPolicyError(message);
}
