//! The loop: something happens, the model changes, a frame is drawn.

use std::io;
use std::time::Duration;

use crossterm::event::{Event, EventStream, KeyEventKind};
use futures::{FutureExt, StreamExt};
use giga_api::client::{Client, ClientError};
use giga_api::wire::TokenRole;
use giga_domain::Timestamp;
use rustix::process::{Signal, getpid, kill_process};
use thiserror::Error;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::data::{Desk, Inbox};
use crate::model::{Model, Tone, Who};
use crate::msg::{Effect, Msg};
use crate::terminal::Screen;
use crate::{act, everything, feed, update};

/// Ages on the screen count seconds.
const TICK: Duration = Duration::from_secs(1);
/// What waits to be taken in; whoever sends more waits.
const WAITING: usize = 1_024;

/// Whoever is stopped is stopped at once; who still runs after this long was not.
const STOPPED: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub struct Options<'a> {
    /// Show only what belongs to this one.
    pub product: Option<&'a str>,
    pub colour: bool,
    /// What time it is.
    pub clock: fn() -> Timestamp,
}

#[derive(Debug, Error)]
pub enum TopError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("the token is a {0}'s, which may not look at the fleet; a viewer's may")]
    MayNotLook(TokenRole),
    #[error("the terminal: {0}")]
    Terminal(#[from] io::Error),
    /// By a signal; the screen is as it was.
    #[error("interrupted")]
    Interrupted,
}

/// Until somebody quits. `client` names no product: which one is shown changes while it runs.
pub async fn run(client: Client, options: Options<'_>) -> Result<(), TopError> {
    // Before the screen is taken: who cannot be let in is told so where they typed.
    let who = client.whoami().await?.value;
    let who = Who::from(who);
    if !who.may_look() {
        return Err(TopError::MayNotLook(who.role));
    }
    let (out, inbox) = mpsc::channel(WAITING);
    let mut desk = Desk::new(client.clone(), out.clone());
    desk.spawn(feed::follow(client.clone(), out.clone()));
    let screen = Screen::open(options.colour)?;
    let model = Model::new(who, options.product.map(str::to_owned), screen.size()?, (options.clock)());
    App { client, out, inbox, desk, screen, model, clock: options.clock }.run().await
}

struct App {
    client: Client,
    out: mpsc::Sender<Inbox>,
    inbox: mpsc::Receiver<Inbox>,
    desk: Desk,
    screen: Screen,
    model: Model,
    clock: fn() -> Timestamp,
}

/// Those that end it.
struct Ends {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hangup: unix::Signal,
}

impl Ends {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

enum Next {
    Go,
    Quit,
    Suspend,
}

impl App {
    async fn run(mut self) -> Result<(), TopError> {
        let mut keys = EventStream::new();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut ends = Ends::new()?;
        let effects = everything(&mut self.model);
        self.carry_out(effects);
        loop {
            self.screen.draw(&self.model)?;
            let next = tokio::select! {
                key = keys.next() => match key {
                    Some(key) => self.event(key?),
                    // Nobody can type any more.
                    None => return Err(TopError::Interrupted),
                },
                Some(inbox) = self.inbox.recv() => self.taken(inbox),
                _ = ticks.tick() => {
                    let now = (self.clock)();
                    self.happened(Msg::Tick(now))
                }
                () = ends.recv() => return Err(TopError::Interrupted),
            };
            match next {
                Next::Go => {}
                Next::Quit => return Ok(()),
                Next::Suspend => self.suspend(&mut ends).await?,
            }
            // Many at once are one frame.
            for _ in 0..WAITING {
                let Ok(inbox) = self.inbox.try_recv() else { break };
                self.taken(inbox);
            }
        }
    }

    fn event(&mut self, event: Event) -> Next {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.happened(Msg::Key(key)),
            Event::Paste(text) => self.happened(Msg::Paste(text)),
            Event::Resize(columns, rows) => self.happened(Msg::Resize(columns, rows)),
            _ => Next::Go,
        }
    }

    fn taken(&mut self, inbox: Inbox) -> Next {
        match inbox {
            Inbox::Msg(msg) => self.happened(msg),
            Inbox::Free(lane) => {
                self.desk.free(&lane);
                Next::Go
            }
        }
    }

    fn happened(&mut self, msg: Msg) -> Next {
        let effects = update(&mut self.model, msg);
        self.carry_out(effects)
    }

    fn carry_out(&mut self, effects: Vec<Effect>) -> Next {
        let mut next = Next::Go;
        for effect in effects {
            match effect {
                Effect::Fetch(fetch) => self.desk.ask(fetch, self.model.product.clone()),
                Effect::Act(action) => {
                    let (client, out) = (self.client.clone(), self.out.clone());
                    self.desk.spawn(async move {
                        let outcome = act::act(&client, &action).await;
                        let _ = out.send(Inbox::Msg(Msg::Acted { action, outcome })).await;
                    });
                }
                Effect::Quit => next = Next::Quit,
                Effect::Suspend => next = Next::Suspend,
            }
        }
        next
    }

    /// To the shell, as Ctrl-Z does for any program, and back when it says so.
    async fn suspend(&mut self, ends: &mut Ends) -> Result<(), TopError> {
        let mut woken = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        Screen::suspend();
        kill_process(getpid(), Signal::TSTP).map_err(io::Error::from)?;
        let woke = tokio::select! {
            biased;
            _ = woken.recv() => true,
            () = ends.recv() => return Err(TopError::Interrupted),
            // Nobody could wake us, so the system did not stop us; or both came at once.
            () = tokio::time::sleep(STOPPED) => woken.recv().now_or_never().is_some(),
        };
        self.screen.resume()?;
        if !woke {
            self.model
                .say(Tone::Bad, "there is no shell to go to: nothing waits for this terminal but giga top");
        }
        let now = (self.clock)();
        self.happened(Msg::Tick(now));
        Ok(())
    }
}
