//! Messages as lines, written by hand, as a broken or hostile client sends them.

use eyot::CancellationToken;
use eyot_server::mcp::{MAX_MESSAGE_BYTES, McpServer, serve_stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use super::ground::{Ground, settled};

struct Wire {
    write: WriteHalf<DuplexStream>,
    read: BufReader<ReadHalf<DuplexStream>>,
    serving: JoinHandle<eyot::Result<()>>,
    stop: CancellationToken,
}

impl Wire {
    fn open(server: &McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(theirs);
        let (server, stop) = (server.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let serving = tokio::spawn(async move { serve_stdio(&server, read, write, stopped).await });
        let (read, write) = tokio::io::split(ours);
        Self { write, read: BufReader::new(read), serving, stop }
    }

    async fn send(&mut self, line: impl AsRef<[u8]>) {
        settled(self.write.write_all(line.as_ref())).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let mut line = String::new();
        settled(self.read.read_line(&mut line)).await.unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    async fn open_session(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        self.send(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string())
            .await;
        let answer = self.receive().await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
        answer
    }

    async fn call(&mut self, id: u64, line: &str) {
        let params = json!({ "name": "shell", "arguments": { "command": line, "timeout_ms": 600_000 } });
        self.send(
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string(),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_answered_and_the_session_goes_on() {
    let ground = Ground::new();
    let mut wire = Wire::open(&ground.server());
    wire.open_session("2025-06-18").await;
    let broken: [(&[u8], i64, Value); 7] = [
        (b"{", -32700, Value::Null),
        (b"not json", -32700, Value::Null),
        (b"\xff\xfe", -32700, Value::Null),
        (b"[]", -32600, Value::Null),
        (b"{\"foo\":1}", -32600, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":5}", -32600, json!(7)),
        (b"{\"jsonrpc\":\"1.0\",\"id\":\"x\",\"method\":\"ping\"}", -32600, json!("x")),
    ];
    for (line, code, id) in broken {
        wire.send(line).await;
        let answer = wire.receive().await;
        assert_eq!((answer["error"]["code"].as_i64(), &answer["id"]), (Some(code), &id), "{answer}");
    }
    wire.send("[".repeat(100_000)).await;
    assert_eq!(wire.receive().await["error"]["code"], -32700);
    wire.send("").await;
    wire.send(r#"{"jsonrpc":"2.0","id":8,"method":"no/such"}"#).await;
    let answer = wire.receive().await;
    assert_eq!(answer["error"]["code"], -32601);
    assert!(
        answer["error"]["message"].as_str().unwrap().starts_with("there is no method `no/such` here"),
        "{answer}"
    );
    wire.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
    assert_eq!(wire.receive().await["id"], 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_too_long_is_refused_whole_and_the_next_one_is_read() {
    let ground = Ground::new();
    let mut wire = Wire::open(&ground.server());
    wire.open_session("2025-06-18").await;
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..=3 * (MAX_MESSAGE_BYTES >> 20) {
        settled(wire.write.write_all(&piece)).await.unwrap();
    }
    wire.send("").await;
    let answer = wire.receive().await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("16777216 bytes"), "{answer}");
    wire.send(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
    assert_eq!(wire.receive().await["id"], 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_of_a_session_is_the_clients_or_one_that_there_is() {
    for (asked, agreed) in
        [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")]
    {
        let ground = Ground::new();
        let mut wire = Wire::open(&ground.server());
        let answer = wire.open_session(asked).await;
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_session_is_open_other_requests_are_refused_and_the_rest_is_passed_over() {
    let ground = Ground::new();
    let mut wire = Wire::open(&ground.server());
    wire.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
    wire.send(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    wire.send(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#).await;
    let answer = wire.receive().await;
    assert!(answer["id"] == 2 && answer["error"]["code"].is_i64(), "{answer}");
    assert!(wire.open_session("2025-06-18").await["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_its_side_ends_the_session_with_its_calls_and_sandboxes() {
    let ground = Ground::new();
    let mut wire = Wire::open(&ground.server());
    wire.open_session("2025-06-18").await;
    wire.call(1, "echo short").await;
    wire.call(2, "sleep 4242").await;
    assert_eq!(wire.receive().await["id"], 1);
    settled(wire.write.shutdown()).await.unwrap();
    settled(wire.serving).await.unwrap().unwrap();
    assert_eq!(ground.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_that_is_piped_in_gets_its_answers() {
    let ground = Ground::new();
    let mut wire = Wire::open(&ground.server());
    wire.open_session("2025-06-18").await;
    let last = r#"{"jsonrpc":"2.0","id":5,"method":"tools/list"}"#;
    wire.write.write_all(last.as_bytes()).await.unwrap();
    wire.write.shutdown().await.unwrap();
    assert_eq!(wire.receive().await["id"], 5);
    settled(wire.serving).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_ends_its_calls_and_leaves_nothing() {
    let ground = Ground::new();
    let mut wire = Wire::open(&ground.server());
    wire.open_session("2025-06-18").await;
    wire.call(1, "echo here").await;
    assert_eq!(wire.receive().await["id"], 1);
    wire.call(2, "sleep 4242").await;
    wire.stop.cancel();
    settled(wire.serving).await.unwrap().unwrap();
    assert_eq!(ground.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_not_read_either_and_can_be_stopped() {
    let ground = Ground::new();
    let mut wire = Wire::open(&ground.server());
    wire.open_session("2025-06-18").await;
    let ping = format!("{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let flood = ping.repeat(10_000);
    let (mut write, stuck) = (wire.write, tokio::time::Duration::from_secs(2));
    // It takes what fits into pipes and queues, and then no more.
    assert!(tokio::time::timeout(stuck, write.write_all(flood.repeat(20).as_bytes())).await.is_err());
    wire.stop.cancel();
    settled(wire.serving).await.unwrap().unwrap();
}
