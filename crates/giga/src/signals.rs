//! SIGINT and SIGTERM mean "stop in good order"; a second one means "at once".

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::{self, CliError};
use crate::output::progress;

/// From the moment that it is made, no signal ends the process by itself.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, CliError> {
        let failed = |error| CliError::failed(format!("cannot listen for signals: {error}"));
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// A second signal does not wait for the end, only for `last`: nothing is lost by that, it is only less polite.
pub(crate) fn cancel_on_signal(
    shutdown: CancellationToken,
    last: impl Future<Output = ()> + Send + 'static,
) -> Result<(), CliError> {
    let mut signals = Signals::listen()?;
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping");
        progress("stopping; press Ctrl-C again to stop at once");
        shutdown.cancel();
        signals.next().await;
        last.await;
        std::process::exit(exit::INTERRUPTED.into());
    });
    Ok(())
}
