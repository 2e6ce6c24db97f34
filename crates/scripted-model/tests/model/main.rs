//! The scripted model as an engine sees it: each protocol over real HTTP, turn by turn.
#![expect(clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::time::Duration;

use giga_scripted_model::{Act, Script, ScriptedModel, Trouble, TroubleKind, Turn, Usage};
use serde_json::{Value, json};

fn script(troubles: Vec<Trouble>) -> Script {
    let usage = |input| Usage { input, cache_read: 7, output: 3 };
    Script {
        turns: vec![
            Turn {
                say: "Looking.".to_owned(),
                acts: vec![Act::Write { path: "a.txt".to_owned(), content: "a\n".to_owned() }],
                usage: usage(11),
            },
            Turn { say: String::new(), acts: vec![Act::Run("make".to_owned())], usage: usage(12) },
            Turn { say: "Done.".to_owned(), acts: Vec::new(), usage: usage(13) },
        ],
        troubles,
    }
}

async fn ask(model: &ScriptedModel, path: &str, body: &Value) -> (u16, String) {
    let client = reqwest::Client::new();
    let answer = client
        .post(format!("{}{path}", model.url()))
        .header("x-api-key", "k")
        .json(body)
        .send()
        .await
        .unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

/// The data of all events.
fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// A conversation in each protocol with so many turns behind it: where it is sent, and what.
fn conversations(turns: usize, stream: bool) -> Vec<(&'static str, String, Value)> {
    let repeated = |one: Value| -> Vec<Value> {
        std::iter::repeat_n(one.as_array().unwrap().clone(), turns).flatten().collect()
    };
    let told = "Working directory: /jobs/app\n";
    let user = json!([{ "role": "user", "content": told }]);
    let history =
        repeated(json!([{ "role": "assistant", "content": "x" }, { "role": "user", "content": "y" }]));
    let messages = [user.as_array().unwrap().clone(), history].concat();
    let anthropic = json!({ "model": "m", "stream": stream, "messages": messages, "tools": [{ "name": "Write" }, { "name": "Bash" }] });
    let named = |name: &str| json!({ "type": "function", "function": { "name": name } });
    let chat = json!({ "model": "m", "stream": stream, "messages": messages, "tools": [named("write"), named("bash")] });
    // A turn of it is several items.
    let items = repeated(json!([
        { "type": "reasoning" }, { "type": "message", "role": "assistant", "content": [] },
        { "type": "function_call", "call_id": "c" }, { "type": "function_call_output", "call_id": "c" },
    ]));
    let first =
        json!({ "role": "user", "content": [{ "type": "input_text", "text": "<cwd>/jobs/app</cwd>" }] });
    let input = [vec![first], items].concat();
    let responses =
        json!({ "model": "m", "stream": stream, "input": input, "tools": [{ "name": "exec_command" }] });
    let parts = |role: &str, text: &str| json!({ "role": role, "parts": [{ "text": text }] });
    let contents =
        [vec![parts("user", told)], repeated(json!([parts("model", "x"), parts("user", "y")]))].concat();
    let declared = json!([{ "name": "write_file" }, { "name": "run_shell_command" }]);
    let gemini = json!({ "contents": contents, "tools": [{ "functionDeclarations": declared }] });
    let verb = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
    vec![
        ("anthropic", "/v1/messages".to_owned(), anthropic),
        ("chat", "/v1/chat/completions".to_owned(), chat),
        ("responses", "/v1/responses".to_owned(), responses),
        ("gemini", format!("/v1beta/models/m:{verb}"), gemini),
    ]
}

#[tokio::test]
async fn the_turn_follows_from_the_conversation_and_its_tools_are_the_engines() {
    let model = ScriptedModel::start(script(Vec::new())).await.unwrap();
    for (turn, words) in [(0, "a.txt"), (1, "make"), (2, "Done."), (3, "nothing more")] {
        for (protocol, path, body) in conversations(turn, true) {
            let (status, text) = ask(&model, &path, &body).await;
            assert_eq!(status, 200, "{protocol}: {text}");
            assert!(text.contains(words), "{protocol} {turn}: {text}");
            let absolute = text.contains("/jobs/app/a.txt") || protocol == "responses";
            assert!(turn > 0 || absolute, "{protocol}: {text}");
            assert!(!events(&text).is_empty(), "{protocol}: {text}");
        }
        for (protocol, path, body) in conversations(turn, false) {
            let (_, text) = ask(&model, &path, &body).await;
            assert!(
                serde_json::from_str::<Value>(&text).is_ok() && text.contains(words),
                "{protocol}: {text}"
            );
        }
    }
    let asked = model.asked();
    assert_eq!(asked.len(), 32);
    let of_first = asked.iter().filter(|asked| asked.turn == Some(0));
    assert!(of_first.clone().all(|asked| asked.usage.unwrap().input == 11 && asked.key == "k"));
    assert_eq!(of_first.count(), 8);
}

#[tokio::test]
async fn usage_is_told_as_each_protocol_counts_it() {
    let model = ScriptedModel::start(script(Vec::new())).await.unwrap();
    let mut told = Vec::new();
    for (_, path, body) in conversations(1, false) {
        let answer: Value = serde_json::from_str(&ask(&model, &path, &body).await.1).unwrap();
        told.push(if answer["usage"].is_object() {
            answer["usage"].clone()
        } else {
            answer["usageMetadata"].clone()
        });
    }
    // The cache is apart for Anthropic, and part of the input for the others.
    assert_eq!((&told[0]["input_tokens"], &told[0]["cache_read_input_tokens"]), (&json!(12), &json!(7)));
    assert_eq!((&told[1]["prompt_tokens"], &told[1]["completion_tokens"]), (&json!(19), &json!(3)));
    assert_eq!((&told[2]["input_tokens"], &told[2]["total_tokens"]), (&json!(19), &json!(22)));
    assert_eq!((&told[3]["promptTokenCount"], &told[3]["cachedContentTokenCount"]), (&json!(19), &json!(7)));
}

#[tokio::test]
async fn a_question_without_tools_is_no_turn() {
    let model = ScriptedModel::start(script(Vec::new())).await.unwrap();
    for (protocol, path, mut body) in conversations(0, false) {
        body.as_object_mut().unwrap().remove("tools");
        let (status, text) = ask(&model, &path, &body).await;
        assert!(status == 200 && !text.contains("a.txt"), "{protocol}: {text}");
    }
    assert!(model.asked().iter().all(|asked| asked.turn.is_none()));
}

#[tokio::test]
async fn troubles_come_as_often_as_they_should() {
    let reset = Some(30);
    for (kind, statuses) in [
        (TroubleKind::SignedOut, [401, 401, 401, 400]),
        (TroubleKind::RateLimited { reset_secs: reset }, [429; 4]),
        (TroubleKind::QuotaExhausted { reset_secs: reset }, [429; 4]),
        (TroubleKind::Overloaded, [529, 503, 503, 503]),
        (TroubleKind::ContextTooLong, [400; 4]),
    ] {
        let trouble = Trouble { turn: 1, times: 4, kind };
        let model = ScriptedModel::start(script(vec![trouble])).await.unwrap();
        for ((protocol, path, body), status) in conversations(1, true).into_iter().zip(statuses) {
            assert_eq!(ask(&model, &path, &body).await.0, status, "{protocol} {kind:?}");
        }
        let (_, path, body) = conversations(1, true).remove(0);
        assert_eq!(ask(&model, &path, &body).await.0, 200, "it is over after four");
        let asked = model.asked();
        assert!(asked[..4].iter().all(|asked| asked.trouble == Some(kind) && asked.usage.is_none()));
    }
}

#[tokio::test]
async fn an_answer_can_be_cut_refused_endless_or_missing() {
    let with = |kind| ScriptedModel::start(script(vec![Trouble { turn: 0, times: u32::MAX, kind }]));
    let client = reqwest::Client::new();
    for (protocol, path, body) in conversations(0, true) {
        let cut = with(TroubleKind::Cut).await.unwrap();
        let answer = client.post(format!("{}{path}", cut.url())).json(&body).send().await.unwrap();
        assert!(answer.bytes().await.is_err(), "{protocol}");

        let refusing = with(TroubleKind::Refusal).await.unwrap();
        let (status, text) = ask(&refusing, &path, &body).await;
        let words = ["refusal", "content_filter", "SAFETY"];
        assert!(status == 200 && words.iter().any(|word| text.contains(word)), "{protocol}: {text}");

        let endless = with(TroubleKind::Endless).await.unwrap();
        let mut answer = client.post(format!("{}{path}", endless.url())).json(&body).send().await.unwrap();
        let mut heard = String::new();
        while heard.matches("and so on").count() < 3 {
            heard += &String::from_utf8_lossy(&answer.chunk().await.unwrap().unwrap());
        }

        let silent = with(TroubleKind::Silence).await.unwrap();
        let waiting =
            client.post(format!("{}{path}", silent.url())).json(&body).timeout(Duration::from_millis(300));
        assert!(waiting.send().await.unwrap_err().is_timeout(), "{protocol}");
    }
}

#[test]
fn a_script_is_read_from_json() {
    let text = r#"{"turns": [{"say": "hi", "do": [{"run": "make"}, {"read": {"path": "a"}}]}],
        "troubles": [{"turn": 0, "times": 1, "kind": {"rate_limited": {"reset_secs": 5}}}]}"#;
    let script = Script::from_json(text).unwrap();
    assert_eq!(script.turns[0].acts[0], Act::Run("make".to_owned()));
    assert_eq!(script.troubles[0].kind, TroubleKind::RateLimited { reset_secs: Some(5) });
    assert!(Script::from_json(r#"{"turns": [], "trouble": []}"#).is_err());
}
