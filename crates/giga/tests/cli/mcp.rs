//! Tools over the Model Context Protocol, driven by a foreign client: the official SDK for Python, on standard streams and
//! over HTTP. And inside a job, by a script in its sandbox.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::bench::{Reader, up};
use crate::world::{Home, giga, run_with_input};

/// Python with the packages that `cargo xtask setup` put there, and nothing else of the surroundings.
fn python(home: &Path) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = root.join("target/tools/mcp-client");
    assert!(packages.join("requirements.txt").exists(), "run `cargo xtask setup` first");
    let mut command = Command::new("python3");
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", home);
    command.env("PYTHONPATH", packages.canonicalize().unwrap()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(root.join("tests/mcp-client/client.py").canonicalize().unwrap());
    command
}

/// A client that has shaken hands.
struct Client {
    process: Child,
    calls: ChildStdin,
    answers: BufReader<ChildStdout>,
    server: Value,
}

impl Client {
    fn start(mut command: Command, stderr: PathBuf) -> Self {
        let errors = std::fs::File::create(&stderr).unwrap();
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let (calls, answers) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let mut client = Self { process, calls, answers: BufReader::new(answers), server: Value::Null };
        client.server = client.line(&stderr);
        client
    }

    fn line(&mut self, stderr: &Path) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{line:?}: {}", std::fs::read_to_string(stderr).unwrap_or_default()))
    }

    fn call(&mut self, name: &str, arguments: Value) -> Value {
        writeln!(self.calls, "{}", json!({"name": name, "arguments": arguments})).unwrap();
        self.line(Path::new(""))
    }

    /// Of a call that is taken: the facts, and the text after them if there is one.
    #[track_caller]
    fn takes(&mut self, name: &str, arguments: Value) -> (Value, String) {
        let gave = self.call(name, arguments);
        assert_eq!((&gave["isError"], &gave["valid"]), (&json!(false), &json!(true)), "{name}: {gave}");
        let text = gave["texts"][1].as_str().unwrap_or_default().to_owned();
        (serde_json::from_str(gave["texts"][0].as_str().unwrap()).unwrap(), text)
    }

    #[track_caller]
    fn refuses(&mut self, name: &str, arguments: Value, needle: &str) {
        let gave = self.call(name, arguments);
        assert_eq!(gave["isError"], true, "{name}: {gave}");
        assert!(gave["texts"][0].as_str().unwrap().contains(needle), "no `{needle}` in {gave}");
    }

    fn ends(mut self) {
        drop(self.calls);
        assert!(self.process.wait().unwrap().success());
    }
}

/// From a submit to what is known of the job, whichever way the tools are reached.
fn drive(client: &mut Client) {
    assert_eq!(client.server["server"], "giga", "{}", client.server);
    let tools = client.server["tools"].as_object().unwrap();
    assert_eq!(tools["list_jobs"]["read_only_hint"], true, "{tools:?}");
    assert_eq!(
        (&tools["cancel_job"]["read_only_hint"], &tools["cancel_job"]["destructive_hint"]),
        (&json!(false), &json!(true))
    );
    let job = json!({"manifest": {"name": "from-afar", "product": "demo"}, "prompt": "Say hello."});
    let (plan, _) = client.takes("plan_job", job.clone());
    assert_eq!(plan["routable"], false, "no factory is there: {plan}");
    let (made, _) = client.takes("submit_job", job);
    let id = made["job"]["id"].clone();
    let (listed, _) = client.takes("list_jobs", json!({"name": "from-afar", "stages": ["queued"]}));
    assert_eq!(listed["jobs"][0]["id"], id);
    let (why, _) = client.takes("explain_job", json!({"jobId": id}));
    assert!(why["summary"].as_str().unwrap().len() > 10, "{why}");
    client.refuses("submit_job", json!({"manifest": {"nam": "x"}}), "did you mean `name`?");
    client.refuses("show_job", json!({"jobId": "nonsense"}), "list_jobs has the ids");
    client.refuses("read_diff", json!({"jobId": id}), "has no result yet");
    let (ended, _) = client.takes("cancel_job", json!({"jobId": id}));
    assert_eq!(ended["stage"], "cancelled");
}

#[test]
fn a_foreign_client_uses_the_fleet_over_standard_streams() {
    let home = Home::new();
    let server = home.start();
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    for mode in ["legacy", "auto"] {
        let mut command = python(home.path());
        command.args(["stdio", mode, env!("CARGO_BIN_EXE_giga"), "mcp"]);
        command.env("GIGA_URL", &server.url).env("GIGA_TOKEN", token.trim());
        let mut client = Client::start(command, home.path().join("client.log"));
        drive(&mut client);
        client.ends();
    }
}

#[test]
fn a_foreign_client_uses_the_fleet_over_http() {
    let home = Home::new();
    let server = home.start();
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    let client = |mode: &str, token: &str| {
        let mut command = python(home.path());
        command.args(["http", mode, &format!("{}/mcp", server.url)]).env("GIGA_TOKEN", token);
        Client::start(command, home.path().join("client.log"))
    };
    for mode in ["legacy", "auto"] {
        let mut client = client(mode, token.trim());
        drive(&mut client);
        client.ends();
    }
    let viewer = home.giga(&["token", "create", "--role", "viewer", "--product", "demo"]).ok();
    let mut client = client("legacy", viewer.trim());
    client.takes("list_jobs", json!({}));
    let job = json!({"manifest": {"name": "no", "product": "demo"}});
    client.refuses("submit_job", job, "this call needs the role submitter or higher");
    client.ends();
}

#[test]
fn standard_output_has_nothing_but_the_protocol() {
    let home = Home::new();
    let server = home.start();
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let noted = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let input = format!("{begin}\n{noted}\n{list}\n");
    let mut command = giga(home.path());
    command.args(["mcp", "--log", "debug"]).env("GIGA_URL", &server.url).env("GIGA_TOKEN", token.trim());
    let out = run_with_input(&mut command, input.as_bytes()).ok();
    let answers: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.iter().map(|answer| answer["id"].clone()).collect::<Vec<_>>(), [json!(1), json!(2)]);
    let outside = home.giga(&["mcp", "--job"]).fails(2);
    assert!(outside.contains("GIGA_JOB_ID is not set"), "{outside}");
}

/// What a script inside of a job does: starts the server that the factory offers, and calls its tools one after the other.
const INSIDE: &str = include_str!("../../../../tests/mcp-client/inside.py");

fn git(folder: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(args);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// In the sandbox, with an open network and without one: the way to the coordinator is there in both.
#[test]
fn a_job_uses_its_own_tools_in_its_sandbox() {
    for network in ["open", "none"] {
        let home = Home::new();
        let repo = home.path().join("repos/hello");
        std::fs::create_dir_all(&repo).unwrap();
        git(&repo, &["init", "-q", "-b", "main"]);
        std::fs::write(repo.join("inside.py"), INSIDE).unwrap();
        git(&repo, &["add", "."]);
        git(&repo, &["commit", "-q", "-m", "first"]);
        let server = up(&home, &["--factories", "1", "--network", network]);
        let manifest = "---\nname: speaks\nproduct: demo\nrepo: hello\nengine: shell\nscript: python3 inside.py\nretry: {max: 0}\n---\n";
        home.write("job.md", manifest);
        let mut events = Reader::spawn(&home, &["events", "-f"]);
        home.giga(&["job", "submit", "job.md"]).ok();
        events.until(|line| line.contains("Which color?") || line.contains("job.failed"));
        // A person answers, by the same tools.
        let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
        let mut command = python(home.path());
        command.args(["http", "auto", &format!("{}/mcp", server.url)]).env("GIGA_TOKEN", token.trim());
        let mut client = Client::start(command, home.path().join("client.log"));
        let (needing, _) = client.takes("list_jobs", json!({"needsInput": true}));
        let job = needing["jobs"][0]["id"].clone();
        assert_eq!(
            needing["jobs"][0]["needsInput"],
            true,
            "{needing} {}",
            home.giga(&["job", "logs", "speaks"]).out
        );
        let (asked, _) = client.takes("list_questions", json!({"jobId": job}));
        assert_eq!(asked["questions"][0]["options"], json!(["red", "blue"]), "{asked}");
        client.takes("say_to_job", json!({"jobId": job, "text": "Take your time."}));
        client.takes("answer_question", json!({"jobId": job, "question": 1, "answer": "blue"}));
        client.refuses(
            "answer_question",
            json!({"jobId": job, "question": 1, "answer": "red"}),
            "question_closed",
        );
        client.ends();
        let waited = home.giga(&["job", "wait", "speaks", "--until", "testing", "--timeout", "60s"]);
        let log = home.giga(&["job", "logs", "speaks"]).out;
        assert_eq!(
            waited.code,
            Some(0),
            "network {network}: {waited:?}\n{log}\n{}",
            home.giga(&["job", "events", "speaks"]).out
        );
        assert!(
            log.contains("checkpoint: half of it")
                && log.contains("wait ")
                && log.contains("before the next one"),
            "{log}"
        );
        let files = home.giga(&["artifact", "list", "speaks", "-o", "json"]).ok();
        assert!(files.contains("made.txt") && files.contains("note.md"), "{files}");
        let shown: Value =
            serde_json::from_str(&home.giga(&["job", "show", "speaks", "-o", "json"]).ok()).unwrap();
        let children =
            home.giga(&["job", "list", "--parent", shown["id"].as_str().unwrap(), "-o", "json"]).ok();
        assert!(children.contains("\"child\""), "{children}");
        let events = home.giga(&["job", "events", "speaks", "-o", "json"]).ok();
        let by_job = format!("token job-{}-1", shown["id"].as_str().unwrap());
        assert!(events.contains(&by_job), "the job is whom the history names: {events}");
        assert!(!log.contains("gigaj_"), "its token is nowhere in the log");
        assert_eq!(server.stop("INT").code(), Some(0));
    }
}
