//! Files that runs leave behind.

use giga_domain::{Artifact, Command};
use giga_ports::StoreError;
use giga_ports::store::{ArtifactPut, DeleteArtifact, PutArtifact};

use super::super::{Needs, Op, Working};

impl Op for PutArtifact {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.job);
        needs.artifacts.insert((self.job, self.holder.epoch, self.name.clone()));
    }

    fn decide(&self, working: &mut Working) -> Result<ArtifactPut, StoreError> {
        let PutArtifact { id, job, holder, actor, name, media_type, size } = self.clone();
        let artifact = Artifact {
            id,
            job,
            product: working.job(job)?.product.clone(),
            epoch: holder.epoch,
            name,
            media_type,
            size,
            created_at: working.now(),
        };
        // The same command again, after a commit whose fate was not known.
        if let Some(known) = working.artifact(&artifact.key()).filter(|known| known.id == id) {
            return Ok(ArtifactPut { artifact: known.clone(), replaced: None });
        }
        working.apply(job, &Command::AddArtifact { holder, artifact: artifact.clone() }, &actor)?;
        let replaced = working.put_artifact(artifact.clone());
        Ok(ArtifactPut { artifact, replaced })
    }
}

impl Op for DeleteArtifact {
    fn needs(&self, needs: &mut Needs) {
        needs.jobs.insert(self.artifact.job);
        needs.artifacts.insert(self.artifact.key());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let key = self.artifact.key();
        let Some(known) = working.artifact(&key).filter(|known| known.id == self.artifact.id).cloned() else {
            return Ok(());
        };
        let job = known.job;
        working.apply(job, &Command::RemoveArtifact(known), &self.actor)?;
        working.remove_artifact(&key);
        Ok(())
    }
}
