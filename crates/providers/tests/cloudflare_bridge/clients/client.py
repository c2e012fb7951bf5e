"""Runs one case of the client of Cloudflare's bridge: python client.py CASE URL. The key is in CLOUDFLARE_SANDBOX_API_KEY."""

import asyncio
import io
import sys
from pathlib import Path

from agents.extensions.sandbox.cloudflare import (
    CloudflareSandboxClient,
    CloudflareSandboxClientOptions,
)


async def a_command_runs_and_files_are_written_and_read(session):
    ran = await session.exec("echo out; echo err >&2; exit 3", shell=True)
    assert (ran.stdout, ran.stderr, ran.exit_code) == (b"out\n", b"err\n", 3), ran
    await session.write(Path("notes/a.txt"), io.BytesIO(b"\x00\xffbytes"))
    assert (await session.read(Path("notes/a.txt"))).read() == b"\x00\xffbytes"
    assert await session.running()


async def a_workspace_is_packed_and_unpacked(session):
    await session.write(Path("kept.txt"), io.BytesIO(b"kept"))
    packed = await session.persist_workspace()
    await session.exec("rm", "kept.txt")
    await session.hydrate_workspace(packed)
    assert (await session.read(Path("kept.txt"))).read() == b"kept"


async def a_terminal_is_typed_into(session):
    started = await session.pty_exec_start("cat", tty=True, yield_time_s=1)
    echoed = await session.pty_write_stdin(session_id=started.process_id, chars="typed\n", yield_time_s=2)
    assert b"typed" in echoed.output, echoed
    await session.pty_terminate_all()


async def main(case, url):
    client = CloudflareSandboxClient()
    session = await client.create(options=CloudflareSandboxClientOptions(worker_url=url))
    async with session:
        await globals()[case](session)
    await client.delete(session)


asyncio.run(main(*sys.argv[1:]))
