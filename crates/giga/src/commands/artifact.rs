//! `giga artifact …`: files that runs left behind.
//!
//! They come from whatever ran in a job: nothing of them reaches a terminal, and a saved file is never half of one.

use std::io::IsTerminal;
use std::path::Path;

use futures::TryStreamExt;
use giga_api::client::Client;
use giga_api::wire::Artifact;
use tokio::io::AsyncWriteExt;

use super::Done;
use super::context::Context;
use crate::args::{ArtifactCommand, GetArtifactArgs};
use crate::exit::CliError;
use crate::output::{Columns, Output, ago, printable, say};

pub(crate) async fn run(command: ArtifactCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        ArtifactCommand::List { job } => {
            let job = context.job_id(&client, &job).await?;
            let answer = client.artifacts(&job).await?;
            let none = "the job has no artifacts";
            output.list(&answer.json, ("/artifacts", "/id"), none, || table(&answer.artifacts, output))
        }
        ArtifactCommand::Get(args) => get(&client, &args, output).await,
        ArtifactCommand::Link { id, ttl } => {
            let answer = client.artifact_link(&id, ttl.as_deref()).await?;
            output.one(&answer.json, "/url", || printable(&answer.url))?;
            say(&format!("the link works until {}", answer.expires_at));
            Ok(())
        }
        ArtifactCommand::Rm { id } => {
            client.delete_artifact(&id).await?;
            say(&format!("artifact {id} was removed"));
            Ok(())
        }
    }
}

fn table(artifacts: &[Artifact], output: &Output) -> String {
    let mut table = Columns::new(&["ARTIFACT", "RUN", "NAME~", "SIZE", "TYPE~", "CREATED"]);
    table.right(&[1, 3]);
    for artifact in artifacts {
        table.row([
            printable(&artifact.id),
            artifact.lease_epoch.to_string(),
            printable(&artifact.name),
            artifact.size.to_string(),
            printable(&artifact.media_type),
            ago(&artifact.created_at, output.now),
        ]);
    }
    table.render()
}

async fn get(client: &Client, args: &GetArtifactArgs, output: &Output) -> Done {
    let Some(path) = &args.file else {
        if std::io::stdout().is_terminal() {
            return Err(CliError::Usage(
                "a file may contain anything, so it is not printed to a terminal; save it with -O FILE"
                    .to_owned(),
            ));
        }
        let mut pieces = client.artifact_stream(&args.id).await?;
        while let Some(piece) = pieces.try_next().await? {
            output.bytes(&piece)?;
        }
        return Ok(());
    };
    let size = save(client, &args.id, path).await?;
    say(&format!("saved {size} bytes to {}", path.display()));
    Ok(())
}

/// Under another name until it is whole.
async fn save(client: &Client, id: &str, path: &Path) -> Result<u64, CliError> {
    let cannot =
        |error: std::io::Error| CliError::failed(format!("cannot write {}: {error}", path.display()));
    let mut pieces = client.artifact_stream(id).await?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let part = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(cannot)?;
    let mut file = tokio::fs::File::from_std(part.reopen().map_err(cannot)?);
    let mut size = 0;
    while let Some(piece) = pieces.try_next().await? {
        file.write_all(&piece).await.map_err(cannot)?;
        size += piece.len() as u64;
    }
    file.flush().await.map_err(cannot)?;
    part.persist(path).map_err(|error| cannot(error.error))?;
    Ok(size)
}
