"""What schemathesis sends where a tar stream is due: real ones of one file, and bytes that are none."""

import io
import tarfile

import schemathesis
from hypothesis import strategies as st

TAR = "application/x-tar"


def tar(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
ARCHIVES = st.builds(tar, NAMES, st.binary(max_size=1024))
schemathesis.openapi.media_type(TAR, st.one_of(ARCHIVES, st.binary(max_size=1024)))


@schemathesis.serializer(TAR)
def serialized(_context: schemathesis.SerializationContext, value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
