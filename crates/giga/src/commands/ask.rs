//! Asking whoever sits at the terminal.

use std::io::{BufRead, IsTerminal, Write};

/// Whether somebody could answer.
pub(crate) fn somebody_is_there() -> bool {
    std::io::stdin().is_terminal()
}

/// Yes or no; a bare Enter means `unsaid`. Read by a thread that nobody waits for, so that Ctrl-C does not have to wait
/// for a line.
pub(crate) async fn ask(question: &str, unsaid: bool) -> bool {
    let choice = if unsaid { "[Y/n]" } else { "[y/N]" };
    let _ = write!(anstream::stderr(), "{question} {choice} ");
    let (sender, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        let _ = sender.send(read.is_ok_and(|bytes| bytes > 0).then_some(line));
    });
    let line = answer.await.ok().flatten();
    line.is_some_and(|line| match line.trim().to_ascii_lowercase().as_str() {
        "" => unsaid,
        "y" | "yes" => true,
        _ => false,
    })
}
