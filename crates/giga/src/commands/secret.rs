//! `giga secret …`. A value is never an argument, where other users of the machine could read it, and never printed.

use std::io::{IsTerminal, Read, Write};

use giga_api::client::Client;
use giga_api::wire::Secret;
use giga_domain::limits;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

use super::Done;
use super::context::Context;
use crate::args::{SecretCommand, SetSecretArgs};
use crate::exit::CliError;
use crate::output::{Columns, Output, ago, printable, say};

pub(crate) async fn run(command: SecretCommand, context: &Context) -> Done {
    // The product stands in the path; in a header it would say the same again.
    let (client, output) = (context.client_in(None)?, &context.output);
    match command {
        SecretCommand::Set(SetSecretArgs { name, file }) => {
            let product = product(context, &client).await?;
            let value = value(&name, file).await?;
            let secret = client.set_secret(&product, &name, value.to_vec()).await?;
            output.one(&secret.json, "/name", || {
                printable(&format!("{} of {}, version {}", secret.name, secret.product_id, secret.version))
            })
        }
        SecretCommand::List => {
            let answer = client.secrets(&product(context, &client).await?).await?;
            let none = "no secrets; set one with `giga secret set NAME`";
            output.list(&answer.json, ("/secrets", "/name"), none, || list(&answer.secrets, output))
        }
        SecretCommand::Remove { name } => {
            let product = product(context, &client).await?;
            client.remove_secret(&product, &name).await?;
            say(&printable(&format!(
                "{name} of {product} is removed; jobs that name it fail when they start"
            )));
            Ok(())
        }
        SecretCommand::Rotate => {
            let done = client.rotate_secrets().await?;
            output.one(&done.json, "/keyId", || {
                format!(
                    "{} encrypted again with key {}; {} were already",
                    done.rotated, done.key_id, done.unchanged
                )
            })
        }
    }
}

/// The one that is set, or the only one that the token is for.
async fn product(context: &Context, client: &Client) -> Result<String, CliError> {
    if let Some(product) = context.settings.product() {
        return Ok(product.value);
    }
    let me = client.whoami().await?;
    match me.products.as_slice() {
        [only] => Ok(only.clone()),
        [] => Ok("default".to_owned()),
        several => Err(CliError::Config(format!("say which product with --product: {}", several.join(", ")))),
    }
}

/// From the file, byte for byte; otherwise from stdin, where the end of the only line does not count.
async fn value(name: &str, file: Option<String>) -> Result<Zeroizing<Vec<u8>>, CliError> {
    let (shown, of_file) = (name.to_owned(), file.clone());
    let read = tokio::task::spawn_blocking(move || match of_file.as_deref() {
        Some("-") => read_all(std::io::stdin().lock()),
        Some(path) => read_all(std::fs::File::open(path)?),
        None if std::io::stdin().is_terminal() => ask(&shown).map(without_line_end),
        None => read_all(std::io::stdin().lock()).map(without_line_end),
    });
    let read = read.await.map_err(|_| CliError::Interrupted)?;
    let from = file.unwrap_or_else(|| "stdin".to_owned());
    read.map_err(|error| CliError::failed(format!("cannot read the value from {from}: {error}")))
}

fn read_all(source: impl Read) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    // Enough to be refused, not enough to fill the memory.
    source.take(limits::SECRET_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn without_line_end(mut value: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    let ends = |value: &[u8], byte: u8| value.last() == Some(&byte);
    let first_end = value.iter().position(|byte| *byte == b'\n');
    if first_end.is_some_and(|at| at + 1 == value.len()) {
        value.pop();
        if ends(&value, b'\r') {
            value.pop();
        }
    }
    value
}

/// What is typed is not shown.
fn ask(name: &str) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let stdin = std::io::stdin();
    let before = tcgetattr(&stdin)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(&stdin, OptionalActions::Flush, &silent)?;
    let mut stderr = std::io::stderr().lock();
    let asked = write!(stderr, "Value of {name} (not shown): ").and_then(|()| stderr.flush());
    let mut line = Zeroizing::new(String::new());
    let read = asked.and_then(|()| stdin.read_line(&mut line));
    tcsetattr(&stdin, OptionalActions::Flush, &before)?;
    read?;
    Ok(Zeroizing::new(line.as_bytes().to_vec()))
}

fn list(secrets: &[Secret], output: &Output) -> String {
    let mut table = Columns::new(&["SECRET", "VERSION", "SET", "BY", "KEY"]);
    for secret in secrets {
        table.row([
            printable(&secret.name),
            secret.version.to_string(),
            ago(&secret.updated_at, output.now),
            printable(&secret.updated_by),
            printable(&secret.key_id),
        ]);
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_only_line_does_not_count() {
        let cut = |text: &str| {
            String::from_utf8(without_line_end(text.as_bytes().to_vec().into()).to_vec()).unwrap()
        };
        assert_eq!(cut("hunter22\n"), "hunter22");
        assert_eq!(cut("hunter22\r\n"), "hunter22");
        assert_eq!(cut("hunter22"), "hunter22");
        assert_eq!(cut("one\ntwo\n"), "one\ntwo\n", "a file of several lines is what it is");
    }
}
