//! SIGINT and SIGTERM mean "stop in good order".

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::{self, CliError};
use crate::output::progress;

/// A second signal does not wait any longer: nothing is lost by that, it is only less polite.
pub(super) fn cancel_on_signal(shutdown: CancellationToken) -> Result<(), CliError> {
    let failed = |error| CliError::failed(format!("cannot listen for signals: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        tracing::info!("stopping");
        progress("stopping; once more to stop at once");
        shutdown.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        std::process::exit(exit::INTERRUPTED.into());
    });
    Ok(())
}
