//! Runs a command beside a private PostgreSQL with fsync on, whose URL it finds in `DATABASE_URL`. The server goes when
//! the command ends: `with-postgres COMMAND [ARGUMENTS]`. For benchmarks; tests use the fixture itself.
#![expect(clippy::print_stderr, reason = "it talks to the person who runs it")]

use std::process::{Command, ExitCode};

use giga_testkit::postgres::{PostgresServer, TestDatabase};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, arguments)) = words.split_first() else {
        eprintln!("with-postgres COMMAND [ARGUMENTS]");
        return ExitCode::from(2);
    };
    let server = PostgresServer::start();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let database = runtime.block_on(TestDatabase::on(&server));
    let status = Command::new(program).args(arguments).env("DATABASE_URL", database.url()).status();
    match status {
        Ok(status) => ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        Err(error) => {
            eprintln!("{program} could not be started: {error}");
            ExitCode::FAILURE
        }
    }
}
