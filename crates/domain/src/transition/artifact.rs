//! What a job's history says about files. The stage never changes here.

use crate::{Artifact, EventKind, NewEvent};

pub(super) fn added(artifact: &Artifact) -> NewEvent {
    let cause = format!("{} with {} bytes", artifact.name, artifact.size);
    about(NewEvent::new(EventKind::ArtifactAdded, cause), artifact).with("size", artifact.size)
}

pub(super) fn removed(artifact: &Artifact) -> NewEvent {
    about(NewEvent::new(EventKind::ArtifactRemoved, format!("{} removed", artifact.name)), artifact)
}

fn about(event: NewEvent, artifact: &Artifact) -> NewEvent {
    event.with("artifactId", artifact.id.to_string()).with("name", artifact.name.as_str())
}
