import { Sandbox as VendorSandbox } from '@cloudflare/sandbox';
import { bridge } from '@cloudflare/sandbox/bridge';
import { standInContainer } from './container.mjs';

export { WarmPool } from '@cloudflare/sandbox/bridge';

// The vendor's own class, over a container that is not the platform's.
export class Sandbox extends VendorSandbox {
  constructor(ctx, env) {
    Object.defineProperty(ctx, 'container', { value: standInContainer(env.CONTAINERS, ctx.id.toString()) });
    super(ctx, env);
  }
}

export default bridge({ fetch: () => new Response('OK') });
