//! `giga-scripted-model SCRIPT.json [ADDRESS]`: plays the script until it is stopped; `GET /asked` shows what was asked.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it talks to whoever starts it")]

use std::process::ExitCode;

use giga_scripted_model::{Script, ScriptedModel};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("giga-scripted-model: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("say which script: giga-scripted-model SCRIPT.json [ADDRESS]")?;
    let address = args.next().unwrap_or_else(|| "127.0.0.1:0".to_owned()).parse()?;
    let script = Script::from_json(&std::fs::read_to_string(file)?)?;
    let model = ScriptedModel::listen(script, address).await?;
    println!("{}", model.url());
    model.wait().await;
    Ok(())
}
