//! Diagnostics to stderr. Secrets are never logged; see `TokenSecret`'s `Debug`.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::Settings;
use crate::exit::CliError;

/// Of a command that draws on the terminal.
const SILENT: &str = "off";

pub(crate) fn start(settings: &Settings, default: &str) -> Result<(), CliError> {
    let wanted = settings.log(default);
    let filter = EnvFilter::try_new(&wanted.value).map_err(|error| {
        CliError::Config(format!("{}: `{}` is not a log filter: {error}", wanted.origin, wanted.value))
    })?;
    // Who has the screen to itself keeps it: lines between its frames could not be read, nor could the frames.
    let filter =
        if default == SILENT && std::io::stderr().is_terminal() { EnvFilter::new(SILENT) } else { filter };
    let format = settings.log_format();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format.value.as_str() {
        "json" => builder.json().init(),
        "text" => {
            let colour =
                std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
            builder.with_ansi(colour).with_target(false).init();
        }
        other => {
            return Err(CliError::Config(format!("{}: `{other}` is neither text nor json", format.origin)));
        }
    }
    Ok(())
}
