//! Python programs that the tests run inside. They speak the protocols byte by byte, because real
//! clients tidy up their input.

/// Prints one line for each host in its arguments: the answers to `CONNECT`, to a plain request,
/// and to SOCKS5. `PORT` is the port to reach.
pub const TRY: &str = r#"
import os, socket, sys
port = int(os.environ.get("PORT", "80"))
def proxy(number):
    s = socket.create_connection(("127.0.0.1", number), 30)
    s.settimeout(30)
    return s
def http(line, host):
    s = proxy(3128)
    s.sendall(f"{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    return s.recv(4096).split(b" ")[1].decode()
def socks(host):
    s = proxy(1080)
    s.sendall(b"\5\1\0")
    assert s.recv(2) == b"\5\0"
    name = host.strip("[]").encode()
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
    return str(s.recv(2)[1])
for host in sys.argv[1:]:
    print(host, http(f"CONNECT {host}:{port}", host), http(f"GET http://{host}:{port}/hello", host), socks(host))
"#;

/// Sends its first argument (with escapes) to port `PORT`, and prints the reply as Python's bytes.
pub const RAW: &str = r#"
import os, socket, sys
s = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), 30)
s.settimeout(30)
s.sendall(sys.argv[1].encode().decode("unicode_escape").encode("latin-1"))
answer = b""
while len(answer) < 4096:
    try: piece = s.recv(4096)
    except OSError: break
    if not piece: break
    answer += piece
    if len(sys.argv) > 2 and len(answer) >= int(sys.argv[2]): break
print(answer)
"#;

/// Asks the name server inside for each `name/type`, and prints the code of the answer and its addresses.
pub const LOOK_UP: &str = r#"
import os, socket, struct, sys
for asked in sys.argv[1:]:
    name, kind = asked.rsplit("/", 1)
    labels = b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0"
    query = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + struct.pack(">HH", int(kind), 1)
    if os.environ.get("TCP"):
        s = socket.create_connection(("127.0.0.1", 53), 30)
        s.sendall(struct.pack(">H", len(query)) + query)
        answer = s.recv(4096)[2:]
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(30)
        s.sendto(query, ("127.0.0.1", 53))
        answer = s.recv(4096)
    code, count, at = answer[3] & 15, struct.unpack(">H", answer[6:8])[0], 12 + len(labels) + 4
    found = []
    for _ in range(count):
        while answer[at] and answer[at] < 192: at += answer[at] + 1
        at += 2 if answer[at] else 1
        size = struct.unpack(">H", answer[at + 8:at + 10])[0]
        data = answer[at + 10:at + 10 + size]
        found.append(socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, data) if size in (4, 16) else "?")
        at += 10 + size
    print(asked, code, *sorted(found))
"#;

/// Opens 250 connections to each proxy, sends half a request over each, says so, and holds them until its input ends.
pub const CROWD: &str = r#"
import socket, sys
held = []
for _ in range(250):
    for port, half in ((3128, b"GET http://pub.test/hello HTTP/1.1\r\nHost"), (1080, b"\5\1")):
        s = socket.create_connection(("127.0.0.1", port), 60)
        s.sendall(half)
        held.append(s)
open("held", "w").write(str(len(held)))
import time
time.sleep(600)
"#;

/// Holds a tunnel open until it is closed from the other side, and writes when both happened.
pub const HOLD: &str = r#"
import socket
s = socket.create_connection(("127.0.0.1", 3128), 30)
s.sendall(b"CONNECT pub.test:80 HTTP/1.1\r\nHost: pub.test:80\r\n\r\n")
assert b" 200 " in s.recv(4096)
s.sendall(b"GET /hold HTTP/1.1\r\nHost: pub.test\r\n\r\n")
answer = b""
while b"held" not in answer: answer += s.recv(4096)
open("held", "w").close()
while True:
    try:
        if not s.recv(4096): break
    except OSError: break
"#;
