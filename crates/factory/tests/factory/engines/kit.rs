//! A bench to run one engine on: the fake program in the place of the real one, a folder, and what came of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use giga_domain::FailReason;
use giga_factory::engines::{
    CommandConfig, Engine, EngineEvent, EngineFailure, EngineOutcome, EngineReport, EngineRequest,
    EnginesConfig, EventFormat, HostEnvironment, Inbox, Program, ProgramConfig, RUN_MARKER, Usage, Watchdog,
    engines_in,
};
use giga_factory::sandbox::Sandbox;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Nothing here takes this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Built by the first test that needs it.
pub(crate) fn fake_engine() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| giga_testkit::binary::built("giga-testkit", "fake-engine"))
}

pub(crate) fn fixture(name: &str) -> String {
    format!("{}/tests/factory/engines/fixtures/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))
}

/// A name for a run that no other test has.
fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) engine: String,
    pub(crate) config: EnginesConfig,
    pub(crate) host: Vec<(String, String)>,
    pub(crate) request: EngineRequest,
    pub(crate) marker: String,
}

impl Bench {
    /// `plain` is a template whose exit status decides; any other name is that engine with the fake in its place.
    pub(crate) fn new(engine: &str, steps: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let marker = marker();
        let mut request = EngineRequest::new(dir.path(), "Fix the greeting.");
        request.env = vec![
            ("FAKE_ENGINE".to_owned(), steps.join("\n")),
            (RUN_MARKER.to_owned(), marker.clone()),
            ("RUST_BACKTRACE".to_owned(), "0".to_owned()),
        ];
        request.watchdog =
            Watchdog { idle: PATIENCE, wall: PATIENCE, kill_grace: Duration::from_millis(200) };
        let program = ProgramConfig { program: Some(fake_engine().to_owned()), ..ProgramConfig::default() };
        let plain = CommandConfig {
            argv: vec![fake_engine().display().to_string()],
            resume_argv: None,
            check_argv: None,
            pass_env: Vec::new(),
            events: EventFormat::Text,
            hosts: Vec::new(),
        };
        let config = EnginesConfig {
            programs: Program::ALL.iter().map(|name| (*name, program.clone())).collect(),
            commands: [("plain".to_owned(), plain)].into(),
            ..EnginesConfig::default()
        };
        let host =
            ["PATH", "HOME"].iter().map(|name| ((*name).to_owned(), std::env::var(name).unwrap_or_default()));
        Self { dir, engine: engine.to_owned(), config, host: host.collect(), request, marker }
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut EngineRequest)) -> Self {
        change(&mut self.request);
        self
    }

    pub(crate) fn configured(mut self, change: impl FnOnce(&mut EnginesConfig)) -> Self {
        change(&mut self.config);
        self
    }

    pub(crate) fn engine(&self) -> Arc<dyn Engine> {
        let host: HostEnvironment = self.host.iter().cloned().collect();
        let all = engines_in(&self.config, host, &Sandbox::off());
        all.into_iter().find(|engine| engine.name() == self.engine).expect("the bench names an engine")
    }

    pub(crate) async fn run(self) -> Ran {
        self.run_and(|_, _| ()).await
    }

    /// Stops it as soon as it has printed `line`.
    pub(crate) async fn stop_at(self, line: &str) -> Ran {
        self.run_and(|event, stop| {
            if matches!(event, EngineEvent::Output { line: printed, .. } if printed == line) {
                stop.cancel();
            }
        })
        .await
    }

    /// For listeners that do not listen.
    pub(crate) async fn run_into(&self, events: mpsc::Sender<EngineEvent>) -> EngineReport {
        let engine = self.engine();
        let run = engine.run(self.request.clone(), events, Inbox::closed(), CancellationToken::new());
        tokio::time::timeout(PATIENCE, run).await.expect("every run has an end")
    }

    async fn run_and(self, mut watch: impl FnMut(&EngineEvent, &CancellationToken)) -> Ran {
        let (sender, mut receiver) = mpsc::channel(64);
        let stop = CancellationToken::new();
        let engine = self.engine();
        let run = engine.run(self.request.clone(), sender, Inbox::closed(), stop.clone());
        let listen = async {
            let mut events = Vec::new();
            while let Some(event) = receiver.recv().await {
                watch(&event, &stop);
                events.push(event);
            }
            events
        };
        let both = async { tokio::join!(run, listen) };
        let (report, events) = tokio::time::timeout(PATIENCE, both).await.expect("every run has an end");
        Ran { report, events, marker: self.marker, dir: self.dir }
    }
}

pub(crate) struct Ran {
    pub(crate) report: EngineReport,
    pub(crate) events: Vec<EngineEvent>,
    pub(crate) marker: String,
    pub(crate) dir: TempDir,
}

impl Ran {
    pub(crate) fn lines(&self) -> Vec<&str> {
        fn line(event: &EngineEvent) -> Option<&str> {
            if let EngineEvent::Output { line, .. } = event { Some(line) } else { None }
        }
        self.events.iter().filter_map(line).collect()
    }

    pub(crate) fn notes(&self) -> Vec<&str> {
        fn note(event: &EngineEvent) -> Option<&str> {
            if let EngineEvent::Note(note) = event { Some(note) } else { None }
        }
        self.events.iter().filter_map(note).collect()
    }

    pub(crate) fn usages(&self) -> Vec<Usage> {
        fn usage(event: &EngineEvent) -> Option<Usage> {
            if let EngineEvent::Usage(usage) = event { Some(*usage) } else { None }
        }
        self.events.iter().filter_map(usage).collect()
    }

    #[track_caller]
    pub(crate) fn failure(&self) -> &EngineFailure {
        match &self.report.outcome {
            EngineOutcome::Failed(failure) => failure,
            other => panic!("it should have failed: {other:?}; {:?}", self.events),
        }
    }

    #[track_caller]
    pub(crate) fn failed(&self, reason: FailReason, retryable: bool) {
        let failure = self.failure();
        assert_eq!((failure.reason, failure.retryable), (reason, retryable), "{failure:?}");
    }

    #[track_caller]
    pub(crate) fn succeeded(&self) {
        assert_eq!(self.report.outcome, EngineOutcome::Succeeded, "{:?}", self.events);
    }

    /// By the marker, and by the numbers that the fake's children print.
    pub(crate) async fn nothing_is_left(&self) {
        let pids = self.lines().into_iter().filter_map(|line| line.strip_prefix("pid ")?.parse().ok());
        nothing_is_left(&self.marker, &pids.collect::<Vec<_>>()).await;
    }
}

pub(crate) async fn nothing_is_left(marker: &str, pids: &[u32]) {
    assert_eq!(marked(marker), Vec::<u32>::new(), "processes of {marker} are left");
    // A process that was just killed may need a moment to be gone.
    let gone = async {
        while pids.iter().any(|id| is_alive(*id)) {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, gone).await.is_ok(), "some of {pids:?} are alive");
}

/// Living processes whose environment names the run.
pub(crate) fn marked(marker: &str) -> Vec<u32> {
    let entry = format!("{RUN_MARKER}={marker}");
    let has = |id: &u32| {
        std::fs::read(format!("/proc/{id}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|pair| pair == entry.as_bytes()))
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has).collect()
}

/// A zombie is dead: it only waits for whoever adopted it.
fn is_alive(id: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        !matches!(state, Some('Z' | 'X'))
    })
}
