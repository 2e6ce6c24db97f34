//! An agent that speaks ACP by the library's own agent side, and does as it is told, badly on demand.
//!
//! Told by the lines of the variable FAKE_ACP, once per prompt; `turn` ends the lines of one. Sessions are files in its
//! home, so that a later process can load them. Never needs a network.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    AgentCapabilities, CancelNotification, ContentBlock, ContentChunk, Cost, Implementation,
    InitializeRequest, InitializeResponse, LoadSessionRequest, LoadSessionResponse, NewSessionRequest,
    NewSessionResponse, PermissionOption, PermissionOptionKind, PromptRequest, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, SessionId, SessionNotification, SessionUpdate,
    StopReason, TextContent, ToolCallLocation, ToolCallUpdate, ToolCallUpdateFields, ToolKind, Usage,
    UsageUpdate,
};
use agent_client_protocol::{Agent, Client, Error, Lines};
use futures::StreamExt as _;
use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;

const HELP: &str = "steps, one per line:
  say TEXT          a piece of a message
  line TEXT         the same, with the end of its line
  edit FILE TEXT    asks leave to write the file, and writes it
  run FILE          asks leave to run a command, and leaves the file
  usage TOKENS      what the turn has used
  cost DOLLARS      what the session has cost so far
  context TOKENS    what is in its context
  junk              a line that is no message, and a message that nobody knows
  complain TEXT     a line on standard error
  stop REASON       ends the turn so
  fail TEXT         ends the turn with an error
  hang              nothing, until it is cancelled
  deaf              nothing, for ever
  exit N            ends with that status
  show-prompt       the prompt, as a message
  turn              the next prompt gets what follows
  signed-out        no session without an account
  no-load           it cannot load sessions";

const JUNK: [&str; 3] = [
    "this is no message",
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"x","update":{"sessionUpdate":"of_next_year"}}}"#,
    r#"{"jsonrpc":"2.0","method":"_vendor/news","params":{}}"#,
];

#[derive(Default)]
struct State {
    turn: usize,
}

struct Fake {
    turns: Vec<Vec<String>>,
    state: Mutex<State>,
    cancelled: Notify,
}

fn home() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").expect("it has a home")).join(".fake-acp/sessions")
}

fn has(step: &str) -> bool {
    std::env::var("FAKE_ACP").is_ok_and(|steps| steps.lines().any(|line| line.trim() == step))
}

fn say(agent: &ConnectionTo<Client>, session: &SessionId, update: SessionUpdate) -> Result<(), Error> {
    agent.send_notification(SessionNotification::new(session.clone(), update))
}

fn words(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::Text(TextContent::new(text))))
}

/// Whether it may.
async fn ask(
    agent: &ConnectionTo<Client>,
    session: &SessionId,
    title: String,
    kind: ToolKind,
    file: &str,
) -> Result<bool, Error> {
    let mut fields = ToolCallUpdateFields::new();
    (fields.title, fields.kind) = (Some(title), Some(kind));
    fields.locations = Some(vec![ToolCallLocation::new(file)]);
    let option = |id: &str, name: &str, kind| PermissionOption::new(id.to_owned(), name, kind);
    let options = vec![
        option("a", "Always", PermissionOptionKind::AllowAlways),
        option("o", "Once", PermissionOptionKind::AllowOnce),
        option("n", "No", PermissionOptionKind::RejectOnce),
    ];
    let call = ToolCallUpdate::new("call-1", fields);
    let request = RequestPermissionRequest::new(session.clone(), call, options);
    let answer = agent.send_request(request).block_task().await?;
    Ok(match answer.outcome {
        RequestPermissionOutcome::Selected(chosen) => &*chosen.option_id.0 != "n",
        _ => false,
    })
}

impl Fake {
    async fn prompt(
        &self,
        prompt: PromptRequest,
        agent: &ConnectionTo<Client>,
    ) -> Result<PromptResponse, Error> {
        let turn = {
            let mut state = self.state.lock();
            state.turn += 1;
            state.turn - 1
        };
        let session = &prompt.session_id;
        let (mut stop, mut usage) = (StopReason::EndTurn, None);
        for step in self.turns.get(turn).into_iter().flatten() {
            let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
            match word {
                "say" => say(agent, session, words(rest))?,
                "line" => say(agent, session, words(&format!("{rest}\n")))?,
                "show-prompt" => {
                    let text = prompt.prompt.iter().filter_map(|block| match block {
                        ContentBlock::Text(text) => Some(text.text.as_str()),
                        _ => None,
                    });
                    say(agent, session, words(&text.collect::<String>()))?;
                }
                "edit" => {
                    let (file, text) = rest.split_once(' ').unwrap_or((rest, ""));
                    if ask(agent, session, format!("write {file}"), ToolKind::Edit, file).await? {
                        std::fs::write(file, text).map_err(Error::into_internal_error)?;
                    } else {
                        say(agent, session, words(&format!("may not write {file}\n")))?;
                    }
                }
                "run" => {
                    if ask(agent, session, format!("run {rest}"), ToolKind::Execute, rest).await? {
                        std::fs::write(rest, "ran\n").map_err(Error::into_internal_error)?;
                    } else {
                        say(agent, session, words(&format!("may not run {rest}\n")))?;
                    }
                }
                "usage" => usage = rest.parse().ok().map(|tokens: u64| Usage::new(tokens, tokens, 0)),
                "cost" => {
                    let cost = Cost::new(rest.parse::<f64>().unwrap_or(0.0), "USD");
                    say(agent, session, SessionUpdate::UsageUpdate(UsageUpdate::new(0, 9).cost(cost)))?;
                }
                "context" => {
                    let update = UsageUpdate::new(rest.parse().unwrap_or(0), 1_000_000);
                    say(agent, session, SessionUpdate::UsageUpdate(update))?;
                }
                "junk" => {
                    let mut out = std::io::stdout();
                    for line in JUNK {
                        writeln!(out, "{line}").map_err(Error::into_internal_error)?;
                    }
                }
                "complain" => writeln!(std::io::stderr(), "{rest}").map_err(Error::into_internal_error)?,
                "stop" => {
                    stop = serde_json::from_value(rest.into()).map_err(Error::into_internal_error)?;
                }
                "fail" => return Err(Error::internal_error().data(rest)),
                "hang" => {
                    self.cancelled.notified().await;
                    say(agent, session, words("I was cancelled.\n"))?;
                    return Ok(PromptResponse::new(StopReason::Cancelled).usage(Usage::new(7, 7, 0)));
                }
                "deaf" => std::future::pending::<()>().await,
                "exit" => std::process::exit(rest.parse().unwrap_or(0)),
                _ => {}
            }
        }
        Ok(PromptResponse::new(stop).usage(usage))
    }
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let steps = std::env::var("FAKE_ACP").unwrap_or_default();
    if std::env::args().any(|word| word == "--help") {
        return writeln!(std::io::stdout(), "{HELP}").map_err(Error::into_internal_error);
    }
    let mut turns = vec![Vec::new()];
    for line in steps.lines() {
        match line.trim() {
            "turn" => turns.push(Vec::new()),
            step => turns.last_mut().expect("there is a first turn").push(step.to_owned()),
        }
    }
    let fake = Arc::new(Fake { turns, state: Mutex::default(), cancelled: Notify::new() });
    let (prompted, cancelled) = (Arc::clone(&fake), Arc::clone(&fake));
    let input = BufReader::new(tokio::io::stdin()).lines();
    let input = futures::stream::unfold(input, async |mut lines| {
        lines.next_line().await.transpose().map(|line| (line, lines))
    });
    let output = futures::sink::unfold(tokio::io::stdout(), async |mut stdout, line: String| {
        stdout.write_all(format!("{line}\n").as_bytes()).await?;
        stdout.flush().await?;
        Ok::<_, std::io::Error>(stdout)
    });
    Agent
        .v1()
        .name("fake")
        .on_receive_request(
            async move |hello: InitializeRequest, responder, _client| {
                let capabilities = AgentCapabilities::new().load_session(!has("no-load"));
                responder.respond(
                    InitializeResponse::new(hello.protocol_version)
                        .agent_capabilities(capabilities)
                        .agent_info(Implementation::new("fake", "1.2.3")),
                )
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |_new: NewSessionRequest, responder, _client| {
                if has("signed-out") {
                    return responder.respond_with_error(Error::auth_required());
                }
                let id = format!("session-{}", std::process::id());
                std::fs::create_dir_all(home()).map_err(Error::into_internal_error)?;
                std::fs::write(home().join(&id), "").map_err(Error::into_internal_error)?;
                responder.respond(NewSessionResponse::new(id))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |load: LoadSessionRequest, responder, client| {
                if !home().join(&*load.session_id.0).is_file() {
                    return responder.respond_with_error(Error::new(-32002, "Resource not found"));
                }
                // The history, as loading repeats it: before the answer and after it.
                say(&client, &load.session_id, words("old words\n"))?;
                responder.respond(LoadSessionResponse::new())?;
                say(&client, &load.session_id, words("more old words\n"))
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |prompt: PromptRequest, responder, client| {
                let fake = Arc::clone(&prompted);
                let agent = client.clone();
                client.spawn(async move {
                    match fake.prompt(prompt, &agent).await {
                        Ok(response) => responder.respond(response),
                        Err(error) => responder.respond_with_error(error),
                    }
                })
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_notification(
            async move |_cancel: CancelNotification, _client| {
                cancelled.cancelled.notify_one();
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .connect_to(Lines::new(Box::pin(output), input.boxed()))
        .await
}
