// Runs the vendor's bridge in workerd. Prints its address, and ends with its input.
import { build } from 'esbuild';
import { Miniflare } from 'miniflare';

const [containers, key, transport] = process.argv.slice(2);
const here = import.meta.dirname;
const built = await build({
  entryPoints: [`${here}/worker.mjs`],
  bundle: true,
  format: 'esm',
  target: 'esnext',
  conditions: ['workerd', 'worker', 'browser', 'import'],
  external: ['cloudflare:*', 'node:*'],
  write: false,
  logLevel: 'error',
});
const flare = new Miniflare({
  modules: [{ type: 'ESModule', path: 'worker.mjs', contents: built.outputFiles[0].text }],
  compatibilityDate: '2025-05-06',
  compatibilityFlags: ['nodejs_compat'],
  durableObjects: {
    Sandbox: { className: 'Sandbox', useSQLite: true },
    WarmPool: { className: 'WarmPool', useSQLite: true },
  },
  bindings: { SANDBOX_API_KEY: key, SANDBOX_TRANSPORT: transport ?? 'http', CONTAINERS: containers, WARM_POOL_TARGET: '0' },
  host: '127.0.0.1',
  port: 0,
});
console.log(`bridge ${(await flare.ready).origin}`);
process.stdin.resume();
process.stdin.on('end', async () => {
  await flare.dispose();
  process.exit(0);
});
