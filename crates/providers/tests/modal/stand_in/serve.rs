//! gRPC over HTTP/2: messages in, messages and a status out, and the faults between.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use bytes::{BufMut, Bytes, BytesMut};
use eyot_providers::modal::wire::{CLIENT, ROUTER, RpcDetail, RpcRetryPolicy, RpcStatus};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Request, Response};
use prost::Message;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::faults::{Fault, Faults};
use super::records::Records;
use super::{control, router};

/// The pieces of an answer that may wait to be sent.
const WAITING: usize = 4;

/// A refusal.
#[derive(Debug)]
pub struct Refusal {
    pub code: i32,
    pub message: &'static str,
}

/// Makes a refusal.
pub fn refusal<T>(code: i32, message: &'static str) -> Result<T, Refusal> {
    Err(Refusal { code, message })
}

/// An answer, message by message; an error is its status.
pub type Answer = mpsc::Receiver<Result<Vec<u8>, Refusal>>;

/// Makes an answer of one message.
pub fn one(message: Result<impl Message, Refusal>) -> Answer {
    let (sender, receiver) = mpsc::channel(WAITING);
    let message = message.map(|message| message.encode_to_vec());
    sender.try_send(message).expect("there is room for one");
    receiver
}

/// Makes an answer of many messages, and the end to which they go.
pub fn many() -> (mpsc::Sender<Result<Vec<u8>, Refusal>>, Answer) {
    mpsc::channel(WAITING)
}

/// Serves until the runtime ends.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    records: Arc<Records>,
    faults: Faults,
) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).expect("a socket");
        let (tls, records, faults) = (tls.clone(), Arc::clone(&records), faults.clone());
        tokio::spawn(async move {
            match tls {
                None => connection(stream, records, faults).await,
                Some(tls) => {
                    // A client that does not trust the certificate leaves.
                    if let Ok(stream) = TlsAcceptor::from(tls).accept(stream).await {
                        connection(stream, records, faults).await;
                    }
                }
            }
        });
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin, records: Arc<Records>, faults: Faults) {
    let Ok(mut connection) = h2::server::Builder::new()
        .max_concurrent_streams(100)
        .initial_window_size(4 << 20)
        .handshake::<_, Bytes>(stream)
        .await
    else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(call(request, respond, Arc::clone(&records), faults.clone()));
    }
}

async fn call(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    records: Arc<Records>,
    faults: Faults,
) {
    let (head, body) = request.into_parts();
    let Some(message) = only_message(body).await else { return };
    let path = head.uri.path().to_owned();
    let method = path.rsplit('/').next().unwrap_or_default().to_owned();
    let answered = async {
        if path.starts_with(CLIENT) {
            control::answer(&records, &method, &head.headers, message).await
        } else if path.starts_with(ROUTER) {
            router::answer(&records, &method, &head.headers, message).await
        } else {
            one(refusal::<()>(12, "there is no such service"))
        }
    };
    match faults.take(&method) {
        None => send(respond, answered.await, usize::MAX, true).await,
        Some(Fault::Refused(code, asked)) => refuse(respond, code, asked),
        Some(Fault::Http(status, asked)) => {
            plain(respond, status, asked.map(|s| ("retry-after", s.to_string())))
        }
        Some(Fault::Redirected(port)) => {
            plain(respond, 307, Some(("location", format!("http://127.0.0.1:{port}{path}"))));
        }
        Some(Fault::AnswerLost) => {
            drop(answered.await.recv().await);
            reset(respond);
        }
        Some(Fault::Cut(after)) => send(respond, answered.await, after, true).await,
        Some(Fault::NoStatus(after)) => send(respond, answered.await, after, false).await,
        Some(Fault::LastLost) => send_all_but_last(respond, answered.await).await,
        Some(Fault::Empty) => refuse(respond, 0, None),
        Some(Fault::Endless) => endless(respond).await,
        Some(Fault::Held) => {
            faults.hold().await;
            send(respond, answered.await, usize::MAX, true).await;
        }
        Some(Fault::AnswerHeld) => {
            let answer = answered.await;
            faults.hold().await;
            send(respond, answer, usize::MAX, true).await;
        }
        Some(Fault::Silent) => std::future::pending().await,
    }
}

/// Reads the message of a request.
async fn only_message(mut body: RecvStream) -> Option<Bytes> {
    let mut read = BytesMut::new();
    while let Some(piece) = body.data().await {
        let piece = piece.ok()?;
        body.flow_control().release_capacity(piece.len()).ok()?;
        read.extend_from_slice(&piece);
    }
    (read.len() >= 5).then(|| read.freeze().slice(5..))
}

fn reset(mut respond: SendResponse<Bytes>) {
    respond.send_reset(h2::Reason::INTERNAL_ERROR);
}

fn head(status: u16) -> Response<()> {
    Response::builder().status(status).header("content-type", "application/grpc").body(()).expect("a head")
}

/// Answers as something that does not speak gRPC.
fn plain(mut respond: SendResponse<Bytes>, status: u16, header: Option<(&str, String)>) {
    let mut response = Response::builder().status(status).header("content-type", "text/html");
    if let Some((name, value)) = header {
        response = response.header(name, value);
    }
    // A client that has left needs no answer.
    drop(respond.send_response(response.body(()).expect("a head"), true));
}

fn refuse(mut respond: SendResponse<Bytes>, code: i32, asked: Option<f32>) {
    let mut response = head(200);
    *response.headers_mut() = trailers(code, "a%20fault%20that%20was%20planned", asked);
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    drop(respond.send_response(response, true));
}

fn trailers(code: i32, message: &str, asked: Option<f32>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.to_string().parse().expect("a number"));
    if code != 0 {
        trailers.insert("grpc-message", message.replace(' ', "%20").parse().expect("a word"));
    }
    if let Some(retry_after_secs) = asked {
        let value = RpcRetryPolicy { retry_after_secs }.encode_to_vec().into();
        let detail = RpcDetail { type_url: "type.googleapis.com/modal.client.RPCRetryPolicy".into(), value };
        let details = RpcStatus { code, details: vec![detail] }.encode_to_vec();
        trailers.insert("grpc-status-details-bin", STANDARD_NO_PAD.encode(details).parse().expect("base64"));
    }
    trailers
}

/// Sends an answer, and breaks off after so many bytes.
async fn send(mut respond: SendResponse<Bytes>, mut answer: Answer, mut left: usize, resets: bool) {
    let Ok(mut body) = respond.send_response(head(200), false) else { return };
    let (mut code, mut message) = (0, "");
    loop {
        let next = tokio::select! {
            next = answer.recv() => next,
            _ = std::future::poll_fn(|context| body.poll_reset(context)) => return,
        };
        match next {
            None => break,
            Some(Err(refusal)) => {
                (code, message) = (refusal.code, refusal.message);
                break;
            }
            Some(Ok(bytes)) => {
                let framed = framed(&bytes);
                let piece = framed.slice(..framed.len().min(left));
                left -= piece.len();
                if write(&mut body, piece).await.is_none() {
                    return;
                }
                if left == 0 {
                    if resets {
                        body.send_reset(h2::Reason::INTERNAL_ERROR);
                    } else {
                        drop(body.send_data(Bytes::new(), true));
                    }
                    return;
                }
            }
        }
    }
    drop(body.send_trailers(trailers(code, message, None)));
}

/// Sends all messages of an answer but the last, and breaks off.
async fn send_all_but_last(mut respond: SendResponse<Bytes>, mut answer: Answer) {
    let Ok(mut body) = respond.send_response(head(200), false) else { return };
    let mut held = None;
    while let Some(Ok(message)) = answer.recv().await {
        if let Some(before) = held.replace(framed(&message))
            && write(&mut body, before).await.is_none()
        {
            return;
        }
    }
    body.send_reset(h2::Reason::INTERNAL_ERROR);
}

fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).expect("a short message"));
    framed.extend_from_slice(message);
    framed.freeze()
}

/// Sends bytes as the client takes them; `None`: it has left.
async fn write(body: &mut SendStream<Bytes>, mut bytes: Bytes) -> Option<()> {
    while !bytes.is_empty() {
        body.reserve_capacity(bytes.len());
        match std::future::poll_fn(|context| body.poll_capacity(context)).await? {
            Ok(size) => {
                let piece = bytes.split_to(size.min(bytes.len()));
                if !piece.is_empty() {
                    body.send_data(piece, false).ok()?;
                }
            }
            Err(_) => return None,
        }
    }
    Some(())
}

async fn endless(mut respond: SendResponse<Bytes>) {
    let Ok(mut body) = respond.send_response(head(200), false) else { return };
    let header = Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]);
    let piece = Bytes::from(vec![0; 64 << 10]);
    if write(&mut body, header).await.is_none() {
        return;
    }
    while write(&mut body, piece.clone()).await.is_some() {}
}
