//! Commands over a WebSocket.

use eyot::wire::STDIN_WINDOW;
use futures_util::{SinkExt, StreamExt};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::ground::{Ground, name};

pub type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a WebSocket to a path of a sandbox of ours.
pub async fn connected(ground: &Ground, id: &str, path: &str) -> Socket {
    let url = format!("ws://{}/v1/sandboxes/{id}/{path}", ground.address);
    let mut request = url.into_client_request().unwrap();
    let key = format!("Bearer {}", ground.ours);
    request.headers_mut().insert("authorization", key.parse().unwrap());
    connect_async(request).await.unwrap().0
}

/// Returns the code and the reason with which the server closes a socket.
pub async fn closed(socket: &mut Socket) -> (u16, String) {
    loop {
        if let Message::Close(frame) = socket.next().await.expect("it ended without a frame").unwrap() {
            let frame = frame.expect("a frame without a code");
            return (frame.code.into(), frame.reason.to_string());
        }
    }
}

/// Starts a command and waits until it runs.
pub async fn started(ground: &Ground, command: Value) -> Socket {
    let id = ground.sandbox("dev").await;
    let mut socket = connected(ground, &id, "exec/socket").await;
    socket.send(Message::text(command.to_string())).await.unwrap();
    assert_eq!(told(&mut socket).await, Some(json!("started")));
    socket
}

/// Returns the next text message; `None`: the other side has closed.
pub async fn told(socket: &mut Socket) -> Option<Value> {
    loop {
        match socket.next().await?.unwrap() {
            Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_more_input_than_there_is_room_for_is_told_so_last() {
    let ground = Ground::new().await;
    let mut socket = started(&ground, json!({ "command": "sleep 1000", "stdin_follows": true })).await;
    let piece = vec![b'x'; STDIN_WINDOW / 4];
    // More than the window and all the pipes on the way hold. It need not listen to all of it.
    for _ in 0..64 {
        if socket.send(Message::binary(piece.clone())).await.is_err() {
            break;
        }
    }
    let last = loop {
        let event = told(&mut socket).await.expect("it closed without a word");
        if event.get("problem").is_some() {
            break event;
        }
    };
    assert_eq!(last["problem"]["field"], "stdin", "{last}");
    assert_eq!(told(&mut socket).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_and_its_command_end_when_the_key_is_revoked() {
    let ground = Ground::new().await;
    let mut socket = started(&ground, json!({ "command": "sleep 1000" })).await;
    let other = ground.api.keys().create(name("other"), vec![name("ours")]).await.unwrap().secret;
    ground.api.keys().revoke("ours").await.unwrap();
    assert_eq!(closed(&mut socket).await, (1008, "the key was revoked, or the session ended".to_owned()));
    let path = "/v1/sandboxes/dev/exec";
    let body = json!({ "command": "while pgrep -x sleep; do :; done" }).to_string();
    let looked = ground.as_whom(&other, Method::POST, path).header("content-type", "application/json");
    assert_eq!(looked.body(body).send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn as_much_input_as_there_is_room_for_is_taken_whole() {
    let ground = Ground::new().await;
    let mut socket = started(&ground, json!({ "command": "wc -c", "stdin_follows": true })).await;
    socket.send(Message::binary(vec![b'x'; STDIN_WINDOW / 2])).await.unwrap();
    socket.send(Message::binary(vec![b'x'; STDIN_WINDOW / 2])).await.unwrap();
    socket.send(Message::binary(Vec::new())).await.unwrap();
    let end = loop {
        let event = told(&mut socket).await.expect("it closed without an end");
        if let Some(end) = event.get("end") {
            break end.clone();
        }
    };
    assert_eq!(end["outcome"], json!({ "exited": 0 }), "{end}");
}
