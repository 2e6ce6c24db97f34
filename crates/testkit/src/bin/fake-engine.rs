//! An engine that does as it is told, badly on demand: it hangs, floods, forks, lies about its success, and does not
//! go when asked to.
//!
//! It is told by steps, in order: those of `--fake STEP` arguments if there are any, otherwise the lines of the
//! variable FAKE_ENGINE. All other arguments are ignored, so that it can stand in for any program. It never needs a
//! network and never changes anything but the folder that it runs in.

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

const HELP: &str = "steps, one per line:
  print TEXT          a line on standard output
  complain TEXT       a line on standard error
  emit FILE           the file's bytes on standard output
  bytes               a line that is no UTF-8
  halves TEXT         TEXT in two writes with a pause between them
  long-line BYTES     one line of that length
  flood BYTES         lines, so many bytes in all
  trickle MS          a line every so often, for ever
  hang                nothing, for ever
  closed-hang         closes its output, then nothing, for ever
  child               starts a child in the same process group that hangs
  nameless-child      the same without the run's marker in its environment
  runaway             the same in a session of its own
  group-child         the same in a process group of its own
  fork-storm N        N runaways, each of which starts another
  ignore-term         from now on SIGTERM does nothing
  tell-term           from now on SIGTERM prints a line and ends it with 0
  show-args           its arguments, each on a line as JSON
  show-env            its environment, each on a line
  show-environ        /proc/self/environ, each on a line
  show-stdin          how many bytes standard input has, and their beginning
  show-whole-stdin    standard input, as JSON on a line
  show-persona        the file of --append-system-prompt-file, as JSON on a line, if there is one
  look-for-args       how many processes of the machine have the value of LOOK_FOR in their arguments
  show-dir            its working folder
  show-file VARIABLE  the content of the file that the variable names
  write FILE TEXT     a file in the working folder
  record FILE PATH    the file's bytes at the end of PATH, which is below its home
  commit TEXT         a git commit of everything in the working folder
  exit N              ends with that status
  abort               ends by a signal
  on WORD STEP        the step, if WORD is among the arguments
  without WORD STEP   the step, if it is not";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let steps_given: Vec<String> =
        args.windows(2).filter(|pair| pair[0] == "--fake").map(|pair| pair[1].clone()).collect();
    let steps = if steps_given.is_empty() {
        std::env::var("FAKE_ENGINE").unwrap_or_default().lines().map(str::to_owned).collect()
    } else {
        steps_given
    };
    for step in &steps {
        if let Err(error) = Box::pin(perform(step.trim(), &args)).await {
            complain(&format!("fake-engine: `{step}`: {error}"));
            std::process::exit(70);
        }
    }
}

async fn perform(step: &str, args: &[String]) -> std::io::Result<()> {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    match verb {
        "" => {}
        "print" => print(rest.as_bytes()),
        "complain" => complain(rest),
        "emit" => put(&std::fs::read(rest)?),
        "bytes" => print(b"caf\xe9 \xff\xfe end"),
        "halves" => {
            let (first, second) = rest.split_at(rest.floor_char_boundary(rest.len() / 2));
            put(first.as_bytes());
            tokio::time::sleep(Duration::from_millis(50)).await;
            print(second.as_bytes());
        }
        "long-line" => print(&vec![b'x'; number(rest)?]),
        "flood" => flood(number(rest)?),
        "trickle" => loop {
            print(b"drip");
            tokio::time::sleep(Duration::from_millis(number(rest)? as u64)).await;
        },
        "hang" => std::future::pending().await,
        "closed-hang" => {
            close_output()?;
            std::future::pending::<()>().await;
        }
        "child" => start(&["ready", "hang"], |_| ())?,
        "nameless-child" => start(&["ready", "hang"], |command| {
            command.env_clear();
        })?,
        "runaway" => start(&["setsid", "ready", "hang"], |_| ())?,
        "group-child" => start(&["ready", "hang"], |command| {
            command.process_group(0);
        })?,
        "fork-storm" => (0..number(rest)?)
            .try_for_each(|_| start(&["setsid", "ignore-term", "runaway", "ready", "hang"], |_| ()))?,
        "ignore-term" => drop(signal(SignalKind::terminate())?),
        "tell-term" => {
            let mut term = signal(SignalKind::terminate())?;
            tokio::spawn(async move {
                term.recv().await;
                print(b"asked to go");
                std::process::exit(0);
            });
        }
        // Only for the children above: the parent waits until they are what they are meant to be.
        "setsid" => drop(rustix::process::setsid()?),
        "ready" => {
            print(format!("pid {}", std::process::id()).as_bytes());
            let parent: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned()?;
            UnixStream::from(parent).write_all(b"!")?;
        }
        "write" => {
            let (file, text) = rest.split_once(' ').unwrap_or((rest, ""));
            std::fs::write(file, format!("{text}\n"))?;
        }
        "record" => {
            let (file, path) = rest.split_once(' ').unwrap_or((rest, ""));
            let home = std::env::var_os("HOME").unwrap_or_default();
            let path = std::path::Path::new(&home).join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            let mut end = std::fs::OpenOptions::new().append(true).create(true).open(path)?;
            end.write_all(&std::fs::read(file)?)?;
        }
        "commit" => {
            git(&["add", "--all"])?;
            git(&["-c", "user.name=fake", "-c", "user.email=fake@localhost", "commit", "-qm", rest])?;
        }
        "exit" => std::process::exit(i32::try_from(number(rest)?).unwrap_or(70)),
        "abort" => std::process::abort(),
        "on" | "without" => {
            let (word, step) = rest.split_once(' ').unwrap_or((rest, ""));
            if args.iter().any(|arg| arg == word) == (verb == "on") {
                Box::pin(perform(step, args)).await?;
            }
        }
        _ => return show(verb, rest, args),
    }
    Ok(())
}

fn show(verb: &str, rest: &str, args: &[String]) -> std::io::Result<()> {
    match verb {
        "show-args" => {
            for arg in args {
                print(serde_json::Value::from(arg.as_str()).to_string().as_bytes());
            }
        }
        "show-env" => {
            for (name, value) in std::env::vars() {
                print(format!("{name}={value}").as_bytes());
            }
        }
        "show-environ" => {
            for pair in std::fs::read("/proc/self/environ")?.split(|byte| *byte == 0) {
                print(pair);
            }
        }
        "show-stdin" => {
            let mut input = String::new();
            std::io::stdin().read_to_string(&mut input)?;
            let beginning: String = input.chars().take(20).collect();
            print(format!("stdin {} {beginning}", input.len()).as_bytes());
        }
        "show-whole-stdin" => {
            let mut input = String::new();
            std::io::stdin().read_to_string(&mut input)?;
            print(format!("stdin {}", serde_json::Value::from(input)).as_bytes());
        }
        "show-persona" => {
            let named = args.windows(2).find(|pair| pair[0] == "--append-system-prompt-file");
            if let Some([_, file, ..]) = named {
                let text = std::fs::read_to_string(file)?;
                print(format!("persona {}", serde_json::Value::from(text)).as_bytes());
            }
        }
        "look-for-args" => {
            let mark = std::env::var("LOOK_FOR").map_err(std::io::Error::other)?;
            let has_mark = |entry: &std::fs::DirEntry| {
                std::fs::read(entry.path().join("cmdline"))
                    .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&mark))
            };
            let found = std::fs::read_dir("/proc")?.flatten().filter(has_mark).count();
            print(format!("found in the arguments of {found} processes").as_bytes());
        }
        "show-dir" => print(std::env::current_dir()?.display().to_string().as_bytes()),
        "show-file" => {
            let file = std::env::var(rest).map_err(std::io::Error::other)?;
            put(&std::fs::read(file)?);
        }
        _ => return Err(std::io::Error::other(format!("there is no such step; {HELP}"))),
    }
    Ok(())
}

/// Starts itself once more and waits until the child says that it is ready.
fn start(steps: &[&str], change: impl FnOnce(&mut Command)) -> std::io::Result<()> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut command = Command::new(std::env::current_exe()?);
    change(&mut command);
    command.args(steps.iter().flat_map(|step| ["--fake", step]));
    // It keeps the output open, as careless programs do.
    command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
    drop(command);
    (&ours).read_exact(&mut [0])
}

fn git(args: &[&str]) -> std::io::Result<()> {
    let status = Command::new("git").args(args).status()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(format!("git {args:?}: {status}"))) }
}

fn flood(mut bytes: usize) {
    let line = [b'y'; 99];
    while bytes > 0 {
        print(&line[..bytes.min(99)]);
        bytes = bytes.saturating_sub(100);
    }
}

/// Replaces both outputs by nothing, as a program does that becomes a daemon.
fn close_output() -> std::io::Result<()> {
    let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&nothing)?;
    rustix::stdio::dup2_stderr(&nothing)?;
    Ok(())
}

fn number(text: &str) -> std::io::Result<usize> {
    text.trim().parse().map_err(std::io::Error::other)
}

fn print(line: &[u8]) {
    put(&[line, b"\n"].concat());
}

/// A reader that is gone is no error: the engine goes on.
fn put(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _gone = out.write_all(bytes).and_then(|()| out.flush());
}

fn complain(line: &str) {
    let _gone = writeln!(std::io::stderr().lock(), "{line}");
}
