//! Takes requests in any of the protocols, plays the turn that each asks for, and remembers what was asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::{StreamExt, stream};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::dialect::{Refused, Request, anthropic, chat, gemini, responses};
use crate::script::{Script, Trouble, TroubleKind, Turn, Usage};

/// Conversations grow; nothing here is large.
const MOST_BYTES: usize = 64 * 1024 * 1024;
const BETWEEN_WORDS: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// A request and what was answered.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    pub protocol: Protocol,
    pub model: String,
    /// The key that the engine sent.
    pub key: String,
    /// `None`: a side question, such as a title.
    pub turn: Option<usize>,
    pub trouble: Option<TroubleKind>,
    /// What an answer was said to cost; nothing for errors.
    pub usage: Option<Usage>,
    /// As it came: the whole conversation so far.
    pub body: Value,
}

#[derive(Debug)]
struct Play {
    script: Script,
    asked: Mutex<Vec<Asked>>,
    /// Those of the script and later ones, and how often each has come.
    troubles: Mutex<Vec<(Trouble, u32)>>,
}

/// Serves until it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    play: Arc<Play>,
    serving: JoinHandle<()>,
}

impl ScriptedModel {
    pub async fn start(script: Script) -> std::io::Result<Self> {
        Self::listen(script, SocketAddr::from(([127, 0, 0, 1], 0))).await
    }

    pub async fn listen(script: Script, address: SocketAddr) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let troubles = script.troubles.iter().map(|trouble| (trouble.clone(), 0)).collect();
        let play = Arc::new(Play { script, asked: Mutex::default(), troubles: Mutex::new(troubles) });
        let routes = routes(Arc::clone(&play));
        let serving = tokio::spawn(async move {
            // It only ends with the listener, which lives as long as this task.
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, play, serving })
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that was asked so far, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.play.asked.lock().clone()
    }

    /// From now on this goes wrong, too.
    pub fn begins(&self, trouble: Trouble) {
        self.play.troubles.lock().push((trouble, 0));
    }

    /// Until somebody stops the process.
    pub async fn wait(mut self) {
        let _ = (&mut self.serving).await;
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn routes(play: Arc<Play>) -> Router {
    Router::new()
        .route("/asked", get(asked))
        .route("/v1/messages", post(messages))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .route("/v1/responses", post(responses_api))
        .route("/v1/chat/completions", post(chat_api))
        .route("/v1beta/models/{call}", post(gemini_api))
        .route("/v1/models", get(models))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(play)
}

async fn asked(State(play): State<Arc<Play>>) -> Response {
    axum::Json(play.asked.lock().clone()).into_response()
}

async fn models() -> Response {
    axum::Json(json!({ "object": "list", "data": [] })).into_response()
}

async fn count_tokens() -> Response {
    axum::Json(json!({ "input_tokens": Usage::default().input })).into_response()
}

async fn messages(State(play): State<Arc<Play>>, headers: HeaderMap, body: Bytes) -> Response {
    play.answer(Protocol::Anthropic, &headers, &body, anthropic::read).await
}

async fn responses_api(State(play): State<Arc<Play>>, headers: HeaderMap, body: Bytes) -> Response {
    play.answer(Protocol::Responses, &headers, &body, responses::read).await
}

async fn chat_api(State(play): State<Arc<Play>>, headers: HeaderMap, body: Bytes) -> Response {
    play.answer(Protocol::Chat, &headers, &body, chat::read).await
}

/// The model and what is to be done stand in one part of the address: `gemini-2.5-pro:streamGenerateContent`.
async fn gemini_api(
    State(play): State<Arc<Play>>,
    Path(call): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let Some((model, verb)) = call.split_once(':') else { return StatusCode::NOT_FOUND.into_response() };
    match verb {
        "countTokens" => axum::Json(json!({ "totalTokens": Usage::default().input })).into_response(),
        "generateContent" | "streamGenerateContent" => {
            let streams = verb.starts_with("stream");
            play.answer(Protocol::Gemini, &headers, &body, |body| gemini::read(body, model, streams)).await
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

impl Play {
    async fn answer(
        &self,
        protocol: Protocol,
        headers: &HeaderMap,
        body: &Bytes,
        read: impl FnOnce(&Value) -> Request,
    ) -> Response {
        let Ok(body) = serde_json::from_slice::<Value>(body) else {
            return (StatusCode::BAD_REQUEST, "the request is not JSON").into_response();
        };
        let request = read(&body);
        let asked = |trouble, usage| Asked {
            protocol,
            model: request.model.clone(),
            key: key_of(headers),
            turn: (!request.is_side_question()).then_some(request.turn),
            trouble,
            usage,
            body: body.clone(),
        };
        if request.is_side_question() {
            let turn = Turn { say: "A title".to_owned(), ..Turn::default() };
            self.asked.lock().push(asked(None, Some(turn.usage)));
            return side_answer(protocol, &request, &turn);
        }
        let turn = self.script.turn(request.turn);
        if let Some(kind) = self.trouble_at(request.turn) {
            let charged = kind == TroubleKind::Refusal;
            self.asked.lock().push(asked(Some(kind), charged.then_some(turn.usage)));
            return trouble(protocol, &request, &turn, kind).await;
        }
        self.asked.lock().push(asked(None, Some(turn.usage)));
        play_turn(protocol, &request, &turn)
    }

    fn trouble_at(&self, turn: usize) -> Option<TroubleKind> {
        let mut troubles = self.troubles.lock();
        let (trouble, came) =
            troubles.iter_mut().find(|(trouble, came)| trouble.turn == turn && *came < trouble.times)?;
        *came += 1;
        Some(trouble.kind)
    }
}

/// Wherever the protocols put it.
fn key_of(headers: &HeaderMap) -> String {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").map(|value| value.trim_start_matches("Bearer "));
    text("x-api-key").or(text("x-goog-api-key")).or(bearer).unwrap_or_default().to_owned()
}

fn play_turn(protocol: Protocol, request: &Request, turn: &Turn) -> Response {
    let calls = request.calls(turn);
    if !request.streams {
        let whole = match protocol {
            Protocol::Anthropic => anthropic::whole(request, turn, &calls),
            Protocol::Responses => responses::whole(request, turn, &calls),
            Protocol::Chat => chat::whole(request, turn, &calls),
            Protocol::Gemini => gemini::whole(request, turn, &calls),
        };
        return axum::Json(whole).into_response();
    }
    let (start, rest) = match protocol {
        Protocol::Anthropic => anthropic::stream(request, turn, &calls),
        Protocol::Responses => responses::stream(request, turn, &calls),
        Protocol::Chat => chat::stream(request, turn, &calls),
        Protocol::Gemini => gemini::stream(request, turn, &calls),
    };
    events(Body::from(start + &rest))
}

fn side_answer(protocol: Protocol, request: &Request, turn: &Turn) -> Response {
    if protocol != Protocol::Gemini {
        return play_turn(protocol, request, turn);
    }
    let answer = gemini::side_answer(request, turn.usage);
    if request.streams {
        events(Body::from(format!("data: {answer}\n\n")))
    } else {
        axum::Json(answer).into_response()
    }
}

async fn trouble(protocol: Protocol, request: &Request, turn: &Turn, kind: TroubleKind) -> Response {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let refused = match protocol {
        Protocol::Anthropic => anthropic::refused(kind, now),
        Protocol::Responses | Protocol::Chat => responses::refused(kind, now),
        Protocol::Gemini => gemini::refused(kind, now),
    };
    if let Some(Refused { status, headers, body }) = refused {
        let mut response = (status, axum::Json(body)).into_response();
        for (name, value) in headers {
            if let Ok(value) = value.parse() {
                response.headers_mut().insert(name, value);
            }
        }
        return response;
    }
    let (start, rest) = match protocol {
        Protocol::Anthropic => anthropic::stream(request, turn, &[]),
        Protocol::Responses => responses::stream(request, turn, &[]),
        Protocol::Chat => chat::stream(request, turn, &[]),
        Protocol::Gemini => gemini::stream(request, turn, &[]),
    };
    match kind {
        TroubleKind::Refusal => {
            let words = match protocol {
                Protocol::Anthropic => anthropic::refusal(request, turn.usage),
                Protocol::Responses => start + &responses::refusal(request, turn.usage),
                Protocol::Chat => start + &chat::refusal(request, turn.usage),
                Protocol::Gemini => gemini::refusal(request, turn.usage),
            };
            events(Body::from(words))
        }
        TroubleKind::Cut => {
            // Half of the rest, and then an error instead of an end.
            let half = rest.len() / 2;
            let half = (half..=rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
            let begun = start + &rest[..half];
            // Not at once, so that what was begun is on its way.
            let cut = stream::once(async {
                tokio::time::sleep(BETWEEN_WORDS).await;
                Err(std::io::Error::other("cut"))
            });
            events(Body::from_stream(stream::iter([Ok(Bytes::from(begun))]).chain(cut)))
        }
        TroubleKind::Endless => events(endless(protocol, request, start)),
        // Everything else was refused above.
        _ => std::future::pending().await,
    }
}

fn endless(protocol: Protocol, request: &Request, start: String) -> Body {
    let words = |first| match protocol {
        Protocol::Anthropic => anthropic::more_words(first),
        Protocol::Responses => responses::more_words(first),
        Protocol::Chat => chat::more_words(request),
        Protocol::Gemini => gemini::more_words(request),
    };
    let (first, next) = (start + &words(true), words(false));
    let rest = stream::unfold(next, |next| async move {
        tokio::time::sleep(BETWEEN_WORDS).await;
        Some((next.clone(), next))
    });
    let all = stream::iter([first]).chain(rest).map(|words| Ok::<_, Infallible>(Bytes::from(words)));
    Body::from_stream(all)
}

fn events(body: Body) -> Response {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert("content-type", axum::http::HeaderValue::from_static("text/event-stream"));
    headers.insert("cache-control", axum::http::HeaderValue::from_static("no-cache"));
    response
}
