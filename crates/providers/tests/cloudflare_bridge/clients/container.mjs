// A stand-in of `ctx.container`: the platform's handle of one container. Its program is served by the tests.
export function standInContainer(containers, id) {
  const url = (path) => `${containers}/containers/${id}${path}`;
  let running = false;
  let ended = () => {};
  let monitor = Promise.resolve();
  const end = () => {
    running = false;
    ended();
  };
  return {
    get running() {
      return running;
    },
    start() {
      running = true;
      monitor = new Promise((resolve) => (ended = resolve));
    },
    monitor: () => monitor,
    async destroy() {
      await fetch(url(''), { method: 'DELETE' });
      end();
    },
    signal: end,
    async setInactivityTimeout() {},
    getTcpPort(port) {
      const send = async (target, init) => {
        const request = new Request(target, init);
        const { pathname, search } = new URL(request.url);
        return fetch(new Request(url(`/port/${port}${pathname}${search}`), request));
      };
      return { fetch: send };
    },
  };
}
