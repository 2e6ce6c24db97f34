//! Files that runs leave behind: what points to them, not their bytes.

use giga_domain::{Actor, Artifact, ArtifactId, ArtifactName, Holder, JobId, ProductId, Timestamp};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! artifacts {
    ($make:ident) => {
        $make! {
            writes ArtifactStore {
                /// Points to a file of the holder's run: fenced by its epoch. A name that the run has used before gets the
                /// new file.
                put_artifact(PutArtifact) -> ArtifactPut;

                /// Points to it no more. One that is gone or was replaced is fine: it may be the same call again.
                delete_artifact(DeleteArtifact) -> ();
            }
            reads ArtifactReads {
                /// Of all runs, by epoch and name.
                artifacts(job: JobId) -> Vec<Artifact>;

                artifact(id: ArtifactId) -> Option<Artifact>;

                /// How large all files of the product are together.
                artifact_bytes(product: &ProductId) -> u64;

                /// Files of jobs that ended before `before`, oldest first.
                expired_artifacts(before: Timestamp, limit: usize) -> Vec<Artifact>;
            }
        }
    };
}
artifacts!(traits);
pub(super) use artifacts;

/// A file that the holder's run leaves behind. Its bytes are in place already, under this id.
#[derive(Debug, Clone)]
pub struct PutArtifact {
    pub id: ArtifactId,
    pub job: JobId,
    pub holder: Holder,
    /// Who wrote it: the holder itself, or what runs inside the job.
    pub actor: Actor,
    pub name: ArtifactName,
    pub media_type: String,
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPut {
    pub artifact: Artifact,
    /// What had the name until now; nothing points to its bytes any more.
    pub replaced: Option<Artifact>,
}

#[derive(Debug, Clone)]
pub struct DeleteArtifact {
    pub artifact: Artifact,
    pub actor: Actor,
}
