"""Does a first job with the client that openapi-python-client makes of the API's document: `cargo xtask sdks document`."""

import io
import os
import tarfile

from eyot_generated import AuthenticatedClient
from eyot_generated.api.exec_ import exec_exec, exec_exec_stream
from eyot_generated.api.files import files_read, files_tree_in
from eyot_generated.api.sandboxes import sandboxes_create, sandboxes_destroy, sandboxes_get
from eyot_generated.models import CreateSandbox, ExecAnswer, ExecBody, Limits, Problem, SandboxAnswer, SandboxSpec, Unpacked
from eyot_generated.types import File


def folder() -> File:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        content = b"echo hello, $1"
        member = tarfile.TarInfo("job/greet.sh")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    packed.seek(0)
    return File(payload=packed)


client = AuthenticatedClient(base_url=os.environ["EYOT_SERVER"], token=os.environ["EYOT_API_KEY"])
with client as client:
    made = sandboxes_create.sync(client=client, body=CreateSandbox(spec=SandboxSpec(limits=Limits(memory_mib=256))))
    assert isinstance(made, SandboxAnswer), made

    unpacked = files_tree_in.sync(made.id, client=client, body=folder(), path=".")
    assert isinstance(unpacked, Unpacked) and unpacked.entries >= 1, unpacked

    ran = exec_exec.sync(made.id, client=client, body=ExecBody(argv=["sh", "job/greet.sh", "world"]))
    assert isinstance(ran, ExecAnswer), ran
    assert (ran.stdout, ran.exit_code) == ("hello, world\n", 0), ran

    streamed = exec_exec_stream.sync(made.id, client=client, body=ExecBody(command="seq 3"))
    assert isinstance(streamed, str) and "event: end" in streamed, streamed

    read = files_read.sync(made.id, client=client, path="job/greet.sh")
    assert isinstance(read, File) and read.payload.read() == b"echo hello, $1", read

    destroyed = sandboxes_destroy.sync_detailed(made.id, client=client)
    assert destroyed.status_code == 204, destroyed
    gone = sandboxes_get.sync(made.id, client=client)
    assert isinstance(gone, Problem) and gone.kind == "not_found", gone
