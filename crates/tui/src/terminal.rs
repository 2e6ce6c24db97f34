//! The screen: taken over, and given back on every way out (the end, an error, a signal, a panic).

use std::io::{self, Stdout, Write, stdout};
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;

use crate::model::Model;
use crate::view;

/// Whether there is anything to give back.
static TAKEN: AtomicBool = AtomicBool::new(false);

pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    colour: bool,
}

impl Screen {
    pub(crate) fn open(colour: bool) -> io::Result<Self> {
        restore_on_panic(give_back);
        take()?;
        // From here on the screen is given back when this is dropped.
        let opened = Terminal::new(CrosstermBackend::new(stdout()));
        if opened.is_err() {
            give_back();
        }
        Ok(Self { terminal: opened?, colour })
    }

    pub(crate) fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    pub(crate) fn draw(&mut self, model: &Model) -> io::Result<()> {
        self.terminal.draw(|frame| view::draw(model, self.colour, frame.area(), frame.buffer_mut()))?;
        Ok(())
    }

    /// Gives the screen to whoever started us, until `resume`.
    pub(crate) fn suspend() {
        give_back();
    }

    pub(crate) fn resume(&mut self) -> io::Result<()> {
        take()?;
        self.terminal.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::SeqCst);
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)
}

/// May be called any number of times, by any thread.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Nobody could be told if this failed; each is tried whatever became of the other.
        let _ = leave(&mut stdout());
        let _ = disable_raw_mode();
    }
}

fn leave(out: &mut impl Write) -> io::Result<()> {
    execute!(out, DisableBracketedPaste, LeaveAlternateScreen, Show)
}

/// What a panic says must be readable, and the shell after it usable: the screen is given back first.
fn restore_on_panic(restore: impl Fn() + Send + Sync + 'static) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        restore();
        before(info);
    }));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn leaving_shows_the_cursor_on_the_screen_from_before() {
        let mut out = Vec::new();
        leave(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        for undone in ["\u{1b}[?1049l", "\u{1b}[?25h", "\u{1b}[?2004l"] {
            assert!(out.contains(undone), "{undone:?} in {out:?}");
        }
    }

    #[test]
    fn a_panic_gives_the_screen_back_before_it_speaks() {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let original = std::panic::take_hook();
        let speaks = calls.clone();
        std::panic::set_hook(Box::new(move |_| speaks.lock().push("spoke")));
        let restores = calls.clone();
        restore_on_panic(move || restores.lock().push("gave back"));
        let ended = std::thread::spawn(|| panic!("on purpose")).join();
        std::panic::set_hook(original);
        assert!(ended.is_err());
        assert_eq!(*calls.lock(), ["gave back", "spoke"]);
    }
}
