//! `giga inbox`: dropped files become jobs, refused ones say why, and nothing is submitted twice.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::world::{Home, giga};

struct Watcher {
    process: Child,
    lines: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(home: &Home) -> Self {
        let mut command = giga(home.path());
        command.args(["inbox", "queue", "--product", "demo"]).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap());
        let mut watcher = Self { process, lines };
        assert!(watcher.line().starts_with("ready inbox "));
        watcher
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn stop(mut self) {
        let sent = Command::new("kill").arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
        assert!(self.process.wait().unwrap().success());
    }
}

#[test]
fn files_become_jobs_once_and_move_as_they_go() {
    let home = Home::new();
    let _server = home.start();
    home.write("queue/inbox/good.md", "---\nname: from-a-file\n---\nDo it.\n");
    home.write("queue/inbox/bad.md", "---\nname: x\npriorty: high\n---\n");
    let mut watcher = Watcher::start(&home);
    let mut lines = [watcher.line(), watcher.line()];
    lines.sort();
    assert!(lines[0].contains("refused") && lines[0].contains("bad.md"), "{lines:?}");
    assert!(lines[1].ends_with("submitted  good.md"), "{lines:?}");
    let failed = home.path().join("queue/failed");
    let reasons = std::fs::read_dir(&failed).unwrap().flatten().map(|entry| entry.path());
    let reasons: Vec<_> = reasons.filter(|path| path.to_string_lossy().ends_with(".error.txt")).collect();
    let text = std::fs::read_to_string(&reasons[0]).unwrap();
    assert!(text.contains("did you mean `priority`"), "{text}");
    watcher.stop();

    // A restart finds what it has submitted; the job's end moves the file.
    let mut watcher = Watcher::start(&home);
    home.giga(&["job", "cancel", "from-a-file"]).ok();
    let moved = watcher.line();
    assert!(moved.ends_with("failed  good.md"), "{moved}");
    assert!(failed.join("good.md").exists());
    let jobs = home.giga(&["job", "list", "-o", "name"]).ok();
    assert_eq!(jobs.lines().count(), 1, "{jobs}");
    watcher.stop();
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let home = Home::new();
    let _server = home.start();
    home.write("queue", "a file, not a folder");
    let error = home.giga(&["inbox", "queue"]).fails(1);
    assert!(error.contains("queue") || error.contains("directory"), "{error}");
}
