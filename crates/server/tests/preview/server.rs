//! A server inside a sandbox that answers with what it received: each answer's body is the
//! request's head and body, byte for byte.

use serde_json::json;

use crate::ground::{Ground, PORT, value};

/// `/events` sends one event, and a second one after `/release` was requested. `/socket` echoes
/// WebSocket messages. `/silent` never answers. `/sets` sets cookies and headers about its host,
/// `/elsewhere` redirects. The file `requests` has a line for each request.
pub const PROGRAM: &str = r#"
import base64, hashlib, socket, sys, threading
released = threading.Event()
MAGIC = b'258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
def answer(client, text, lines=''):
    body = text.encode('latin-1')
    head = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n' % (lines, len(body))
    client.sendall(head.encode() + body)
def websocket(client, head, file):
    key = [line.split(': ')[1] for line in head.split('\r\n') if line.lower().startswith('sec-websocket-key')][0]
    accept = base64.b64encode(hashlib.sha1(key.encode() + MAGIC).digest()).decode()
    client.sendall(('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n' % accept).encode())
    host = [line for line in head.split('\r\n') if line.lower().startswith('host')][0].encode()
    client.sendall(bytes([0x81, len(host)]) + host)
    while True:
        start = file.read(6)
        if len(start) < 6 or start[0] == 0x88: return
        masked = file.read(start[1] & 0x7f)
        plain = bytes(byte ^ start[2 + at % 4] for at, byte in enumerate(masked))
        client.sendall(bytes([0x81, len(plain)]) + plain)
def serve(client):
    file = client.makefile('rb')
    head = b''
    while not head.endswith(b'\r\n\r\n'):
        line = file.readline()
        if not line: return
        head += line
    head = head.decode('latin-1')
    with open('requests', 'a') as log: log.write(head.split('\r\n')[0] + '\n')
    path = head.split(' ')[1].split('?')[0]
    lower = head.lower()
    body = b''
    if 'content-length: ' in lower:
        body = file.read(int(lower.split('content-length: ')[1].split('\r\n')[0]))
    elif 'transfer-encoding: chunked' in lower:
        while True:
            size = int(file.readline(), 16)
            body += file.read(size); file.readline()
            if size == 0: break
    if path == '/socket': websocket(client, head, file)
    elif path == '/events':
        client.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: first\n\n')
        released.wait(); client.sendall(b'data: second\n\n')
    elif path == '/silent': released.wait()
    elif path == '/release': released.set(); answer(client, 'released')
    elif path == '/sets':
        answer(client, '', 'Set-Cookie: eyot_preview=evil; Path=/\r\nSet-Cookie: s=1; Path=/; Domain=localhost\r\n'
            'Service-Worker-Allowed: /\r\nAlt-Svc: h2=":1"\r\nConnection: x-hop\r\nX-Hop: 1\r\n'
            'Content-Security-Policy: default-src *\r\nAccess-Control-Allow-Origin: *\r\n' + ''.join(
                '%s: evil\r\n' % name for name in ('Clear-Site-Data', 'Strict-Transport-Security', 'Public-Key-Pins', 'Expect-CT',
                'NEL', 'Report-To', 'Reporting-Endpoints', 'Origin-Agent-Cluster', 'Accept-CH', 'Critical-CH', 'Set-Login',
                'X-Accel-Redirect', 'X-Sendfile', 'Surrogate-Control', 'Set-Cookie2')))
    elif path == '/elsewhere': client.sendall(b'HTTP/1.1 302 Found\r\nLocation: /login?a\r\nContent-Length: 0\r\n\r\n')
    elif path == '/switch': client.sendall(b'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
    elif path == '/garbage': client.sendall(b'no HTTP at all\r\n\r\n')
    else: answer(client, head + body.decode('latin-1'))
    client.close()
def listen(port):
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(('127.0.0.1', port)); server.listen(64)
    return server
def accept(server):
    while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
servers = [listen(int(port)) for port in sys.argv[1:]]
for server in servers[1:]: threading.Thread(target=accept, args=(server,), daemon=True).start()
accept(servers[0])
"#;

impl Ground {
    /// Creates a sandbox of ours with the server, which listens already on [`PORT`] and the port
    /// after it.
    pub async fn serving(&self, name: &str) -> String {
        let id = self.sandbox(name).await;
        self.start_server(&id).await;
        id
    }

    pub async fn start_server(&self, id: &str) {
        let put = json!({ "command": "cat > server.py", "stdin": PROGRAM });
        assert_eq!(value(self.post(&format!("/v1/sandboxes/{id}/exec"), put).await).await["exit_code"], 0);
        let run = format!("exec python3 server.py {PORT} {}", PORT + 1);
        let start = self.post(&format!("/v1/sandboxes/{id}/processes"), json!({ "command": run })).await;
        assert_eq!(start.status(), 201);
        let sandbox = self.engine.pool(crate::ground::options(crate::ground::name("ours"))).unwrap();
        let sandbox = sandbox.as_provider().find(id).await.unwrap();
        sandbox.wait_for_port(PORT, 60_000).await.unwrap();
        sandbox.wait_for_port(PORT + 1, 60_000).await.unwrap();
    }

    /// Returns the request lines that the server received, in order.
    pub async fn requests(&self, id: &str) -> Vec<String> {
        let read = json!({ "command": "cat requests 2>/dev/null || true" });
        let ran = value(self.post(&format!("/v1/sandboxes/{id}/exec"), read).await).await;
        ran["stdout"].as_str().unwrap().lines().map(str::to_owned).collect()
    }
}
